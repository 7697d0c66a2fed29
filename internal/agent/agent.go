// Package agent runs the real claude CLI for one turn, and makes sure that nothing
// of a run outlives it (B3, B8).
//
// A run is three processes: the worker, a small supervisor (the same binary, see
// MaybeSupervise) and the CLI. The supervisor is the CLI's parent and the reaper of
// everything the CLI starts; it holds one end of a pipe whose other end only the
// worker has, so that the worker's death, by whatever signal, ends the run.
//
// One thing is out of reach: a process that a tool started, that gave up both its
// session and its environment, of a run whose supervisor was itself killed.
//
// What is relied on of the CLI stands in argv.go (how it is called), stream.go (what
// it prints) and session.go (where it keeps a session); contract_test.go checks all
// of it against the pinned version.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// DefaultMaxOutput bounds a run's standard output, in bytes, where a Spec says nothing.
	DefaultMaxOutput = 8 << 20
	// linger is how long the CLI may still run after its answer: it gives its own
	// background tasks 5 s before it ends them.
	linger = 8 * time.Second
)

// Spec is one run.
type Spec struct {
	// RunID marks every process of the run (SMITH_RUN in its environment). It must be
	// new for each run.
	RunID string
	// SessionID is the conversation's UUID: resumed where it exists, begun where not.
	SessionID string
	// Dir is the working directory, absolute. Every run of a session must use the same
	// one (B3): the CLI finds a session only from there. Two runs never share a
	// directory at one time (B9): the second gets ErrBusy.
	Dir string
	// Prompt reaches the CLI by its standard input. NULs and other control characters
	// are dropped and invalid UTF-8 is replaced.
	Prompt string
	// SystemPrompt is appended to the CLI's own; at most MaxSystemPrompt bytes.
	SystemPrompt string
	// Schema is a JSON schema, or "". With one the run is a single question whose answer
	// has that form (Result.Structured): no tools, no thinking aloud, and nothing kept:
	// SessionID may be "", and a session is neither resumed nor written. SystemPrompt
	// then stands in the place of the CLI's own.
	Schema string
	// Model is the CLI's default when "".
	Model           string
	AllowedTools    []string
	DisallowedTools []string
	// PermissionMode is "default" when ""; the mode that skips permissions is refused (X4).
	PermissionMode string
	// AddDirs are more directories that the agent's tools may reach (B8).
	AddDirs []string
	// Timeout ends the run with ErrTimeout; 0 is none.
	Timeout time.Duration
	// MaxOutput bounds standard output in bytes; 0 is DefaultMaxOutput.
	MaxOutput int64
}

// Result is what a run that succeeded brought.
type Result struct {
	// Text is the answer.
	Text string
	// Structured is the answer in the form of Spec.Schema, as the CLI has checked it.
	Structured json.RawMessage
	SessionID  string
	// Model is the one that answered.
	Model    string
	Duration time.Duration
	CostUSD  float64
	// Turns counts the model's calls, as the CLI does.
	Turns int
	// Resumed: the session existed and was taken up. False for a session that the
	// caller knows to be an old one means that its memory was lost.
	Resumed bool
}

// Options say how a Runner runs the CLI.
type Options struct {
	// Command is the CLI: a path, or a name to look up in Env's PATH; "" is "claude".
	Command string
	// Home is the agent's home directory; "" is HOME of Env.
	Home string
	// Env is the agent's exact environment, as BuildEnv makes it; the Runner adds
	// only the run's marker and what argv.go lists. Secrets of the system never
	// stand in it (X3).
	Env []string
	// Ready is how many supervisors are kept ready for coming runs, 1 when 0. Starting
	// one takes some 15 ms of a processor, for this binary's initialisation.
	Ready int
	// Log hears of what no caller is told; nil is slog.Default().
	Log *slog.Logger
}

// Runner runs agents. It is safe for concurrent use.
type Runner struct {
	command string
	home    string
	env     []string
	secrets scrubber
	log     *slog.Logger
	ready   int
	linger  time.Duration

	mu      sync.Mutex
	spares  []*supervisor
	filling bool
	closed  bool
}

