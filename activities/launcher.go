package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"agentsmith/internal/agent"
	"agentsmith/internal/config"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// LaunchOutcome is what the launcher found or did.
type LaunchOutcome string

// What start-operator says, and LaunchFull for a box that has its number of operators.
const (
	LaunchNone    LaunchOutcome = "none"
	LaunchStarted LaunchOutcome = "started"
	LaunchExists  LaunchOutcome = "exists"
	LaunchFull    LaunchOutcome = "full"
)

// Launch asks for an operator. Slug and Repo are "" where only the thread is asked about.
type Launch struct {
	Seat   string
	Thread rules.Thread
	Slug   string
	Repo   string
	// Brief is what the operator is to do.
	Brief string
	// Asked is the ts of the newest line in it.
	Asked string
}

// Launched is what the launcher answers.
type Launched struct {
	Outcome LaunchOutcome `json:"outcome"`
	// ThisThread: the session that exists is the asked thread's own (O7).
	ThisThread bool           `json:"this_thread"`
	Operator   rules.Operator `json:"-"`
}

// Launcher is start-operator, the authority on which operators run (O7).
type Launcher interface {
	// Check looks and never starts.
	Check(ctx context.Context, l Launch) (Launched, error)
	// Start starts an operator, unless one runs. After an error its processes are gone,
	// and whether a session was made has to be asked.
	Start(ctx context.Context, l Launch) (Launched, error)
}

// StartOperator runs the start-operator program, each time in a process group of its own.
type StartOperator struct {
	// Program is its absolute path, Config the config file that it reads.
	Program, Config string
	// Env is all of its environment: it needs no secret (X3).
	Env []string
	// Timeout ends a launcher that hangs.
	Timeout time.Duration
}

// NewStartOperator is the launcher that the config names, else the one beside this program.
// It may know what an agent may, and nothing of ours (X3).
func NewStartOperator(cfg *config.Config, timeout time.Duration) (*StartOperator, error) {
	program := cfg.Operators.Command
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the folder of this program: %w", err)
		}
		program = filepath.Join(filepath.Dir(self), "start-operator")
	}
	return &StartOperator{
		Program: program, Config: cfg.File, Timeout: timeout,
		Env: append(agent.BuildEnv(os.Environ(), cfg.Agent.PassEnv, ""), "HOME="+os.Getenv("HOME")),
	}, nil
}

// slug is what start-operator is asked about: where only the thread is meant, a name that
// no task has.
func (l Launch) slug() string {
	if l.Slug != "" {
		return l.Slug
	}
	return rules.SuffixSlug("thread", l.Thread.Root)
}

// launcherOutput is as much as a launcher may say.
const launcherOutput = 64 << 10

// Check runs start-operator --check.
func (s *StartOperator) Check(ctx context.Context, l Launch) (Launched, error) {
	return s.run(ctx, append(s.args(l), "--check"), "")
}

// Start runs start-operator with the brief on its standard input.
func (s *StartOperator) Start(ctx context.Context, l Launch) (Launched, error) {
	if l.Repo == "" || !rules.ValidSlug(l.Slug) {
		return Launched{}, errors.New("an operator needs a slug and a resolved checkout (O4)")
	}
	return s.run(ctx, s.args(l), l.Brief)
}

func (s *StartOperator) args(l Launch) []string {
	args := []string{
		"--config=" + s.Config, "--seat=" + l.Seat,
		"--team=" + l.Thread.Team, "--channel=" + l.Thread.Channel, "--root=" + l.Thread.Root,
	}
	args = append(args, "--slug="+l.slug())
	if l.Repo != "" {
		args = append(args, "--repo="+l.Repo)
	}
	if l.Asked != "" {
		args = append(args, "--asked="+l.Asked)
	}
	return args
}

func (s *StartOperator) run(ctx context.Context, args []string, brief string) (Launched, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Program, args...)
	cmd.Env, cmd.Stdin = s.Env, strings.NewReader(brief)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The whole group ends before the claim may be released: git too (O8).
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	var out, say limited
	out.left, say.left = launcherOutput, launcherOutput
	cmd.Stdout, cmd.Stderr = &out, &say
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	code := terminal.ExitStarted
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	}
	switch {
	case code == terminal.ExitLimit:
		return Launched{Outcome: LaunchFull}, nil
	case err != nil && code != terminal.ExitExists:
		return Launched{}, fmt.Errorf("run start-operator: %w: %s", err, rules.Visible(say.kept.String()))
	}
	var got struct {
		Launched
		Live *terminal.Live `json:"operator"`
	}
	if err := json.Unmarshal(out.kept.Bytes(), &got); err != nil {
		return Launched{}, fmt.Errorf("read what start-operator says: %w", err)
	}
	if l := got.Live; l != nil {
		got.Operator = operatorOf(*l)
	}
	return got.Launched, nil
}

// limited keeps the beginning of what is written to it. It is no buffer itself: that
// would be read into past its Write.
type limited struct {
	kept bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.kept.Write(p[:n])
	return len(p), nil
}
