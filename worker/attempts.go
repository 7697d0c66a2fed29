package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"agentsmith/activities"
	"agentsmith/internal/agent"
	"agentsmith/internal/store"
)

// attemptLedger is what the worker writes down of the activities that it has in hand.
type attemptLedger interface {
	BeginAttempt(ctx context.Context, a store.Attempt) error
	EndAttempt(ctx context.Context, token []byte) error
	Attempts(ctx context.Context, box string) ([]store.Attempt, error)
}

// attempts writes down the activities in hand, so that the worker after a dead one can
// report them at once. Without it a person would wait for a timeout before they hear
// that their turn was interrupted (B3).
type attempts struct {
	interceptor.WorkerInterceptorBase
	ledger attemptLedger
	box    string
	self   agent.Process
	log    *slog.Logger
	// beside are the notes that no activity waits for.
	beside sync.WaitGroup
}

// finish waits for what is noted beside the activities, so that the next worker does not
// take one that has ended for one in hand.
func (a *attempts) finish() { a.beside.Wait() }

// InterceptActivity is the SDK's hook around every activity.
func (a *attempts) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &attemptNoter{attempts: a}
	i.Next = next
	return i
}

type attemptNoter struct {
	interceptor.ActivityInboundInterceptorBase
	attempts *attempts
}

// ExecuteActivity runs the activity and notes it beside, off the path of a line: an
// attempt that was not noted in time is found by its heartbeat's timeout instead.
func (n *attemptNoter) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	a, info := n.attempts, activity.GetInfo(ctx)
	var noting sync.WaitGroup
	noting.Go(func() {
		err := a.ledger.BeginAttempt(context.WithoutCancel(ctx), store.Attempt{
			Token: info.TaskToken, Workflow: info.WorkflowExecution.ID, Run: info.WorkflowExecution.RunID,
			Activity: info.ActivityID, Type: info.ActivityType.Name, Box: a.box,
			PID: a.self.PID, Start: a.self.Start, BootID: a.self.BootID,
		})
		if err != nil {
			a.log.Warn("an activity in hand could not be noted", "workflow", info.WorkflowExecution.ID, "error", err)
		}
	})
	result, err := n.Next.ExecuteActivity(ctx, in)
	a.beside.Go(func() {
		noting.Wait()
		if err := a.ledger.EndAttempt(context.WithoutCancel(ctx), info.TaskToken); err != nil {
			a.log.Warn("an ended activity is still noted as in hand", "workflow", info.WorkflowExecution.ID, "error", err)
		}
	})
	return result, err
}

// completer reports an activity by its token.
type completer interface {
	CompleteActivity(ctx context.Context, taskToken []byte, result any, err error) error
}

// reportDead fails the activities that dead workers of this box had in hand. A post is
// repeated by Temporal; a run of the agent is not, and its brain tells the thread.
func (a *attempts) reportDead(ctx context.Context, c completer) error {
	left, err := a.ledger.Attempts(ctx, a.box)
	if err != nil {
		return fmt.Errorf("look for the activities of a dead worker: %w", err)
	}
	for _, x := range left {
		owner := agent.Process{PID: x.PID, Start: x.Start, BootID: x.BootID}
		if owner.Lives() {
			continue
		}
		if err := a.report(ctx, c, x); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempts) report(ctx context.Context, c completer, x store.Attempt) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := c.CompleteActivity(ctx, x.Token, nil, temporal.NewApplicationError(
		"the worker died while it had this in hand", activities.ErrTypeWorkerDied))
	if err != nil && !errors.As(err, new(*serviceerror.NotFound)) {
		return fmt.Errorf("report an activity of a dead worker: %w", err)
	}
	a.log.Warn("a worker died with an activity in hand", "workflow", x.Workflow, "type", x.Type)
	if err := a.ledger.EndAttempt(ctx, x.Token); err != nil {
		return fmt.Errorf("forget an activity of a dead worker: %w", err)
	}
	return nil
}
