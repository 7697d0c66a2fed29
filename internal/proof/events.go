package proof

import (
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
)

// changeVersions is the search attribute that the SDK writes behind each version marker.
const changeVersions = "TemporalChangeVersion"

// task is what one workflow task left in a history, in order.
type task struct {
	started  int64
	commands []Command // the ones that code gives through an interceptor, and cancellations
	local    []Command // local activities: recorded when they end, not when they were called
	last     int64     // its last event
}

// past is a history, read once.
type past struct {
	tasks  []task
	byID   map[int64]int // WORKFLOW_TASK_STARTED → index in tasks
	events int64
}

// after is the event behind a task's last one, 0 when the history ends there.
func (p *past) after(t task) int64 {
	if t.last >= p.events {
		return 0
	}
	return t.last + 1
}

func (p *past) commands() (out []Command) {
	for _, t := range p.tasks {
		out = append(out, t.commands...)
		out = append(out, t.local...)
	}
	return out
}

// readPast sorts a history's events into what each workflow task decided.
func readPast(h *historypb.History, conv converter.DataConverter) *past {
	p := &past{byID: map[int64]int{}, events: int64(len(h.GetEvents()))}
	completed := map[int64]int{} // WORKFLOW_TASK_COMPLETED → index in tasks
	names := map[int64]Command{} // a scheduling event → its command
	timers := map[string]Command{}
	children := map[string]Command{}
	events := h.GetEvents()
	for i, e := range events {
		if a := e.GetWorkflowTaskCompletedEventAttributes(); a != nil {
			completed[e.GetEventId()] = len(p.tasks)
			p.byID[a.GetStartedEventId()] = len(p.tasks)
			p.tasks = append(p.tasks, task{started: a.GetStartedEventId(), last: e.GetEventId()})
			continue
		}
		c, by, ok := commandOf(e, conv)
		if !ok {
			continue
		}
		at, known := completed[by]
		if !known {
			continue
		}
		p.tasks[at].last = e.GetEventId()
		if c.Kind == SearchAttributes && i > 0 && isChangeVersions(e, events[i-1]) {
			continue
		}
		c.Event, c.Task = e.GetEventId(), p.tasks[at].started
		switch c.Kind {
		case Activity:
			names[c.Event] = c
		case Timer:
			timers[e.GetTimerStartedEventAttributes().GetTimerId()] = c
		case Child:
			children[e.GetStartChildWorkflowExecutionInitiatedEventAttributes().GetWorkflowId()] = c
		case CancelTimer:
			c.fields = cancelled(timers[e.GetTimerCanceledEventAttributes().GetTimerId()])
		case CancelActivity:
			target := names[e.GetActivityTaskCancelRequestedEventAttributes().GetScheduledEventId()]
			c.Name, c.fields = target.Name, cancelled(target)
		case CancelExternal:
			// The SDK marks the cancel of its own children.
			if e.GetRequestCancelExternalWorkflowExecutionInitiatedEventAttributes().GetChildWorkflowOnly() {
				target := children[c.Name]
				c = Command{Kind: CancelChild, Name: target.Name, Event: c.Event, Task: c.Task, fields: cancelled(target)}
			}
		}
		if c.Kind == LocalActivity {
			p.tasks[at].local = append(p.tasks[at].local, c)
		} else {
			p.tasks[at].commands = append(p.tasks[at].commands, c)
		}
	}
	return p
}

// cancelled keeps which event a cancellation is about.
func cancelled(target Command) []field {
	return []field{{"of event", strconv.FormatInt(target.Event, 10)}}
}

// target is the event that a cancellation is about.
func (c Command) target() int64 {
	for _, f := range c.fields {
		if s, ok := f.value.(string); ok && f.name == "of event" {
			n, _ := strconv.ParseInt(s, 10, 64)
			return n
		}
	}
	return 0
}

func isChangeVersions(e, before *historypb.HistoryEvent) bool {
	_, ok := e.GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields()[changeVersions]
	return ok && before.GetMarkerRecordedEventAttributes().GetMarkerName() == "Version"
}

// commandOf reads the command that an event records, and the completed task that gave it.
func commandOf(e *historypb.HistoryEvent, conv converter.DataConverter) (c Command, by int64, ok bool) {
	summary := e.GetUserMetadata().GetSummary()
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := e.GetActivityTaskScheduledEventAttributes()
		return Command{Kind: Activity, Name: a.GetActivityType().GetName(), fields: []field{
			{"input", a.GetInput()}, {"task queue", a.GetTaskQueue().GetName()},
			{"schedule to close", protoDuration(a.GetScheduleToCloseTimeout())},
			{"schedule to start", protoDuration(a.GetScheduleToStartTimeout())},
			{"start to close", protoDuration(a.GetStartToCloseTimeout())},
			{"heartbeat", protoDuration(a.GetHeartbeatTimeout())},
			{"retry policy", retryString(protoRetry(a.GetRetryPolicy()))},
			{"summary", summary}, {"priority", protoPriority(a.GetPriority())}, {"id", a.GetActivityId()},
		}}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_TIMER_STARTED:
		a := e.GetTimerStartedEventAttributes()
		return Command{Kind: Timer, fields: []field{
			{"duration", protoDuration(a.GetStartToFireTimeout())}, {"summary", summary},
		}}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetStartChildWorkflowExecutionInitiatedEventAttributes()
		return Command{Kind: Child, Name: a.GetWorkflowType().GetName(), fields: []field{
			{"input", a.GetInput()}, {"task queue", a.GetTaskQueue().GetName()},
			{"execution timeout", protoDuration(a.GetWorkflowExecutionTimeout())},
			{"run timeout", protoDuration(a.GetWorkflowRunTimeout())},
			{"task timeout", protoDuration(a.GetWorkflowTaskTimeout())},
			{"parent close policy", closePolicy(a.GetParentClosePolicy())},
			{"id reuse policy", reusePolicy(a.GetWorkflowIdReusePolicy())},
			{"cron", a.GetCronSchedule()}, {"memo", a.GetMemo().GetFields()}, {"summary", summary},
			{"priority", protoPriority(a.GetPriority())}, {"retry policy", retryString(protoRetry(a.GetRetryPolicy()))},
			{"workflow", a.GetWorkflowId()}, {"search attributes", a.GetSearchAttributes().GetIndexedFields()},
		}}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		a := e.GetMarkerRecordedEventAttributes()
		c, ok := marker(a, conv)
		return c, a.GetWorkflowTaskCompletedEventId(), ok
	case enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
		a := e.GetUpsertWorkflowSearchAttributesEventAttributes()
		return Command{Kind: SearchAttributes, fields: []field{{"search attributes", a.GetSearchAttributes().GetIndexedFields()}}},
			a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
		a := e.GetWorkflowPropertiesModifiedEventAttributes()
		return Command{Kind: Memo, fields: []field{{"memo", a.GetUpsertedMemo().GetFields()}}}, a.GetWorkflowTaskCompletedEventId(), true
	}
	return otherCommand(e)
}