// New makes a Runner. It starts nothing; Prepare or the first run does.
func New(o Options) *Runner {
	if o.Command == "" {
		o.Command = "claude"
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Home == "" {
		o.Home = lookup(o.Env, "HOME")
	}
	return &Runner{
		command: o.Command, home: o.Home, env: withDefaults(o.Env, o.Home),
		secrets: newScrubber(o.Env), log: o.Log, ready: max(o.Ready, 1), linger: linger,
	}
}

// Close ends the supervisors that are kept ready. Runs that are under way are not
// touched.
func (r *Runner) Close() {
	r.mu.Lock()
	spares := r.spares
	r.spares, r.closed = nil, true
	r.mu.Unlock()
	for _, s := range spares {
		s.release()
	}
}

// Run runs the CLI once, to its answer. started is called right after the CLI was
// executed and before it is given the prompt, so before it can do anything: when it
// returns an error, the CLI is killed and that error is returned. It is called a
// second time, with another process, in the rare case that the CLI refuses the
// session before it reads the prompt (see session.go); a prompt is never run twice.
//
// When ctx ends the agent is interrupted, then killed with all that it started,
// and gone within 2 s; the error is ErrStopped. Other errors: ErrTimeout, ErrOutput,
// ErrUnreadable, ErrMissing, ErrBusy, *APIError, *ExitError. On return nothing of
// the run is alive.
func (r *Runner) Run(ctx context.Context, spec Spec, started func(Process) error) (Result, error) {
	spec.Prompt = cleanPrompt(spec.Prompt)
	if err := spec.check(); err != nil {
		return Result{}, err
	}
	path, err := r.lookPath()
	if err != nil {
		return Result{}, err
	}
	if started == nil {
		started = func(Process) error { return nil }
	}
	if spec.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, spec.Timeout, ErrTimeout)
		defer cancel()
	}
	if spec.Schema != "" {
		return r.once(ctx, path, spec, false, started)
	}
	transcripts := transcripts{home: r.home, config: lookup(r.env, "CLAUDE_CONFIG_DIR")}
	resume, err := transcripts.resumable(spec.SessionID)
	if err != nil {
		return Result{}, fmt.Errorf("look for the agent's session: %w", err)
	}
	for attempt := 1; ; attempt++ {
		res, err := r.once(ctx, path, spec, resume, started)
		var wrong *wrongSession
		if attempt == 1 && errors.As(err, &wrong) {
			r.log.Warn("the agent CLI refused the session; trying the other way", "session", spec.SessionID, "resume", resume, "error", wrong)
			if resume { // a transcript that cannot be resumed also bars its id
				if err := transcripts.setAside(spec.SessionID); err != nil {
					return Result{}, fmt.Errorf("set the agent's unreadable session aside: %w", err)
				}
			}
			resume = !resume
			continue
		}
		res.Resumed = resume && err == nil
		return res, err
	}
}

func (s Spec) check() error {
	switch {
	case s.RunID == "" || strings.ContainsAny(s.RunID, "\x00\n"):
		return fmt.Errorf("run an agent: bad run id %q", s.RunID)
	case uuid.Validate(s.SessionID) != nil && (s.Schema == "" || s.SessionID != ""):
		return fmt.Errorf("run an agent: session id %q is no UUID", s.SessionID)
	case strings.TrimSpace(s.Prompt) == "":
		return errors.New("run an agent: the prompt is empty")
	case !filepath.IsAbs(s.Dir):
		return fmt.Errorf("run an agent: working directory %q is not absolute", s.Dir)
	case len(s.SystemPrompt) > MaxSystemPrompt:
		return fmt.Errorf("run an agent: the system prompt has %d bytes, %d are possible", len(s.SystemPrompt), MaxSystemPrompt)
	}
	if s.Schema != "" && !json.Valid([]byte(s.Schema)) {
		return errors.New("run an agent: the schema is no JSON")
	}
	if st, err := os.Stat(s.Dir); err != nil || !st.IsDir() {
		return fmt.Errorf("run an agent: working directory: %w", errors.Join(err, errNotDir(st)))
	}
	return checkMode(s.PermissionMode)
}

func errNotDir(st os.FileInfo) error {
	if st != nil && !st.IsDir() {
		return errors.New("it is no directory")
	}
	return nil
}

// lookPath finds the CLI by the agent's own PATH.
func (r *Runner) lookPath() (string, error) {
	if strings.Contains(r.command, "/") {
		if _, err := exec.LookPath(r.command); err != nil {
			return "", fmt.Errorf("%w: %w", ErrMissing, err)
		}
		return filepath.Abs(r.command)
	}
	for _, dir := range filepath.SplitList(lookup(r.env, "PATH")) {
		p := filepath.Join(dir, r.command)
		if _, err := exec.LookPath(p); err == nil && filepath.IsAbs(p) {
			return p, nil
		}
	}
	return "", fmt.Errorf("%w: no %q on the agent's PATH", ErrMissing, r.command)
}
