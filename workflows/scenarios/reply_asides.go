package scenarios

import (
	"context"
	"errors"
	"time"

	"agentsmith/rules"
	"agentsmith/workflows"
)

func stopMidTurn(ctx context.Context, w *World) (Execution, error) {
	root, err := w.hanging(ctx, 1)
	if err != nil {
		return Execution{}, err
	}
	_, err = w.reply(root, "stop")
	return w.brain(root), err
}

func stopIdle(ctx context.Context, w *World) (Execution, error) {
	root, err := w.told(ctx, "[[say Done.]]")
	if err != nil {
		return Execution{}, err
	}
	_, err = w.reply(root, "Stop!")
	return w.brain(root), err
}

// stopDM hangs a turn in a DM and stops it at the top level.
func stopDM(stopped bool) func(context.Context, *World) (Execution, error) {
	return func(ctx context.Context, w *World) (Execution, error) {
		channel, ts, err := w.direct("[[hang]]")
		if err != nil {
			return Execution{}, err
		}
		if err := w.asked(ctx, ts); err != nil {
			return Execution{}, err
		}
		_, stop, err := w.direct("stop")
		if stopped {
			return w.brainIn(channel, ts), err
		}
		return w.brainIn(channel, stop), err
	}
}

func edited(ctx context.Context, w *World) (Execution, error) {
	root, err := w.started(ctx, "[[sleep 3s]] [[say One.]]")
	if err != nil {
		return Execution{}, err
	}
	x := w.brain(root)
	ts, err := w.reply(root, "[[say Tpyo.]]")
	if err != nil {
		return Execution{}, err
	}
	if err := w.waiting(ctx, x, 1); err != nil {
		return Execution{}, err
	}
	ana := w.Slack.Person("ana")
	if err := ana.Edit("general", ts, "[[say Typo.]]"); err != nil {
		return Execution{}, err
	}
	if err := w.answered(ctx, root, 2); err != nil {
		return Execution{}, err
	}
	if err := ana.Edit("general", ts, "[[say Typo, mended.]]"); err != nil {
		return Execution{}, err
	}
	_, err = w.reply(root, "[[say Third.]]")
	return x, err
}

func deletedWaiting(ctx context.Context, w *World) (Execution, error) {
	root, err := w.started(ctx, "[[sleep 4s]] [[say One.]]")
	if err != nil {
		return Execution{}, err
	}
	x := w.brain(root)
	ts, err := w.reply(root, "oops")
	if err != nil {
		return Execution{}, err
	}
	if err := w.waiting(ctx, x, 1); err != nil {
		return Execution{}, err
	}
	// The starter ends a line that still waits in the ledger itself; the brain is told by
	// the same signal as of a line whose turn has begun.
	first, err := w.firstTrigger(ctx, x)
	if err != nil {
		return Execution{}, err
	}
	gone := first
	gone.Kind, gone.Line.TS, gone.EventTS = workflows.KindDelete, ts, rules.TimeTS(time.Now())
	return x, errors.Join(w.Slack.Person("ana").Delete("general", ts), w.signal(ctx, x.ID, gone))
}

func deletedRunning(ctx context.Context, w *World) (Execution, error) {
	root, err := w.told(ctx, "[[say Here.]]")
	if err != nil {
		return Execution{}, err
	}
	ts, err := w.reply(root, "[[hang]]")
	if err != nil {
		return Execution{}, err
	}
	if err := w.asked(ctx, ts); err != nil {
		return Execution{}, err
	}
	return w.brain(root), w.Slack.Person("ana").Delete("general", ts)
}

// checkedNothing asks about a line that has its outcome: there is nothing to settle.
func checkedNothing(ctx context.Context, w *World) (Execution, error) {
	root, err := w.told(ctx, "[[say Done.]]")
	if err != nil {
		return Execution{}, err
	}
	x := w.brain(root)
	return x, w.signal(ctx, x.ID, workflows.Trigger{Kind: workflows.KindCheck, Lines: []string{root}})
}

// checked lets the starter's own sweep find a line that no brain holds. The question
// starts the run that is kept.
func checked(ctx context.Context, w *World) (Execution, error) {
	root, err := w.lost(ctx)
	if err != nil {
		return Execution{}, err
	}
	return w.brain(root), w.answered(ctx, root, 1)
}

// checkedDuringTurn has the sweep ask a brain at work: it holds one of the lines of its
// thread that are owed, and not the other.
func checkedDuringTurn(ctx context.Context, w *World) (Execution, error) {
	root, err := w.lost(ctx)
	if err != nil {
		return Execution{}, err
	}
	ts, err := w.reply(root, "[[hang]]")
	if err != nil {
		return Execution{}, err
	}
	if err := errors.Join(w.asked(ctx, ts), w.answered(ctx, root, 1)); err != nil {
		return Execution{}, err
	}
	_, err = w.reply(root, "stop")
	return w.brain(root), err
}
