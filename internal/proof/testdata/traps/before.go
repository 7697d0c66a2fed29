// Package traps holds small workflows, as they were and as somebody changed them: each
// change is one that replay sees wrongly, or not at all, when it is asked the wrong way.
package traps

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// In is what a workflow is started with.
type In struct {
	Flag  bool `json:"flag"`
	Round int  `json:"round,omitempty"`
}

// Step is what an activity is given.
type Step struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

// Steps are the activities.
type Steps struct{}

// A does nothing.
func (Steps) A(context.Context, Step) (string, error) { return "a", nil }

// B does nothing either.
func (Steps) B(context.Context, Step) (string, error) { return "b", nil }

// Slow waits to be cancelled.
func (Steps) Slow(ctx context.Context, _ Step) (string, error) {
	for ctx.Err() == nil {
		activity.RecordHeartbeat(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return "", ctx.Err()
}

// Named is registered under a name that is not its own.
func Named(context.Context, Step) (string, error) { return "named", nil }

// NamedAs is that name.
const NamedAs = "custom-name"

// Activities registers every activity.
func Activities(r worker.ActivityRegistry) {
	r.RegisterActivity(&Steps{})
	registerNamed(r)
}

// ActivityNames are the names that Activities registers.
func ActivityNames() []string { return []string{"A", "B", "Slow", NamedAs} }

func options(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}

func step(ctx workflow.Context, f any, name string, n int) workflow.Future {
	return workflow.ExecuteActivity(options(ctx), f, Step{Name: name, N: n})
}

func gateBefore(ctx workflow.Context, in In) (string, error) {
	var s Steps
	if err := step(ctx, s.A, "first", 1).Get(ctx, nil); err != nil {
		return "", err
	}
	if !in.Flag {
		return "short", nil
	}
	return "long", step(ctx, s.A, "last", 2).Get(ctx, nil)
}

func loopBefore(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	for n := range 3 {
		if err := workflow.Sleep(ctx, 10*time.Millisecond); err != nil {
			return "", err
		}
		if err := step(ctx, s.A, "round", n).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	return "", nil
}

func parallelBefore(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	one, two := step(ctx, s.A, "one", 1), step(ctx, s.A, "two", 2)
	_, _ = one.Get(ctx, nil), two.Get(ctx, nil)
	return "", nil
}

func twinsBefore(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	one, two := step(ctx, s.A, "twin", 1), step(ctx, s.A, "twin", 1)
	_, _ = one.Get(ctx, nil), two.Get(ctx, nil)
	return "", nil
}

func timerBefore(ctx workflow.Context, _ In) (string, error) {
	return "", workflow.Sleep(ctx, 20*time.Millisecond)
}

func argumentBefore(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	return "", step(ctx, s.A, "argument", 1).Get(ctx, nil)
}

func mapBefore(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	for _, name := range []string{"x", "y", "z"} {
		if err := step(ctx, s.A, name, len(name)).Get(ctx, nil); err != nil {
			return "", err
		}
	}
	return "", step(ctx, s.B, "b", 0).Get(ctx, nil)
}

func childBefore(ctx workflow.Context, _ In) (string, error) {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID + "/child",
	})
	return "", workflow.ExecuteChildWorkflow(ctx, "Leaf", In{}).Get(ctx, nil)
}

func leaf(workflow.Context, In) (string, error) { return "leaf", nil }

func namedBefore(ctx workflow.Context, _ In) (string, error) {
	return "", workflow.ExecuteActivity(options(ctx), NamedAs, Step{Name: "named"}).Get(ctx, nil)
}

func openBefore(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	if err := step(ctx, s.A, "first", 1).Get(ctx, nil); err != nil {
		return "", err
	}
	return waitForGo(ctx)
}

func waitForGo(ctx workflow.Context) (string, error) {
	var s Steps
	came := workflow.GetSignalChannel(ctx, "go")
	if err := workflow.Await(ctx, func() bool { return came.Len() > 0 }); err != nil {
		return "", err
	}
	return "", step(ctx, s.B, "second", 2).Get(ctx, nil)
}

func againBefore(ctx workflow.Context, in In) (string, error) {
	if in.Round < 2 {
		return "", workflow.NewContinueAsNewError(ctx, "Again", In{Flag: in.Flag, Round: in.Round + 1})
	}
	return "", nil
}

func kindsBefore(ctx workflow.Context, _ In) (string, error) {
	var s Steps
	if err := step(ctx, s.A, "one", 1).Get(ctx, nil); err != nil {
		return "", err
	}
	return "", step(ctx, s.B, "two", 2).Get(ctx, nil)
}

func failBefore(workflow.Context, In) (string, error) {
	return "", temporal.NewNonRetryableApplicationError("it failed", "Told", nil, In{Round: 7})
}

// Before registers the workflows as they were when the histories were captured.
func Before(r worker.WorkflowRegistry) {
	register(r, map[string]any{
		"Gate": gateBefore, "Adjacent": gateBefore, "Raised": gateBefore, "Renamed": gateRenamedBefore, "Short": gateBefore,
		"Loop": loopBefore, "Parallel": parallelBefore, "Twins": twinsBefore, "Timer": timerBefore, "Argument": argumentBefore,
		"Map": mapBefore, "Child": childBefore, "Leaf": leaf, "Named": namedBefore, "Open": openBefore, "Again": againBefore,
		"Kinds": kindsBefore, "Fail": failBefore, "Everything": everything,
	})
}

func register(r worker.WorkflowRegistry, workflows map[string]any) {
	for name, f := range workflows {
		r.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: name})
	}
}
