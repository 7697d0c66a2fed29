package proof

import (
	"fmt"
	"strconv"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

func (o *recorderOut) RequestCancelExternalWorkflow(ctx workflow.Context, id, runID string) workflow.Future {
	o.cancelExternal(ctx, id, runID)
	return o.Next.RequestCancelExternalWorkflow(ctx, id, runID)
}

func (o *recorderOut) RequestCancelExternalWorkflowWithOptions(ctx workflow.Context, id, runID string, opts workflow.CancelExternalWorkflowOptions) workflow.Future {
	o.cancelExternal(ctx, id, runID)
	return o.Next.RequestCancelExternalWorkflowWithOptions(ctx, id, runID, opts)
}

func (o *recorderOut) cancelExternal(ctx workflow.Context, id, runID string) {
	o.r.add(ctx, call{
		Command: Command{Kind: CancelExternal, Name: id, fields: []field{{"run", runID}}}, recorded: true,
		again: func(ctx workflow.Context) any { return workflow.RequestCancelExternalWorkflow(ctx, id, runID) },
	})
}

func (o *recorderOut) SignalExternalWorkflow(ctx workflow.Context, id, runID, name string, arg any) workflow.Future {
	o.signal(ctx, id, runID, name, arg, false)
	return o.Next.SignalExternalWorkflow(ctx, id, runID, name, arg)
}

func (o *recorderOut) SignalExternalWorkflowWithOptions(ctx workflow.Context, id, runID, name string, arg any, opts workflow.SignalExternalWorkflowOptions) workflow.Future {
	o.signal(ctx, id, runID, name, arg, false)
	return o.Next.SignalExternalWorkflowWithOptions(ctx, id, runID, name, arg, opts)
}

func (o *recorderOut) SignalChildWorkflow(ctx workflow.Context, id, name string, arg any) workflow.Future {
	o.signal(ctx, id, "", name, arg, true)
	return o.Next.SignalChildWorkflow(ctx, id, name, arg)
}

func (o *recorderOut) SignalChildWorkflowWithOptions(ctx workflow.Context, id, name string, arg any, opts workflow.SignalChildWorkflowOptions) workflow.Future {
	o.signal(ctx, id, "", name, arg, true)
	return o.Next.SignalChildWorkflowWithOptions(ctx, id, name, arg, opts)
}

func (o *recorderOut) signal(ctx workflow.Context, id, runID, name string, arg any, child bool) {
	c := call{Command: Command{Kind: Signal, Name: name, fields: []field{
		{"workflow", id}, {"run", runID}, {"only a child", strconv.FormatBool(child)}, {"input", o.r.payloads([]any{arg})},
	}}, recorded: true}
	if !child { // a child is signalled through its future, which another place has not
		c.again = func(ctx workflow.Context) any { return workflow.SignalExternalWorkflow(ctx, id, runID, name, arg) }
	}
	o.r.add(ctx, c)
}

func (o *recorderOut) ExecuteNexusOperation(ctx workflow.Context, in interceptor.ExecuteNexusOperationInput) workflow.NexusOperationFuture {
	name := fmt.Sprint(in.Operation)
	if n, ok := in.Operation.(interface{ Name() string }); ok {
		name = n.Name()
	}
	o.r.add(ctx, call{Command: Command{Kind: Nexus, Name: in.Client.Service() + "/" + name, fields: []field{
		{"endpoint", in.Client.Endpoint()}, {"input", o.r.payloads([]any{in.Input})},
		{"schedule to close", duration(in.Options.ScheduleToCloseTimeout)},
	}}, recorded: true})
	return o.Next.ExecuteNexusOperation(ctx, in)
}
