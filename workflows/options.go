package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// waitForPlace is how long a turn may wait for a free place on its box (X6) beside
// its own time. Heartbeats tell a dead worker from a long queue.
const waitForPlace = 12 * time.Hour

// A worker may be silent for this long before its activity counts as lost. A worker that
// starts again reports the activities of the one before it at once; this is for a box
// that does not come back, and a run of the agent outlasts a short outage of the server.
const (
	agentHeartbeat = time.Minute
	postHeartbeat  = 30 * time.Second
)

// agentOptions are for RunAgent. One attempt: a run may have opened a pull request
// before it was lost, so it is never repeated blindly (B3).
func agentOptions(ctx workflow.Context, s Settings, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           BoxTaskQueue(s.Box),
		StartToCloseTimeout: s.TurnTimeout + waitForPlace,
		HeartbeatTimeout:    agentHeartbeat,
		WaitForCancellation: true,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:             summary,
	})
}

// postOptions are for Post and Settle. They are repeated until Slack takes them: the
// recipe of B5 makes a repeat safe, and a day is longer than Slack's longest outage.
// They run on the box, since an answer's files and long texts are there.
func postOptions(ctx workflow.Context, s Settings, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              BoxTaskQueue(s.Box),
		ScheduleToCloseTimeout: 24 * time.Hour,
		StartToCloseTimeout:    5 * time.Minute,
		HeartbeatTimeout:       postHeartbeat,
		RetryPolicy:            untilDone(),
		Summary:                summary,
	})
}

// killOptions are for KillAgent. It is safe to repeat and must not wait long: a
// person is watching (D4).
func killOptions(ctx workflow.Context, s Settings, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              BoxTaskQueue(s.Box),
		ScheduleToCloseTimeout: time.Minute,
		StartToCloseTimeout:    10 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    200 * time.Millisecond,
			BackoffCoefficient: 2,
			MaximumInterval:    2 * time.Second,
		},
		Summary: summary,
	})
}

// askOptions are for WorkOnAsk. It is safe to repeat: a claim has one name. A day is longer
// than Slack's longest outage.
func askOptions(ctx workflow.Context, s Settings) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              BoxTaskQueue(s.Box),
		ScheduleToCloseTimeout: 24 * time.Hour,
		StartToCloseTimeout:    2 * time.Minute,
		HeartbeatTimeout:       postHeartbeat,
		RetryPolicy:            untilDone(),
		Summary:                "look at an ask",
	})
}

// dispatchOptions are for Dispatch: after ten minutes the seats have long picked by
// themselves (A4).
func dispatchOptions(ctx workflow.Context, box string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              BoxTaskQueue(box),
		ScheduleToCloseTimeout: 10 * time.Minute,
		StartToCloseTimeout:    time.Minute,
		HeartbeatTimeout:       postHeartbeat,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 500 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second},
		Summary:                "dispatch",
	})
}

// untilDone repeats what is safe to repeat, ever more slowly, until its activity's time is over.
func untilDone() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute}
}

// bindOptions are for Bind. One attempt: it may start an operator, and a repeat could
// land while the first one's launcher is still at it (O8). The next human turn is the
// recovery.
func bindOptions(ctx workflow.Context, s Settings, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           BoxTaskQueue(s.Box),
		StartToCloseTimeout: 5 * time.Minute,
		// A box that is away for longer is told of; the line is answered when it is back.
		ScheduleToStartTimeout: waitForPlace,
		HeartbeatTimeout:       agentHeartbeat,
		WaitForCancellation:    true,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:                summary,
	})
}

// publishOptions are for PublishPhases. A table that cannot be shown for an hour is
// shown with the next change.
func publishOptions(ctx workflow.Context, box, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              BoxTaskQueue(box),
		ScheduleToCloseTimeout: time.Hour,
		StartToCloseTimeout:    2 * time.Minute,
		HeartbeatTimeout:       postHeartbeat,
		RetryPolicy:            untilDone(),
		Summary:                summary,
	})
}

// taskOptions are for what a task asks of its box. Each is safe to repeat: what it does
// is recorded before and after. The next tick asks again.
func taskOptions(ctx workflow.Context, box, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              BoxTaskQueue(box),
		ScheduleToCloseTimeout: 24 * time.Hour,
		StartToCloseTimeout:    3 * time.Minute,
		HeartbeatTimeout:       postHeartbeat,
		RetryPolicy:            untilDone(),
		Summary:                summary,
	})
}
