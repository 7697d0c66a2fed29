package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// attribute is the search attribute that the SDK writes beside each version marker: a list
// of <change ID>-<version>.
const attribute = "TemporalChangeVersion"

// open says it by what it is not, so that a run that is paused counts, and servers that
// know no pause understand.
const open = `ExecutionStatus NOT IN ("Completed", "Failed", "Canceled", "Terminated", "ContinuedAsNew", "TimedOut")`

// pageSize is the most that the server gives at a time.
const pageSize = 1000

// openRun is one run under way.
type openRun struct {
	ID, RunID, Type string
	Start           time.Time
	// Holds are the versions as the server has them. A run that continued another as new
	// has that one's until its own first marker.
	Holds []string
}

// noAttributeError is what a server says that does not know the attribute.
type noAttributeError struct{ err error }

func (e *noAttributeError) Error() string { return e.err.Error() }
func (e *noAttributeError) Unwrap() error { return e.err }

// listOpen calls each for every open run that is of one of the types, or that holds any
// version; without types, for every open run there is. What a run holds is compared here
// and never in the query: a server's own answer may not tell a-1 from A-1, and may fail on
// an ID with quotes in it (the local server on SQLite does both).
func listOpen(ctx context.Context, c client.Client, types []string, each func(openRun)) error {
	holding := attribute + " IS NOT NULL"
	if _, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: open + " AND " + holding}); err != nil {
		var bad *serviceerror.InvalidArgument
		if errors.As(err, &bad) && strings.Contains(err.Error(), attribute) {
			return &noAttributeError{err}
		}
		return fmt.Errorf("count the open runs: %w", err)
	}
	query := open
	if len(types) > 0 {
		query += " AND (WorkflowType IN (" + quoted(types) + ") OR " + holding + ")"
	}
	req := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: pageSize}
	for {
		page, err := c.ListWorkflow(ctx, req)
		if err != nil {
			return fmt.Errorf("list the open runs: %w", err)
		}
		for _, e := range page.GetExecutions() {
			r, err := openRunOf(e)
			if err != nil {
				return err
			}
			each(r)
		}
		if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return nil
		}
	}
}

func openRunOf(e *workflowpb.WorkflowExecutionInfo) (openRun, error) {
	r := openRun{
		ID: e.GetExecution().GetWorkflowId(), RunID: e.GetExecution().GetRunId(),
		Type: e.GetType().GetName(), Start: e.GetStartTime().AsTime(),
	}
	p := e.GetSearchAttributes().GetIndexedFields()[attribute]
	if p == nil {
		return r, nil
	}
	if err := converter.GetDefaultDataConverter().FromPayload(p, &r.Holds); err != nil {
		var one string // a list of one may come as that one
		if converter.GetDefaultDataConverter().FromPayload(p, &one) != nil {
			return r, fmt.Errorf("read what the run %s of %s holds: %w", r.RunID, r.ID, err)
		}
		r.Holds = []string{one}
	}
	return r, nil
}

// quoted writes names as strings of a visibility query.
func quoted(names []string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	var out []string
	for _, n := range names {
		out = append(out, `"`+escape.Replace(n)+`"`)
	}
	return strings.Join(out, ", ")
}
