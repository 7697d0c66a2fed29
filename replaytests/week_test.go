package replaytests

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"agentsmith/activities"
	"agentsmith/internal/tools"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// aDay is how many ticks of five minutes a day has.
const aDay = 24 * 12

// followedForAWeek are the activities of a task whose operator just works, under the names
// of the real ones.
type followedForAWeek struct {
	looks, ended atomic.Int64
	over         atomic.Bool
}

// ObserveTask sees an operator at work.
func (f *followedForAWeek) ObserveTask(context.Context, activities.ObserveInput) (activities.Observation, error) {
	f.looks.Add(1)
	o := activities.Observation{Alive: true, Facts: rules.PhaseFacts{Bound: true, Slug: "long-haul", Alive: true}}
	if f.over.Load() {
		o.Over = "merged"
	}
	return o, nil
}

// FinishTask counts the ends.
func (f *followedForAWeek) FinishTask(context.Context, activities.FinishInput) error {
	f.ended.Add(1)
	return nil
}

// OfferWords has nothing to say.
func (f *followedForAWeek) OfferWords(context.Context, activities.OfferInput) (activities.Offered, error) {
	return activities.Offered{}, nil
}

// PublishPhases shows nothing.
func (f *followedForAWeek) PublishPhases(context.Context, activities.PublishInput) (activities.Published, error) {
	return activities.Published{}, nil
}

// O10: a task that is followed for a day, or for a week with SMITH_WEEK=full, on the real
// server, with its ticks at the interval of a millisecond: it continues as new before its
// history grows, and goes on when its worker is another. For the day the server suggests
// that after fewer events, so that there are as many runs as in a week.
func TestO10_AWeekOfTicksHasABoundedHistory(t *testing.T) {
	ticks, suggested := int64(aDay), int64(600)
	if os.Getenv("SMITH_WEEK") == "full" {
		ticks, suggested = 7*aDay, 4096
	}
	bin, err := tools.Temporal()
	require.NoError(t, err)
	quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	server, err := testsuite.StartDevServer(t.Context(), testsuite.DevServerOptions{
		ExistingPath: bin, LogLevel: "error", ClientOptions: &client.Options{Logger: quiet},
		ExtraArgs: []string{
			"--dynamic-config-value", "history.transferProcessorMaxPollRPS=2000",
			"--dynamic-config-value", "history.timerProcessorMaxPollRPS=2000",
			"--dynamic-config-value", "history.timerProcessorMaxTimeShift=\"1ms\"", // else a timer fires on the whole second
			"--dynamic-config-value", fmt.Sprintf("limit.historyCount.suggestContinueAsNew=%d", suggested),
			"--dynamic-config-value", "matching.numTaskqueueReadPartitions=1",
			"--dynamic-config-value", "matching.numTaskqueueWritePartitions=1",
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	c := server.Client()
	f := &followedForAWeek{}
	work := func() []worker.Worker {
		brains := worker.New(c, workflows.TaskQueue, worker.Options{DisableRegistrationAliasing: true})
		workflows.Register(brains)
		box := worker.New(c, workflows.BoxTaskQueue("main"), worker.Options{DisableWorkflowWorker: true})
		box.RegisterActivity(f)
		require.NoError(t, brains.Start())
		require.NoError(t, box.Start())
		return []worker.Worker{box, brains}
	}
	stop := func(all []worker.Worker) {
		for _, w := range all {
			w.Stop()
		}
	}
	reach := func(n int64) {
		t.Helper()
		require.Eventually(t, func() bool { return f.looks.Load() >= n }, 4*time.Minute, 50*time.Millisecond, "it looks on")
	}
	id := workflows.OperatorTaskID("smith", "long-haul")
	workers := work()
	_, err = c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue}, workflows.OperatorTaskType, workflows.TaskInput{
		Operator: rules.Operator{Number: 1, Slug: "long-haul", Seat: "smith", Session: "11111111-1111-4111-8111-111111111111"},
		Settings: workflows.TaskSettings{Box: "main", Poll: time.Hour, Tick: time.Millisecond, GiveUp: time.Hour},
	})
	require.NoError(t, err)
	wake := func() {
		t.Helper()
		require.NoError(t, c.SignalWorkflow(t.Context(), id, "", workflows.SignalOperatorTask, workflows.TaskTrigger{Kind: workflows.TaskWake}))
	}
	for n := range int64(20) { // at any moment, that of continuing as new among them
		reach(ticks / 2 * n / 20)
		wake()
	}
	reach(ticks / 2)
	stop(workers)
	seen := f.looks.Load()
	for range 5 {
		wake()
	}
	workers = work()
	defer func() { stop(workers) }()
	reach(max(ticks, seen+5))
	f.over.Store(true)
	require.NoError(t, c.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	require.EqualValues(t, 1, f.ended.Load(), "it ends once")

	var runs int
	require.Eventually(t, func() bool {
		list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowId = '" + id + "'"})
		require.NoError(t, err)
		runs = len(list.GetExecutions())
		longest := int64(0)
		for _, e := range list.GetExecutions() {
			longest = max(longest, e.GetHistoryLength())
		}
		require.Less(t, longest, suggested+200, "no run is longer than what the server suggests, and a task or two")
		return runs >= 4
	}, time.Minute, time.Second, "it continued as new")
	t.Logf("%d looks in %d runs, woken %d times", f.looks.Load(), runs, requireWakesSeen(t, c, id))
}

// requireWakesSeen wants a look, or a next run, which begins with one, behind every signal
// of a workflow, and returns how many signals there were.
func requireWakesSeen(t *testing.T, c client.Client, id string) (wakes int) {
	t.Helper()
	list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: "WorkflowId = '" + id + "'"})
	require.NoError(t, err)
	for _, e := range list.GetExecutions() {
		waits := false
		iter := c.GetWorkflowHistory(t.Context(), id, e.GetExecution().GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for iter.HasNext() {
			event, err := iter.Next()
			require.NoError(t, err)
			switch event.GetEventType() {
			case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
				waits = true
				wakes++
			case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
				waits = false
			}
		}
		require.False(t, waits, "a wake of run %s was not seen", e.GetExecution().GetRunId())
	}
	require.GreaterOrEqual(t, wakes, 25)
	return wakes
}
