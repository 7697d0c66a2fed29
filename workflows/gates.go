package workflows

import "go.temporal.io/sdk/workflow"

// All change IDs of all workflows stand here, each with a predicate, the date of its
// change and the specimens that prove it. A gate is read unconditionally at each call
// site, never behind a short-circuit: a replay must meet it wherever the code does.
const (
	// gateOperatorByDefault, 2026-12-01: a human turn binds an operator before its agent
	// runs (O1). Proved by the human turns of generation 1; its webhook and scheduled
	// specimens are vacuous, since they never reach the branch.
	gateOperatorByDefault = "operator-by-default-v1"
	// gateAgentForceAsk, 2026-12-01: a line that asks every seat waits for its pick, and is
	// the turn of the seat that drives and then of those that add (A4, A5). Proved by the
	// asks of reply generation 4, which were ordinary lines.
	gateAgentForceAsk = "agent-force-ask-v1"
)

// takesAsks tells whether this run takes part in asks. In a run that began before the change
// an ask stays the ordinary line that it was.
func takesAsks(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, gateAgentForceAsk, workflow.DefaultVersion, 1) == 1
}

// bindsOperator tells whether this run binds operators. A run that began before the
// change keeps to its old path until it continues as new.
func bindsOperator(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, gateOperatorByDefault, workflow.DefaultVersion, 1) == 1
}
