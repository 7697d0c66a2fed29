package traps

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The change IDs.
const (
	changeAdd     = "gate-add"
	changeInstead = "gate-" + "instead"
	changeLoop    = "loop-extra"
	changeShort   = "short-extra"
	changeRaised  = "raised"
	changeName    = "renamed"
	changeOpen    = "open-extra"
	changeQuiet   = "quiet"
)

func addGate(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, changeAdd, workflow.DefaultVersion, 1) >= 1
}

// gateAfter adds an activity before the last one.
func gateAfter(ctx workflow.Context, in In) (string, error) {
	var s Steps
	if err := step(ctx, s.A, "first", 1).Get(ctx, nil); err != nil {
		return "", err
	}
	if !in.Flag {
		return "short", nil
	}
	if addGate(ctx) {
		if err := step(ctx, s.B, "added", 9).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	return "long", step(ctx, s.A, "last", 2).Get(ctx, nil)
}

// asked is a helper: its callers say which gate it asks.
func asked(ctx workflow.Context, id string) bool {
	return workflow.GetVersion(ctx, id, workflow.DefaultVersion, 1) == 1
}

// adjacentAfter has two gates side by side: one adds, the other does something instead.
func adjacentAfter(ctx workflow.Context, in In) (string, error) {
	var s Steps
	if err := step(ctx, s.A, "first", 1).Get(ctx, nil); err != nil {
		return "", err
	}
	if !in.Flag {
		return "short", nil
	}
	add, instead := addGate(ctx), asked(ctx, changeInstead)
	if add {
		if err := step(ctx, s.B, "added", 9).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	if instead {
		return "long", workflow.Sleep(ctx, 10*time.Millisecond)
	}
	return "long", step(ctx, s.A, "last", 2).Get(ctx, nil)
}

func loopAfter(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	for n := range 3 {
		if err := workflow.Sleep(ctx, 10*time.Millisecond); err != nil {
			return "", err
		}
		extra := asked(ctx, changeLoop)
		if err := step(ctx, s.A, "round", n).Get(ctx, nil); err != nil {
			return "", err
		}
		if extra {
			if err := step(ctx, s.B, "extra", n).Get(ctx, nil); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// shortAfter asks its gate only when the flag is set.
func shortAfter(ctx workflow.Context, in In) (string, error) {
	var s Steps
	if err := step(ctx, s.A, "first", 1).Get(ctx, nil); err != nil {
		return "", err
	}
	if in.Flag && workflow.GetVersion(ctx, changeShort, workflow.DefaultVersion, 1) == 1 {
		if err := step(ctx, s.B, "extra", 1).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	if !in.Flag {
		return "short", nil
	}
	return "long", step(ctx, s.A, "last", 2).Get(ctx, nil)
}

// raisedAfter has dropped the old branch and raised the minimum.
func raisedAfter(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	_ = workflow.GetVersion(ctx, changeRaised, 1, 1)
	return "", step(ctx, s.A, "first", 1).Get(ctx, nil)
}

func gateRenamedBefore(ctx workflow.Context, _ In) (string, error) {
	return renamed(ctx, "renamed-once")
}

func renamed(ctx workflow.Context, id string) (string, error) {
	var s Steps
	gated := workflow.GetVersion(ctx, id, workflow.DefaultVersion, 1) == 1
	if gated {
		if err := step(ctx, s.B, "added", 1).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	return "", step(ctx, s.A, "last", 2).Get(ctx, nil)
}

func renamedAfter(ctx workflow.Context, _ In) (string, error) { return renamed(ctx, changeName) }

func parallelAfter(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	two, one := step(ctx, s.A, "two", 2), step(ctx, s.A, "one", 1)
	_, _ = one.Get(ctx, nil), two.Get(ctx, nil)
	return "", nil
}

func timerAfter(ctx workflow.Context, _ In) (string, error) {
	return "", workflow.Sleep(ctx, 25*time.Millisecond)
}

func argumentAfter(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	return "another result", step(ctx, s.A, "argument", 2).Get(ctx, nil)
}

// mapAfter ranges over a map.
func mapAfter(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	for name := range map[string]bool{"x": true, "y": true, "z": true} {
		if err := step(ctx, s.A, name, len(name)).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	return "", step(ctx, s.B, "b", 0).Get(ctx, nil)
}

// mapKinds ranges over a map of different activities: that the SDK sees, sometimes.
func mapKinds(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	for name, f := range map[string]any{"one": s.A, "two": s.B} {
		n := map[string]int{"one": 1, "two": 2}[name]
		if err := step(ctx, f, name, n).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	return "", nil
}

func namedAfter(ctx workflow.Context, _ In) (string, error) {
	return "", workflow.ExecuteActivity(options(ctx), Named, Step{Name: "named"}).Get(ctx, nil)
}

func optionsAfter(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: "elsewhere", StartToCloseTimeout: 2 * time.Minute, HeartbeatTimeout: time.Second,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3},
	})
	return "", workflow.ExecuteActivity(ctx, "other."+"A", Step{Name: "argument", N: 1}).Get(ctx, s.none())
}

func (Steps) none() any { return nil }

func againAfter(ctx workflow.Context, in In) (string, error) {
	return "", workflow.NewContinueAsNewError(ctx, "Leaf", In{Flag: true, Round: in.Round + 1})
}

func failAfter(workflow.Context, In) (string, error) {
	return "", temporal.NewApplicationError("it failed otherwise", "Told", In{Round: 8})
}

// openAfter adds an activity where the old code gave nothing and waited.
func openAfter(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	if err := step(ctx, s.A, "first", 1).Get(ctx, nil); err != nil {
		return "", err
	}
	if asked(ctx, changeOpen) {
		if err := step(ctx, s.B, "extra", 9).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	return waitForGo(ctx)
}

// quietAfter has a gate before a change that the SDK does not look at.
func quietAfter(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	n := 1
	if asked(ctx, changeQuiet) {
		n = 2
	}
	return "", step(ctx, s.A, "argument", n).Get(ctx, nil)
}

// Quiet registers Argument with that gate.
func Quiet(r worker.WorkflowRegistry) { register(r, map[string]any{"Argument": quietAfter}) }

// panics has a bug of its own.
func panics(workflow.Context, In) (string, error) {
	var none *In
	return "", temporal.NewApplicationError("never", "", none.Round)
}

// After registers the workflows as somebody changed them.
func After(r worker.WorkflowRegistry) {
	register(r, map[string]any{
		"Gate": gateAfter, "Adjacent": adjacentAfter, "Raised": raisedAfter, "Renamed": renamedAfter, "Short": shortAfter,
		"Loop": loopAfter, "Parallel": parallelAfter, "Twins": twinsBefore, "Timer": timerAfter, "Argument": argumentAfter,
		"Map": mapAfter, "Child": childBefore, "Leaf": leaf, "Named": namedAfter, "Open": openAfter, "Again": againAfter,
		"Fail": failAfter, "Everything": everything,
	})
}

// Kinds registers Parallel as one that ranges over a map of activities.
func Kinds(r worker.WorkflowRegistry) { register(r, map[string]any{"Kinds": mapKinds}) }

// Options registers Argument with other options of its activity.
func Options(r worker.WorkflowRegistry) { register(r, map[string]any{"Argument": optionsAfter}) }

// Panics registers Argument with a bug of its own.
func Panics(r worker.WorkflowRegistry) { register(r, map[string]any{"Argument": panics}) }

// Nothing registers a workflow that no history is of.
func Nothing(r worker.WorkflowRegistry) { register(r, map[string]any{"Nobody": leaf}) }
