package signals

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"agentsmith/rules"
	"agentsmith/workflows"
)

// Starter is the part of Temporal's client that starts a pick.
type Starter interface {
	ExecuteWorkflow(ctx context.Context, options client.StartWorkflowOptions, workflow any, args ...any) (client.WorkflowRun, error)
}

// StartPick has the dispatcher pick for an ask. An ask that comes again is the one pick that
// it was (A3). ctx bounds the call; the error is Temporal's own.
func StartPick(ctx context.Context, c Starter, in workflows.ForcePickInput) error {
	in.Line.Raw, in.Line.Files = nil, nil
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       workflows.ForcePickID(in.Line.Channel, in.Line.TS),
		TaskQueue:                workflows.TaskQueue,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		TypedSearchAttributes:    workflows.SearchAttributes(rules.DispatcherName, in.Line.Thread()),
		Memo:                     map[string]any{"channel": in.Line.Channel, "ask": in.Line.TS},
		StaticSummary:            "pick for an ask in " + in.Line.Channel,
	}, workflows.ForcePickType, in)
	return err
}