func otherCommand(e *historypb.HistoryEvent) (c Command, by int64, ok bool) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetSignalExternalWorkflowExecutionInitiatedEventAttributes()
		return Command{Kind: Signal, Name: a.GetSignalName(), fields: []field{
			{"workflow", a.GetWorkflowExecution().GetWorkflowId()}, {"run", a.GetWorkflowExecution().GetRunId()},
			{"only a child", strconv.FormatBool(a.GetChildWorkflowOnly())}, {"input", a.GetInput()},
		}}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED:
		a := e.GetRequestCancelExternalWorkflowExecutionInitiatedEventAttributes()
		return Command{Kind: CancelExternal, Name: a.GetWorkflowExecution().GetWorkflowId(),
			fields: []field{{"run", a.GetWorkflowExecution().GetRunId()}}}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_NEXUS_OPERATION_SCHEDULED:
		a := e.GetNexusOperationScheduledEventAttributes()
		return Command{Kind: Nexus, Name: a.GetService() + "/" + a.GetOperation(), fields: []field{
			{"endpoint", a.GetEndpoint()}, {"input", &commonpb.Payloads{Payloads: []*commonpb.Payload{a.GetInput()}}},
			{"schedule to close", protoDuration(a.GetScheduleToCloseTimeout())},
		}}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_TIMER_CANCELED:
		return Command{Kind: CancelTimer}, e.GetTimerCanceledEventAttributes().GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED:
		return Command{Kind: CancelActivity}, e.GetActivityTaskCancelRequestedEventAttributes().GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		a := e.GetWorkflowExecutionCompletedEventAttributes()
		return Command{Kind: Complete, fields: []field{{"result", a.GetResult()}}}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		a := e.GetWorkflowExecutionFailedEventAttributes()
		return Command{Kind: Fail, fields: failureFields(a.GetFailure(), "")}, a.GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		return Command{Kind: Cancelled}, e.GetWorkflowExecutionCanceledEventAttributes().GetWorkflowTaskCompletedEventId(), true
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		a := e.GetWorkflowExecutionContinuedAsNewEventAttributes()
		return Command{Kind: ContinueAsNew, Name: a.GetWorkflowType().GetName(), fields: []field{
			{"input", a.GetInput()}, {"task queue", a.GetTaskQueue().GetName()},
			{"run timeout", protoDuration(a.GetWorkflowRunTimeout())}, {"task timeout", protoDuration(a.GetWorkflowTaskTimeout())},
			{"backoff", protoDuration(a.GetBackoffStartInterval())}, // the event records no retry policy
		}}, a.GetWorkflowTaskCompletedEventId(), true
	}
	return Command{}, 0, false
}

func protoPriority(p *commonpb.Priority) string {
	return priorityString(p.GetPriorityKey(), p.GetFairnessKey(), p.GetFairnessWeight())
}

// marker reads the SDK's own markers; another one is nobody's.
func marker(a *historypb.MarkerRecordedEventAttributes, conv converter.DataConverter) (Command, bool) {
	switch a.GetMarkerName() {
	case "Version":
		var id string
		var v int
		_ = conv.FromPayloads(a.GetDetails()["change-id"], &id)
		_ = conv.FromPayloads(a.GetDetails()["version"], &v)
		return Command{Kind: Version, Name: id, fields: []field{{"version", strconv.Itoa(v)}}}, true
	case "SideEffect":
		return Command{Kind: SideEffect, fields: []field{{"data", a.GetDetails()["data"]}}}, true
	case "MutableSideEffect":
		var id string
		_ = conv.FromPayloads(a.GetDetails()["side-effect-id"], &id)
		return Command{Kind: MutableSideEffect, Name: withoutCounter(id), fields: []field{{"data", a.GetDetails()["data"]}}}, true
	case "LocalActivity":
		var data struct{ ActivityType string }
		_ = conv.FromPayloads(a.GetDetails()["data"], &data)
		return Command{Kind: LocalActivity, Name: data.ActivityType}, true
	}
	return Command{}, false
}

// withoutCounter takes off the number that the SDK puts behind the id of a mutable side effect.
func withoutCounter(id string) string {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i] == '_' {
			return id[:i]
		}
		if id[i] < '0' || id[i] > '9' {
			break
		}
	}
	return id
}

// Closes tells whether an event ends a run.
func Closes(t enumspb.EventType) bool {
	switch t {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return true
	}
	return false
}
