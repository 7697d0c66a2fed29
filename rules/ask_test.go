package rules

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

const force = "UFORCE"

func askLine() Line {
	return Line{LineKey: LineKey{Team: "T1", Channel: "C1", TS: "1700000000.000100"}, Root: "1700000000.000100", User: "UANA", Text: "<@UFORCE> what is this?"}
}

// A1: only a person's mention of a known dispatcher, where others can hear it, is an ask.
func TestQuestion(t *testing.T) {
	for name, c := range map[string]struct {
		text       string
		author     Author
		dispatcher string
		channel    string
		want       string
		ok         bool
	}{
		"an ask":               {"<@UFORCE> what is this?", Person, force, "C1", "what is this?", true},
		"in the middle":        {"hey <@UFORCE>, what?", Person, force, "C1", "hey , what?", true},
		"twice, with a label":  {"<@UFORCE> <@UFORCE|Agent Force> what?", Person, force, "C1", "what?", true},
		"the mention alone":    {"<@UFORCE>", Person, force, "C1", "", true},
		"others stay":          {"<@UFORCE> ask <@UNEO>", Person, force, "C1", "ask <@UNEO>", true},
		"another is mentioned": {"<@UFORCE2> what?", Person, force, "C1", "", false},
		"typed, not mentioned": {"&lt;@UFORCE&gt; what?", Person, force, "C1", "", false},
		"unfound":              {"<@UFORCE> what?", Person, "", "C1", "", false},
		"in a direct message":  {"<@UFORCE> what?", Person, force, "D1", "", false},
		"a seat's":             {"<@UFORCE> what?", Sibling, force, "C1", "", false},
		"an outsider's":        {"<@UFORCE> what?", Outsider, force, "C1", "", false},
		"the dispatcher's own": {"<@UFORCE> what?", Dispatcher, force, "C1", "", false},
		"the old door is none": {"agents: what?", Person, force, "C1", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			q, ok := Question(Line{LineKey: LineKey{Channel: c.channel}, Text: c.text}, c.author, c.dispatcher)
			require.Equal(t, []any{c.want, c.ok}, []any{q, ok})
		})
	}
}

func dispatched(after string, set func(m map[string]any, l *Line)) Line {
	l := Line{LineKey: LineKey{Team: "T1", Channel: "C1", TS: after}, Root: askLine().TS, User: force}
	m := map[string]any{"ask_ts": askLine().TS, "asker": "UANA", "driver": "UNEO"}
	if set != nil {
		set(m, &l)
	}
	raw, _ := json.Marshal(map[string]any{"metadata": map[string]any{"event_type": PickEvent, "event_payload": m}})
	if len(l.Raw) == 0 {
		l.Raw = raw
	}
	return l
}

