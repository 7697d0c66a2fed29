package proof

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"
)

// duration writes a duration so that 0 and none are one, as they are for the server.
func duration(d time.Duration) string { return d.String() }

func protoDuration(d *durationpb.Duration) string { return duration(d.AsDuration()) }

// unencodable stands for a value that the data converter refused.
func unencodable(err error) *commonpb.Payload {
	return &commonpb.Payload{Data: []byte("cannot be encoded: " + err.Error())}
}

func (r *run) payloads(args []any) *commonpb.Payloads {
	if len(args) == 0 {
		return nil
	}
	p, err := r.conv.ToPayloads(args...)
	if err != nil {
		return &commonpb.Payloads{Payloads: []*commonpb.Payload{unencodable(err)}}
	}
	return p
}

func (r *run) payload(v any) *commonpb.Payload {
	if p, ok := v.(*commonpb.Payload); ok {
		return p
	}
	p, err := r.conv.ToPayload(v)
	if err != nil {
		return unencodable(err)
	}
	return p
}

func (r *run) payloadMap(m map[string]any) map[string]*commonpb.Payload {
	out := make(map[string]*commonpb.Payload, len(m))
	for k, v := range m {
		out[k] = r.payload(v)
	}
	return out
}

func (r *run) summary(s string) *commonpb.Payload {
	if s == "" {
		return nil
	}
	return r.payload(s)
}

// activityFields are the options as the server fills them in before it writes the event.
func (r *run) activityFields(o workflow.ActivityOptions, args []any) []field {
	o = filledIn(o, r.timeout)
	queue := o.TaskQueue
	if queue == "" {
		queue = r.queue
	}
	fields := []field{
		{"input", r.payloads(args)},
		{"task queue", queue},
		{"schedule to close", duration(o.ScheduleToCloseTimeout)},
		{"schedule to start", duration(o.ScheduleToStartTimeout)},
		{"start to close", duration(o.StartToCloseTimeout)},
		{"heartbeat", duration(o.HeartbeatTimeout)},
		{"retry policy", retryString(filledPolicy(o.RetryPolicy))},
		{"summary", r.summary(o.Summary)},
		{"priority", priorityString(int32(o.Priority.PriorityKey), o.Priority.FairnessKey, o.Priority.FairnessWeight)},
	}
	if o.ActivityID != "" {
		fields = append(fields, field{"id", o.ActivityID})
	}
	return fields
}

// filledIn deduces the timeouts that were left out, by the rules of the server.
func filledIn(o workflow.ActivityOptions, run time.Duration) workflow.ActivityOptions {
	switch {
	case o.ScheduleToCloseTimeout > 0:
		if o.ScheduleToStartTimeout <= 0 || o.ScheduleToStartTimeout > o.ScheduleToCloseTimeout {
			o.ScheduleToStartTimeout = o.ScheduleToCloseTimeout
		}
		if o.StartToCloseTimeout <= 0 || o.StartToCloseTimeout > o.ScheduleToCloseTimeout {
			o.StartToCloseTimeout = o.ScheduleToCloseTimeout
		}
	case o.StartToCloseTimeout > 0:
		o.ScheduleToCloseTimeout = run
		if o.ScheduleToStartTimeout <= 0 {
			o.ScheduleToStartTimeout = run
		}
	}
	if run > 0 {
		o.ScheduleToCloseTimeout = min(o.ScheduleToCloseTimeout, run)
		o.ScheduleToStartTimeout = min(o.ScheduleToStartTimeout, run)
		o.StartToCloseTimeout = min(o.StartToCloseTimeout, run)
		o.HeartbeatTimeout = min(o.HeartbeatTimeout, run)
	}
	o.HeartbeatTimeout = min(o.HeartbeatTimeout, o.StartToCloseTimeout)
	return o
}

// filledPolicy fills in a retry policy as the server does by its default settings.
func filledPolicy(p *temporal.RetryPolicy) *temporal.RetryPolicy {
	var out temporal.RetryPolicy
	if p != nil {
		out = *p
	}
	if out.InitialInterval == 0 {
		out.InitialInterval = time.Second
	}
	if out.BackoffCoefficient == 0 {
		out.BackoffCoefficient = 2
	}
	if out.MaximumInterval == 0 {
		out.MaximumInterval = 100 * out.InitialInterval
	}
	return &out
}

func retryString(p *temporal.RetryPolicy) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("initial %s, coefficient %s, maximum %s, attempts %d, not for [%s]",
		p.InitialInterval, strconv.FormatFloat(p.BackoffCoefficient, 'g', -1, 64), p.MaximumInterval,
		p.MaximumAttempts, strings.Join(p.NonRetryableErrorTypes, " "))
}

func protoRetry(p *commonpb.RetryPolicy) *temporal.RetryPolicy {
	if p == nil {
		return nil
	}
	return &temporal.RetryPolicy{
		InitialInterval: p.GetInitialInterval().AsDuration(), BackoffCoefficient: p.GetBackoffCoefficient(),
		MaximumInterval: p.GetMaximumInterval().AsDuration(), MaximumAttempts: p.GetMaximumAttempts(),
		NonRetryableErrorTypes: p.GetNonRetryableErrorTypes(),
	}
}

