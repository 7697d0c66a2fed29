package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"agentsmith/internal/proof"
)

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func writeSource(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(source, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(source, "p.go"), []byte(text), 0o644))
}

// paged answers as a server that gives two runs a page, or refuses.
type paged struct {
	client.Client
	all     []*workflowpb.WorkflowExecutionInfo
	err     error
	queries []string
}

func (p *paged) CountWorkflow(context.Context, *workflowservice.CountWorkflowExecutionsRequest) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	return &workflowservice.CountWorkflowExecutionsResponse{}, p.err
}

func (p *paged) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	p.queries = append(p.queries, r.Query)
	from := len(r.NextPageToken)
	out := &workflowservice.ListWorkflowExecutionsResponse{Executions: p.all[from:min(from+2, len(p.all))]}
	if from+2 < len(p.all) {
		out.NextPageToken = []byte(strings.Repeat("x", from+2))
	}
	return out, nil
}

func execution(t *testing.T, id string, holds any) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	e := &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id}, Type: &commonpb.WorkflowType{Name: "W"}}
	if holds != nil {
		p, err := converter.GetDefaultDataConverter().ToPayload(holds)
		require.NoError(t, err)
		e.SearchAttributes = &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{attribute: p}}
	}
	return e
}

func TestListOpen_ReadsEveryPage(t *testing.T) {
	p := &paged{}
	for n := range 5 {
		p.all = append(p.all, execution(t, fmt.Sprint(n), []string{"a-1"}))
	}
	p.all = append(p.all, execution(t, "none", nil), execution(t, "one", "b-2"))
	var found []openRun
	require.NoError(t, listOpen(t.Context(), p, []string{"W", `a "b" \c`}, func(r openRun) { found = append(found, r) }))
	require.Len(t, found, 7)
	require.Equal(t, []string{"a-1"}, found[4].Holds)
	require.Empty(t, found[5].Holds)
	require.Equal(t, []string{"b-2"}, found[6].Holds)
	require.Len(t, p.queries, 4)
	require.Contains(t, p.queries[3], `WorkflowType IN ("W", "a \"b\" \\c") OR TemporalChangeVersion IS NOT NULL`)

	p.all = append(p.all, execution(t, "broken", 7))
	require.ErrorContains(t, listOpen(t.Context(), p, nil, func(openRun) {}), "read what the run")
}

func TestExplain_SaysWhatToLookAt(t *testing.T) {
	o := client.Options{HostPort: "there:7233", Namespace: "n.a"}
	require.NoError(t, explain(o, nil))
	for _, c := range []struct {
		err  error
		want string
	}{
		{serviceerror.NewPermissionDenied("Request unauthorized.", ""), "there:7233 refuses: count the open runs: Request unauthorized.; check TEMPORAL_API_KEY, and what it may do in the namespace n.a"},
		{serviceerror.NewNamespaceNotFound("n.a"), "there:7233 has no namespace n.a; check TEMPORAL_NAMESPACE"},
		{serviceerror.NewInvalidArgument("column name 'TemporalChangeVersion' is not a valid search attribute"), "the namespace n.a of there:7233 cannot be searched by TemporalChangeVersion: column name 'TemporalChangeVersion' is not a valid search attribute"},
		{serviceerror.NewUnavailable("down"), "ask Temporal at there:7233, namespace n.a: count the open runs: down; check TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE"},
	} {
		err := listOpen(t.Context(), &paged{err: c.err}, nil, func(openRun) {})
		require.EqualError(t, explain(o, err), c.want)
	}
}

func TestTally_ReadsWhatIsHeldByTheGatesThatTheCodeKnows(t *testing.T) {
	r := &proof.Reading{Gates: []proof.Gate{
		{ID: "a", Min: -1, Max: 3}, {ID: "a-", Min: -1, Max: 1}, {ID: "a-1", Min: 2, Max: 12},
	}}
	for value, want := range map[string]struct {
		id string
		v  workflow.Version
	}{
		"a-3": {"a", 3}, "a-1": {"a", 1}, "a-1-2": {"a-1", 2}, "a-1-12": {"a-1", 12}, "a--1": {"a", -1}, "a--7": {"a", -7},
		"A-1": {}, "a-01": {}, "a-+1": {}, "a-": {}, "a": {}, "": {}, "b-1": {}, "a-1-x": {}, "a-99999999999999999999": {},
	} {
		g, v := newTally(r).gateOf(value)
		if want.id == "" {
			require.Nil(t, g, value)
			continue
		}
		require.NotNil(t, g, value)
		require.Equal(t, []any{want.id, want.v}, []any{g.ID, v}, value)
	}

	// Without types a gate counts every run; below the minimum a run does not go on.
	tl := newTally(r)
	tl.add(openRun{ID: "x", Type: "T", Holds: []string{"a-1-1", "a-3", "c-1"}})
	require.Equal(t, []int{0, 1, 0}, []int{tl.gates[0].none.runs, tl.gates[1].none.runs, tl.gates[2].none.runs})
	require.Equal(t, []bool{true, false, false}, []bool{tl.gates[0].retirable(), tl.gates[1].retirable(), tl.gates[2].retirable()})
	require.Contains(t, tl.unknown, "a-1-1")
	require.Contains(t, tl.unknown, "c-1")
	require.Len(t, tl.unknown, 2)
}

func FuzzGateOf(f *testing.F) {
	f.Add("a", 1, "a-1")
	f.Add("it's", -1, "it's--1")
	f.Add("a-", 12, "a--12")
	f.Fuzz(func(t *testing.T, id string, v int, value string) {
		tl := newTally(&proof.Reading{Gates: []proof.Gate{{ID: id, Max: 3}}})
		tl.add(openRun{Holds: []string{value}}) // must not panic
		g, got := tl.gateOf(id + "-" + fmt.Sprint(v))
		require.NotNil(t, g)
		require.Equal(t, workflow.Version(v), got)
	})
}
