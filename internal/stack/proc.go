package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Proc is a child process whose output goes to a file of its own.
type Proc struct {
	Name string
	// LogPath is where its output goes; a restart appends.
	LogPath string
	cmd     *exec.Cmd
	done    chan struct{}
	err     error
}

// command says what to run.
type command struct {
	name string
	path string
	args []string
	env  []string
	dir  string
}

// start runs c in a process group of its own, so that a Ctrl-C at the terminal reaches
// only the parent, which stops its children in order. A parent that is killed takes
// its children along.
func start(logDir string, c command) (*Proc, error) {
	logPath := filepath.Join(logDir, c.name+".log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", c.name, err)
	}
	defer log.Close()
	cmd := exec.Command(c.path, c.args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, c.dir
	cmd.Env = c.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	p := &Proc{Name: c.name, LogPath: logPath, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID is the process id.
func (p *Proc) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Proc) Done() <-chan struct{} { return p.done }

// Ended tells whether the process has ended, and how.
func (p *Proc) Ended() (bool, error) {
	select {
	case <-p.done:
		return true, p.err
	default:
		return false, nil
	}
}

// Kill ends the process at once, as a crash would, and waits for its end.
func (p *Proc) Kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.done
}

// Stop asks the process to end and kills it when it has not within the limit.
func (p *Proc) Stop(limit time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.Name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(limit):
		p.Kill()
		return fmt.Errorf("%s did not stop within %s and was killed", p.Name, limit)
	}
}

// waitFor polls check until it holds, the context ends, or a process that it depends on has ended.
func waitFor(ctx context.Context, what string, p *Proc, check func(context.Context) error) error {
	var last error
	for {
		if last = check(ctx); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (last: %w)", what, ctx.Err(), last)
		case <-p.done:
			return fmt.Errorf("%s: the process ended (%w); its log is %s", what, errors.Join(p.err, last), p.LogPath)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
