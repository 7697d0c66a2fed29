package rules_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"agentsmith/rules"
)

// decider is a dispatcher's decision; planner is a tick's.
type (
	decider func(rules.ConversationFacts) []rules.RelayAct
	planner func([]rules.RelayRow, rules.Relay, rules.SeatIdentity) rules.RelayPlan
)

// play is one way in which lines, looks of the dispatcher, deaths and ticks fall together.
type play struct {
	rows []rules.RelayRow
	// arrive is the order in which the rows are recorded; look, after how many of them the
	// dispatcher looks; tick and die, after which looks the tick plans and a session dies.
	arrive, look []int
	tick, die    map[int]bool
}

func drawPlay(t *rapid.T, ordered bool) play {
	p := play{rows: drawRows(t), tick: map[int]bool{}, die: map[int]bool{}}
	for i := range p.rows {
		p.arrive = append(p.arrive, i)
	}
	if !ordered {
		p.arrive = rapid.Permutation(p.arrive).Draw(t, "arrive")
	}
	for i := 1; i < len(p.rows); i++ {
		if rapid.Bool().Draw(t, "look") {
			p.look = append(p.look, i)
		}
	}
	p.look = append(p.look, len(p.rows))
	for i := range p.look {
		p.tick[i] = rapid.Bool().Draw(t, "tick")
		p.die[i] = !ordered && rapid.IntRange(0, 5).Draw(t, "die") == 0
	}
	return p
}

// outcome is who had each line, by its ts: "session", "brain", or "door".
type outcome struct {
	by     map[string][]string
	handed int
}

// run plays the whole: a dispatcher that decides what has come, and a tick that plans again
// before it types, as the store lets them (R4, R9).
func (p play) run(decide decider, plan planner) outcome {
	out := outcome{by: map[string][]string{}}
	relays, queued := map[string]rules.Relay{}, map[string]string{}
	dead := map[string]bool{}
	decided := map[string]bool{}
	var open rules.Relay
	var recorded []rules.RelayRow
	had := func(ts, who string) { out.by[ts] = append(out.by[ts], who) }
	tick := func() {
		// What was decided shows in the relay's time; what was not cuts the batch.
		var batch []rules.RelayRow
		for _, r := range recorded {
			if _, waits := queued[r.Line.TS]; waits || !decided[r.Line.TS] {
				batch = append(batch, r)
			}
		}
		for _, row := range p.rows {
			id, waits := queued[row.Line.TS]
			if !waits {
				continue
			}
			delete(queued, row.Line.TS)
			r := relays[id]
			planned := plan(batch, r, smith)
			if !dead[r.Session] && slices.ContainsFunc(planned.Forward, func(x rules.RelayRow) bool { return x.Line.TS == row.Line.TS }) {
				had(row.Line.TS, "session")
				continue
			}
			out.handed++
			had(row.Line.TS, "brain")
		}
	}
	next := 0
	for i, n := range p.look {
		for ; next < n; next++ {
			recorded = append(recorded, p.rows[p.arrive[next]])
		}
		var undecided []rules.RelayRow
		for _, r := range recorded {
			if !decided[r.Line.TS] {
				undecided = append(undecided, r)
			}
		}
		f := facts(open, undecided...)
		acts := decide(f)
		for _, r := range undecided {
			decided[r.Line.TS] = true
			if !slices.ContainsFunc(acts, func(a rules.RelayAct) bool { return a.Key == r.Line.LineKey }) {
				had(r.Line.TS, "brain")
			}
		}
		for _, a := range acts {
			switch a.What {
			case rules.RelayForward:
				queued[a.Key.TS] = a.Relay.ID
			case rules.RelayOpen:
				had(a.Key.TS, "door")
				if a.Switched != nil {
					relays[a.Switched.ID] = *a.Switched
				}
				open = a.Relay
				relays[open.ID] = open
			case rules.RelayClose:
				had(a.Key.TS, "door")
				relays[a.Relay.ID] = a.Relay
				open = rules.Relay{}
			default:
				had(a.Key.TS, "door")
			}
		}
		if p.die[i] && open.Open() {
			dead[open.Session] = true
		}
		if p.tick[i] {
			tick()
		}
	}
	tick()
	return out
}

