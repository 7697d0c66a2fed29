package rules

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// three is a roster: smith for ana, trinity for ben, neo for nobody.
func three() []PickSeat {
	return []PickSeat{
		{Name: "smith", BotUser: "USMITH", Rank: 1, Area: []string{"UANA"}, Stickers: []string{"hammer"}},
		{Name: "trinity", BotUser: "UTRIN", Rank: 2, Area: []string{"UBEN"}, Stickers: []string{"cat", "cat2"}},
		{Name: "neo", BotUser: "UNEO", Rank: 3, Stickers: []string{"pill"}},
	}
}

func stick(user, name string) Sticker { return Sticker{Name: name, User: user, Author: Person} }

// A2: each rule, in its order, and what ties do.
func TestPick_Rules(t *testing.T) {
	out := func(names ...string) func(*PickFacts) {
		return func(f *PickFacts) {
			for i := range f.Seats {
				f.Seats[i].Out = slices.Contains(names, f.Seats[i].Name)
			}
		}
	}
	for name, c := range map[string]struct {
		set  func(*PickFacts)
		want string
		rule PickRule
	}{
		"nothing says anything":     {func(*PickFacts) {}, "smith", PickedFirst},
		"the asker's area":          {func(f *PickFacts) { f.Asker = "UBEN" }, "trinity", PickedArea},
		"an asker of two areas":     {func(f *PickFacts) { f.Asker = "UANA"; f.Seats[2].Area = []string{"UANA"} }, "smith", PickedFirst},
		"no asker is in no area":    {func(f *PickFacts) { f.Asker = ""; f.Seats[2].Area = []string{""} }, "smith", PickedFirst},
		"a sticker before the area": {func(f *PickFacts) { f.Asker = "UBEN"; f.Stickers = []Sticker{stick("UANA", "pill")} }, "neo", PickedSticker},
		"more people before fewer": {func(f *PickFacts) {
			f.Stickers = []Sticker{stick("UANA", "pill"), stick("UANA", "cat"), stick("UBEN", "cat")}
		}, "trinity", PickedSticker},
		"one person counts once": {func(f *PickFacts) {
			f.Stickers = []Sticker{stick("UANA", "cat"), stick("UANA", "cat2"), stick("UBEN", "pill")}
		}, "smith", PickedFirst},
		"as many for two": {func(f *PickFacts) {
			f.Asker = "UBEN"
			f.Stickers = []Sticker{stick("UANA", "pill"), stick("UBEN", "hammer")}
		}, "trinity", PickedArea},
		"a bot's sticker":                    {func(f *PickFacts) { f.Stickers = []Sticker{{Name: "pill", User: "UNEO", Author: Sibling}} }, "smith", PickedFirst},
		"a sticker that means none":          {func(f *PickFacts) { f.Stickers = []Sticker{stick("UANA", "+1")} }, "smith", PickedFirst},
		"the driver before a sticker":        {func(f *PickFacts) { f.Driver = "trinity"; f.Stickers = []Sticker{stick("UANA", "pill")} }, "trinity", PickedDriver},
		"a driver that is none of them":      {func(f *PickFacts) { f.Driver = "morpheus" }, "smith", PickedFirst},
		"named before the driver":            {func(f *PickFacts) { f.Driver = "trinity"; f.Question = "neo, what is this?" }, "neo", PickedNamed},
		"mentioned":                          {func(f *PickFacts) { f.Question = "<@UNEO> what is this?" }, "neo", PickedNamed},
		"named in capitals":                  {func(f *PickFacts) { f.Question = "What does NEO say?" }, "neo", PickedNamed},
		"two are named":                      {func(f *PickFacts) { f.Asker = "UBEN"; f.Question = "neo or smith?" }, "trinity", PickedArea},
		"part of a word is no name":          {func(f *PickFacts) { f.Question = "the neon of smithereens, blacksmith, neo-gothic, neo_x" }, "smith", PickedFirst},
		"an address is no name":              {func(f *PickFacts) { f.Question = "write to <mailto:me@neo.com|me@neo.com>" }, "smith", PickedFirst},
		"the dispatcher is no seat":          {func(f *PickFacts) { f.Dispatcher = "UNEO"; f.Driver = "neo"; f.Question = "neo?" }, "smith", PickedFirst},
		"out of the channel":                 {out("smith"), "trinity", PickedFirst},
		"named and out of the channel":       {func(f *PickFacts) { f.Question = "neo?"; f.Asker = "UBEN"; out("neo")(f) }, "trinity", PickedArea},
		"the driver is out of the channel":   {func(f *PickFacts) { f.Driver = "smith"; out("smith", "trinity")(f) }, "neo", PickedFirst},
		"all are out of the channel":         {func(f *PickFacts) { f.Question = "neo?"; out("smith", "trinity", "neo")(f) }, "neo", PickedNamed},
		"there is no seat":                   {func(f *PickFacts) { f.Seats = nil }, "", PickedNobody},
		"a seat without a name":              {func(f *PickFacts) { f.Seats = []PickSeat{{BotUser: "U1"}} }, "", PickedNobody},
		"only the dispatcher":                {func(f *PickFacts) { f.Seats = f.Seats[:1]; f.Dispatcher = "USMITH" }, "", PickedNobody},
		"of one rank the name decides":       {func(f *PickFacts) { f.Seats[0].Rank, f.Seats[1].Rank, f.Seats[2].Rank = 1, 1, 1 }, "neo", PickedFirst},
		"a label of a mention is no mention": {func(f *PickFacts) { f.Question = "<https://x.example/|UNEO>" }, "smith", PickedFirst},
	} {
		t.Run(name, func(t *testing.T) {
			f := PickFacts{Seats: three(), Asker: "UCLEO", Question: "what is this?", Dispatcher: "UFORCE"}
			c.set(&f)
			p := Pick(f)
			require.Equal(t, []any{c.want, c.rule}, []any{p.Driver, p.Rule}, "%+v", p)
		})
	}
}

