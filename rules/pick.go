package rules

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// PickSeat is a seat as a pick looks at it.
type PickSeat struct {
	Name    string `json:"name"`
	BotUser string `json:"bot_user"`
	// Rank is the seat's place in the roster, the first one's is the smallest.
	Rank int `json:"rank"`
	// Area are the people, by user id, whose asks are this seat's.
	Area []string `json:"area,omitempty"`
	// Stickers are the names of the reactions that stand for the seat.
	Stickers []string `json:"stickers,omitempty"`
	// Out: the seat is not in the channel of the ask. One of which that is unknown is in it.
	Out bool `json:"out,omitempty"`
}

// Sticker is a reaction on the root of the ask's thread.
type Sticker struct {
	Name string `json:"name"`
	// User put it there; Author tells what they are.
	User   string `json:"user"`
	Author Author `json:"author"`
}

// PickFacts are all that a pick goes by: the dispatcher and every seat have the same (A2).
type PickFacts struct {
	// Question is the text of the ask, as Slack has it.
	Question string `json:"question"`
	// Asker is the person who asks.
	Asker string     `json:"asker"`
	Seats []PickSeat `json:"seats"`
	// Dispatcher is Agent Force's bot user: it is no seat, whatever the roster says.
	Dispatcher string `json:"dispatcher,omitempty"`
	// Driver is the name of the seat that drives the thread, "" for none.
	Driver   string    `json:"driver,omitempty"`
	Stickers []Sticker `json:"stickers,omitempty"`
}

// PickRule is the rule that chose.
type PickRule string

// The rules of A2, in the order in which they are asked; PickedFirst is what is left.
const (
	PickedNamed   PickRule = "named"   // the question names this seat and no other
	PickedDriver  PickRule = "driver"  // it drives the thread
	PickedSticker PickRule = "sticker" // more people put its sticker on the root than any other's
	PickedArea    PickRule = "area"    // the asker is in its area, and in no other's
	PickedFirst   PickRule = "first"   // it stands first in the roster
	PickedNobody  PickRule = "nobody"  // there is no seat
)

// Picked is a pick with its reasons.
type Picked struct {
	// Driver is the seat's name, "" where there is no seat; Rule is what chose it.
	Driver string   `json:"driver,omitempty"`
	Rule   PickRule `json:"rule"`
	// Instead is the seat that the rules named first, where that is out of the channel;
	// InsteadRule named it.
	Instead     string   `json:"instead,omitempty"`
	InsteadRule PickRule `json:"instead_rule,omitempty"`
	// Others are the seats in the channel that add after the driver.
	Others []string `json:"others,omitempty"`
	// Out are the seats that are not in the channel.
	Out []string `json:"out,omitempty"`
}

// Pick decides which seat drives an ask (A2). It is the only function that does: what it is
// given decides, and never the order in which that is listed. A seat that is out of the
// channel is picked only where all are.
func Pick(f PickFacts) Picked {
	seats := slices.DeleteFunc(slices.Clone(f.Seats), func(s PickSeat) bool {
		return s.Name == "" || f.Dispatcher != "" && s.BotUser == f.Dispatcher
	})
	slices.SortFunc(seats, func(a, b PickSeat) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Name, b.Name)) })
	var in []PickSeat
	var p Picked
	for _, s := range seats {
		if s.Out {
			p.Out = append(p.Out, s.Name)
		} else {
			in = append(in, s)
		}
	}
	p.Driver, p.Rule = choose(f, seats)
	if len(in) > 0 && slices.Contains(p.Out, p.Driver) {
		p.Instead, p.InsteadRule = p.Driver, p.Rule
		p.Driver, p.Rule = choose(f, in)
	}
	for _, s := range in {
		if s.Name != p.Driver {
			p.Others = append(p.Others, s.Name)
		}
	}
	return p
}

// choose asks the rules one after the other; the first that names one seat has it.
func choose(f PickFacts, seats []PickSeat) (string, PickRule) {
	if len(seats) == 0 {
		return "", PickedNobody
	}
	for _, r := range []struct {
		rule PickRule
		of   func(PickSeat) int
	}{
		{PickedNamed, func(s PickSeat) int { return counted(Names(f.Question, s.Name, s.BotUser)) }},
		{PickedDriver, func(s PickSeat) int { return counted(f.Driver == s.Name) }},
		{PickedSticker, func(s PickSeat) int { return stuck(f.Stickers, s) }},
		{PickedArea, func(s PickSeat) int { return counted(f.Asker != "" && slices.Contains(s.Area, f.Asker)) }},
	} {
		if name, ok := most(seats, r.of); ok {
			return name, r.rule
		}
	}
	return seats[0].Name, PickedFirst
}

// most is the seat that a rule speaks for more than for any other; a tie is no word.
func most(seats []PickSeat, of func(PickSeat) int) (name string, ok bool) {
	best := 0
	for _, s := range seats {
		switch n := of(s); {
		case n > best:
			name, ok, best = s.Name, true, n
		case n == best && n > 0:
			ok = false
		}
	}
	return name, ok
}

func counted(is bool) int {
	if is {
		return 1
	}
	return 0
}

// stuck counts the people who put a sticker of the seat there.
func stuck(all []Sticker, s PickSeat) int {
	people := map[string]bool{}
	for _, x := range all {
		if x.Author == Person && x.User != "" && slices.Contains(s.Stickers, x.Name) {
			people[x.User] = true
		}
	}
	return len(people)
}

// Names tells whether a text mentions a seat, or holds its name as a word of its own.
func Names(text, name, botUser string) bool {
	if botUser != "" && (Line{Text: text}).Mentions(botUser) {
		return true
	}
	if name == "" {
		return false
	}
	plain := PlainText(text, func(string) string { return "" })
	word := regexp.MustCompile(`(?i)(?:^|[^\pL\pN_@.-])@?` + regexp.QuoteMeta(name) + `(?:$|[^\pL\pN_-])`)
	return word.MatchString(strings.TrimSpace(plain))
}
