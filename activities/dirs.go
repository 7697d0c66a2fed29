package activities

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"agentsmith/rules"
)

// Dirs are the directories in which the agents of a box work: one a thread, the same for
// every run of it (B9).
type Dirs struct {
	// Root holds the threads' directories.
	Root string
	// Checkouts is the closed set of git checkouts that agents may write in; each thread
	// gets a worktree of each (B8, B9).
	Checkouts []string
}

// ThreadDir is one thread's directory, ready for a turn.
type ThreadDir struct {
	// Path is where the agent runs; Outbox, below it, is where its files for this turn go.
	Path   string
	Outbox string
}

// outboxRule lets an agent write files for the thread, whatever else it may do (B4).
const outboxRule = "Edit(./outbox/**)"

// The bounds of what an agent may post as files with one answer.
const (
	maxFiles    = 10
	maxFileSize = 64 << 20
)

// path of a thread's directory. Every part is checked to be a plain name: ids come from
// Slack and must not lead elsewhere (X2).
func (d Dirs) path(t Turn) (string, error) {
	root := t.Thread.Root
	if root == "" {
		root = "run-" + plainName(t.ID) // a schedule's: it has no thread yet
	}
	for _, part := range []string{t.Seat, t.Thread.Channel, root} {
		if part == "" || part != filepath.Base(part) || strings.HasPrefix(part, ".") {
			return "", fmt.Errorf("%q is no name for a directory", part)
		}
	}
	return filepath.Join(d.Root, t.Seat, t.Thread.Channel, root), nil
}

// outboxOf names the directory of a turn's outgoing files.
func outboxOf(t Turn) string {
	return filepath.Join("outbox", plainName(t.ID))
}

// plainName makes an id of ours fit for one directory.
func plainName(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, id)
}

// Of returns a thread's directory without touching it.
func (d Dirs) Of(t Turn) (ThreadDir, error) {
	path, err := d.path(t)
	if err != nil {
		return ThreadDir{}, err
	}
	return ThreadDir{Path: path, Outbox: filepath.Join(path, outboxOf(t))}, nil
}

// Prepare makes a thread's directory, its worktrees and the turn's outbox.
func (d Dirs) Prepare(ctx context.Context, t Turn) (ThreadDir, error) {
	dir, err := d.Of(t)
	if err != nil {
		return ThreadDir{}, fmt.Errorf("prepare the thread's directory: %w", err)
	}
	if err := os.MkdirAll(dir.Outbox, 0o700); err != nil {
		return ThreadDir{}, fmt.Errorf("prepare the thread's directory: %w", err)
	}
	for _, checkout := range d.Checkouts {
		if err := worktree(ctx, checkout, filepath.Join(dir.Path, filepath.Base(checkout))); err != nil {
			return ThreadDir{}, err
		}
	}
	return dir, nil
}

// worktree gives the thread its own worktree of a checkout, detached at its HEAD. One that
// is there already is kept as it is: a thread's work outlives its turns.
func worktree(ctx context.Context, checkout, path string) error {
	if _, err := os.Lstat(filepath.Join(path, ".git")); err == nil {
		return nil
	}
	// A worktree that git knows and whose folder is gone, or half made, is no obstacle.
	for _, args := range [][]string{
		{"-C", checkout, "worktree", "prune"},
		{"-C", checkout, "worktree", "add", "--force", "--detach", path, "HEAD"},
	} {
		out, err := exec.CommandContext(ctx, "git", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("make a worktree of %s: %w: %s", checkout, err, rules.Visible(string(out)))
		}
	}
	return nil
}

// Outgoing lists the files that the agent left for the thread, by name. Links and
// directories are left alone: an agent posts what it wrote, not what it can reach.
func (d ThreadDir) Outgoing() ([]string, error) {
	entries, err := os.ReadDir(d.Outbox)
	if err != nil {
		return nil, fmt.Errorf("list the outgoing files: %w", err)
	}
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && info.Size() > 0 && info.Size() <= maxFileSize {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxFiles)], nil
}

// Open opens one of the outgoing files. The name was listed by Outgoing; it is opened
// below the outbox only, and never through a link.
func (d ThreadDir) Open(name string) (io.ReadCloser, int64, error) {
	root, err := os.OpenRoot(d.Outbox)
	if err != nil {
		return nil, 0, fmt.Errorf("open the outbox: %w", err)
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err != nil {
		return nil, 0, fmt.Errorf("open an outgoing file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("open an outgoing file: %q is no plain file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, 0, fmt.Errorf("open an outgoing file: %w", err)
	}
	return f, info.Size(), nil
}
