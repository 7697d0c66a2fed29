package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"agentsmith/internal/failpoint"
	"agentsmith/rules"
)

// record says whose a worktree is. It is written before git is called, and what has no
// record is never touched: only what this system made is (X5).
type record struct {
	Slug     string       `json:"slug"`
	Seat     string       `json:"seat"`
	Thread   rules.Thread `json:"thread"`
	Repo     string       `json:"repo"`
	Checkout string       `json:"checkout"`
	Worktree string       `json:"worktree"`
	Branch   string       `json:"branch"`
	// Made: git made all of it. Else no agent has been in it yet.
	Made bool      `json:"made"`
	At   time.Time `json:"at"`
}

// owner is what a task's worktree belongs to.
type owner struct {
	seat, slug string
	thread     rules.Thread
	checkout   rules.Checkout
}

func (o owner) of(r record) bool { return r.Thread == o.thread && r.Checkout == o.checkout.Path }

// worktrees are the operators' worktrees on this box, each with its record beside it.
type worktrees struct {
	dir   string // of the operators
	locks locks
}

func (w worktrees) path(place string) string { return filepath.Join(w.dir, "worktrees", place) }
func (w worktrees) recordPath(place string) string {
	return filepath.Join(w.dir, "worktrees", place+".json")
}

// prepare returns the task's worktree: the one that its thread's dead operator left, as
// it was left, or a new one on a branch of its own, at the checkout's HEAD (O9). What a
// killed start left half-made is made anew. The folder and the branch are named after
// the slug, or, where those are another task's, after the slug and the thread.
func (w worktrees) prepare(ctx context.Context, o owner) (record, error) {
	held, err := w.locks.take(ctx, lockCheckout, o.checkout.Path)
	if err != nil {
		return record{}, err
	}
	defer held.Close()
	r := repo{path: o.checkout.Path, held: held}
	for _, place := range []string{o.slug, rules.SuffixSlug(o.slug, o.thread.Root)} {
		rec, free, err := w.look(ctx, r, o, place)
		switch {
		case err != nil:
			return record{}, fmt.Errorf("look at the worktree %s: %w", place, err)
		case !free:
			continue
		}
		ok, err := whole(ctx, rec)
		if err != nil {
			return record{}, fmt.Errorf("look at the worktree %s: %w", place, err)
		}
		if ok {
			return rec, nil
		}
		return w.make(ctx, r, o, place)
	}
	return record{}, fmt.Errorf("the worktree or the branch of %s is in use for something else", o.slug)
}

// look tells whether a place is this task's, or nobody's: then a worktree may be made
// there. An existing folder alone proves nothing.
func (w worktrees) look(ctx context.Context, r repo, o owner, place string) (rec record, free bool, err error) {
	rec, err = w.recorded(place)
	if err != nil || rec.Worktree != "" {
		return rec, err == nil && o.of(rec), err
	}
	if _, err := os.Lstat(w.path(place)); !errors.Is(err, fs.ErrNotExist) {
		return record{}, false, err
	}
	taken, err := r.hasBranch(ctx, rules.BranchOf(place))
	return record{}, !taken, err
}

// recorded is what a place's record says; nothing where there is none.
func (w worktrees) recorded(place string) (rec record, err error) {
	text, err := os.ReadFile(w.recordPath(place))
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &rec)
	}
	if err != nil {
		return record{}, fmt.Errorf("read its record: %w", err)
	}
	return rec, nil
}

// whole tells whether the worktree was made, is there, and git can work in it. Any doubt
// is an error: what is not whole is moved away.
func whole(ctx context.Context, rec record) (bool, error) {
	if !rec.Made {
		return false, nil
	}
	if _, err := os.Stat(rec.Worktree); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	err := repo{path: rec.Worktree}.isCheckout(ctx)
	if errors.Is(err, errNoCheckout) {
		return false, nil
	}
	return err == nil, err
}

// make has git make a worktree at a place that is this task's or nobody's.
func (w worktrees) make(ctx context.Context, r repo, o owner, place string) (record, error) {
	rec := record{
		Slug: o.slug, Seat: o.seat, Thread: o.thread, Repo: o.checkout.Name, Checkout: o.checkout.Path,
		Worktree: w.path(place), Branch: rules.BranchOf(place), At: time.Now().UTC(),
	}
	if err := w.clear(ctx, r, place, rec.Worktree); err != nil {
		return record{}, fmt.Errorf("clear the place of worktree %s: %w", place, err)
	}
	if err := w.write(place, rec); err != nil {
		return record{}, fmt.Errorf("record the worktree %s: %w", place, err)
	}
	failpoint.At(failpoint.OperatorRecorded)
	taken, err := r.hasBranch(ctx, rec.Branch)
	if err != nil {
		return record{}, fmt.Errorf("look for the branch %s: %w", rec.Branch, err)
	}
	args := []string{"worktree", "add", "-b", rec.Branch, rec.Worktree, "HEAD"}
	if taken { // the dead operator's, with what it did
		args = []string{"worktree", "add", rec.Worktree, rec.Branch}
	}
	if _, err := r.git(ctx, args...); err != nil {
		return record{}, fmt.Errorf("make the worktree %s: %w", place, err)
	}
	failpoint.At(failpoint.OperatorChecked)
	rec.Made = true
	if err := w.write(place, rec); err != nil {
		return record{}, fmt.Errorf("record the worktree %s: %w", place, err)
	}
	return rec, nil
}

// clear makes room at a place whose record says that it is this task's. What no agent has
// been in is removed; a worktree that was one and is broken now is moved aside, for an
// agent's work may be in it.
func (w worktrees) clear(ctx context.Context, r repo, place, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	rec, err := w.recorded(place)
	if err != nil {
		return err
	}
	// A git that was killed leaves the worktree locked. No such worktree is no error.
	_, _ = r.git(ctx, "worktree", "unlock", path)
	if rec.Made {
		err = os.Rename(path, fmt.Sprintf("%s.broken-%d", path, time.Now().UnixNano()))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	} else {
		err = os.RemoveAll(path)
	}
	if err != nil {
		return err
	}
	_, err = r.git(ctx, "worktree", "prune")
	return err
}

// write replaces a place's record, all or nothing.
func (w worktrees) write(place string, rec record) error {
	text, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	return replaceFile(w.recordPath(place), append(text, '\n'), 0o600)
}

// replaceFile writes a file so that a reader, or a power cut, finds the old text or the
// new one.
func replaceFile(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename there is none
	_, err = f.Write(text)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
