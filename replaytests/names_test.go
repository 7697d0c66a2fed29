package replaytests

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"agentsmith/activities"
	"agentsmith/workflows"
)

// registered notes under which names workflows are registered.
type registered struct{ names []string }

func (r *registered) RegisterWorkflow(any) { r.names = append(r.names, "registered without a name") }
func (r *registered) RegisterWorkflowWithOptions(_ any, o workflow.RegisterOptions) {
	r.names = append(r.names, o.Name)
}
func (r *registered) RegisterDynamicWorkflow(any, workflow.DynamicRegisterOptions) {
	r.names = append(r.names, "a dynamic workflow")
}

// These names stand in histories and in what starters of other ages send. A replay sees
// only those that its specimens hold, and of a query none: so they are pinned here. To
// rename one is to strand or to deafen runs that are open: add the new one, keep the old.
func TestNames_ArePinned(t *testing.T) {
	var r registered
	workflows.Register(&r)
	slices.Sort(r.names)
	require.Equal(t, []string{"ForcePick", "OperatorTask", "RelayTick", "Reply"}, r.names, "workflow types")

	require.Equal(t, map[string][]string{
		"Agent":      {"KillAgent", "RunAgent"},
		"Dispatcher": {"Dispatch"},
		"Force":      {"WorkOnAsk"},
		"Operator":   {"Bind", "StopOperator"},
		"Phases":     {"PublishPhases"},
		"Poster":     {"Post", "Settle"},
		"Relay":      {"AnswerDoor", "Tick"},
		"Task":       {"FinishTask", "ObserveTask", "OfferWords", "SayNotice"},
	}, methods(&activities.Agent{}, &activities.Dispatcher{}, &activities.Force{}, &activities.Operator{}, &activities.Phases{}, &activities.Poster{}, &activities.Relay{}, &activities.Task{}), "activity types")

	require.Equal(t, []string{"add_context", "operator_task", "relay_tick"}, []string{workflows.SignalAddContext, workflows.SignalOperatorTask, workflows.SignalRelayTick}, "signals")
	require.Equal(t, []string{"thread", "task", "relay"}, []string{workflows.QueryThread, workflows.QueryTask, workflows.QueryRelay}, "queries")
	require.Equal(t, "smith", workflows.TaskQueue, "task queues")
	require.Equal(t, "smith-box-main", workflows.BoxTaskQueue("main"))
}

// methods are the activities of structs: a worker registers each exported method by its name.
func methods(structs ...any) map[string][]string {
	out := map[string][]string{}
	for _, s := range structs {
		v := reflect.TypeOf(s)
		for i := range v.NumMethod() {
			out[v.Elem().Name()] = append(out[v.Elem().Name()], v.Method(i).Name)
		}
	}
	return out
}
