package workflows

import (
	"go.temporal.io/sdk/workflow"

	"agentsmith/activities"
	"agentsmith/rules"
)

// ForcePickType is the name that ForcePick is registered under.
const ForcePickType = "ForcePick"

// ForcePickInput is one ask for the dispatcher.
type ForcePickInput struct {
	// Box is the machine whose worker has the dispatcher's token.
	Box  string     `json:"box"`
	Line rules.Line `json:"line"`
	Ask  rules.Ask  `json:"ask"`
}

// ForcePick is the dispatcher's part in one ask: one dispatch line, whatever is redelivered
// or killed (A3). Its result says who was picked, and why.
func ForcePick(ctx workflow.Context, in ForcePickInput) (activities.DispatchResult, error) {
	var d *activities.Dispatcher
	var out activities.DispatchResult
	err := workflow.ExecuteActivity(dispatchOptions(ctx, in.Box), d.Dispatch, activities.DispatchInput{Line: in.Line, Ask: in.Ask}).Get(ctx, &out)
	return out, err
}
