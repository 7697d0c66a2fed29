package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/temporal"

	"agentsmith/histories"
	"agentsmith/internal/stack"
	"agentsmith/workflows/scenarios"
)

// cleanCommit returns the commit that the code in dir is at. A dirty tree is refused: the
// commit is part of a specimen's truth. Specimens themselves may be new.
func cleanCommit(ctx context.Context, dir string) (string, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*", "-C", dir}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	dirt, err := git("status", "--porcelain", "--", ":/", ":(top,exclude)histories")
	if err != nil {
		return "", fmt.Errorf("ask git for the state of the tree: %w", err)
	}
	if dirt != "" {
		return "", fmt.Errorf("the tree is not clean; commit first, since the commit is part of a specimen's truth:\n%s", dirt)
	}
	commit, err := git("rev-parse", "HEAD")
	if err != nil {
		return "", fmt.Errorf("ask git for the commit: %w", err)
	}
	return commit, nil
}

// build builds worker and starter, and looks again whether what was built is the commit.
func build(ctx context.Context, dir, commit string) (scenarios.Programs, error) {
	worker, starter, err := stack.Build(ctx, dir)
	if err != nil {
		return scenarios.Programs{}, err
	}
	now, err := cleanCommit(ctx, ".")
	if err == nil && now != commit {
		err = fmt.Errorf("the tree went from %s to %s", commit, now)
	}
	if err != nil {
		return scenarios.Programs{}, fmt.Errorf("the tree changed while it was built: %w", err)
	}
	return scenarios.Programs{Worker: worker, Starter: starter}, nil
}

// recorder writes specimens of one commit.
type recorder struct {
	flags
	commit string
	out    io.Writer
}

// recordAll runs scenarios of one kind on one system and writes what they left. One that
// fails ends it: what it left behind might show in the next.
func (r recorder) recordAll(ctx context.Context, dir string, programs scenarios.Programs, k scenarios.Kind, some []scenarios.Scenario) (err error) {
	w, err := scenarios.Start(ctx, dir, programs, k)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	server, err := w.ServerVersion(ctx)
	if err != nil {
		return err
	}
	for _, s := range some {
		began := time.Now()
		h, err := record(ctx, w, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		if err := histories.Add(r.Dir, histories.Row{
			Workflow: s.Workflow, Generation: r.Generation, Scenario: s.Name, Commit: r.commit,
			SDK: temporal.SDKVersion, Server: server, For: s.Purpose,
		}, h); err != nil {
			return err
		}
		fmt.Fprintf(r.out, "%-28s %3d events  %s\n", s.Name, len(h.Events), time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// patience is how long a scenario may take: the sweep of an owing system looks once a minute.
const patience = 4 * time.Minute

// record runs one scenario and returns its history, scrubbed and cut where a replay can tell.
func record(ctx context.Context, w *scenarios.World, s scenarios.Scenario) (*historypb.History, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ran, err := s.Run(ctx, w)
	if err != nil {
		return nil, err
	}
	if !s.Open {
		if err := w.Closed(ctx, ran); err != nil {
			return nil, err
		}
	}
	h, err := w.History(ctx, ran)
	if err != nil {
		return nil, err
	}
	if h, err = histories.CutOpen(h); err != nil {
		return nil, err
	}
	histories.Scrub(h)
	return h, nil
}
