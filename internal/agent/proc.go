package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process identifies a run's CLI beyond the reuse of a pid (X5).
type Process struct {
	RunID string
	PID   int
	PGID  int
	// Start is the process's start in clock ticks since boot, from /proc/<pid>/stat.
	Start  uint64
	BootID string
}

// proc is one process as /proc tells of it. pid and start together name it.
type proc struct {
	pid, ppid, pgid int
	start           uint64
	state           byte
}

// dead tells whether nothing of the process runs any more; a zombie only waits for
// its parent.
func (p proc) dead() bool { return p.state == 'Z' || p.state == 'X' }

type identity struct {
	pid   int
	start uint64
}

func (p proc) identity() identity { return identity{p.pid, p.start} }

// readProc reads one process; false when there is none.
func readProc(pid int) (proc, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return proc{}, false
	}
	return parseStat(pid, b)
}

// parseStat reads /proc/<pid>/stat. The program's name stands in parentheses and may
// hold any character, so fields are counted from the last closing one.
func parseStat(pid int, b []byte) (proc, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return proc{}, false
	}
	f := strings.Fields(string(b[i+1:])) // f[0] is field 3, the state
	if len(f) < 20 {
		return proc{}, false
	}
	p := proc{pid: pid, state: f[0][0]}
	var errs [3]error
	p.ppid, errs[0] = strconv.Atoi(f[1])
	p.pgid, errs[1] = strconv.Atoi(f[2])
	p.start, errs[2] = strconv.ParseUint(f[19], 10, 64)
	return p, errs == [3]error{}
}

// allProcs lists the live processes, by pid.
func allProcs() (map[int]proc, error) {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	all := make(map[int]proc, len(names))
	for _, n := range names {
		pid, err := strconv.Atoi(filepath.Base(n))
		if err != nil {
			continue
		}
		if p, ok := readProc(pid); ok && !p.dead() {
			all[pid] = p
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("read /proc: no process seen")
	}
	return all, nil
}

// isMarked tells whether a process carries the run's marker in its environment.
func isMarked(pid int, runID string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	want := []byte(RunMarker + "=" + runID)
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(kv, want) {
			return true
		}
	}
	return false
}

// bootID names this boot of the machine: pids and start times of another mean nothing.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// descend adds to found every process below those in it.
func descend(all map[int]proc, found map[int]proc) {
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			if _, have := found[pid]; have {
				continue
			}
			if _, below := found[p.ppid]; below {
				found[pid] = p
				grown = true
			}
		}
	}
}
