package agent

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// interruptGrace is how long the CLI has to end by itself after an interrupt; it
	// takes less than 0.2 s when it is well.
	interruptGrace = time.Second
	// killPatience bounds the wait for killed processes to be gone.
	killPatience = 5 * time.Second
	poll         = 5 * time.Millisecond
)

// Kill ends a run from any process, at any time: it has the supervisor end it, or,
// where that is gone, interrupts the CLI itself; and it kills what is then left of
// it, of its group, of all below it and of all that carries the run's marker. It
// recognises them by identity (pid with start time and boot, or the marker), never by
// a pid alone (X5), and returns only when they are gone, within 2 s as a rule. It
// tells whether there was anything to kill. The Run that is ended so returns ErrStopped.
func Kill(ctx context.Context, p Process) (killed bool, err error) {
	h, err := newHunt(p)
	if err != nil || h == nil {
		return false, err
	}
	alive, err := h.look()
	if err != nil || len(alive) == 0 {
		return false, err
	}
	gentle := supervisorsOf(alive)
	for _, s := range gentle {
		signalProc(s, syscall.SIGTERM)
	}
	if len(gentle) == 0 && h.leader(alive) {
		leader, _ := readProc(p.PID)
		signalProc(leader, syscall.SIGINT)
		gentle = []proc{leader}
	}
	for deadline := time.Now().Add(interruptGrace + 300*time.Millisecond); time.Now().Before(deadline) && ctx.Err() == nil; {
		if !slices.ContainsFunc(gentle, lives) {
			break
		}
		time.Sleep(poll)
	}
	return true, h.kill()
}

// lives tells whether the process that was seen is still alive.
func lives(seen proc) bool {
	now, ok := readProc(seen.pid)
	return ok && now.start == seen.start && !now.dead()
}

// supervisorsOf returns the supervisors among the parents of a run's processes.
func supervisorsOf(run []proc) []proc {
	var list []proc
	for _, p := range run {
		if slices.ContainsFunc(list, func(s proc) bool { return s.pid == p.ppid }) {
			continue
		}
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.ppid))
		if err != nil || string(args) != supervisorName+"\x00"+superviseArg+"\x00" {
			continue
		}
		if s, ok := readProc(p.ppid); ok {
			list = append(list, s)
		}
	}
	return list
}

// KillRun ends whatever carries the run's marker, when nothing else is known of it:
// at boot, after a worker that died between the start of an agent and its record.
func KillRun(ctx context.Context, runID string) (killed bool, err error) {
	return Kill(ctx, Process{RunID: runID})
}

// Alive tells whether anything of the run is alive.
func Alive(p Process) bool {
	h, err := newHunt(p)
	if err != nil || h == nil {
		return false
	}
	alive, err := h.look()
	return err == nil && len(alive) > 0
}

// hunt keeps track of a run's processes. One that was seen once is known by its
// identity, also after its parents, by whom it was found, are gone.
type hunt struct {
	target Process
	known  map[identity]bool
}

// newHunt returns nil when the process is of another boot: nothing of it can live.
func newHunt(p Process) (*hunt, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	if p.BootID != "" && p.BootID != boot {
		return nil, nil
	}
	return &hunt{target: p, known: map[identity]bool{}}, nil
}

func (h *hunt) look() ([]proc, error) {
	all, err := allProcs()
	if err != nil {
		return nil, err
	}
	found := map[int]proc{}
	leader, leads := all[h.target.PID]
	leads = leads && h.target.PID > 0 && leader.start == h.target.Start
	for pid, p := range all {
		switch {
		case pid == os.Getpid():
		case leads && (pid == leader.pid || p.pgid == h.target.PGID && h.target.PGID == leader.pgid),
			h.known[p.identity()],
			h.target.RunID != "" && isMarked(pid, h.target.RunID):
			found[pid] = p
		}
	}
	descend(all, found)
	delete(found, os.Getpid())
	var list []proc
	for _, p := range found {
		h.known[p.identity()] = true
		list = append(list, p)
	}
	return list, nil
}

func (h *hunt) leader(alive []proc) bool {
	return slices.ContainsFunc(alive, func(p proc) bool {
		return p.identity() == identity{h.target.PID, h.target.Start}
	})
}

// kill kills until nothing is left. What forks while it is being killed is found by
// the next look.
func (h *hunt) kill() error {
	deadline := time.Now().Add(killPatience)
	for {
		alive, err := h.look()
		if err != nil || len(alive) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			var pids []string
			for _, p := range alive {
				pids = append(pids, fmt.Sprint(p.pid))
			}
			return fmt.Errorf("kill the agent's run %s: still alive after %s: pid %s",
				h.target.RunID, killPatience, strings.Join(pids, ", "))
		}
		for _, p := range alive {
			signalProc(p, syscall.SIGKILL)
		}
		time.Sleep(poll)
	}
}

// signalProc sends to a process if it is still the one that was seen. A pid cannot be
// taken by another process between the two steps unless all pids of the machine
// were used up in that moment.
func signalProc(p proc, sig syscall.Signal) {
	if now, ok := readProc(p.pid); ok && now.start == p.start {
		_ = syscall.Kill(p.pid, sig)
	}
}
