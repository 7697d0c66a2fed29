package histories_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"agentsmith/histories"
)

func row(scenario string) histories.Row {
	return histories.Row{
		Workflow: "Reply", Generation: 1, Scenario: scenario, Commit: strings.Repeat("a", 40),
		SDK: "1.51.0", Server: "1.29.1", For: "A test.",
	}
}

// open is the history of an open run that ends where a task has only started.
func open() *historypb.History {
	return &historypb.History{Events: []*historypb.HistoryEvent{
		{
			EventId: 1, EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
					WorkflowType: &commonpb.WorkflowType{Name: "Reply"}, WorkflowId: "smith-1", OriginalExecutionRunId: "run-1",
					Identity: histories.Scrubbed,
				},
			},
		},
		{EventId: 2, EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED},
		{EventId: 3, EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED},
	}}
}

// folder has one specimen of each scenario.
func folder(t *testing.T, scenarios ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, s := range scenarios {
		require.NoError(t, histories.Add(dir, row(s), open()))
	}
	return dir
}

// editRows changes the manifest of a folder.
func editRows(t *testing.T, dir string, edit func(rows []histories.Row) []histories.Row) {
	t.Helper()
	rows, err := histories.Manifest(dir)
	require.NoError(t, err)
	text, err := json.Marshal(edit(rows))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, histories.ManifestFile), text, 0o644))
}

func TestAdd_WritesAFileAndARowThatLoad(t *testing.T) {
	dir := folder(t, "stop", "mention")
	all, err := histories.Load(dir)
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, "reply/1-mention.json", all[0].File, "sorted by name")
	require.Len(t, all[0].SHA256, 64)
	require.Len(t, all[0].History.Events, 3)
	id, run := all[0].Execution()
	require.Equal(t, []string{"smith-1", "run-1"}, []string{id, run})
}

func TestAdd_NeverOverwrites(t *testing.T) {
	dir := folder(t, "stop")
	path := filepath.Join(dir, "reply", "1-stop.json")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	require.ErrorContains(t, histories.Add(dir, row("stop"), open()), "the manifest has it already")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "reply", "1-dm.json"), []byte("kept"), 0o644))
	require.ErrorIs(t, histories.Add(dir, row("dm"), open()), os.ErrExist)
	text, err := os.ReadFile(filepath.Join(dir, "reply", "1-dm.json"))
	require.NoError(t, err)
	require.Equal(t, "kept", string(text))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)

	second := row("stop")
	second.Generation = 2
	require.NoError(t, histories.Add(dir, second, open()), "another generation is another specimen")
}

func TestAdd_RefusesARowThatSaysTooLittle(t *testing.T) {
	for want, spoil := range map[string]func(*histories.Row){
		"is no commit":        func(r *histories.Row) { r.Commit = "HEAD" },
		"small letters":       func(r *histories.Row) { r.Scenario = "A Stop" },
		"a generation from 1": func(r *histories.Row) { r.Generation = 0 },
		"what it is for":      func(r *histories.Row) { r.For = "" },
		"the server's":        func(r *histories.Row) { r.Server = "" },
	} {
		r := row("stop")
		spoil(&r)
		dir := t.TempDir()
		require.ErrorContains(t, histories.Add(dir, r, open()), want)
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// An empty folder is no proof: there is nothing that could fail.
func TestLoad_RefusesAnEmptyFolder(t *testing.T) {
	_, err := histories.Load(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
	dir := folder(t, "stop")
	editRows(t, dir, func([]histories.Row) []histories.Row { return nil })
	_, err = histories.Load(dir)
	require.ErrorContains(t, err, "there is no specimen")
}

func TestLoad_RefusesWhatDoesNotAgree(t *testing.T) {
	write := func(t *testing.T, path string, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string
	}{
		"a row without a file": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "reply", "1-stop.json")))
		}, "no such file"},
		"a file without a row": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "reply", "1-more.json"), "{}") }, "no row in the manifest"},
		"a file that changed": {func(t *testing.T, dir string) {
			path := filepath.Join(dir, "reply", "1-stop.json")
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			write(t, path, strings.Replace(string(text), "smith-1", "smith-2", 1))
		}, "changed since it was captured"},
		"two rows": {func(t *testing.T, dir string) {
			editRows(t, dir, func(r []histories.Row) []histories.Row { return append(r, r[0]) })
		}, "two rows"},
		"a row without a sum": {func(t *testing.T, dir string) {
			editRows(t, dir, func(r []histories.Row) []histories.Row { r[0].SHA256 = ""; return r })
		}, "is no sha256"},
		"a row of another name": {func(t *testing.T, dir string) {
			editRows(t, dir, func(r []histories.Row) []histories.Row { r[0].Generation = 2; return r })
		}, "does not say workflow, generation and scenario"},
		"a row with a word nobody knows": {func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, histories.ManifestFile), `[{"file": "reply/1-stop.json", "why": "?"}]`)
		}, "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, "stop")
			c.spoil(t, dir)
			_, err := histories.Load(dir)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestLoad_RefusesWhatACaptureWouldNotHaveWritten(t *testing.T) {
	named := open()
	named.Events[0].GetWorkflowExecutionStartedEventAttributes().Identity = "1234@box"
	dir := t.TempDir()
	require.NoError(t, histories.Add(dir, row("stop"), named))
	_, err := histories.Load(dir)
	require.ErrorContains(t, err, "names who ran it")

	cut := open()
	cut.Events = append(cut.Events, &historypb.HistoryEvent{EventId: 4, EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED})
	dir = t.TempDir()
	require.NoError(t, histories.Add(dir, row("stop"), cut))
	_, err = histories.Load(dir)
	require.ErrorContains(t, err, "where a replay cannot tell")

	dir = t.TempDir()
	other := row("stop")
	other.Workflow = "Other"
	require.NoError(t, histories.Add(dir, other, open()))
	_, err = histories.Load(dir)
	require.ErrorContains(t, err, `a history of "Reply", the row says "Other"`)
}

func TestScrub_TakesOutEveryIdentity(t *testing.T) {
	h := open()
	h.Events[0].GetWorkflowExecutionStartedEventAttributes().Identity = "1234@box"
	h.Events[2].Attributes = &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
		WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{Identity: "1234@box", RequestId: "kept"},
	}
	histories.Scrub(h)
	require.NotContains(t, h.String(), "1234@box")
	require.Equal(t, histories.Scrubbed, h.Events[2].GetWorkflowTaskStartedEventAttributes().Identity)
	require.Equal(t, "kept", h.Events[2].GetWorkflowTaskStartedEventAttributes().RequestId)
}

func TestCutOpen_EndsAnOpenRunAtTheLastStartedTask(t *testing.T) {
	h := open()
	h.Events = append(h.Events,
		&historypb.HistoryEvent{EventId: 4, EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED},
		&historypb.HistoryEvent{EventId: 5, EventType: enumspb.EVENT_TYPE_TIMER_STARTED})
	cut, err := histories.CutOpen(h)
	require.NoError(t, err)
	require.Len(t, cut.Events, 3)
	require.Len(t, h.Events, 5, "the history itself is left alone")

	h.Events = append(h.Events, &historypb.HistoryEvent{EventId: 6, EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED})
	cut, err = histories.CutOpen(h)
	require.NoError(t, err)
	require.Len(t, cut.Events, 6, "a closed run is whole")

	_, err = histories.CutOpen(&historypb.History{Events: open().Events[:2]})
	require.ErrorIs(t, err, histories.ErrNoTask)
}
