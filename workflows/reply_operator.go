package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"agentsmith/activities"
	"agentsmith/rules"
)

// bind finds the operator of a human turn's thread, or starts one where the thread asks
// for work (O1, O2). What cannot be bound is said with the turn's answer; the line itself
// is answered all the same (O3).
func (b *brain) bind(ctx workflow.Context, t *turn) {
	if !bindsOperator(ctx) {
		return
	}
	human := b.humanLines(t)
	if len(human) == 0 || b.Operator != nil {
		return
	}
	in := activities.BindInput{Turn: b.activityTurn(&turn{id: t.id, lines: human})}
	in.MaySpawn = slices.ContainsFunc(human, func(l Trigger) bool { return l.MaySpawn })
	t.binding = b.runBind(ctx, "bind an operator", in)
}

// humanLines are the lines of the turn that may bind an operator (O1).
func (b *brain) humanLines(t *turn) []Trigger {
	var out []Trigger
	for _, l := range t.lines {
		if l.Work != nil && !l.Work.Drives() {
			continue // on an ask only the driver binds
		}
		if rules.HumanTurn(rules.HumanTurnFacts{
			Author: l.Author, IsCron: l.IsCron, SiblingHop: l.SiblingHop, SelfDriveHop: l.SelfDriveHop,
			Reportable: b.in.Thread.Root != "",
		}) {
			out = append(out, l)
		}
	}
	return out
}

// runBind asks for the operator once (O8). A lost attempt leaves open whether one was
// started: that is said, and the next human turn finds out.
func (b *brain) runBind(ctx workflow.Context, summary string, in activities.BindInput) activities.Binding {
	var o *activities.Operator
	var out activities.Binding
	if err := workflow.ExecuteActivity(bindOptions(ctx, b.in.Settings, summary), o.Bind, in).Get(ctx, &out); err != nil {
		workflow.GetLogger(ctx).Error("an operator could not be bound", "error", err)
		return activities.Binding{Disposition: rules.DispUnbound, Why: rules.GapLost}
	}
	b.Operator = out.Operator
	return out
}

// bindAside binds an operator to a thread that the retrofit sweep found without one.
func (b *brain) bindAside(ctx workflow.Context, t Trigger) {
	in := activities.BindInput{
		Turn:     b.turnOf(t),
		MaySpawn: t.MaySpawn,
		Asked:    t.Asked,
	}
	binding := b.runBind(ctx, "bind an operator (sweep)", in)
	b.sendPost(ctx, "sweep", activities.PostInput{
		Turn:    activities.Turn{Seat: b.in.Seat, Thread: b.in.Thread},
		PostID:  rules.SweepID(b.in.Seat, b.in.Thread.Channel, t.Line.TS, t.EventTS),
		Say:     activities.SayBinding,
		Binding: &binding,
	})
}

// stopOperator ends the thread's operator and says so (O11).
func (b *brain) stopOperator(ctx workflow.Context, t Trigger) {
	var o *activities.Operator
	var out activities.StopOperatorResult
	err := workflow.ExecuteActivity(killOptions(ctx, b.in.Settings, "stop operator"), o.StopOperator, activities.StopOperatorInput{
		Seat: b.in.Seat, Thread: b.in.Thread, EventTS: t.EventTS,
	}).Get(ctx, &out)
	if err == nil {
		b.Operator = nil
	}
	in := activities.PostInput{
		Turn:            activities.Turn{Seat: b.in.Seat, Thread: b.in.Thread},
		PostID:          rules.StopID(b.in.Seat, b.in.Thread.Channel, t.EventTS),
		Say:             activities.SayOperatorStopped,
		OperatorStopped: &activities.OperatorStopped{Operator: out.Operator, Failed: err != nil, Elsewhere: out.Elsewhere},
	}
	if t.Line.TS != "" {
		in.Others = append(in.Others, activities.Outcome{Line: t.turnLine(), State: rules.Answered})
	}
	b.sendPost(ctx, "stop operator", in)
}

// sayDeposits posts the words of sessions in the order in which they are offered, each
// under its own name, so that an offer that is repeated posts nothing twice (R11). They
// have a coroutine of their own: a stop does not wait for them.
func (b *brain) sayDeposits(ctx workflow.Context) {
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	for {
		b.await(free, func() bool { return len(b.deposits) > 0 })
		d := b.deposits[0]
		b.sendPost(free, "words of "+d.Slug, activities.PostInput{
			Turn:    activities.Turn{Seat: b.in.Seat, Thread: b.in.Thread},
			PostID:  d.ID,
			Say:     activities.SayDeposit,
			Deposit: &d,
		})
		// It stays first until it is done: an offer that is repeated meanwhile is dropped.
		b.deposits = slices.Delete(b.deposits, 0, 1)
	}
}

// deposit takes a word of a session that is not already in hand.
func (b *brain) deposit(d *activities.DepositInput) {
	if d == nil || slices.ContainsFunc(b.deposits, func(have activities.DepositInput) bool { return have.ID == d.ID }) {
		return
	}
	b.deposits = append(b.deposits, *d)
}

// publishPhases shows the phases of a thread that has a pull request and no task (P2).
func (b *brain) publishPhases(ctx workflow.Context) {
	var p *activities.Phases
	err := workflow.ExecuteActivity(publishOptions(ctx, b.in.Settings.Box, "phases"), p.PublishPhases, activities.PublishInput{
		Seat: b.in.Seat, Thread: b.in.Thread, Read: true,
	}).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Error("the phases could not be shown", "error", err)
	}
}
