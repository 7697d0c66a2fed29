package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"agentsmith/internal/terminal"
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
	// Operators is the folder of the operators, whose starts make worktrees too; "" is Root.
	Operators string
}

// ThreadDir is one thread's directory, ready for a turn.
type ThreadDir struct {
	// Path is where the agent runs; Outbox, below it, is where its files for this turn go.
	Path   string
	Outbox string
}

// outboxRule lets an agent write files for the thread, whatever else it may do (B4).
const outboxRule = "Edit(./outbox/**)"

// The bounds of what an agent may post as files with one answer. What it wrote beyond
// them is named to the thread.
const (
	maxFiles    = 10
	maxFileSize = 64 << 20
	maxListed   = 50
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
	if err := os.MkdirAll(dir.Path, 0o700); err != nil {
		return ThreadDir{}, fmt.Errorf("prepare the thread's directory: %w", err)
	}
	root, err := os.OpenRoot(dir.Path)
	if err != nil {
		return ThreadDir{}, fmt.Errorf("prepare the thread's directory: %w", err)
	}
	defer root.Close()
	if err := root.MkdirAll(outboxOf(t), 0o700); err != nil {
		return ThreadDir{}, fmt.Errorf("prepare the thread's outbox: %w", err)
	}
	for _, checkout := range d.Checkouts {
		if err := d.worktree(ctx, checkout, filepath.Join(dir.Path, filepath.Base(checkout))); err != nil {
			return ThreadDir{}, err
		}
	}
	return dir, nil
}

// worktree gives the thread its own worktree of a checkout, detached at its HEAD. One that
// is there already is kept as it is: a thread's work outlives its turns.
func (d Dirs) worktree(ctx context.Context, checkout, path string) error {
	begun, err := os.ReadFile(filepath.Join(path, ".git"))
	switch {
	case err == nil && !halfMade(string(begun)):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look at the worktree of %s: %w", checkout, err)
	}
	unlock, lockErr := terminal.LockCheckout(ctx, cmp.Or(d.Operators, d.Root), checkout)
	if lockErr != nil {
		return fmt.Errorf("make a worktree of %s: %w", checkout, lockErr)
	}
	defer unlock()
	if err == nil {
		// No agent has been in it yet, and git adds none where something stands.
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove a half-made worktree of %s: %w", checkout, err)
		}
	}
	// One that git knows and whose folder is gone is no obstacle, nor one that it still
	// has locked: that is what --force twice is for.
	for _, args := range [][]string{
		{"worktree", "prune"},
		{"worktree", "add", "--force", "--force", "--detach", path, "HEAD"},
	} {
		if err := git(ctx, checkout, args...); err != nil {
			return fmt.Errorf("make a worktree of %s: %w", checkout, err)
		}
	}
	return nil
}

// halfMade tells of a worktree, by its .git file, whether git was killed while it made it:
// until it is made git keeps it locked.
func halfMade(gitFile string) bool {
	admin, ok := strings.CutPrefix(strings.TrimSpace(gitFile), "gitdir: ")
	if !ok {
		return false
	}
	why, err := os.ReadFile(filepath.Join(admin, "locked"))
	return err == nil && strings.TrimSpace(string(why)) == "initializing"
}

// git runs git on a checkout. Agents can write a checkout's git config, so git gets
// nothing of this process's environment that is not its own to read (X3), and no hook
// of the checkout runs.
func git(ctx context.Context, checkout string, args ...string) error {
	args = append([]string{"-C", checkout, "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false"}, args...)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Env = []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0"}
	for _, name := range []string{"PATH", "HOME"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, rules.Visible(string(out)))
	}
	return nil
}

// Outgoing lists the files that the agent left for the thread, by name. Links and
// directories are left alone: an agent posts what it wrote, not what it can reach.
func (d ThreadDir) Outgoing() ([]string, error) {
	outbox, err := d.outbox()
	if err != nil {
		return nil, err
	}
	defer outbox.Close()
	dir, err := outbox.Open(".")
	if err != nil {
		return nil, fmt.Errorf("list the outgoing files: %w", err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("list the outgoing files: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxListed)], nil
}

// outbox opens the turn's outbox, wherever in the thread's directory it is, but never
// outside.
func (d ThreadDir) outbox() (*os.Root, error) {
	rel, err := filepath.Rel(d.Path, d.Outbox)
	if err != nil {
		return nil, fmt.Errorf("open the outbox: %w", err)
	}
	thread, err := os.OpenRoot(d.Path)
	if err != nil {
		return nil, fmt.Errorf("open the thread's directory: %w", err)
	}
	defer thread.Close()
	outbox, err := thread.OpenRoot(rel)
	if err != nil {
		return nil, fmt.Errorf("open the outbox: %w", err)
	}
	return outbox, nil
}

// Open opens one of the outgoing files and tells its size. It is opened below the outbox
// only, never through a link, and refused when Slack would not take its size.
func (d ThreadDir) Open(name string) (io.ReadCloser, int64, error) {
	root, err := d.outbox()
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	info, err := root.Lstat(name)
	if err != nil {
		return nil, 0, fmt.Errorf("open an outgoing file: %w", err)
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, 0, fmt.Errorf("open an outgoing file: %q is no plain file", name)
	case info.Size() == 0 || info.Size() > maxFileSize:
		return nil, 0, fmt.Errorf("open an outgoing file: %q has %d bytes", name, info.Size())
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, 0, fmt.Errorf("open an outgoing file: %w", err)
	}
	return f, info.Size(), nil
}
