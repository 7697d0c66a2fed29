package traps

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

func registerNamed(r worker.ActivityRegistry) {
	r.RegisterActivityWithOptions(Named, activity.RegisterOptions{Name: NamedAs})
}

// Local is a local activity.
func Local(context.Context, Step) (string, error) { return "local", nil }

// everything gives each kind of command once, and cancels what can be cancelled. It has a
// gate from the start, so that its marker is in the history.
func everything(ctx workflow.Context, in In) (string, error) {
	var s Steps
	v := workflow.GetVersion(ctx, "everything", workflow.DefaultVersion, 2)
	var drawn int
	if err := workflow.SideEffect(ctx, func(workflow.Context) any { return 4 }).Get(&drawn); err != nil {
		return "", err
	}
	var kept int
	get := func(n int) error {
		return workflow.MutableSideEffect(ctx, "kept", func(workflow.Context) any { return n }, func(a, b any) bool { return a == b }).Get(&kept)
	}
	if err := get(drawn); err != nil {
		return "", err
	}
	if err := get(drawn); err != nil { // unchanged: no event
		return "", err
	}
	local := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Second})
	if err := workflow.ExecuteLocalActivity(local, Local, Step{Name: "local"}).Get(ctx, nil); err != nil {
		return "", err
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, temporal.NewSearchAttributeKeyKeyword("TrapKey").ValueSet("a")); err != nil {
		return "", err
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{"memo": In{Round: int(v)}}); err != nil {
		return "", err
	}
	if err := cancelAll(ctx); err != nil {
		return "", err
	}
	child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: "everything-child", ParentClosePolicy: 2})
	running := workflow.ExecuteChildWorkflow(child, "Open", In{})
	var is workflow.Execution
	if err := running.GetChildWorkflowExecution().Get(ctx, &is); err != nil {
		return "", err
	}
	if err := running.SignalChildWorkflow(ctx, "go", In{Round: 1}).Get(ctx, nil); err != nil {
		return "", err
	}
	if err := running.Get(ctx, nil); err != nil {
		return "", err
	}
	_ = workflow.SignalExternalWorkflow(ctx, "nobody", "", "hello", In{Round: 2}).Get(ctx, nil)
	_ = workflow.RequestCancelExternalWorkflow(ctx, "nobody", "").Get(ctx, nil)
	return "done", step(ctx, s.B, "last", kept).Get(ctx, nil)
}

// cancelAll cancels a timer, an activity and a child that all run.
func cancelAll(ctx workflow.Context) error {
	var s Steps
	scope, cancel := workflow.WithCancel(ctx)
	timer := workflow.NewTimerWithOptions(scope, time.Hour, workflow.TimerOptions{Summary: "to be cancelled"})
	slow := workflow.ExecuteActivity(workflow.WithActivityOptions(scope, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: 5 * time.Second, TaskQueue: workflow.GetInfo(ctx).TaskQueueName,
		WaitForCancellation: false, Summary: "slow",
	}), s.Slow, Step{Name: "slow"})
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(scope, workflow.ChildWorkflowOptions{
		WorkflowID: "everything-cancelled", WaitForCancellation: true,
	}), "Open", In{})
	if err := child.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
		return err
	}
	if err := workflow.Sleep(ctx, 300*time.Millisecond); err != nil {
		return err
	}
	cancel()
	beside := step(ctx, s.A, "beside the cancel", 1)
	_, _ = timer.Get(ctx, nil), slow.Get(ctx, nil)
	_ = child.Get(ctx, nil)
	return beside.Get(ctx, nil)
}
