package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// readyPatience bounds the start of a supervisor.
const readyPatience = 20 * time.Second

// errNoSupervisor: the supervisor went away before the CLI was started.
var errNoSupervisor = errors.New("the agent's supervisor ended before the agent started")

// supervisor is the worker's end of one.
type supervisor struct {
	cmd     *exec.Cmd
	mu      sync.Mutex // for orders
	orders  *json.Encoder
	control *os.File
	reports chan report // closed when the supervisor is gone
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
}

// takeSupervisor returns one that is ready, or a new one.
func (r *Runner) takeSupervisor() (*supervisor, error) {
	for {
		s := r.popSpare()
		if s == nil {
			return newSupervisor()
		}
		select {
		case <-s.reports: // it has nothing to say before it has a job: it is dead
			s.release()
		default:
			return s, nil
		}
	}
}

func (r *Runner) popSpare() *supervisor {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.spares) == 0 {
		return nil
	}
	s := r.spares[0]
	r.spares = r.spares[1:]
	return s
}

// Prepare makes supervisors ready for coming runs, so that the start of this binary
// is not in the way of one. Each run calls it for the next; a worker may call it at
// boot.
func (r *Runner) Prepare() {
	for r.wantsSpare() {
		s, err := newSupervisor()
		r.mu.Lock()
		r.filling = false
		if err == nil && !r.closed {
			r.spares = append(r.spares, s)
			s = nil
		}
		r.mu.Unlock()
		if err != nil {
			r.log.Warn("no agent supervisor could be made ready", "error", err)
			return
		}
		if s != nil {
			s.release()
		}
	}
}

// wantsSpare claims the making of one more; one is made at a time.
func (r *Runner) wantsSpare() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.filling || r.closed || len(r.spares) >= r.ready {
		return false
	}
	r.filling = true
	return true
}

func newSupervisor() (*supervisor, error) {
	if os.Getenv(superviseEnv) != "" {
		return nil, errors.New("start the agent's supervisor: this program must call agent.MaybeSupervise first in its main")
	}
	stdout, err := newStdout()
	if err != nil {
		return nil, fmt.Errorf("start the agent's supervisor: %w", err)
	}
	pipes := []*os.File{stdout}
	closeAll := func(fs []*os.File) {
		for _, f := range fs {
			_ = f.Close()
		}
	}
	for range 4 { // stdin, stderr, control, status
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(pipes)
			return nil, fmt.Errorf("start the agent's supervisor: %w", err)
		}
		pipes = append(pipes, r, w)
	}
	theirs := []*os.File{pipes[1], pipes[4], pipes[5], pipes[8]}
	ours := []*os.File{stdout, pipes[2], pipes[3], pipes[6], pipes[7]}
	cmd := exec.Command("/proc/self/exe", superviseArg)
	cmd.Args[0] = supervisorName
	cmd.Env = []string{superviseEnv + "=1"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], stdout, theirs[1]
	cmd.ExtraFiles = theirs[2:]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is not for it
	err = cmd.Start()
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, fmt.Errorf("start the agent's supervisor: %w", err)
	}
	s := &supervisor{
		cmd: cmd, stdout: stdout, stdin: ours[1], stderr: ours[2], control: ours[3],
		orders: json.NewEncoder(ours[3]), reports: make(chan report, 8),
	}
	go s.listen(ours[4])
	select {
	case rep, ok := <-s.reports:
		if ok && rep.Ready {
			return s, nil
		}
		s.release()
		return nil, fmt.Errorf("start the agent's supervisor: %w: does this program call agent.MaybeSupervise first in its main? %s", errNoSupervisor, rep.Failed)
	case <-time.After(readyPatience):
		_ = cmd.Process.Kill()
		s.release()
		return nil, errors.New("start the agent's supervisor: it did not become ready")
	}
}

// listen passes reports on until the supervisor is gone, and takes it in.
func (s *supervisor) listen(status *os.File) {
	defer close(s.reports)
	dec := json.NewDecoder(status)
	for {
		var r report
		if err := dec.Decode(&r); err != nil {
			break
		}
		s.reports <- r
	}
	_ = status.Close()
	_ = s.cmd.Wait()
}

// order sends one; a supervisor that is gone is noticed by its reports.
func (s *supervisor) order(o order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.orders.Encode(o)
}

// release lets go of the supervisor: it ends what it still runs, and itself.
func (s *supervisor) release() {
	for _, f := range []io.Closer{s.control, s.stdin, s.stdout, s.stderr} {
		_ = f.Close()
	}
	go func() {
		for range s.reports { // until it is gone
		}
	}()
}
