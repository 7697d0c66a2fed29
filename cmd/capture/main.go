// Command capture records specimens: it runs scenarios on the real server with the code as
// it is, before a change, and writes their histories and a manifest row each.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"agentsmith/histories"
	"agentsmith/workflows"
)

type flags struct {
	Generation int      `help:"Which generation of the code this is, counted from 1." required:""`
	Dir        string   `help:"The folder of specimens." default:"histories" type:"path"`
	Scenario   []string `arg:"" optional:"" help:"Scenarios to record; when left out, all that this generation has no specimen of."`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Name("capture"), kong.Description("Records histories of the code as it is: one specimen a scenario and generation, never overwritten."))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "capture:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags) error {
	commit, err := cleanCommit(ctx)
	if err != nil {
		return err
	}
	wanted, err := choose(f.Scenario)
	if err != nil {
		return err
	}
	if len(f.Scenario) == 0 {
		if wanted, err = missing(f, wanted); err != nil {
			return err
		}
	}
	var errs []error
	for _, kind := range []kind{quick, long, renewing} {
		some := slices.DeleteFunc(slices.Clone(wanted), func(s scenario) bool { return s.kind != kind })
		if len(some) > 0 {
			errs = append(errs, capture(ctx, f, commit, kind, some))
		}
	}
	return errors.Join(errs...)
}

// cleanCommit returns the commit that the code is at. A dirty tree is refused: the commit
// is part of a specimen's truth.
func cleanCommit(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".", ":!histories").Output()
	if err != nil {
		return "", fmt.Errorf("ask git for the state of the tree: %w", err)
	}
	if len(out) > 0 {
		return "", fmt.Errorf("the tree is not clean; commit first, since the commit is part of a specimen's truth:\n%s", out)
	}
	out, err = exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("ask git for the commit: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func choose(names []string) ([]scenario, error) {
	all := scenarios()
	if len(names) == 0 {
		return all, nil
	}
	var out []scenario
	for _, name := range names {
		i := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

// missing leaves out what an earlier capture of this generation recorded already.
func missing(f flags, wanted []scenario) ([]scenario, error) {
	rows, err := histories.Manifest(f.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return slices.DeleteFunc(wanted, func(s scenario) bool {
		return slices.ContainsFunc(rows, func(r histories.Row) bool {
			return r.File == histories.FileOf(workflows.ReplyType, f.Generation, s.name)
		})
	}), nil
}

// capture runs scenarios of one kind on one system and writes what they left.
func capture(ctx context.Context, f flags, commit string, k kind, some []scenario) (err error) {
	dir, err := os.MkdirTemp("", "smith-capture-")
	if err != nil {
		return fmt.Errorf("make a place to run: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nWhat ran, and its logs, is left in %s", err, dir)
			return
		}
		_ = os.RemoveAll(dir)
	}()
	w, err := startWorld(ctx, dir, k)
	if err != nil {
		return err
	}
	defer w.stop()
	server, err := w.client.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return fmt.Errorf("ask the server for its version: %w", err)
	}
	for _, s := range some {
		began := time.Now()
		h, err := w.record(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		row := histories.Row{
			Workflow: workflows.ReplyType, Generation: f.Generation, Scenario: s.name, Commit: commit,
			SDK: temporal.SDKVersion, Server: server.GetServerVersion(), For: s.purpose,
		}
		if err := histories.Add(f.Dir, row, h); err != nil {
			return err
		}
		fmt.Printf("%-28s %3d events  %s\n", s.name, len(h.Events), time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// record runs one scenario and returns its history, scrubbed and cut where a replay can tell.
func (w *world) record(ctx context.Context, s scenario) (*historypb.History, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	ran, err := s.run(ctx, w)
	if err != nil {
		return nil, err
	}
	if !s.open {
		if err := w.closed(ctx, ran); err != nil {
			return nil, err
		}
	}
	h, err := w.history(ctx, ran)
	if err != nil {
		return nil, err
	}
	if h, err = histories.CutOpen(h); err != nil {
		return nil, err
	}
	histories.Scrub(h)
	return h, nil
}

// execution names a run; an empty Run is the latest.
type execution struct{ ID, Run string }

func (w *world) history(ctx context.Context, x execution) (*historypb.History, error) {
	var h historypb.History
	it := w.client.GetWorkflowHistory(ctx, x.ID, x.Run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			return nil, fmt.Errorf("read the history of %s: %w", x.ID, err)
		}
		h.Events = append(h.Events, e)
	}
	return &h, nil
}

// closed waits until the run has closed, whatever way.
func (w *world) closed(ctx context.Context, x execution) error {
	return w.until(ctx, "the run of "+x.ID+" to close", func() (bool, error) {
		d, err := w.client.DescribeWorkflow(ctx, x.ID, x.Run)
		if err != nil {
			return false, fmt.Errorf("describe %s: %w", x.ID, err)
		}
		return d.RawResponse.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	})
}

func (w *world) until(ctx context.Context, what string, done func() (bool, error)) error {
	var last error
	for {
		ok, err := done()
		if ok {
			return nil
		}
		if err != nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for %s: %w; logs in %s", what, ctx.Err(), filepath.Join(w.Dir, "logs")), last)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (w *world) stop() {
	w.client.Close()
	if err := w.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "capture:", err)
	}
}

// signal sends a trigger to a brain as the starter would.
func (w *world) signal(ctx context.Context, id string, t workflows.Trigger) error {
	if err := w.client.SignalWorkflow(ctx, id, "", workflows.SignalAddContext, t); err != nil {
		return fmt.Errorf("signal %s: %w", id, err)
	}
	return nil
}

func dial(address string) (client.Client, error) {
	c, err := client.Dial(client.Options{HostPort: address})
	if err != nil {
		return nil, fmt.Errorf("connect to the Temporal server: %w", err)
	}
	return c, nil
}
