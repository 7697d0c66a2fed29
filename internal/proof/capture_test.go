package proof_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"agentsmith/internal/proof/testdata/traps"
	"agentsmith/internal/tools"
)

// capture records the histories that are missing in testdata/histories on the real server.
// One that is there is never recorded again.
var capture = flag.Bool("capture", false, "record the histories that are missing in testdata/histories")

const folder = "testdata/histories"

// scenario is one run that is recorded.
type scenario struct {
	name, workflow string
	in             traps.In
	register       func(worker.WorkflowRegistry)
	// until ends the recording of a run that stays open: at the first event for which it holds.
	until func(*historypb.HistoryEvent) bool
	fails bool
	// poke sends a signal that nobody waits for, twice: of an open run the SDK does not match
	// what the last completed task gave, so there must be one behind it.
	poke bool
}

func scenarios() []scenario {
	decided := func(e *historypb.HistoryEvent) bool { return e.GetWorkflowTaskCompletedEventAttributes() != nil }
	pokedAndStarted := func(e *historypb.HistoryEvent) bool {
		return e.GetWorkflowTaskStartedEventAttributes() != nil && e.GetEventId() > 14
	}
	long := traps.In{Flag: true}
	return []scenario{
		{name: "gate", workflow: "Gate", in: long},
		{name: "gate-vacuous", workflow: "Gate"},
		{name: "gate-newer", workflow: "Gate", in: long, register: traps.After},
		{name: "adjacent", workflow: "Adjacent", in: long},
		{name: "adjacent-newer", workflow: "Adjacent", in: long, register: traps.After},
		{name: "loop", workflow: "Loop"},
		{name: "short", workflow: "Short", in: long},
		{name: "short-vacuous", workflow: "Short"},
		{name: "raised", workflow: "Raised"},
		{name: "renamed", workflow: "Renamed"},
		{name: "parallel", workflow: "Parallel"},
		{name: "twins", workflow: "Twins"},
		{name: "timer", workflow: "Timer"},
		{name: "argument", workflow: "Argument"},
		{name: "map", workflow: "Map"},
		{name: "kinds", workflow: "Kinds"},
		{name: "child", workflow: "Child"},
		{name: "named", workflow: "Named"},
		{name: "again", workflow: "Again"},
		{name: "fail", workflow: "Fail", fails: true},
		{name: "everything", workflow: "Everything"},
		{name: "truncated", workflow: "Open", until: decided},
		{name: "waiting", workflow: "Open", poke: true, until: pokedAndStarted},
	}
}

func TestCapture(t *testing.T) {
	if !*capture {
		return // the histories are committed: this records new ones only
	}
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	path, err := tools.Temporal()
	require.NoError(t, err)
	server, err := testsuite.StartDevServer(ctx, testsuite.DevServerOptions{
		ExistingPath: path, LogLevel: "error",
		ExtraArgs: []string{"--search-attribute", "TrapKey=Keyword"},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Stop()) }()
	for _, s := range scenarios() {
		record(ctx, t, server.Client(), s)
	}
}

func record(ctx context.Context, t *testing.T, c client.Client, s scenario) {
	file := filepath.Join(folder, s.name+".json")
	if _, err := os.Stat(file); err == nil {
		return
	}
	w := worker.New(c, s.name, worker.Options{DisableRegistrationAliasing: true})
	if s.register == nil {
		s.register = traps.Before
	}
	s.register(w)
	traps.Activities(w)
	require.NoError(t, w.Start())
	defer w.Stop()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "trap-" + s.name, TaskQueue: s.name}, s.workflow, s.in)
	require.NoError(t, err)
	if s.until == nil {
		err := c.GetWorkflow(ctx, run.GetID(), run.GetRunID()).GetWithOptions(ctx, nil, client.WorkflowRunGetOptions{DisableFollowingRuns: true})
		if !s.fails && s.workflow != "Again" {
			require.NoError(t, err, s.name)
		}
	}
	var h historypb.History
	for events := c.GetWorkflowHistory(ctx, run.GetID(), run.GetRunID(), s.until != nil, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		require.NoError(t, err)
		h.Events = append(h.Events, e)
		if s.poke && (e.GetEventId() == 10 || e.GetEventId() == 14) { // its second task is completed, its third is
			require.NoError(t, c.SignalWorkflow(ctx, run.GetID(), run.GetRunID(), "poke", nil))
		}
		if s.until != nil && s.until(e) {
			break
		}
	}
	if s.until != nil {
		require.NoError(t, c.TerminateWorkflow(ctx, run.GetID(), run.GetRunID(), "recorded"))
	}
	text, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(&h)
	require.NoError(t, err)
	// Who ran it, and on which machine, is replayed by nobody.
	text = regexp.MustCompile(`("identity":\s*)"[^"]*"`).ReplaceAll(text, []byte(`$1"scrubbed"`))
	text = regexp.MustCompile(`"[^"]*:([0-9a-f-]{36})"(,\s*"kind":\s*"TASK_QUEUE_KIND_STICKY")`).ReplaceAll(text, []byte(`"scrubbed:$1"$2`))
	require.NoError(t, os.MkdirAll(folder, 0o755))
	require.NoError(t, os.WriteFile(file, append(text, '\n'), 0o644))
	t.Logf("recorded %s: %d events", s.name, len(h.Events))
}
