package terminal

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Progress is what an operator's branch holds.
type Progress struct {
	// Exists: the branch is there. Commits are those that it has beside the checkout's own.
	Exists  bool
	Commits int
	// Remote is the repository as owner/name, where origin is one of GitHub's form; else "".
	Remote string
}

// Progress reads a task's branch in its worktree. A worktree that is gone has none.
func ReadProgress(ctx context.Context, worktree, branch string) (Progress, error) {
	if _, err := os.Stat(worktree); errors.Is(err, os.ErrNotExist) || worktree == "" {
		return Progress{}, nil
	}
	r := repo{path: worktree}
	var p Progress
	var err error
	if p.Exists, err = r.hasBranch(ctx, branch); err != nil || !p.Exists {
		return p, err
	}
	// What no other branch, local or remote, has: the operator's own. A pattern begins below what it excludes from.
	out, err := r.git(ctx, "rev-list", "--count", "refs/heads/"+branch, "--not", "--exclude="+branch, "--branches", "--exclude=*/"+branch, "--remotes")
	if err != nil {
		return p, fmt.Errorf("count the commits of %s: %w", branch, err)
	}
	if p.Commits, err = strconv.Atoi(strings.TrimSpace(out)); err != nil {
		return p, fmt.Errorf("count the commits of %s: %w", branch, err)
	}
	if out, err = r.git(ctx, "config", "--get", "remote.origin.url"); err == nil {
		p.Remote = ownerName(strings.TrimSpace(out))
	}
	return p, nil
}

var repoShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9._-]+$`)

// ownerName reads owner/name out of a remote's address: git@host:owner/name.git,
// ssh:// and https://. Of a path it is "".
func ownerName(remote string) string {
	path := ""
	if u, err := url.Parse(remote); err == nil && u.Host != "" {
		path = u.Path
	} else if _, after, ok := strings.Cut(remote, ":"); ok && !strings.HasPrefix(remote, "/") {
		path = after
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if !repoShape.MatchString(path) {
		return ""
	}
	return path
}

// Blocked tells whether a session's agent CLI waits for a person at a dialog: it is in the
// foreground, and its input box is not there. A session that somebody scrolls in is left
// alone, and counts as not blocked.
func (t Tmux) Blocked(ctx context.Context, target Target) (bool, error) {
	y := newTyper(t)
	y.target = target
	if y.target.Command == "" {
		y.target.Command = "claude"
	}
	for i := range 2 {
		if i > 0 { // a screen that is being drawn is no dialog
			select {
			case <-ctx.Done():
				return false, ctx.Err()
			case <-time.After(500 * time.Millisecond):
			}
		}
		p, screen, held, err := y.peek(ctx)
		if err != nil || held != "" || p.modes > 0 {
			return false, err
		}
		if _, ok := findBox(screen, p.cursor); ok {
			return false, nil
		}
	}
	return true, nil
}
