package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is a live process as /proc tells of it.
type process struct {
	pid    int
	cwd    string
	cmd    string
	marked bool // it carries the marker of an agent's run
}

func (p process) String() string { return fmt.Sprintf("pid %d in %s: %.120s", p.pid, p.cwd, p.cmd) }

// processes are all that work for this system, this test aside: they run in its
// directory, or name it.
func (s *system) processes() []process { return processesOf(s.Dir) }

func processesOf(home string) (out []process) {
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range entries {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || zombie(dir) {
			continue
		}
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		cmd, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		within := cwd == home || strings.HasPrefix(cwd, home+"/")
		if !within && !bytes.Contains(cmd, []byte(home+"/")) && !bytes.Contains(env, []byte(home+"/")) {
			continue
		}
		out = append(out, process{
			pid: pid, cwd: strings.TrimSuffix(cwd, " (deleted)"), cmd: string(bytes.ReplaceAll(cmd, []byte{0}, []byte{' '})),
			marked: bytes.HasPrefix(env, []byte("SMITH_RUN=")) || bytes.Contains(env, []byte("\x00SMITH_RUN=")),
		})
	}
	return out
}

// agents are the processes of agents' runs.
func (s *system) agents() (out []process) {
	for _, p := range s.processes() {
		if p.marked {
			out = append(out, p)
		}
	}
	return out
}

// agentsOf are those at work for one thread.
func (s *system) agentsOf(channel, root string) (out []process) {
	for _, p := range s.agents() {
		if strings.Contains(p.cwd+"/", "/"+channel+"/"+root+"/") {
			out = append(out, p)
		}
	}
	return out
}

// zombie tells whether a process is dead and only waits to be taken in.
func zombie(dir string) bool {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return true
	}
	i := bytes.LastIndexByte(stat, ')')
	return i < 0 || i+2 >= len(stat) || stat[i+2] == 'Z' || stat[i+2] == 'X'
}

// environ is the environment of a process.
func (p process) environ() []string {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
	return strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
}
