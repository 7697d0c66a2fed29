package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// superviseArg and superviseEnv together make a process a supervisor; the
	// variable keeps a program that does not call MaybeSupervise from starting itself
	// over and over.
	superviseArg = "supervise-agent"
	// supervisorName is what a supervisor is called in a list of processes.
	supervisorName = "smith-agent-supervisor"
	superviseEnv   = "SMITH_SUPERVISE_AGENT"

	controlFD = 3 // the worker's orders; its end means that the worker is dead
	statusFD  = 4 // reports to the worker

	lockPatience = 3 * time.Second
)

// MaybeSupervise turns this process into the supervisor of an agent run when the
// Runner started it as one, and then does not return. Every main that runs agents
// calls it before anything else, and so does the TestMain of a test that does.
func MaybeSupervise() {
	if len(os.Args) != 2 || os.Args[1] != superviseArg || os.Getenv(superviseEnv) == "" {
		return
	}
	os.Exit(supervise(os.NewFile(controlFD, "control"), os.NewFile(statusFD, "status")))
}

// order is one line from the worker: first a job, later perhaps a stop.
type order struct {
	Job  *job `json:"job,omitempty"`
	Stop bool `json:"stop,omitempty"`
	// Now: no interrupt first.
	Now bool `json:"now,omitempty"`
}

type job struct {
	RunID string   `json:"run_id"`
	Argv  []string `json:"argv"`
	Env   []string `json:"env"`
	Dir   string   `json:"dir"`
}

// report is one line to the worker. The last one of a run is Clean.
type report struct {
	Ready   bool     `json:"ready,omitempty"`
	Started *Process `json:"started,omitempty"`
	Busy    bool     `json:"busy,omitempty"`
	Failed  string   `json:"failed,omitempty"`
	Exited  *exit    `json:"exited,omitempty"`
	Clean   bool     `json:"clean,omitempty"`
}

type exit struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
	// Stopped: the supervisor was told to end the run by a signal, so by Kill.
	Stopped bool `json:"stopped,omitempty"`
}

// supervision is a supervisor's state. It is all on one goroutine, locked to its
// thread: the kernel ends the CLI when the thread that started it ends.
type supervision struct {
	status *json.Encoder
	run    Process
	hunt   *hunt
	exited *exit
}

func supervise(control io.Reader, status io.Writer) int {
	runtime.LockOSThread()
	syscall.CloseOnExec(controlFD)
	syscall.CloseOnExec(statusFD)
	s := &supervision{status: json.NewEncoder(status)}
	// Caught, not ignored: the CLI would inherit that a signal is ignored.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		s.report(report{Failed: fmt.Sprintf("become the reaper of the agent's children: %v", err)})
		return 1
	}
	orders := make(chan order)
	go readOrders(control, orders)
	s.report(report{Ready: true})

	first, ok := <-orders
	if !ok || first.Job == nil {
		return 0 // never used
	}
	lock := lockDir(first.Job.Dir, orders)
	if lock == nil {
		s.report(report{Busy: true})
		return 0
	}
	if err := s.start(*first.Job); err != nil {
		s.report(report{Failed: err.Error()})
		return 1
	}
	s.report(report{Started: &s.run})
	gone := s.watch(orders, signals, children)
	_ = lock.Close() // before the report: the next run may begin on it
	if !gone {
		s.report(report{Failed: "something that the agent started cannot be killed"})
		return 1
	}
	s.report(report{Clean: true})
	return 0
}

func readOrders(control io.Reader, orders chan<- order) {
	defer close(orders)
	dec := json.NewDecoder(bufio.NewReader(control))
	for {
		var o order
		if dec.Decode(&o) != nil {
			return
		}
		orders <- o
	}
}

// report ignores that the worker is gone: its orders ending says so.
func (s *supervision) report(r report) { _ = s.status.Encode(r) }

// lockDir holds the directory against a second run for as long as this process
// lives. A run that was killed may still be going: that is waited for. It returns
// nil when the directory is not free in time, or the worker wants it no more.
func lockDir(dir string, orders <-chan order) *os.File {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	late := time.After(lockPatience)
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil
		}
		select {
		case <-time.After(poll):
		case <-orders:
			_ = f.Close()
			return nil
		case <-late:
			_ = f.Close()
			return nil
		}
	}
}

// start executes the CLI on this process's own standard files, in a process group
// of its own, and gives those files up.
func (s *supervision) start(j job) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	pid, err := syscall.ForkExec(j.Argv[0], j.Argv, &syscall.ProcAttr{
		Dir: j.Dir, Env: j.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return fmt.Errorf("execute %s: %w", j.Argv[0], err)
	}
	p, _ := readProc(pid) // not reaped yet, so it is there
	s.run = Process{RunID: j.RunID, PID: pid, PGID: pid, Start: p.start, BootID: boot}
	s.hunt = &hunt{target: s.run, known: map[identity]bool{p.identity(): true}}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return err
		}
	}
	return null.Close()
}

// watch waits for the CLI to end, ends it when told to, and then ends all it left.
// It tells whether all is gone.
func (s *supervision) watch(orders <-chan order, signals, children <-chan os.Signal) bool {
	var kill <-chan time.Time
	stopped := false
	stop := func(now bool) {
		grace := interruptGrace
		if now {
			grace = 0
		} else if kill == nil {
			_ = syscall.Kill(s.run.PID, syscall.SIGINT) // a child not reaped: the pid is its own
		}
		if kill == nil || now {
			kill = time.After(grace)
		}
	}
	for s.reap(); s.exited == nil; s.reap() {
		select {
		case <-children:
		case o, ok := <-orders:
			if !ok {
				orders = nil
			}
			if !ok || o.Stop {
				stop(ok && o.Now)
			}
		case <-signals:
			stopped = true
			stop(false)
		case <-kill:
			s.killAll()
		}
	}
	s.exited.Stopped = stopped
	s.report(report{Exited: s.exited})
	return s.killAll()
}

// reap takes in the children that ended, and tells whether there are more. Since
// this process reaps for all below it, they are the CLI and whatever lost its parent:
// with no child left, nothing that the CLI started is alive.
func (s *supervision) reap() (more bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return err == nil
		}
		if pid == s.run.PID {
			s.exited = exitOf(ws)
		}
	}
}

func exitOf(ws syscall.WaitStatus) *exit {
	if ws.Signaled() {
		return &exit{Code: -1, Signal: unix.SignalName(ws.Signal())}
	}
	return &exit{Code: ws.ExitStatus()}
}

// killAll kills everything below this process, and everything that is marked, until
// this process has no child left. It tells whether it came to that.
func (s *supervision) killAll() bool {
	for deadline := time.Now().Add(killPatience); s.reap(); time.Sleep(poll) {
		all, err := allProcs()
		if err != nil || time.Now().After(deadline) {
			return false
		}
		below := map[int]proc{os.Getpid(): {}}
		descend(all, below)
		delete(below, os.Getpid())
		for _, p := range below {
			s.hunt.known[p.identity()] = true
		}
		alive, err := s.hunt.look()
		if err != nil {
			return false
		}
		for _, p := range alive {
			signalProc(p, syscall.SIGKILL)
		}
	}
	return true
}
