package terminal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"agentsmith/rules"
)

// lockPoll is how often a held lock is tried again.
const lockPoll = 10 * time.Millisecond

// The kinds of locks, in the one order that they are taken in, so that no two starts wait
// for each other: a thread's, a slug's, a checkout's, the home's, the box's.
const (
	lockThread   = "thread"
	lockSlug     = "slug"
	lockCheckout = "checkout"
	lockHome     = "home"
	lockBox      = "box"
)

// locks are files in a folder, one for each thing that only one process may do at a time.
// The kernel lets go of a lock when the last process that has it open is gone; the files
// stay, for one that is removed while somebody waits for it guards nothing.
type locks struct{ dir string }

// take waits for a lock until ctx ends. What to name may be anything: the file's name is
// a hash of it.
func (l locks) take(ctx context.Context, kind, what string) (*os.File, error) {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of locks: %w", err)
	}
	sum := sha256.Sum256([]byte(what))
	f, err := os.OpenFile(filepath.Join(l.dir, kind+"-"+hex.EncodeToString(sum[:12])), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open a lock: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			_ = f.Close()
			return nil, fmt.Errorf("take the lock of a %s: %w", kind, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("wait for the lock of a %s: %w", kind, ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

// LockCheckout waits until nobody else makes or removes a worktree of a checkout, which git
// cannot stand: it fails in the middle of another's. dir is the operators' folder, whose
// starts take the same lock.
func LockCheckout(ctx context.Context, dir, checkout string) (unlock func(), err error) {
	held, err := locks{filepath.Join(dir, "locks")}.take(ctx, lockCheckout, checkout)
	if err != nil {
		return nil, err
	}
	return func() { _ = held.Close() }, nil
}

// threadKey names a thread for its lock.
func threadKey(t rules.Thread) string { return t.Team + "/" + t.Channel + "/" + t.Root }
