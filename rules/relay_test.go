package rules_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"agentsmith/rules"
)

var (
	smith = rules.SeatIdentity{Name: "smith", BotUser: "USMITH"}
	relay = rules.Relay{ID: "D1/1700000000.000000", Person: "UANA", Session: "s1", Number: 1, OpenedTS: "1700000000.000000"}
)

func stamp(n int) string { return fmt.Sprintf("17000000%02d.000000", n) }

func dmRow(n int, user, text string) rules.RelayRow {
	return rules.RelayRow{Author: rules.Person, Line: rules.Line{
		LineKey: rules.LineKey{Team: "T1", Channel: "D1", TS: stamp(n)}, Root: stamp(n), User: user, Text: text,
	}}
}

func ana(n int, text string) rules.RelayRow { return dmRow(n, "UANA", text) }

func stamps(rows []rules.RelayRow) (out []string) {
	for _, r := range rows {
		out = append(out, r.Line.TS)
	}
	return out
}

// R2: what a relay carries, and what is Smith's.
func TestPlan_ForSmithIsEverythingThatIsNoLineForATerminal(t *testing.T) {
	for name, c := range map[string]struct {
		row     rules.RelayRow
		forward bool
	}{
		"a plain line":            {ana(1, "continue"), true},
		"several rows":            {ana(1, "one\ntwo"), true},
		"a shell escape":          {ana(1, "!rm -rf x"), true},
		"a question":              {ana(1, "is smith in?"), true},
		"a mention first":         {ana(1, "<@USMITH> what do you think?"), false},
		"a mention later":         {ana(1, "ask <@USMITH> too"), false},
		"the name first":          {ana(1, "Smith, what do you think?"), false},
		"the name with an at":     {ana(1, "@smith hello"), false},
		"a longer word first":     {ana(1, "smithereens are left"), true},
		"somebody else mentioned": {ana(1, "<@UBEN> said so"), true},
		"no text":                 {ana(1, ""), false},
		"nothing that is typed":   {ana(1, "\u200b \u0007"), false},
		"somebody else":           {dmRow(1, "UBEN", "continue"), false},
		"a bot":                   {rules.RelayRow{Author: rules.OtherBot, Line: ana(1, "continue").Line}, false},
		"an outsider":             {rules.RelayRow{Author: rules.Outsider, Line: ana(1, "continue").Line}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := rules.Plan([]rules.RelayRow{c.row}, relay, smith)
			require.Equal(t, c.forward, len(p.Forward) == 1)
			require.Equal(t, !c.forward, len(p.ForSmith) == 1)
			require.Empty(t, append(p.Stop, p.AfterStop...))
		})
	}
}

// R7: whatever is uncertain is Smith's.
func TestPlan_EveryUncertaintyIsSmiths(t *testing.T) {
	closed := relay
	closed.ClosedTS = stamp(5)
	for name, c := range map[string]struct {
		relay rules.Relay
		self  rules.SeatIdentity
		at    int
	}{
		"no relay":                       {rules.Relay{}, smith, 1},
		"a seat that knows itself not":   {relay, rules.SeatIdentity{Name: "smith"}, 1},
		"a relay of nobody":              {rules.Relay{ID: "x", OpenedTS: stamp(0)}, smith, 1},
		"a line from before the opening": {relay, smith, 0},
		"a line from after the close":    {closed, smith, 6},
		"the line that closed it":        {closed, smith, 5},
	} {
		t.Run(name, func(t *testing.T) {
			p := rules.Plan([]rules.RelayRow{ana(c.at, "continue")}, c.relay, c.self)
			require.Empty(t, p.Forward)
			require.Len(t, p.ForSmith, 1)
		})
	}
	require.Len(t, rules.Plan([]rules.RelayRow{ana(4, "continue")}, closed, smith).Forward, 1, "while it was open")
}

