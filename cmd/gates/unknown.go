package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"agentsmith/internal/proof"
)

// tried bounds how many runs of one unknown value are replayed, the oldest first.
const tried = 10

// tryUnknown says of a value that the code cannot answer with whether its runs go on all
// the same: they do after a gate was retired, and do not when it was renamed or is of newer
// code. Their histories are replayed here, and kept nowhere.
func tryUnknown(ctx context.Context, c client.Client, own code, value string, all []openRun) (line string, fine bool, err error) {
	slices.SortFunc(all, func(a, b openRun) int { return a.Start.Compare(b.Start) })
	oldest := all[0]
	line = fmt.Sprintf("unknown to this code: %s: %s, the oldest %s since %s", plain(value), runs(len(all)), plain(oldest.ID), since(group{1, oldest}))
	p, err := proof.New(proof.Code{Register: own.register, DisableRegistrationAliasing: true, DataConverter: own.conv, Repeat: 1})
	if err != nil {
		return "", false, err
	}
	green, gone := 0, 0
	for _, r := range all[:min(tried, len(all))] {
		what, err := replay(ctx, c, p, r)
		var notFound *serviceerror.NotFound
		switch {
		case errors.As(err, &notFound):
			gone++ // it ended meanwhile, and was deleted
		case err != nil:
			return "", false, err
		case what != "":
			return fmt.Sprintf("%s; %s does not go on with this code: %s", line, plain(r.ID), what), false, nil
		default:
			green++
		}
	}
	return fmt.Sprintf("%s; %d replayed on this code and went on, as after a gate that was retired", line, green), green+gone > 0, nil
}

// replay tries one run on this code; it says what goes wrong, "" for nothing.
func replay(ctx context.Context, c client.Client, p *proof.Prover, r openRun) (string, error) {
	h := &historypb.History{}
	for events := c.GetWorkflowHistory(ctx, r.ID, r.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		if err != nil {
			return "", fmt.Errorf("read the history of %s: %w", r.ID, err)
		}
		h.Events = append(h.Events, e)
	}
	h = asIfItWentOn(h)
	if h == nil {
		return "", nil // it has done nothing yet, so that nothing can be in its way
	}
	if o := p.Replay(proof.Specimen{Name: r.ID, History: h}); o.Verdict != proof.Green {
		return o.String(), nil
	}
	return "", nil
}

// asIfItWentOn is an open run's history up to what its last completed workflow task gave,
// and one more task in which it gave nothing: of an open run the SDK does not match what
// the last completed task gave, and the gate may be just there. A closed run's history is
// returned as it is; of a run that has completed no task there is nothing to replay.
func asIfItWentOn(h *historypb.History) *historypb.History {
	if n := len(h.GetEvents()); n > 0 && proof.Closes(h.Events[n-1].GetEventType()) {
		return h
	}
	last := 0
	for i, e := range h.GetEvents() {
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			last = i + 1
		}
	}
	if last == 0 {
		return nil
	}
	for last < len(h.Events) && given(h.Events[last]) {
		last++
	}
	out := &historypb.History{Events: slices.Clip(h.Events[:last])}
	next := func(t enumspb.EventType) *historypb.HistoryEvent {
		e := &historypb.HistoryEvent{EventId: int64(len(out.Events)) + 1, EventType: t, EventTime: h.Events[last-1].GetEventTime()}
		out.Events = append(out.Events, e)
		return e
	}
	start := func() (scheduled, started int64) {
		s := next(enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED)
		s.Attributes = &historypb.HistoryEvent_WorkflowTaskScheduledEventAttributes{
			WorkflowTaskScheduledEventAttributes: &historypb.WorkflowTaskScheduledEventAttributes{Attempt: 1}}
		e := next(enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED)
		e.Attributes = &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
			WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: s.EventId}}
		return s.EventId, e.EventId
	}
	scheduled, started := start()
	next(enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED).Attributes = &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
		WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{ScheduledEventId: scheduled, StartedEventId: started}}
	start()
	return out
}

// given tells whether an event is what a workflow task gave.
func given(e *historypb.HistoryEvent) bool {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED,
		enumspb.EVENT_TYPE_TIMER_STARTED, enumspb.EVENT_TYPE_TIMER_CANCELED, enumspb.EVENT_TYPE_MARKER_RECORDED,
		enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED, enumspb.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
		enumspb.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED, enumspb.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
		enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED, enumspb.EVENT_TYPE_NEXUS_OPERATION_SCHEDULED,
		enumspb.EVENT_TYPE_NEXUS_OPERATION_CANCEL_REQUESTED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
		return true
	}
	return false
}