// reference is who has each line where everything comes in order: a person switches a relay
// on and off, and what is typed while it is on is the session's.
func reference(rows []rules.RelayRow) map[string]string {
	out, on := map[string]string{}, false
	for _, r := range rows {
		door, isDoor := rules.ReadDoor(r.Line.Text, smith.BotUser)
		mine := r.Line.User == "UANA"
		switch {
		case isDoor && door.Kind == rules.DoorStop && mine && on:
			out[r.Line.TS], on = "door", false
		case isDoor && door.Kind == rules.DoorStop:
			out[r.Line.TS] = "brain"
		case isDoor:
			out[r.Line.TS] = "door"
			on = on || mine && door.Kind == rules.DoorWorkOn
		case mine && on && rules.Carries(r.Line, smith):
			out[r.Line.TS] = "session"
		default:
			out[r.Line.TS] = "brain"
		}
	}
	return out
}

// violation tells what is wrong with a play, "" for nothing: every line has exactly one
// answer; in order, it is the one that the person expects, and nothing is handed back.
func violation(p play, ordered bool, decide decider, plan planner) string {
	got := p.run(decide, plan)
	want := reference(p.rows)
	for _, r := range p.rows {
		by := got.by[r.Line.TS]
		if len(by) != 1 {
			return fmt.Sprintf("%s %q is answered by %v", r.Line.TS, r.Line.Text, by)
		}
		if ordered && by[0] != want[r.Line.TS] {
			return fmt.Sprintf("%s %q is answered by %s, not by %s", r.Line.TS, r.Line.Text, by[0], want[r.Line.TS])
		}
	}
	if ordered && got.handed > 0 {
		return fmt.Sprintf("%d lines are handed back: dispatcher and tick disagree", got.handed)
	}
	return ""
}

// R4, R9: whatever falls together with whatever, each line has one answer; the dispatcher
// and the tick agree on every prefix of every batch, or the line is handed back.
func TestRelay_EachLineHasOneAnswer(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		t.Run(fmt.Sprintf("in order %v", ordered), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				if v := violation(drawPlay(t, ordered), ordered, rules.DecideRelay, rules.Plan); v != "" {
					t.Fatal(v)
				}
			})
		})
	}
}

// The readings of the source that were rejected are mutations of the rule: each makes the
// property above red. (Those that are about the brain's run stand with its workflow.)
func TestRelay_RejectedReadings(t *testing.T) {
	perLine := func(f rules.ConversationFacts) (acts []rules.RelayAct) {
		rows := f.Rows
		for _, r := range rows {
			f.Rows = []rules.RelayRow{r}
			acts = append(acts, rules.DecideRelay(f)...)
		}
		return acts
	}
	drifted := func(rows []rules.RelayRow, r rules.Relay, self rules.SeatIdentity) rules.RelayPlan {
		self.Name = "continue" // a tick that takes another word for its name
		return rules.Plan(rows, r, self)
	}
	noCut := func(rows []rules.RelayRow, r rules.Relay, self rules.SeatIdentity) (p rules.RelayPlan) {
		r.ClosedTS = ""
		for _, row := range rows {
			p.Forward = append(p.Forward, rules.Plan([]rules.RelayRow{row}, r, self).Forward...)
		}
		return p
	}
	for name, c := range map[string]struct {
		decide decider
		plan   planner
		play   play
	}{
		"decide per line instead of per batch": {perLine, rules.Plan, whole(ana(1, "work on 1"), ana(2, "stop"), ana(3, "thanks"))},
		"a second classifier":                  {rules.DecideRelay, drifted, whole(ana(1, "work on 1"), ana(2, "continue"))},
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, violation(c.play, true, rules.DecideRelay, rules.Plan))
			require.NotEmpty(t, violation(c.play, true, c.decide, c.plan), "the mutation must be found")
		})
	}
	t.Run("a tick that does not cut", func(t *testing.T) {
		// The stop came late: the line behind it had been given to the session already.
		late := play{
			rows: []rules.RelayRow{ana(1, "work on 1"), ana(2, "stop"), ana(3, "thanks")}, arrive: []int{0, 2, 1}, look: []int{1, 2, 3},
			tick: map[int]bool{}, die: map[int]bool{},
		}
		require.Equal(t, []string{"brain"}, late.run(rules.DecideRelay, rules.Plan).by[stamp(3)])
		require.Equal(t, []string{"session"}, late.run(rules.DecideRelay, noCut).by[stamp(3)], "the mutation types behind the stop")
	})
}

// whole is a play in which everything comes before the dispatcher looks.
func whole(rows ...rules.RelayRow) play {
	p := play{rows: rows, look: []int{len(rows)}, tick: map[int]bool{}, die: map[int]bool{}}
	for i := range rows {
		p.arrive = append(p.arrive, i)
	}
	return p
}
