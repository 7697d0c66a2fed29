package scenarios

import (
	"context"
	"fmt"
)

func openInLoop(ctx context.Context, w *World) (Execution, error) {
	root, err := w.told(ctx, "[[say First.]]")
	if err != nil {
		return Execution{}, err
	}
	x := w.brain(root)
	if err := w.idle(ctx, x, 1); err != nil {
		return Execution{}, err
	}
	if _, err := w.reply(root, "[[say Second.]]"); err != nil {
		return Execution{}, err
	}
	if err := w.idle(ctx, x, 2); err != nil {
		return Execution{}, err
	}
	// A redelivery gives the loop one more task, at whose start the history is cut.
	again, err := w.firstTrigger(ctx, x)
	if err != nil {
		return Execution{}, err
	}
	if err := w.signal(ctx, x.ID, again); err != nil {
		return Execution{}, err
	}
	return x, w.settled(ctx, x)
}

func openInTurn(ctx context.Context, w *World) (Execution, error) {
	root, err := w.hanging(ctx, 2)
	return w.brain(root), err
}

// renewed keeps a thread busy until its brain continues as new with a line waiting.
func renewed(next bool) func(context.Context, *World) (Execution, error) {
	return func(ctx context.Context, w *World) (Execution, error) {
		root, err := w.ask("[[say Turn 1.]]")
		if err != nil {
			return Execution{}, err
		}
		x := w.brain(root)
		first, err := w.latestRun(ctx, x)
		if err != nil {
			return Execution{}, err
		}
		for n := 1; ; n++ {
			if err := w.answered(ctx, root, n); err != nil {
				return Execution{}, err
			}
			now, err := w.latestRun(ctx, x)
			if err != nil {
				return Execution{}, err
			}
			if now != first {
				break
			}
			ts, err := w.reply(root, fmt.Sprintf("[[sleep 2s]] [[say Turn %d.]]", n+1))
			if err != nil {
				return Execution{}, err
			}
			if err := w.asked(ctx, ts); err != nil {
				return Execution{}, err
			}
			// A second line waits behind this turn, to be carried if the brain renews after it.
			if _, err := w.reply(root, "[[say And this.]]"); err != nil {
				return Execution{}, err
			}
			if err := w.answered(ctx, root, n+2); err != nil {
				return Execution{}, err
			}
			n++
		}
		if next {
			x.Run, err = w.latestRun(ctx, x)
			return x, err
		}
		x.Run = first
		return x, nil
	}
}
