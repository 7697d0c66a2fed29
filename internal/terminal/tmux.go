// Package terminal runs operators: agent CLIs in tmux sessions, each in a git worktree
// of its own (O7, O9), and types into them (R10).
//
// A session is recognised by what stands in its environment, never by its name alone
// (X5). Everything that asks whether a thread has an operator asks tmux, by Check.
package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/google/uuid"

	"agentsmith/rules"
)

// tmuxPatience is how long one tmux command may take; they take milliseconds.
const tmuxPatience = 20 * time.Second

// Tmux is a tmux server, running or not. It is safe for concurrent use.
type Tmux struct {
	// Command is the program; "" is "tmux".
	Command string
	// Socket tells the server from a person's own: a name (tmux -L), or a path (tmux -S)
	// where it holds a "/".
	Socket string
}

// TmuxError is a tmux command that failed.
type TmuxError struct {
	// Command is the tmux command's name; its arguments may hold what people wrote.
	Command string
	// Code is tmux's exit code, -1 when it did not exit by itself.
	Code int
	// Message is what tmux printed on its standard error, without control characters.
	Message string
	Err     error
}

// Error says which command failed, and what tmux said.
func (e *TmuxError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("tmux %s: %v: %s", e.Command, e.Err, e.Message))
}

// Unwrap returns what the operating system or the context said.
func (e *TmuxError) Unwrap() error { return e.Err }

// Run runs ONE tmux command and returns its standard output. Every argument reaches
// tmux as it is: none is a separator of commands, whatever it ends with. The error is
// a *TmuxError.
//
// A server that ends with its last session may do so just now: then nothing of the command
// is left, and it is given again to the next one.
//
// The program gets next to nothing of this process's environment: a server that it has
// to start would keep that, and hand it to every session (X3). Nor is a person's own
// tmux.conf read.
func (t Tmux) Run(ctx context.Context, stdin []byte, args ...string) (string, error) {
	return t.run(ctx, stdin, literal(args))
}

// RunAll runs tmux commands one after the other by one program, which is a fraction of what
// a program for each costs, and returns the standard output of each. It ends at the first
// that fails, with its error.
func (t Tmux) RunAll(ctx context.Context, commands ...[]string) ([]string, error) {
	// What runs in a pane can print anything, but not a word that it could not know.
	mark := "smith-" + uuid.NewString()
	var args []string
	for i, c := range commands {
		if i > 0 {
			args = append(args, ";", "display-message", "-p", mark, ";")
		}
		args = append(args, literal(c)...)
	}
	out, err := t.run(ctx, nil, args)
	if err != nil {
		return nil, err
	}
	all := strings.Split(out, mark+"\n")
	if len(all) != len(commands) {
		return nil, fmt.Errorf("tmux answered %d of %d commands", len(all), len(commands))
	}
	return all, nil
}

// run runs the program with arguments that are literal already, over the end of a server.
func (t Tmux) run(ctx context.Context, stdin []byte, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, tmuxPatience)
	defer cancel()
	for attempt := 1; ; attempt++ {
		out, err := t.once(ctx, stdin, args)
		if attempt == maxServers || !said(err, "server exited") {
			return out, err
		}
	}
}

// maxServers is how many servers may end under one command.
const maxServers = 5

func (t Tmux) once(ctx context.Context, stdin []byte, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, t.command(), append(t.server(), args...)...)
	cmd.Env = bareEnv()
	cmd.Stdin = bytes.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	e := &TmuxError{Code: -1, Message: clip(rules.Visible(errs.String()), 500), Err: errors.Join(err, ctx.Err())}
	if len(args) > 0 {
		e.Command = args[0]
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		e.Code = exit.ExitCode()
	}
	return out.String(), e
}

func (t Tmux) command() string {
	if t.Command == "" {
		return "tmux"
	}
	return t.Command
}

// server is the part of the command line that says which server is meant.
func (t Tmux) server() []string {
	if strings.Contains(t.Socket, "/") {
		return []string{"-f", os.DevNull, "-S", t.Socket}
	}
	return []string{"-f", os.DevNull, "-L", t.Socket}
}

// literal keeps tmux from taking the end of an argument for the end of a command: it
// cuts at every argument that ends with ";", wherever that came from (X2).
func literal(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		if head, ok := strings.CutSuffix(a, ";"); ok {
			a = head + `\;`
		}
		out[i] = a
	}
	return out
}

// bareEnv is all that a program of ours needs of the environment to run.
func bareEnv() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LC_ALL=C.UTF-8", "TERM=xterm-256color"}
}

func clip(s string, bytes int) string {
	if len(s) > bytes {
		return strings.ToValidUTF8(s[:bytes], "") + "…"
	}
	return s
}

// noServer tells whether tmux failed because no such server runs. A server that cannot be
// reached for another reason may well have sessions.
func noServer(err error) bool {
	return said(err, "no server running on ") || said(err, "error connecting to ") && said(err, "(No such file or directory)")
}

// noSession tells whether tmux failed because the server has no such session. One that has
// no session at all says that it has no current target.
func noSession(err error) bool {
	return said(err, "can't find session: ") || said(err, "no such session: ") || said(err, "no current target")
}

// gone tells whether tmux failed because what was to be reached is not there any more.
func gone(err error) bool {
	return noServer(err) || noSession(err) || said(err, "can't find pane: ") || said(err, "can't find window: ")
}

func said(err error, words string) bool {
	var e *TmuxError
	return errors.As(err, &e) && e.Code == 1 && strings.Contains(e.Message, words)
}
