package agent

import (
	"bytes"
	"fmt"
	"os"
)

// Self identifies this process, for another that asks later whether it still lives.
func Self() (Process, error) {
	boot, err := bootID()
	if err != nil {
		return Process{}, err
	}
	p, ok := readProc(os.Getpid())
	if !ok {
		return Process{}, os.ErrNotExist
	}
	return Process{PID: p.pid, PGID: p.pgid, Start: p.start, BootID: boot}, nil
}

// Lives tells whether this very process, not what it started, is alive.
func (p Process) Lives() bool {
	boot, err := bootID()
	if err != nil || boot != p.BootID {
		return false
	}
	now, ok := readProc(p.PID)
	return ok && !now.dead() && now.start == p.Start
}

// Supervised tells whether a run is in the hands of a supervisor: its worker lives, or
// the supervisor is about to end it.
func Supervised(p Process) bool {
	if !p.Lives() {
		return false
	}
	cli, ok := readProc(p.PID)
	if !ok {
		return false
	}
	argv, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cli.ppid))
	return err == nil && bytes.HasSuffix(bytes.TrimRight(argv, "\x00"), []byte("\x00"+superviseArg))
}