// A4: who wrote it, which ask it names, and when, by Slack's clock.
func TestReadDispatch(t *testing.T) {
	for name, c := range map[string]struct {
		line Line
		ok   bool
	}{
		"the pick":              {dispatched("1700000001.000000", nil), true},
		"7.9 s after":           {dispatched("1700000007.900100", nil), true},
		"8 s after":             {dispatched("1700000008.000100", nil), true},
		"8.1 s after":           {dispatched("1700000008.100100", nil), false},
		"before the ask":        {dispatched("1699999999.000000", nil), false},
		"no ts":                 {dispatched("", nil), false},
		"a person's forgery":    {dispatched("1700000001.000000", func(_ map[string]any, l *Line) { l.User = "UANA" }), false},
		"another app's forgery": {dispatched("1700000001.000000", func(_ map[string]any, l *Line) { l.User, l.BotID = "UEVIL", "B1" }), false},
		"of another ask":        {dispatched("1700000001.000000", func(m map[string]any, _ *Line) { m["ask_ts"] = "1700000000.000200" }), false},
		"of another asker":      {dispatched("1700000001.000000", func(m map[string]any, _ *Line) { m["asker"] = "UBEN" }), false},
		"in another thread":     {dispatched("1700000001.000000", func(_ map[string]any, l *Line) { l.Root = "1600000000.000000" }), false},
		"in another channel":    {dispatched("1700000001.000000", func(_ map[string]any, l *Line) { l.Channel = "C2" }), false},
		"names nobody":          {dispatched("1700000001.000000", func(m map[string]any, _ *Line) { delete(m, "driver") }), false},
		"of another shape":      {dispatched("1700000001.000000", func(m map[string]any, _ *Line) { m["driver"] = []string{"UNEO"} }), false},
		"of another type": {dispatched("1700000001.000000", func(_ map[string]any, l *Line) {
			l.Raw = json.RawMessage(`{"metadata":{"event_type":"smith_post","event_payload":{}}}`)
		}), false},
		"its payload is missing": {dispatched("1700000001.000000", func(_ map[string]any, l *Line) {
			l.Raw = json.RawMessage(`{"metadata":{"event_type":"agent_force_pick"}}`)
		}), false},
		"no metadata": {dispatched("1700000001.000000", func(_ map[string]any, l *Line) { l.Raw = json.RawMessage(`{}`) }), false},
	} {
		t.Run(name, func(t *testing.T) {
			d, ok := ReadDispatch(c.line, askLine(), force)
			require.Equal(t, c.ok, ok)
			if ok {
				require.Equal(t, DispatchLine{AskTS: askLine().TS, Asker: "UANA", Driver: "UNEO"}, d)
			} else {
				require.Empty(t, d)
			}
		})
	}
	_, ok := ReadDispatch(dispatched("1700000001.000000", func(_ map[string]any, l *Line) { l.User = "" }), askLine(), "")
	require.False(t, ok, "a dispatcher that nobody knows says nothing")
}

// A3: of several dispatch lines the oldest that counts is the pick, in whatever order they
// are read; one that names no seat of the channel counts for nothing.
func TestFirstDispatch(t *testing.T) {
	by := func(at, driver string) Line {
		return dispatched(at, func(m map[string]any, _ *Line) { m["driver"] = driver })
	}
	seats := three()
	lines := []Line{by("1700000003.000000", "USMITH"), by("1700000001.000000", "UNOBODY"), by("1700000002.000000", "UNEO"), by("1700000009.000000", "UTRIN")}
	d, ok := FirstDispatch(lines, askLine(), force, seats)
	require.True(t, ok)
	require.Equal(t, "UNEO", d.Driver)
	seats[2].Out = true
	d, ok = FirstDispatch(lines, askLine(), force, seats)
	require.True(t, ok)
	require.Equal(t, "USMITH", d.Driver)
	_, ok = FirstDispatch([]Line{by("1700000002.000000", force)}, askLine(), force, append(seats, PickSeat{Name: "force", BotUser: force}))
	require.False(t, ok, "the dispatcher is no seat (A7)")
	_, ok = FirstDispatch(nil, askLine(), force, seats)
	require.False(t, ok)
}

func TestDispatchText(t *testing.T) {
	f := PickFacts{Seats: three(), Question: "trinity?"}
	require.Equal(t, "<@UTRIN> drives · <@USMITH>, <@UNEO> add after", DispatchText(Pick(f), f.Seats))
	f.Seats = f.Seats[:2]
	require.Equal(t, "<@UTRIN> drives · <@USMITH> adds after", DispatchText(Pick(f), f.Seats))
	f.Seats[0].Out = true
	require.Equal(t, "<@UTRIN> drives", DispatchText(Pick(f), f.Seats))
	require.Empty(t, DispatchText(Picked{Rule: PickedNobody}, nil))
	require.Empty(t, DispatchText(Picked{Driver: "neo"}, []PickSeat{{Name: "neo"}}), "whom nobody can mention")
}

// A6: the lowest valid ts drives, in whatever order the claims are read.
func TestFirstClaim(t *testing.T) {
	claims := []DriverClaim{{"neo", "1700000002.000000"}, {"smith", "1700000001.000000"}, {"", "1600000000.000000"}, {"trinity", "x"}, {"trinity", "1700000001.000000"}}
	for range claims {
		claims = append(claims[1:], claims[0])
		first, ok := FirstClaim(claims)
		require.True(t, ok)
		require.Equal(t, DriverClaim{"smith", "1700000001.000000"}, first, fmt.Sprint(claims))
	}
	_, ok := FirstClaim([]DriverClaim{{"smith", ""}})
	require.False(t, ok)
}
