package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

const (
	// hangupGrace is how long what runs in a session has to end by itself when its
	// terminal is gone; the agent CLI takes less than half a second.
	hangupGrace = 2 * time.Second
	// killPatience bounds the wait for killed processes to be gone.
	killPatience = 5 * time.Second
	killPoll     = 20 * time.Millisecond
)

// Kill ends the session of that identity with all that it started, and returns when
// they are gone. A session that merely has the name of one of ours is left alone, and so
// is a process without the identity in its environment (X5). It is no error when there is
// nothing to end.
func (t Tmux) Kill(ctx context.Context, id string) error {
	if uuid.Validate(id) != nil {
		return fmt.Errorf("end a session: %q is no identity of one", clip(id, 60))
	}
	s, ok, err := t.ByID(ctx, id)
	if err != nil {
		return fmt.Errorf("end session %s: %w", id, err)
	}
	if ok && s.Kind == KindPerson {
		return fmt.Errorf("end session %s: it is a person's own", id)
	}
	if ok {
		_, err := t.Run(ctx, nil, "kill-session", "-t", s.target)
		if err != nil && !noServer(err) && !noSession(err) {
			return fmt.Errorf("end session %s: %w", id, err)
		}
	}
	if err := endMarked(ctx, EnvSession+"="+id); err != nil {
		return fmt.Errorf("end session %s: %w", id, err)
	}
	return nil
}

// endMarked waits for every process that carries a mark in its environment to end, and
// kills those that do not: what a tool put into the background outlives its terminal.
func endMarked(ctx context.Context, mark string) error {
	begun := time.Now()
	for {
		left, err := marked(mark)
		if err != nil || len(left) == 0 {
			return err
		}
		waited := time.Since(begun)
		if waited > hangupGrace+killPatience {
			return fmt.Errorf("%d processes of it cannot be ended", len(left))
		}
		if waited > hangupGrace {
			for _, pid := range left {
				if err := killMarked(pid, mark); err != nil {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for its processes to end: %w", ctx.Err())
		case <-time.After(killPoll):
		}
	}
}

// marked lists the live processes of this user that carry a mark, but this one.
func marked(mark string) ([]int, error) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var pids []int
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err == nil && pid != os.Getpid() && isMarked(pid, mark) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// isMarked tells of a process whether the mark stands in its environment. A dead one
// has none.
func isMarked(pid int, mark string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if string(kv) == mark {
			return true
		}
	}
	return false
}

// killMarked kills a process if the mark is still its own: its number may have become
// another's meanwhile, which a handle on the process cannot.
func killMarked(pid int, mark string) error {
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil // gone
	}
	defer unix.Close(handle)
	if !isMarked(pid, mark) {
		return nil
	}
	if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	return nil
}
