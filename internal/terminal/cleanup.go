package terminal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentsmith/rules"
)

// ErrKept says that a worktree stays, since something would be lost with it or it is not
// known as ours; the error's text says what.
var ErrKept = errors.New("the worktree stays")

// RemoveWorktree removes the worktree of a task that is over, if nothing is lost with it:
// it is recorded as one of ours with that branch (X5), nobody works in it, all is
// committed, and its last commit stands on another branch too, here or as last seen on a
// remote. The branch always stays. Else the error is ErrKept. A worktree that is gone
// already is no error.
func RemoveWorktree(ctx context.Context, worktree, branch string) error {
	place := filepath.Base(worktree)
	dir := filepath.Dir(filepath.Dir(worktree))
	w := worktrees{dir: dir, locks: locks{filepath.Join(dir, "locks")}}
	if !filepath.IsAbs(worktree) || !rules.ValidSlug(place) || worktree != w.path(place) {
		return fmt.Errorf("%w: %q is no place of one", ErrKept, clip(worktree, 200))
	}
	rec, err := w.recorded(place)
	if err != nil {
		return fmt.Errorf("clean up the worktree %s: %w", place, err)
	}
	if rec.Worktree != worktree || rec.Branch != branch {
		return fmt.Errorf("%w: %s is not known as this task's", ErrKept, place)
	}
	if _, err := os.Lstat(worktree); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, l := range [][2]string{{lockThread, threadKey(rec.Thread)}, {lockSlug, rec.Slug}} {
		held, err := w.locks.take(ctx, l[0], l[1])
		if err != nil {
			return err
		}
		defer held.Close()
	}
	working, err := marked(EnvWorktree + "=" + worktree)
	if err != nil {
		return err
	}
	if len(working) > 0 {
		return fmt.Errorf("%w: %d processes work in %s", ErrKept, len(working), place)
	}
	if err := w.remove(ctx, rec); err != nil {
		return fmt.Errorf("clean up the worktree %s: %w", place, err)
	}
	return nil
}

func (w worktrees) remove(ctx context.Context, rec record) error {
	held, err := w.locks.take(ctx, lockCheckout, rec.Checkout)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := (repo{path: rec.Worktree, held: held}).lossless(ctx, rec.Branch); err != nil {
		return err
	}
	_, err = repo{path: rec.Checkout, held: held}.git(ctx, "worktree", "remove", rec.Worktree)
	return err
}

// lossless returns ErrKept where something would be lost with a worktree.
func (r repo) lossless(ctx context.Context, branch string) error {
	if err := r.isCheckout(ctx); err != nil {
		return err
	}
	changed, err := r.git(ctx, "status", "--porcelain", "--untracked-files=all")
	if err != nil {
		return err
	}
	if strings.TrimSpace(changed) != "" {
		return fmt.Errorf("%w: it has changes that are not committed", ErrKept)
	}
	refs, err := r.git(ctx, "for-each-ref", "--format=%(refname)", "--contains=HEAD", "refs/heads", "refs/remotes")
	if err != nil {
		return err
	}
	elsewhere := func(ref string) bool { return ref != "" && ref != "refs/heads/"+branch }
	if !slices.ContainsFunc(strings.Split(refs, "\n"), elsewhere) {
		return fmt.Errorf("%w: its commits stand on no other branch", ErrKept)
	}
	return nil
}
