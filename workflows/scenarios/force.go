package scenarios

import (
	"context"
	"errors"
	"fmt"

	"agentsmith/workflows"
)

// replyForce are the scenarios of a seat's part in an ask of every seat, from what ana types
// to the last word (A1-A6).
func replyForce() []Scenario {
	return of(workflows.ReplyType, []Scenario{
		{Name: "force-driver", Purpose: "An ask that the dispatcher gives to this seat, and a follow-up of its driver.", Kind: Asking, Run: forceDriver},
		{Name: "force-other", Purpose: "An ask that another seat drives: this one adds to its answer.", Kind: Asking, Run: force("trinity", "[[say It is.]] [[adds]] [[say Mostly.]]")},
		{Name: "force-abstains", Purpose: "An ask that another seat drives: this one has nothing to add.", Kind: Asking, Run: force("trinity", "[[say It is.]]")},
		{Name: "force-no-answer", Purpose: "An ask whose driver fails: there is nothing to add to.", Kind: Asking, Run: force("trinity", "[[error 400]]")},
		{Name: "force-undispatched", Purpose: "An ask that this seat picks itself for.", Kind: Alone, Run: force("smith", "[[say It is.]]")},
		{Name: "force-covered", Purpose: "An ask whose driver is down: this seat covers.", Kind: Alone, Run: force("trinity", "[[say It is.]]")},
		{Name: "force-stopped", Purpose: "A stop while an ask waits for its driver.", Kind: Alone, Run: forceStopped},
		{Name: "force-deleted", Purpose: "An ask that is deleted while it waits for its driver.", Kind: Alone, Run: forceDeleted},
		{Name: "force-renewed", Purpose: "A run that continues as new while an ask waits.", Kind: Alone, Run: forceRenewed(false)},
		{Name: "force-carried", Purpose: "The run after it, to which the ask was carried.", Kind: Alone, Run: forceRenewed(true)},
	})
}

// forcePick are the scenarios of the dispatcher.
func forcePick() []Scenario {
	return of(workflows.ForcePickType, []Scenario{
		{Name: "pick", Purpose: "An ask, and its dispatch line.", Kind: Asking, Run: func(_ context.Context, w *World) (Execution, error) {
			ts, err := w.askAll("", "smith", "[[say It is.]]")
			return Execution{ID: workflows.ForcePickID(channelID("general"), ts)}, err
		}},
	})
}

// askAll has ana ask every seat; named is the seat that her question names.
func (w *World) askAll(root, named, text string) (ts string, err error) {
	for _, app := range w.Slack.State().Apps {
		if app.Name == "agent-force" {
			return w.Slack.Person("ana").Reply("general", root, fmt.Sprintf("<@%s> %s, is it safe? %s", app.BotUser, named, text))
		}
	}
	return "", errors.New("there is no dispatcher")
}

func force(named, text string) func(context.Context, *World) (Execution, error) {
	return func(ctx context.Context, w *World) (Execution, error) {
		root, err := w.askAll("", named, text)
		if err != nil {
			return Execution{}, err
		}
		return w.pinned(ctx, w.brain(root))
	}
}

func forceDriver(ctx context.Context, w *World) (Execution, error) {
	root, err := w.askAll("", "smith", "[[say It is.]]")
	if err != nil {
		return Execution{}, err
	}
	x := w.brain(root)
	if err := w.idle(ctx, x, 1); err != nil {
		return x, err
	}
	_, err = w.reply(root, "and now? [[say Now too.]]")
	return x, err
}

// forceWaits is an ask that waits for a driver who is down.
func (w *World) forceWaits(ctx context.Context) (ts string, x Execution, err error) {
	if ts, err = w.askAll("", "trinity", "[[say It is.]]"); err != nil {
		return ts, x, err
	}
	if x, err = w.pinned(ctx, w.brain(ts)); err != nil {
		return ts, x, err
	}
	return ts, x, w.sees(ctx, "the ask to wait", x, func(v workflows.ThreadView) bool { return len(v.Asks) == 1 })
}

func forceStopped(ctx context.Context, w *World) (Execution, error) {
	root, x, err := w.forceWaits(ctx)
	if err != nil {
		return x, err
	}
	_, err = w.reply(root, "stop")
	return x, err
}

func forceDeleted(ctx context.Context, w *World) (Execution, error) {
	root, x, err := w.forceWaits(ctx)
	if err != nil {
		return x, err
	}
	if _, err := w.reply(root, w.bot+"[[say Still here.]]"); err != nil {
		return x, err
	}
	if err := w.answered(ctx, root, 1); err != nil {
		return x, err
	}
	trigger, err := w.firstTrigger(ctx, x)
	if err != nil {
		return x, err
	}
	return x, errors.Join(
		w.signal(ctx, x.ID, workflows.Trigger{Kind: workflows.KindDelete, Author: trigger.Author, Line: trigger.Line, EventTS: trigger.Line.TS}),
		w.sees(ctx, "the ask to be gone", x, func(v workflows.ThreadView) bool { return len(v.Asks) == 0 }),
		w.again(ctx, root, 2))
}

// again has ana say one line more, so that what waits for a post is settled.
func (w *World) again(ctx context.Context, root string, answers int) error {
	if _, err := w.reply(root, w.bot+"[[say And again.]]"); err != nil {
		return err
	}
	return w.answered(ctx, root, answers)
}

func forceRenewed(later bool) func(context.Context, *World) (Execution, error) {
	return func(ctx context.Context, w *World) (Execution, error) {
		root, x, err := w.forceWaits(ctx)
		if err != nil {
			return x, err
		}
		first, err := w.firstRun(ctx, x)
		if err != nil {
			return x, err
		}
		for i := range 6 {
			if err := w.again(ctx, root, i+1); err != nil {
				return x, err
			}
		}
		next, err := w.laterRun(ctx, x, first)
		if err != nil {
			return x, err
		}
		if later {
			return Execution{ID: x.ID, Run: next}, nil
		}
		return Execution{ID: x.ID, Run: first}, nil
	}
}
