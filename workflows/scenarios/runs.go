package scenarios

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"agentsmith/workflows"
)

// History reads a run's whole history as it is now.
func (w *World) History(ctx context.Context, x Execution) (*historypb.History, error) {
	var h historypb.History
	it := w.client.GetWorkflowHistory(ctx, x.ID, x.Run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			return nil, fmt.Errorf("read the history of %s: %w", x.ID, err)
		}
		h.Events = append(h.Events, e)
	}
	return &h, nil
}

// Closed waits until a run has closed, whatever way.
func (w *World) Closed(ctx context.Context, x Execution) error {
	return w.until(ctx, "the run of "+x.ID+" to close", func() (bool, error) {
		d, err := w.client.DescribeWorkflow(ctx, x.ID, x.Run)
		if err != nil {
			return false, fmt.Errorf("describe %s: %w", x.ID, err)
		}
		return d.RawResponse.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	})
}

// latestRun is the run id of a workflow's newest run.
func (w *World) latestRun(ctx context.Context, x Execution) (string, error) {
	var run string
	err := w.until(ctx, "the brain to start", func() (bool, error) {
		d, err := w.client.DescribeWorkflow(ctx, x.ID, "")
		if err != nil {
			return false, fmt.Errorf("describe %s: %w", x.ID, err)
		}
		run = d.RawResponse.GetWorkflowExecutionInfo().GetExecution().GetRunId()
		return true, nil
	})
	return run, err
}

// signal sends a trigger to a brain as the starter would.
func (w *World) signal(ctx context.Context, id string, t workflows.Trigger) error {
	if err := w.client.SignalWorkflow(ctx, id, "", workflows.SignalAddContext, t); err != nil {
		return fmt.Errorf("signal %s: %w", id, err)
	}
	return nil
}

// firstTrigger is the trigger that a brain was started with.
func (w *World) firstTrigger(ctx context.Context, x Execution) (workflows.Trigger, error) {
	var in workflows.ReplyInput
	err := w.until(ctx, "the brain to start", func() (bool, error) {
		h, err := w.History(ctx, x)
		if err != nil || len(h.Events) == 0 {
			return false, err
		}
		a := h.Events[0].GetWorkflowExecutionStartedEventAttributes()
		return true, converter.GetDefaultDataConverter().FromPayloads(a.GetInput(), &in)
	})
	return in.Trigger, err
}

// waiting waits until n lines wait in a brain.
func (w *World) waiting(ctx context.Context, x Execution, n int) error {
	return w.sees(ctx, fmt.Sprintf("%d lines to wait", n), x, func(v workflows.ThreadView) bool { return len(v.Waiting) >= n })
}

// idle waits until a brain has had that many turns and nothing to do.
func (w *World) idle(ctx context.Context, x Execution, turns int) error {
	return w.sees(ctx, "the brain to idle", x, func(v workflows.ThreadView) bool {
		return v.Turns >= turns && v.Turn == "" && len(v.Waiting) == 0
	})
}

func (w *World) sees(ctx context.Context, what string, x Execution, done func(workflows.ThreadView) bool) error {
	return w.until(ctx, what, func() (bool, error) {
		v, err := w.client.QueryWorkflow(ctx, x.ID, x.Run, workflows.QueryThread)
		if err != nil {
			return false, fmt.Errorf("query %s: %w", x.ID, err)
		}
		var view workflows.ThreadView
		if err := v.Get(&view); err != nil {
			return false, fmt.Errorf("query %s: %w", x.ID, err)
		}
		return done(view), nil
	})
}

// settled waits until a workflow has taken in its latest signal.
func (w *World) settled(ctx context.Context, x Execution) error {
	return w.until(ctx, "the brain to take the signal in", func() (bool, error) {
		h, err := w.History(ctx, x)
		if err != nil || len(h.Events) == 0 {
			return false, err
		}
		return h.Events[len(h.Events)-1].GetWorkflowTaskCompletedEventAttributes() != nil, nil
	})
}
