package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"agentsmith/activities"
	"agentsmith/rules"
)

// listen takes every trigger as it comes, also while a turn runs: a stop must not
// wait for the turn that it stops. It waits for the channel to hold something rather
// than in Receive: a signal that is handed to a blocked receiver is in the channel no
// more, so that drain would not see it and the run would complete without it (B6).
func (b *brain) listen(ctx workflow.Context) {
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	for {
		b.await(free, func() bool { return b.signals.Len() > 0 })
		b.drain(free)
	}
}

// drain takes what has arrived and listen has not yet seen. It never yields.
func (b *brain) drain(ctx workflow.Context) {
	for {
		var t Trigger
		if !b.signals.ReceiveAsync(&t) {
			return
		}
		b.accept(ctx, t)
	}
}

// accept puts a trigger where it belongs. It never yields, so that two triggers are
// accepted one after the other.
func (b *brain) accept(ctx workflow.Context, t Trigger) {
	if !b.fresh(t) {
		return
	}
	switch t.Kind {
	case KindLine:
		b.LastLine = workflow.Now(ctx)
		switch {
		case t.RelayStandsDown: // a relay carries it; this run is there for the session's words (R3, R5)
		case b.takesAsks && t.Ask != nil:
			b.asked(ctx, t)
		default:
			b.wait(t)
		}
	case KindPick:
		b.hints++
	case KindEdit:
		b.edited(t)
	case KindDelete:
		b.deleted(ctx, t)
	case KindStop:
		b.stopped(ctx, t)
	case KindDeposit:
		b.deposit(t.Deposit)
	case KindOperator:
		b.Operator = t.Operator
	case KindDecline, KindCheck, KindStopOperator, KindBind, KindPhases, KindRelayDoor:
		b.asides = append(b.asides, aside{Trigger: t})
	default:
		workflow.GetLogger(ctx).Error("a trigger of an unknown kind was left alone", "kind", t.Kind)
	}
	b.describe(ctx)
}

// fresh tells whether this trigger has not been seen, and remembers it. Checks are
// questions, and may be asked again; a word is offered until it is posted; what is known
// of operators and pull requests is true each time.
func (b *brain) fresh(t Trigger) bool {
	switch t.Kind {
	case KindCheck, KindDeposit, KindOperator, KindPhases:
		return true
	}
	name := string(t.Kind) + " " + t.Line.TS + " " + t.EventTS
	if t.RelayStandsDown {
		name += " stands down" // should it be handed back, it is to be heard (R9)
	}
	if slices.Contains(b.Seen, name) {
		return false
	}
	b.Seen = append(b.Seen, name)
	if extra := len(b.Seen) - seenKept; extra > 0 {
		b.Seen = slices.Clone(b.Seen[extra:])
	}
	return true
}

// edited replaces the text of a line that still waits; later it is context for the
// next turn and starts none (L4).
func (b *brain) edited(t Trigger) {
	for i, w := range b.Waiting {
		if w.Line.TS != t.Line.TS {
			continue
		}
		if rules.CompareTS(t.Line.EditedTS, w.Line.EditedTS) > 0 {
			b.Waiting[i].Line.Text, b.Waiting[i].TextRef = t.Line.Text, t.TextRef
			b.Waiting[i].Line.EditedTS = t.Line.EditedTS
		}
		return
	}
	for _, a := range b.Asks {
		if a.Line.TS == t.Line.TS {
			a.Line.Text, a.TextRef, a.Line.EditedTS = t.Line.Text, t.TextRef, t.Line.EditedTS
			return
		}
	}
	b.Edits = append(b.Edits, activities.Edit{TS: t.Line.TS, Text: t.Line.Text})
}

// deleted drops a line that still waits; a running turn ends only when all of its
// lines are deleted (L4).
func (b *brain) deleted(ctx workflow.Context, t Trigger) {
	for i, w := range b.Waiting {
		if w.Line.TS == t.Line.TS {
			b.Waiting = slices.Delete(b.Waiting, i, i+1)
			b.Deleted = append(b.Deleted, w)
			return
		}
	}
	for _, a := range b.Asks {
		if a.Line.TS == t.Line.TS {
			b.drop(a)
			b.Deleted = append(b.Deleted, a.Trigger)
			return
		}
	}
	if b.turn == nil || !b.turn.drop(t.Line.TS) {
		return
	}
	if b.turn.allDropped() && !b.turn.posting {
		b.turn.kill(ctx, b.in.Settings, activities.KillAgentInput{Seat: b.in.Seat, Thread: b.in.Thread})
	}
}

// stopped ends what runs in this thread and declines what waits in it (D4). What was
// done is said by the turn that it stops, else by an aside.
func (b *brain) stopped(ctx workflow.Context, t Trigger) {
	b.StopTS = rules.NewerTS(b.StopTS, t.EventTS)
	b.Drive = nil
	if b.turn == nil || t.WholeChannel || b.turn.posting || !b.turn.olderThan(t.EventTS) {
		tooLate := b.turn != nil && b.turn.posting && b.turn.stop == nil
		// What waits is dropped here and now: the next turn must not begin with it.
		b.asides = append(b.asides, aside{Trigger: t, tooLate: tooLate, dropped: b.stoppedLines()})
		return
	}
	if b.turn.stop != nil {
		b.turn.again = append(b.turn.again, t)
		return
	}
	b.turn.stop = &t
	b.turn.kill(ctx, b.in.Settings, activities.KillAgentInput{
		Seat: b.in.Seat, Thread: b.in.Thread, StopTS: t.EventTS,
	})
}

// stoppedLines takes from the waiting lines those that are older than the newest stop.
func (b *brain) stoppedLines() []Trigger {
	var out []Trigger
	b.Waiting = slices.DeleteFunc(b.Waiting, func(w Trigger) bool {
		old := w.Line.TS != "" && rules.CompareTS(w.Line.TS, b.StopTS) < 0
		if old {
			out = append(out, w)
		}
		return old
	})
	b.Asks = slices.DeleteFunc(b.Asks, func(a *ask) bool {
		old := rules.CompareTS(a.Line.TS, b.StopTS) < 0
		if old {
			out = append(out, a.Trigger)
		}
		return old
	})
	return out
}