// R2: the batch is cut at the first stop word or door of the person, and of nobody else.
func TestPlan_CutsAtTheStopWord(t *testing.T) {
	p := rules.Plan([]rules.RelayRow{ana(1, "a"), dmRow(2, "UBEN", "stop"), ana(3, "<@USMITH> b"), ana(4, "Stop!"), ana(5, "thanks")}, relay, smith)
	require.Equal(t, []string{stamp(1)}, stamps(p.Forward))
	require.Equal(t, []string{stamp(2), stamp(3)}, stamps(p.ForSmith))
	require.Equal(t, []string{stamp(4)}, stamps(p.Stop))
	require.Equal(t, []string{stamp(5)}, stamps(p.AfterStop))

	p = rules.Plan([]rules.RelayRow{ana(1, "a"), ana(2, "work on 2"), ana(3, "b")}, relay, smith)
	require.Equal(t, []string{stamp(2)}, stamps(p.ForSmith), "a door is Smith's")
	require.Equal(t, []string{stamp(3)}, stamps(p.AfterStop))
}

func TestReadDoor(t *testing.T) {
	for text, want := range map[string]rules.Door{
		"work on 1":              {Kind: rules.DoorWorkOn, Number: 1},
		"  Work  ON #12. ":       {Kind: rules.DoorWorkOn, Number: 12},
		"<@USMITH> work on 3":    {Kind: rules.DoorWorkOn, Number: 3},
		"work on fix-login":      {Kind: rules.DoorWorkOn, Slug: "fix-login"},
		"`work on op-fix-login`": {Kind: rules.DoorWorkOn, Slug: "fix-login"},
		"work\u00a0on\u00a02":    {Kind: rules.DoorWorkOn, Number: 2},
		"Sessions?":              {Kind: rules.DoorSessions},
		"stop":                   {Kind: rules.DoorStop},
		"STOP!":                  {Kind: rules.DoorStop},
	} {
		got, ok := rules.ReadDoor(text, "USMITH")
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "work on", "work on 0", "work on -1", "work on 1 please", "please work on 1", "work on 99999999999999999999", "work on ../x",
		"work on a--b", "work on x;ls", "<@UBEN> work on 1", "work on it", "sessions of today", "stop it",
	} {
		_, ok := rules.ReadDoor(text, "USMITH")
		require.False(t, ok, text)
	}
}

func FuzzReadDoor(f *testing.F) {
	for _, s := range []string{"work on 1", "<@USMITH> work on fix-login", "sessions", "stop", "work on \x00", "work on \u202e1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, ok := rules.ReadDoor(text, "USMITH")
		if !ok {
			return
		}
		switch d.Kind {
		case rules.DoorWorkOn:
			if (d.Number > 0) == (d.Slug != "") || d.Number < 0 || d.Slug != "" && !rules.ValidSlug(d.Slug) {
				t.Fatalf("%q is read as %+v", text, d)
			}
		case rules.DoorSessions, rules.DoorStop:
		default:
			t.Fatalf("%q is read as %+v", text, d)
		}
	})
}

func facts(r rules.Relay, rows ...rules.RelayRow) rules.ConversationFacts {
	return rules.ConversationFacts{
		Relay: r, Rows: rows, Self: smith, Owners: []string{"UANA"},
		Sessions: []rules.SessionFact{{Number: 1, ID: "s1", Slug: "one-fix"}, {Number: 2, ID: "s2", Slug: "two-fix"}, {Number: 3, ID: "s3", Slug: "two-fix", Ended: true}},
	}
}

func whats(acts []rules.RelayAct) (out []string) {
	for _, a := range acts {
		s := fmt.Sprintf("%s %s", a.Key.TS[8:10], a.What)
		if a.What == rules.RelayForward || a.What == rules.RelayOpen {
			s += fmt.Sprintf(" #%d", a.Relay.Number)
		}
		if a.Why != "" {
			s += " " + string(a.Why)
		}
		out = append(out, s)
	}
	return out
}