func priorityString(key int32, fairness string, weight float32) string {
	return fmt.Sprintf("%d %q %g", key, fairness, weight)
}

// serverTaskTimeout is what the server writes for a child's workflow tasks when the code names none.
const serverTaskTimeout = 10 * time.Second

func (r *run) childFields(o workflow.ChildWorkflowOptions, args []any) []field {
	queue := o.TaskQueue
	if queue == "" {
		queue = r.queue
	}
	fields := []field{
		{"input", r.payloads(args)},
		{"task queue", queue},
		{"execution timeout", duration(o.WorkflowExecutionTimeout)},
		{"run timeout", duration(o.WorkflowRunTimeout)},
		{"task timeout", duration(cmp.Or(o.WorkflowTaskTimeout, serverTaskTimeout))},
		{"parent close policy", closePolicy(o.ParentClosePolicy)},
		{"id reuse policy", reusePolicy(o.WorkflowIDReusePolicy)},
		{"cron", o.CronSchedule},
		{"memo", r.payloadMap(o.Memo)},
		{"summary", r.summary(o.StaticSummary)},
		{"priority", priorityString(int32(o.Priority.PriorityKey), o.Priority.FairnessKey, o.Priority.FairnessWeight)},
	}
	if o.RetryPolicy != nil {
		fields = append(fields, field{"retry policy", retryString(filledPolicy(o.RetryPolicy))})
	} else {
		fields = append(fields, field{"retry policy", ""})
	}
	if o.WorkflowID != "" {
		fields = append(fields, field{"workflow", o.WorkflowID})
	}
	//lint:ignore SA1019 code may still use it
	if len(o.SearchAttributes) > 0 {
		//lint:ignore SA1019 code may still use it
		return append(fields, field{"search attributes", r.payloadMap(o.SearchAttributes)})
	}
	return append(fields, field{"search attributes", r.keyed(o.TypedSearchAttributes)})
}

func closePolicy(p enumspb.ParentClosePolicy) string {
	if p == enumspb.PARENT_CLOSE_POLICY_UNSPECIFIED {
		p = enumspb.PARENT_CLOSE_POLICY_TERMINATE
	}
	return p.String()
}

func reusePolicy(p enumspb.WorkflowIdReusePolicy) string {
	if p == enumspb.WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED {
		p = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}
	return p.String()
}

func (r *run) untypedFields(attributes map[string]any) []field {
	return []field{{"search attributes", r.payloadMap(attributes)}}
}

func (r *run) typedFields(updates []temporal.SearchAttributeUpdate) []field {
	return []field{{"search attributes", r.keyed(temporal.NewSearchAttributes(updates...))}}
}

func (r *run) keyed(attributes temporal.SearchAttributes) map[string]*commonpb.Payload {
	out := map[string]*commonpb.Payload{}
	for key, v := range attributes.GetUntypedValues() {
		out[key.GetName()] = r.payload(v)
	}
	return out
}

// endCommand is how a run ended, as a command: what the SDK makes of the result and the error.
func (r *run) endCommand(result any, err error) Command {
	var can *workflow.ContinueAsNewError
	var cancelled *temporal.CanceledError
	switch {
	case err == nil:
		var args []any
		if result != nil {
			args = []any{result}
		}
		return Command{Kind: Complete, fields: []field{{"result", r.payloads(args)}}}
	case errors.As(err, &cancelled):
		return Command{Kind: Cancelled}
	case errors.As(err, &can):
		return Command{Kind: ContinueAsNew, Name: can.WorkflowType.Name, fields: []field{
			{"input", can.Input}, {"task queue", can.TaskQueueName},
			{"run timeout", duration(can.WorkflowRunTimeout)}, {"task timeout", duration(can.WorkflowTaskTimeout)},
			{"backoff", duration(can.BackoffStartInterval)},
		}}
	}
	return Command{Kind: Fail, fields: failureFields(temporal.GetDefaultFailureConverter().ErrorToFailure(err), "")}
}

// failureFields are what a failure says, cause by cause, without the places that it came from.
func failureFields(f *failurepb.Failure, at string) []field {
	fields := []field{{at + "message", f.GetMessage()}}
	if app := f.GetApplicationFailureInfo(); app != nil {
		fields = append(fields, field{at + "type", app.GetType()},
			field{at + "non retryable", strconv.FormatBool(app.GetNonRetryable())}, field{at + "details", app.GetDetails()})
	}
	if a := f.GetActivityFailureInfo(); a != nil {
		fields = append(fields, field{at + "activity", a.GetActivityType().GetName()})
	}
	if c := f.GetChildWorkflowExecutionFailureInfo(); c != nil {
		fields = append(fields, field{at + "child", c.GetWorkflowType().GetName()})
	}
	if f.GetCause() != nil {
		fields = append(fields, failureFields(f.GetCause(), at+"cause ")...)
	}
	return fields
}
