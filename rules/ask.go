package rules

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Ask goes with a line that mentions the dispatcher: it asks every seat of its channel (A1).
type Ask struct {
	// Dispatcher is the bot user that was mentioned: only its post is the pick (A4).
	Dispatcher string `json:"dispatcher"`
	// Seats are the roster that is asked, as the door knew it.
	Seats []PickSeat `json:"seats,omitempty"`
}

// DispatchLine is what the dispatcher says in the metadata of its one post under an ask (A3).
type DispatchLine struct {
	AskTS string `json:"ask_ts"`
	// Asker is the user id of the person who asked, Driver that of the seat that drives.
	Asker  string `json:"asker"`
	Driver string `json:"driver"`
}

// DispatcherName is what the dispatcher is called in the ledger of posts and in logs. No seat
// can have this name: a seat's has no space.
const DispatcherName = "agent force"

const (
	// PickEvent is the type of the metadata of a dispatch line (A3).
	PickEvent = "agent_force_pick"
	// PickWindow is how long after the ask a dispatch line counts, by Slack's clock (A4).
	PickWindow = 8 * time.Second
)

// Question tells whether a line is an ask, and what it asks: the text without the mentions of
// the dispatcher. Only a person's line in a channel or thread is one; in a direct message
// there is nobody else to ask (A1). A dispatcher that is unknown is mentioned by nothing.
func Question(line Line, author Author, dispatcher string) (question string, ok bool) {
	if author != Person || dispatcher == "" || line.InDM() || !line.Mentions(dispatcher) {
		return "", false
	}
	mention := regexp.MustCompile(`<@` + regexp.QuoteMeta(dispatcher) + `(?:\|[^<>\n]*)?>`)
	return strings.TrimSpace(mention.ReplaceAllString(line.Text, "")), true
}

// ReadDispatch reads a dispatch line and tells whether it is the pick of an ask: the
// dispatcher wrote it under the ask, its metadata names the ask and who asked, and by Slack's
// clock it is no later than PickWindow (A4). What anybody else wrote is never one, whatever
// its metadata says.
func ReadDispatch(line Line, ask Line, dispatcher string) (DispatchLine, bool) {
	meta, ok := ParseMetadata(line.Raw)
	if !ok || meta.EventType != PickEvent || dispatcher == "" || line.User != dispatcher || line.Channel != ask.Channel || line.Root != ask.Thread().Root {
		return DispatchLine{}, false
	}
	var d DispatchLine
	if json.Unmarshal(meta.Payload, &d) != nil || d.AskTS != ask.TS || d.Asker != ask.User || d.Driver == "" {
		return DispatchLine{}, false
	}
	at, asked := TSTime(line.TS), TSTime(ask.TS)
	if at.IsZero() || asked.IsZero() || at.Before(asked) || at.Sub(asked) > PickWindow {
		return DispatchLine{}, false
	}
	return d, true
}

// FirstDispatch is the pick of an ask among the lines of its thread: the oldest dispatch
// line that counts and names a seat in the channel. Of a second one nobody takes notice (A3).
func FirstDispatch(lines []Line, ask Line, dispatcher string, seats []PickSeat) (DispatchLine, bool) {
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b Line) int { return CompareTS(a.TS, b.TS) })
	for _, l := range lines {
		d, ok := ReadDispatch(l, ask, dispatcher)
		if ok && slices.ContainsFunc(seats, func(s PickSeat) bool {
			return s.BotUser != "" && s.BotUser == d.Driver && s.BotUser != dispatcher && !s.Out
		}) {
			return d, true
		}
	}
	return DispatchLine{}, false
}

// DispatchText is what the dispatcher posts: who drives, and who adds after (A3). "" where
// there is nobody.
func DispatchText(p Picked, seats []PickSeat) string {
	of := func(name string) string {
		for _, s := range seats {
			if s.Name == name && s.BotUser != "" {
				return "<@" + s.BotUser + ">"
			}
		}
		return ""
	}
	driver := of(p.Driver)
	if driver == "" {
		return ""
	}
	var others []string
	for _, name := range p.Others {
		if other := of(name); other != "" {
			others = append(others, other)
		}
	}
	switch len(others) {
	case 0:
		return driver + " drives"
	case 1:
		return driver + " drives · " + others[0] + " adds after"
	}
	return driver + " drives · " + strings.Join(others, ", ") + " add after"
}

// DriverClaim is a seat's post that says that it works on an ask (A5, A6).
type DriverClaim struct {
	Seat string `json:"seat"`
	TS   string `json:"ts"`
}

// FirstClaim is the claim that drives where several seats work on one ask: the one with the
// lowest ts (A6). The order in which they are read does not matter.
func FirstClaim(claims []DriverClaim) (DriverClaim, bool) {
	var first DriverClaim
	for _, c := range claims {
		if !ValidTS(c.TS) || c.Seat == "" {
			continue
		}
		if n := CompareTS(c.TS, first.TS); first.TS == "" || n < 0 || n == 0 && c.Seat < first.Seat {
			first = c
		}
	}
	return first, first.TS != ""
}