// R1-R3, R6: every bucket has its consumer, and what stands behind a cut is planned again
// under the relay that is in force then.
func TestDecideRelay(t *testing.T) {
	for name, c := range map[string]struct {
		facts rules.ConversationFacts
		want  []string
	}{
		"nothing is open":           {facts(rules.Relay{}, ana(1, "hello")), nil},
		"opened and used":           {facts(rules.Relay{}, ana(1, "work on 1"), ana(2, "go")), []string{"01 open #1", "02 forward #1"}},
		"switched":                  {facts(relay, ana(1, "a"), ana(2, "work on 2"), ana(3, "b")), []string{"01 forward #1", "02 open #2", "03 forward #2"}},
		"stopped":                   {facts(relay, ana(1, "a"), ana(2, "stop"), ana(3, "thanks")), []string{"01 forward #1", "02 close"}},
		"stopped and opened again":  {facts(relay, ana(1, "stop"), ana(2, "b"), ana(3, "work on 2"), ana(4, "c")), []string{"01 close", "03 open #2", "04 forward #2"}},
		"listed":                    {facts(relay, ana(1, "sessions"), ana(2, "go")), []string{"01 list", "02 forward #1"}},
		"unknown":                   {facts(relay, ana(1, "work on 9"), ana(2, "go")), []string{"01 refuse unknown_session", "02 forward #1"}},
		"ended":                     {facts(rules.Relay{}, ana(1, "work on 3")), []string{"01 refuse ended"}},
		"by its slug, the newest":   {facts(rules.Relay{}, ana(1, "work on two-fix")), []string{"01 refuse ended"}},
		"somebody who is no owner":  {facts(relay, dmRow(1, "UBEN", "work on 2"), ana(2, "go")), []string{"01 refuse not_owner", "02 forward #1"}},
		"a stop with nothing open":  {facts(rules.Relay{}, ana(1, "stop"), ana(2, "go")), nil},
		"somebody else's stop":      {facts(relay, dmRow(1, "UBEN", "stop"), ana(2, "go")), []string{"02 forward #1"}},
		"an edit that reads a door": {facts(rules.Relay{}, edited(ana(1, "work on 1"))), nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, whats(rules.DecideRelay(c.facts))) })
	}
	f := facts(rules.Relay{}, ana(1, "work on 1"))
	f.StopTS = stamp(2)
	require.Empty(t, rules.DecideRelay(f), "a door that was stopped before it was seen opens nothing")
	f = facts(rules.Relay{}, ana(1, "work on 1"))
	f.Rows[0].Line.Channel, f.Rows[0].Line.ChannelType = "C1", "channel"
	require.Empty(t, rules.DecideRelay(f), "a relay is a DM's")
	act := rules.DecideRelay(facts(relay, ana(2, "work on 2")))[0]
	require.Equal(t, stamp(2), act.Switched.ClosedTS)
	require.Equal(t, relay.ID, act.Switched.ID)
}

func edited(r rules.RelayRow) rules.RelayRow {
	r.Line.EditedTS = stamp(9)
	return r
}

// R2: every row is in exactly one bucket, in ts order; neither the order in which rows come
// nor their redelivery matters.
func TestPlan_EveryRowIsInOneBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		want := rules.Plan(rows, relay, smith)
		var got []string
		for _, b := range [][]rules.RelayRow{want.Forward, want.ForSmith, want.Stop, want.AfterStop} {
			if !slices.IsSortedFunc(b, func(x, y rules.RelayRow) int { return rules.CompareTS(x.Line.TS, y.Line.TS) }) {
				t.Fatalf("out of order: %v", stamps(b))
			}
			got = append(got, stamps(b)...)
		}
		slices.Sort(got)
		if !slices.Equal(got, stamps(rows)) {
			t.Fatalf("rows %v, buckets %v", stamps(rows), got)
		}
		again := rapid.Permutation(slices.Concat(rows, rows[:rapid.IntRange(0, len(rows)).Draw(t, "again")])).Draw(t, "order")
		if p := rules.Plan(again, relay, smith); fmt.Sprint(p) != fmt.Sprint(want) {
			t.Fatalf("in another order: %v, and %v", p, want)
		}
	})
}

func drawRows(t *rapid.T) (rows []rules.RelayRow) {
	texts := []string{"continue", "go on", "stop", "<@USMITH> hm", "work on 1", "work on 2", "sessions", ""}
	for i := range rapid.IntRange(1, 10).Draw(t, "rows") {
		user := rapid.SampledFrom([]string{"UANA", "UANA", "UANA", "UBEN"}).Draw(t, "who")
		rows = append(rows, dmRow(i+1, user, rapid.SampledFrom(texts).Draw(t, "text")))
	}
	return rows
}
