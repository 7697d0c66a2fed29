package workflows

import (
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Register registers every workflow: for a worker and for a replayer, so that both
// know the same names.
func Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(Reply, workflow.RegisterOptions{Name: ReplyType})
	r.RegisterWorkflowWithOptions(OperatorTask, workflow.RegisterOptions{Name: OperatorTaskType})
	r.RegisterWorkflowWithOptions(ForcePick, workflow.RegisterOptions{Name: ForcePickType})
	r.RegisterWorkflowWithOptions(RelayTick, workflow.RegisterOptions{Name: RelayTickType})
}
