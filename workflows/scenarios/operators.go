package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"agentsmith/internal/githubbox"
	"agentsmith/internal/stack"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// The checkout that operators work in, and its name on GitHub.
const (
	checkout = "web"
	repo     = "example/" + checkout
)

// operators lets the threads of a system get operators in a checkout of its own.
func operators(ctx context.Context, o *stack.Options, skipPermissions bool) error {
	dir := filepath.Join(o.Dir, "checkouts", checkout)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make a checkout: %w", err)
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"config", "user.email", "ana@example.com"}, {"config", "user.name", "ana"},
		{"commit", "-q", "--allow-empty", "-m", "begin"},
		{"remote", "add", "origin", "git@github.com:" + repo + ".git"},
	} {
		if _, err := git(ctx, dir, args...); err != nil {
			return err
		}
	}
	o.Operators = &stack.Operators{
		Checkouts: []string{dir},
		Config:    map[string]any{"skip_permissions": skipPermissions, "limit": 40},
	}
	o.Config["classifier"] = map[string]any{"timeout": "60s"}
	return nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// work is a line that asks for work of a name; job is what the operator is to do.
func work(slug, job string) string {
	return fmt.Sprintf("[[classify work %s %s]] [[say %s]] [[terminal]] %s", slug, checkout, handedOn, job)
}

// handedOn is what the brain answers to a line that asks for work.
const handedOn = "It is handed on."

// hired starts a thread that asks for work and waits until its operator runs and the
// line is answered.
func (w *World) hired(ctx context.Context, slug, job string) (root string, op terminal.Live, err error) {
	if root, err = w.ask(work(slug, job)); err != nil {
		return "", op, err
	}
	if err = w.said(ctx, root, handedOn); err != nil { // the table of phases may come first
		return "", op, err
	}
	op, err = w.operator(ctx, root)
	return root, op, err
}

// operator waits for the session of a thread.
func (w *World) operator(ctx context.Context, root string) (op terminal.Live, err error) {
	err = w.until(ctx, "the operator of "+root, func() (bool, error) {
		all, err := w.Tmux.Sessions(ctx)
		i := slices.IndexFunc(all, func(l terminal.Live) bool { return l.Thread.Root == root })
		if i >= 0 {
			op = all[i]
		}
		return i >= 0, err
	})
	return op, err
}

// said waits until the seat has posted a text in a thread.
func (w *World) said(ctx context.Context, root, text string) error {
	return w.until(ctx, fmt.Sprintf("%q in %s", text, root), func() (bool, error) {
		for _, m := range w.Slack.Log(0).Messages {
			if m.ThreadTS == root && m.App == seat && strings.Contains(m.Text, text) {
				return true, nil
			}
		}
		return false, nil
	})
}

// follower is the workflow that follows an operator.
func follower(slug string) Execution { return Execution{ID: workflows.OperatorTaskID(seat, slug)} }

// knows waits until a task knows what done looks for.
func (w *World) knows(ctx context.Context, slug, what string, done func(workflows.TaskView) bool) error {
	return w.until(ctx, fmt.Sprintf("the task of %s to know of %s", slug, what), func() (bool, error) {
		v, err := w.client.QueryWorkflow(ctx, follower(slug).ID, "", workflows.QueryTask)
		if err != nil {
			return false, fmt.Errorf("query the task of %s: %w", slug, err)
		}
		var view workflows.TaskView
		if err := v.Get(&view); err != nil {
			return false, fmt.Errorf("query the task of %s: %w", slug, err)
		}
		return done(view), nil
	})
}

// dismissed stops the operator of a thread and waits until that is said.
func (w *World) dismissed(ctx context.Context, root string) error {
	_, err := w.reply(root, "stop operator")
	return errors.Join(err, w.said(ctx, root, "Stopped operator"))
}

// proposed opens the pull request of an operator's branch, once it has a commit, and waits
// until its task knows of it.
func (w *World) proposed(ctx context.Context, slug string, op terminal.Live) (number int, sha string, err error) {
	if sha, err = git(ctx, op.Worktree, "rev-parse", "HEAD"); err != nil {
		return 0, "", err
	}
	number, err = w.GitHub.OpenPull(githubbox.Pull{Repo: repo, Branch: rules.BranchOf(slug), SHA: sha, Title: "Do " + slug})
	if err != nil {
		return 0, "", err
	}
	return number, sha, w.knows(ctx, slug, "its pull request", func(v workflows.TaskView) bool { return v.Facts.Pull == number })
}

// firstRun is the first run of the chain that a workflow's latest run belongs to.
func (w *World) firstRun(ctx context.Context, x Execution) (string, error) {
	latest, err := w.latestRun(ctx, x)
	if err != nil {
		return "", err
	}
	h, err := w.History(ctx, Execution{ID: x.ID, Run: latest})
	if err != nil {
		return "", err
	}
	return h.Events[0].GetWorkflowExecutionStartedEventAttributes().GetFirstExecutionRunId(), nil
}

// laterRun waits for a run of a workflow that is not the one given, and names it.
func (w *World) laterRun(ctx context.Context, x Execution, than string) (run string, err error) {
	err = w.until(ctx, "another run of "+x.ID, func() (bool, error) {
		run, err = w.latestRun(ctx, x)
		return run != "" && run != than, err
	})
	return run, err
}
