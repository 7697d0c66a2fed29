package activities_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// endings is the real store, where a task ends at a moment of a test's choice.
type endings struct {
	*store.Store
	before, after func()
}

func (e *endings) QueueLines(ctx context.Context, session string, lines []store.SessionLine) (int, error) {
	e.before()
	defer e.after()
	return e.Store.QueueLines(ctx, session, lines)
}

// agentWith is a workshop beside the desk.
func (d *desk) agentWith(l activities.AgentLedger) *workshop {
	w := &workshop{room: d.room, kills: &killed{}, stop: make(chan struct{}), ctx: d.t.Context()}
	w.agent = &activities.Agent{
		Seats: w.seats, Ledger: l, Runner: says("I say"), Kill: w.kills.kill, Places: activities.NewPlaces(2), Dirs: w.dirs,
		Box: "main", DailyCostUSD: 50, MaxOutput: 1 << 20, Now: d.task.Now, Log: w.poster.Log, Tasks: d.door,
	}
	d.t.Cleanup(func() { activities.Finish(w.agent) })
	return w
}

// O11: a line of a thread whose task ends right now is either told of by the task or the
// brain's alone. It never waits for a session that is over.
func TestRunAgent_NoLineWaitsForATaskThatEnds(t *testing.T) {
	end := func(d *desk) func() {
		return func() { require.NoError(d.t, d.finish(d.op1, rules.OverClosed, rules.PhaseFacts{Pull: 7})) }
	}
	for name, c := range map[string]struct {
		ends func(*desk, *endings)
		gone bool
		said []string
	}{
		"before the line waits": {func(d *desk, e *endings) { e.before = end(d) }, true, []string{"is done: #7"}},
		"when it waits":         {func(d *desk, e *endings) { e.after = end(d) }, true, []string{"1 line has not reached operator #1 op-fix-login", "is done: #7"}},
		"not at all":            {func(*desk, *endings) {}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			e := &endings{Store: d.store, before: func() {}, after: func() {}}
			c.ends(d, e)
			w := d.agentWith(e)
			line := d.room.says(d.first.Root, "and the logout")
			in := input(turn(line))
			in.Operator = &d.op1
			got, err := w.run(in)
			require.NoError(t, err)
			require.Equal(t, c.gone, got.OperatorGone)
			require.Equal(t, !c.gone, len(d.waiting(d.op1)) == 1, "what waits: %v", d.waiting(d.op1))
			d.speakAll(d.op1)
			d.requireStanding(d.first.Root, c.said...)
		})
	}
}

// O11: what stands in the operator's brief is not typed into it as well, however late its
// thread learns that it runs.
func TestRunAgent_ALineOfTheBriefIsNotTypedToo(t *testing.T) {
	d := newDesk(t)
	require.Equal(t, d.first.TS, d.op1.Asked)
	w := d.agentWith(d.store)
	later := d.room.says(d.first.Root, "and the logout")
	in := input(turn(d.first, later))
	in.Operator, in.Disposition = &d.op1, rules.DispBound
	_, err := w.run(in)
	require.NoError(t, err)
	require.Equal(t, []string{"queued " + rules.TerminalLine("ana", "and the logout")}, d.waiting(d.op1))
}

// Lines that a task tells of, and that came after it told of others, are told of too.
func TestFinishTask_TellsOfALineThatComesLate(t *testing.T) {
	d := newDesk(t)
	d.queue(d.op1, "one")
	d.brains.onForget = func() { d.queue(d.op1, "late") }
	require.NoError(t, d.finish(d.op1, rules.OverMerged, rules.PhaseFacts{Pull: 7}))
	d.speakAll(d.op1)
	d.requireStanding(d.first.Root, "1 line has not reached", "is done: #7", "1 line has not reached")
	require.Empty(t, d.waiting(d.op1))
}
