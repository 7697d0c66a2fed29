package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"agentsmith/internal/stack"
)

// busy tells what is still under way: envelopes, agents, activities, statuses.
func (s *system) busy(channel string) (out []string) {
	if channel == everywhere && !s.deaf && !s.Slack.Quiet(s.seatNames()...) {
		out = append(out, "envelopes that are not acked")
	}
	for _, p := range s.agents() {
		if channel == everywhere || strings.Contains(p.cwd, "/"+channel+"/") {
			out = append(out, "agent "+p.String())
		}
	}
	gone := s.goneRoots()
	for _, st := range s.Slack.State().Statuses {
		if (channel == everywhere || st.Channel == channel) && !gone[st.Channel+"/"+st.ThreadTS] {
			out = append(out, fmt.Sprintf("status %q in %s", st.Status, st.ThreadTS))
		}
	}
	return append(out, s.pendingActivities(channel)...)
}

// goneRoots are the deleted lines, as channel/ts: a thread that is gone shows no status.
func (s *system) goneRoots() map[string]bool {
	gone := map[string]bool{}
	for _, m := range s.Slack.Log(0).Messages {
		if m.Deleted() {
			gone[m.Channel+"/"+m.TS] = true
		}
	}
	return gone
}

func (s *system) seatNames() (out []string) {
	for _, a := range s.Slack.State().Apps {
		if a.Seat && (s.Seats == nil || slices.Contains(s.Seats, a.Name)) {
			out = append(out, a.Name)
		}
	}
	return out
}

// pendingActivities are the activities and workflow tasks of the current runs, by
// Temporal's own account. The list of runs follows with a delay, and between a run that
// continued as new and the next one it shows neither: so it only names the workflows, and
// each is asked itself.
func (s *system) pendingActivities(channel string) (out []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	query := ""
	if channel != everywhere {
		query = "SmithChannel = '" + channel + "'"
	}
	list, err := s.temporalClient.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: stack.Namespace, Query: query, PageSize: 1000})
	if err != nil {
		return []string{"Temporal does not list: " + err.Error()}
	}
	seen := map[string]bool{}
	for _, e := range list.GetExecutions() {
		id := e.GetExecution().GetWorkflowId()
		if seen[id] {
			continue
		}
		seen[id] = true
		d, err := s.pastItsTask(ctx, id)
		if err != nil {
			out = append(out, fmt.Sprintf("%s, which Temporal does not describe: %s", id, err))
			continue
		}
		for _, a := range d.RawResponse.GetPendingActivities() {
			out = append(out, fmt.Sprintf("activity %s of %s, attempt %d: %s", a.GetActivityType().GetName(), id, a.GetAttempt(), a.GetLastFailure().GetMessage()))
		}
		if d.RawResponse.GetPendingWorkflowTask() != nil {
			out = append(out, "a workflow task of "+id)
		}
	}
	return out
}

// pastItsTask describes a workflow once its task is done, if it has one: an idle timer that
// fires makes one at any moment, and only what comes of it is work. One that no worker takes
// within seconds is described with it.
func (s *system) pastItsTask(ctx context.Context, id string) (*client.WorkflowExecutionDescription, error) {
	for end := time.Now().Add(10 * time.Second); ; {
		d, err := s.temporalClient.DescribeWorkflow(ctx, id, "")
		if err != nil || d.RawResponse.GetPendingWorkflowTask() == nil || time.Now().After(end) {
			return d, err
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// brains tells of the workflows of a channel, event by event, where a test failed.
func (s *system) brains(channel string) (out []string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	list, err := s.temporalClient.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: stack.Namespace, Query: "SmithChannel = '" + channel + "'"})
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range list.GetExecutions() {
		b := fmt.Sprintf("%s %s:", e.GetExecution().GetWorkflowId(), e.GetStatus())
		iter := s.temporalClient.GetWorkflowHistory(ctx, e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for iter.HasNext() {
			event, err := iter.Next()
			if err != nil {
				break
			}
			b += fmt.Sprintf(" %s@%s", event.GetEventType(), event.GetEventTime().AsTime().Format("05.000"))
		}
		out = append(out, b)
	}
	return append(out, s.pendingActivities(channel)...)
}

// busyFor is what is under way all that time: an operator's or a relay's look now and then
// is over in a moment.
func (s *system) busyFor(channel string, limit time.Duration) (busy []string) {
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		if busy = s.busy(channel); len(busy) == 0 || time.Now().After(deadline) {
			return busy
		}
	}
}