// The reasons come with the pick.
func TestPick_Reasons(t *testing.T) {
	f := PickFacts{Seats: three(), Asker: "UBEN", Question: "neo?"}
	f.Seats[2].Out = true
	require.Equal(t, Picked{
		Driver: "trinity", Rule: PickedArea, Instead: "neo", InsteadRule: PickedNamed, Others: []string{"smith"}, Out: []string{"neo"},
	}, Pick(f))
	f.Question = "?"
	require.Equal(t, Picked{Driver: "trinity", Rule: PickedArea, Others: []string{"smith"}, Out: []string{"neo"}}, Pick(f))
}

func drawPick(rt *rapid.T) PickFacts {
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, label) }
	f := PickFacts{
		Question:   pick("question", "what?", "neo?", "<@USMITH> and trinity", "trinity!", "<@UFORCE>", "force"),
		Asker:      pick("asker", "UANA", "UBEN", ""),
		Dispatcher: pick("dispatcher", "UFORCE", "USMITH", ""),
		Driver:     pick("driver", "", "smith", "neo", "force", "gone"),
	}
	for i, s := range append(three(), PickSeat{Name: "force", BotUser: "UFORCE"}) {
		if rapid.Bool().Draw(rt, "there") {
			s.Rank = rapid.IntRange(0, 2).Draw(rt, "rank")
			s.Out = rapid.Bool().Draw(rt, "out")
			f.Seats = append(f.Seats, s)
		}
		if i < 3 && rapid.Bool().Draw(rt, "sticks") {
			f.Stickers = append(f.Stickers, Sticker{Name: pick("sticker", "hammer", "cat", "pill", "+1"), User: pick("by", "UANA", "UBEN", "UNEO"), Author: Author(pick("is", string(Person), string(Sibling)))})
		}
	}
	return f
}

// A2: whatever is known, in whatever order: one pick, never the dispatcher, and in the
// channel whenever any seat is.
func TestPick_Properties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := drawPick(rt)
		p := Pick(f)
		again := f
		again.Seats, again.Stickers = slices.Clone(f.Seats), slices.Clone(f.Stickers)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "a"), 1))
		r.Shuffle(len(again.Seats), func(i, j int) { again.Seats[i], again.Seats[j] = again.Seats[j], again.Seats[i] })
		r.Shuffle(len(again.Stickers), func(i, j int) { again.Stickers[i], again.Stickers[j] = again.Stickers[j], again.Stickers[i] })
		require.Equal(rt, p, Pick(again), "the order does not matter")

		seats, in := map[string]PickSeat{}, 0
		for _, s := range f.Seats {
			if f.Dispatcher == "" || s.BotUser != f.Dispatcher {
				seats[s.Name] = s
				if !s.Out {
					in++
				}
			}
		}
		if len(seats) == 0 {
			require.Equal(rt, Picked{Rule: PickedNobody}, p)
			return
		}
		driver, known := seats[p.Driver]
		require.True(rt, known, "a seat, and not the dispatcher")
		require.Equal(rt, in == 0, driver.Out, "in the channel whenever any seat is")
		all := append([]string{}, p.Others...)
		all = append(all, p.Out...)
		if !driver.Out {
			all = append(all, p.Driver)
		}
		require.Len(rt, all, len(seats), "each seat has one part")
		require.NotContains(rt, p.Others, p.Driver)
	})
}
