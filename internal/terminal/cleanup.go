package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentsmith/rules"
)

// Why Cleanup kept a worktree.
const (
	KeptInUse    = "an operator works in it"
	KeptUnknown  = "it is not known as this task's"
	KeptDirty    = "it has changes that are not committed"
	KeptUnpushed = "it has commits that stand on no other branch"
)

// Cleanup removes the worktree of a task that is over, if nothing in it would be lost: it
// is recorded as this very task's (X5), nobody works in it, all is committed, and its last
// commit stands on another branch too, here or as fetched, or is one of landed: the
// commits that are known to be merged. The task's branch always stays. Else the worktree
// stays, and kept says why; a worktree that is gone already is no error.
func Cleanup(ctx context.Context, t Tmux, dir string, o rules.Operator, landed ...string) (kept string, err error) {
	place := filepath.Base(o.Worktree)
	w := worktrees{dir: dir, locks: locks{filepath.Join(dir, "locks")}}
	if !rules.ValidSlug(place) || o.Worktree != w.path(place) {
		return KeptUnknown, nil
	}
	for _, l := range [][2]string{{lockThread, threadKey(o.Thread)}, {lockSlug, o.Slug}} {
		held, err := w.locks.take(ctx, l[0], l[1])
		if err != nil {
			return "", err
		}
		defer held.Close()
	}
	all, err := t.Sessions(ctx)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(all, func(s Live) bool { return s.Worktree == o.Worktree }) {
		return KeptInUse, nil
	}
	if kept, err = w.remove(ctx, place, o, landed); err != nil {
		return "", fmt.Errorf("clean up the worktree %s: %w", place, err)
	}
	return kept, nil
}

func (w worktrees) remove(ctx context.Context, place string, o rules.Operator, landed []string) (kept string, err error) {
	var rec record
	text, err := os.ReadFile(w.recordPath(place))
	if errors.Is(err, fs.ErrNotExist) {
		return KeptUnknown, nil
	}
	if err != nil {
		return "", err
	}
	if json.Unmarshal(text, &rec) != nil || rec.Thread != o.Thread || rec.Worktree != o.Worktree || rec.Repo != o.Repo {
		return KeptUnknown, nil
	}
	if _, err := os.Lstat(rec.Worktree); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	held, err := w.locks.take(ctx, lockCheckout, rec.Checkout)
	if err != nil {
		return "", err
	}
	defer held.Close()
	if kept, err := (repo{path: rec.Worktree, held: held}).loss(ctx, rec.Branch, landed); kept != "" || err != nil {
		return kept, err
	}
	_, err = repo{path: rec.Checkout, held: held}.git(ctx, "worktree", "remove", rec.Worktree)
	return "", err
}

// loss says what would be lost with a worktree, "" for nothing.
func (r repo) loss(ctx context.Context, branch string, landed []string) (string, error) {
	if err := r.isCheckout(ctx); err != nil {
		return "", err
	}
	changed, err := r.git(ctx, "status", "--porcelain", "--untracked-files=all")
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(changed) != "" {
		return KeptDirty, nil
	}
	head, err := r.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	if slices.Contains(landed, trimLine(head)) {
		return "", nil
	}
	refs, err := r.git(ctx, "for-each-ref", "--format=%(refname)", "--contains="+trimLine(head), "refs/heads", "refs/remotes")
	if err != nil {
		return "", err
	}
	for ref := range strings.Lines(refs) {
		if trimLine(ref) != "refs/heads/"+branch {
			return "", nil
		}
	}
	return KeptUnpushed, nil
}
