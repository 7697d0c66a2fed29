package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"agentsmith/activities"
	"agentsmith/rules"
)

// aside is a trigger that is dealt with beside the turns.
type aside struct {
	Trigger
	// tooLate: a stop that came while the answer was being posted.
	tooLate bool
	// dropped are the lines that waited when a stop came.
	dropped []Trigger
}

// sayAsides does what does not wait for a turn, one after the other: refusals, checks,
// and stops that found no turn to stop.
func (b *brain) sayAsides(ctx workflow.Context) {
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	for {
		b.await(free, func() bool { return len(b.asides) > 0 })
		t := b.asides[0]
		b.asides, b.asideRun = slices.Delete(b.asides, 0, 1), true
		switch t.Kind {
		case KindDecline:
			b.decline(free, t.Trigger)
		case KindStop:
			b.stopAside(free, t)
		case KindCheck:
			b.check(free, t.Trigger)
		case KindStopOperator:
			b.stopOperator(free, t.Trigger)
		case KindBind:
			b.bindAside(free, t.Trigger)
		case KindPhases:
			b.publishPhases(free)
		case KindRelayDoor:
			b.answerDoor(free, t.Trigger)
		}
		b.asideRun = false
	}
}

// decline refuses a line with one honest line and no agent run (X1, D2).
func (b *brain) decline(ctx workflow.Context, t Trigger) {
	b.sendPost(ctx, "decline", activities.PostInput{
		Turn: b.turnOf(t),
		Say:  activities.SayDecline, State: rules.Declined, Reason: t.Reason,
	})
}

// turnOf is the turn of one line that an aside deals with.
func (b *brain) turnOf(t Trigger) activities.Turn {
	return activities.Turn{
		ID:   rules.TurnID(b.in.Seat, b.in.Thread.Channel, t.Line.TS),
		Seat: b.in.Seat, Thread: b.in.Thread, Lines: []activities.TurnLine{t.turnLine()},
	}
}

// stopAside says what a stop did that no turn of this thread will say: nothing ran, or
// it was meant for every thread of the DM.
func (b *brain) stopAside(ctx workflow.Context, t aside) {
	said := activities.StopSaid{TooLate: t.tooLate}
	if t.WholeChannel {
		var a *activities.Agent
		var killed activities.KillAgentResult
		err := workflow.ExecuteActivity(killOptions(ctx, b.in.Settings, "stop all"), a.KillAgent, activities.KillAgentInput{
			Seat: b.in.Seat, Thread: b.in.Thread, WholeChannel: true, StopTS: t.EventTS,
		}).Get(ctx, &killed)
		said.Stopped, said.KillFailed = killed.Stopped, err != nil
	}
	b.sendPost(ctx, "stop", b.stopInput(t.Trigger, said, t.dropped))
}

// stopPost is the end of a turn that a stop ended.
func (b *brain) stopPost(t *turn, killed bool) activities.PostInput {
	in := b.stopInput(*t.stop, activities.StopSaid{Stopped: 1, KillFailed: !killed}, b.stoppedLines())
	in.State, in.Reason = rules.Declined, rules.ReasonStopped
	for _, again := range t.again {
		if again.Line.TS != "" {
			in.Others = append(in.Others, activities.Outcome{Line: again.turnLine(), State: rules.Answered})
		}
	}
	return in
}

// stopInput is the one line that says what a stop did, with the outcomes of the lines
// that waited and of the stop's own.
func (b *brain) stopInput(t Trigger, said activities.StopSaid, waiting []Trigger) activities.PostInput {
	said.Waiting = len(waiting)
	in := activities.PostInput{
		Turn:   activities.Turn{Seat: b.in.Seat, Thread: b.in.Thread},
		PostID: rules.StopID(b.in.Seat, b.in.Thread.Channel, t.EventTS),
		Say:    activities.SayStop,
		Stop:   said,
	}
	for _, w := range waiting {
		in.Others = append(in.Others, activities.Outcome{Line: w.turnLine(), State: rules.Declined, Reason: rules.ReasonStopped})
	}
	if t.Line.TS != "" {
		in.Others = append(in.Others, activities.Outcome{Line: t.turnLine(), State: rules.Answered})
	}
	return in
}

// check answers the sweep: of the lines that it asks about, those that this brain does
// not hold are looked for in the thread, and failed aloud when they are not there (L3).
func (b *brain) check(ctx workflow.Context, t Trigger) {
	held := stamps(b.Waiting)
	for _, a := range b.Asks {
		held = append(held, a.Line.TS)
	}
	if b.turn != nil {
		held = append(held, stamps(b.turn.lines)...)
	}
	var lost []string
	for _, ts := range t.Lines {
		if !slices.Contains(held, ts) {
			lost = append(lost, ts)
		}
	}
	if len(lost) == 0 {
		return
	}
	var p *activities.Poster
	err := workflow.ExecuteActivity(postOptions(ctx, b.in.Settings, "settle"), p.Settle, activities.SettleInput{
		Seat: b.in.Seat, Thread: b.in.Thread, Lines: lost,
	}).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Error("lines could not be settled; the sweep will ask again", "error", err)
	}
}
