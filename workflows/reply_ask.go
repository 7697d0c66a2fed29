package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"agentsmith/activities"
	"agentsmith/rules"
)

// ask is a line that asks every seat, while it is open what this seat does about it.
type ask struct {
	Trigger
	// Since is when this seat began with it.
	Since time.Time `json:"since"`
}

// pickMargin is how long after the pick's time the thread is read: a line of the last moment
// must be there to be seen (A4).
const pickMargin = 500 * time.Millisecond

// asked begins with an ask. It waits beside the turns, which go on.
func (b *brain) asked(ctx workflow.Context, t Trigger) {
	a := &ask{Trigger: t, Since: workflow.Now(ctx)}
	b.Asks = append(b.Asks, a)
	b.workOn(ctx, a)
}

// workOn is the story of an ask until it is this seat's turn, or nobody's: wait for what the
// dispatcher or another seat says, or for as long as that may take; look at the thread; do
// what is this seat's to do (A4-A6).
func (b *brain) workOn(ctx workflow.Context, a *ask) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		free, cancel := workflow.NewDisconnectedContext(ctx)
		defer cancel()
		until := rules.TSTime(a.Line.TS).Add(rules.PickWindow + pickMargin)
		for {
			b.awaitHint(free, a, until)
			if b.renewing || !b.waitsWith(a) {
				return
			}
			out, err := b.lookAt(free, a)
			if !b.waitsWith(a) {
				return // stopped or deleted meanwhile
			}
			switch {
			case err != nil:
				workflow.GetLogger(free).Error("an ask was given up", "line", a.Line.TS, "error", err)
				b.leaveAsk(free, a, activities.PostInput{Say: activities.SayFailure, State: rules.Failed, Reason: rules.ReasonInternal})
				return
			case out.Act == rules.ForceWait:
				until = out.Until
			case out.Work != nil:
				t := a.Trigger
				t.Work = out.Work
				b.drop(a)
				b.wait(t)
				return
			default:
				b.leaveAsk(free, a, activities.PostInput{Say: activities.SayNothing, State: rules.Declined, Reason: rules.ReasonNoFinal})
				return
			}
		}
	})
}

// awaitHint waits until something is said of an ask, or until the time.
func (b *brain) awaitHint(ctx workflow.Context, a *ask, until time.Time) {
	rest := until.Sub(workflow.Now(ctx))
	if rest <= 0 {
		return
	}
	heard := b.hints
	timed, cancel := workflow.WithCancel(ctx)
	defer cancel()
	timer := workflow.NewTimerWithOptions(timed, rest, workflow.TimerOptions{Summary: "ask " + a.Line.TS})
	b.await(ctx, func() bool { return timer.IsReady() || b.hints != heard || b.renewing || !b.waitsWith(a) })
}

// lookAt has the thread read, and what is this seat's done.
func (b *brain) lookAt(ctx workflow.Context, a *ask) (activities.ForceResult, error) {
	b.looking++
	defer func() { b.looking-- }()
	var f *activities.Force
	var out activities.ForceResult
	err := workflow.ExecuteActivity(askOptions(ctx, b.in.Settings), f.WorkOnAsk, activities.ForceInput{
		Turn: b.turnOf(a.Trigger), Ask: *a.Ask, Since: a.Since,
	}).Get(ctx, &out)
	return out, err
}

// leaveAsk ends an ask that is no turn of this seat.
func (b *brain) leaveAsk(ctx workflow.Context, a *ask, in activities.PostInput) {
	b.looking++
	defer func() { b.looking-- }()
	in.Turn = b.turnOf(a.Trigger)
	b.sendPost(ctx, "leave an ask", in)
	b.drop(a)
}

func (b *brain) waitsWith(a *ask) bool { return slices.Contains(b.Asks, a) }

func (b *brain) drop(a *ask) {
	b.Asks = slices.DeleteFunc(b.Asks, func(x *ask) bool { return x == a })
}

// wait puts a line among those that wait for a turn, by its age.
func (b *brain) wait(t Trigger) {
	b.Waiting = append(b.Waiting, t)
	slices.SortStableFunc(b.Waiting, func(x, y Trigger) int { return rules.CompareTS(x.Line.TS, y.Line.TS) })
}

// nextLines takes the lines of the next turn: all that wait, but for an ask's, which is a
// turn of its own (A5).
func (b *brain) nextLines() (lines []Trigger) {
	n := slices.IndexFunc(b.Waiting, func(t Trigger) bool { return t.Work != nil })
	switch {
	case n < 0:
		lines, b.Waiting = b.Waiting, nil
		return lines
	case n == 0:
		n = 1
	}
	lines, b.Waiting = slices.Clone(b.Waiting[:n]), slices.Clone(b.Waiting[n:])
	return lines
}

// work is the turn's part in an ask, nil for an ordinary turn.
func (t *turn) work() *activities.ForceWork {
	if len(t.lines) != 1 {
		return nil
	}
	return t.lines[0].Work
}
