// Package signals reaches the workflows of threads from outside: their brains and the
// tasks of their operators, by SignalWithStart, so that nothing is lost whether one runs
// or not (D1). The starter uses it for what people write, a worker for what sessions say.
package signals

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"agentsmith/activities"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// Client is the part of Temporal's client that reaches workflows.
type Client interface {
	SignalWithStartWorkflow(ctx context.Context, workflowID, signalName string, signalArg any,
		options client.StartWorkflowOptions, workflow any, args ...any) (client.WorkflowRun, error)
	SignalWorkflow(ctx context.Context, workflowID, runID, signalName string, arg any) error
}

// Options are those of every brain. There is no retry policy: a run that Temporal starts
// again has lost its signals. workspace is the address of the team's Slack, "" where unknown.
func Options(seat, workspace string, t rules.Thread) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                    workflows.ReplyID(seat, t),
		TaskQueue:             workflows.TaskQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: workflows.SearchAttributes(seat, t),
		Memo:                  map[string]any{"seat": seat, "channel": t.Channel, "thread": t.Root, "link": Link(workspace, t)},
		StaticSummary:         seat + " in " + t.Channel + ", thread " + t.Root,
	}
}

// WakeBrain sends a trigger to the brain of a thread, and starts it where none runs. ctx
// bounds the call; the error is Temporal's own.
func WakeBrain(ctx context.Context, c Client, workspace string, in workflows.ReplyInput) error {
	_, err := c.SignalWithStartWorkflow(ctx, workflows.ReplyID(in.Seat, in.Thread), workflows.SignalAddContext, in.Trigger,
		Options(in.Seat, workspace, in.Thread), workflows.ReplyType, in)
	return err
}

// Lighten leaves out of a trigger what its reader finds in the store: the raw event of its
// line, and a text that is too long for a history.
func Lighten(t workflows.Trigger) workflows.Trigger {
	t.Line.Raw = nil
	if len(t.Line.Text) > rules.InlineText {
		t.Line.Text, t.TextRef = "", true
	}
	return t
}

// Link is the thread's permanent address on the team's Slack, "" where that is unknown.
func Link(workspace string, t rules.Thread) string {
	if workspace == "" || t.Root == "" {
		return ""
	}
	return strings.TrimSuffix(workspace, "/") + "/archives/" + t.Channel + "/p" + strings.ReplaceAll(t.Root, ".", "")
}

// Worker reaches workflows for the activities of one box.
type Worker struct {
	Client   Client
	Settings workflows.Settings
	Task     workflows.TaskSettings
	// Workspaces are the addresses of the seats' Slack.
	Workspaces map[string]string
}

// callTimeout ends one call to Temporal.
const callTimeout = 10 * time.Second

// Offer brings a session's word to the brain of a thread, and starts it where none runs (R11).
func (w *Worker) Offer(ctx context.Context, seat string, t rules.Thread, d activities.DepositInput) error {
	trigger := workflows.Trigger{Kind: workflows.KindDeposit, Deposit: &d}
	trigger.Line.LineKey = rules.LineKey{Team: t.Team, Channel: t.Channel}
	trigger.Line.Root = t.Root
	return w.wakeBrain(ctx, seat, t, trigger)
}

func (w *Worker) wakeBrain(ctx context.Context, seat string, t rules.Thread, trigger workflows.Trigger) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	in := workflows.ReplyInput{Seat: seat, Thread: t, Trigger: trigger, Settings: w.Settings}
	if err := WakeBrain(ctx, w.Client, w.Workspaces[seat], in); err != nil {
		return fmt.Errorf("signal with start the brain of %s in %s: %w", t.Root, t.Channel, err)
	}
	return nil
}

// Operator tells a running brain which operator its thread has, nil for none (O11). A
// brain that does not run asks for itself.
func (w *Worker) Operator(ctx context.Context, seat string, t rules.Thread, o *rules.Operator) error {
	return w.signal(ctx, workflows.ReplyID(seat, t), workflows.SignalAddContext, workflows.Trigger{Kind: workflows.KindOperator, Operator: o})
}

// Adopt starts the task of an operator, or tells the one that runs of its session (O10).
func (w *Worker) Adopt(ctx context.Context, o rules.Operator) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	in := workflows.TaskInput{Operator: o, Settings: w.Task}
	_, err := w.Client.SignalWithStartWorkflow(ctx, workflows.OperatorTaskID(o.Seat, o.Slug), workflows.SignalOperatorTask,
		workflows.TaskTrigger{Kind: workflows.TaskAdopt, Operator: o}, client.StartWorkflowOptions{
			ID:                    workflows.OperatorTaskID(o.Seat, o.Slug),
			TaskQueue:             workflows.TaskQueue,
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			TypedSearchAttributes: workflows.SearchAttributes(o.Seat, o.Thread),
			Memo: map[string]any{
				"seat": o.Seat, "channel": o.Thread.Channel, "thread": o.Thread.Root,
				"link": Link(w.Workspaces[o.Seat], o.Thread), "operator": rules.SessionName(o.Number, o.Slug),
			},
			StaticSummary: rules.SessionName(o.Number, o.Slug) + " in " + o.Repo,
		}, workflows.OperatorTaskType, in)
	if err != nil {
		return fmt.Errorf("signal with start the task of %s: %w", rules.OperatorName(o.Slug), err)
	}
	return nil
}

// Stop tells a running task that its operator was ended (O11).
func (w *Worker) Stop(ctx context.Context, o rules.Operator, eventTS string) error {
	return w.signal(ctx, workflows.OperatorTaskID(o.Seat, o.Slug), workflows.SignalOperatorTask,
		workflows.TaskTrigger{Kind: workflows.TaskStop, Operator: o, EventTS: eventTS})
}

// Wake has a running task look.
func (w *Worker) Wake(ctx context.Context, seat, slug string) error {
	return w.signal(ctx, workflows.OperatorTaskID(seat, slug), workflows.SignalOperatorTask, workflows.TaskTrigger{Kind: workflows.TaskWake})
}

// signal reaches a workflow that runs; one that does not is no error.
func (w *Worker) signal(ctx context.Context, id, name string, arg any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := w.Client.SignalWorkflow(ctx, id, "", name, arg)
	if err == nil || errors.As(err, new(*serviceerror.NotFound)) {
		return nil
	}
	return fmt.Errorf("signal %s: %w", id, err)
}
