package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"agentsmith/rules"
)

// repo is a git checkout. held is the lock of the one who works on it, nil for none.
type repo struct {
	path string
	held *os.File
}

// git runs git in the checkout and returns what it printed. No shell and no hook is run,
// and it gets nothing of this process's environment that is not its own to read (X3).
// Configured filters do run: whoever may write the checkout's config could as well write
// its files.
//
// The lock is handed to git and to what git starts, so that it is held for as long as one
// of them lives: also when this process is killed, and git goes on without it.
func (r repo) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{
		"-C", r.path, "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "maintenance.auto=false", "-c", "gc.auto=0",
	}, args...)...)
	cmd.Env = []string{"LC_ALL=C.UTF-8", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0"}
	for _, name := range []string{"PATH", "HOME"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	if r.held != nil {
		cmd.ExtraFiles = []*os.File{r.held}
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), &gitError{command: args[0], message: clip(rules.Visible(strings.TrimSpace(errs.String())), 500), err: errors.Join(err, ctx.Err())}
	}
	return out.String(), nil
}

type gitError struct {
	command, message string
	err              error
}

func (e *gitError) Error() string { return fmt.Sprintf("git %s: %v: %s", e.command, e.err, e.message) }
func (e *gitError) Unwrap() error { return e.err }

// exited tells whether git itself said no, by that exit code.
func exited(err error, code int) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == code
}

// hasBranch tells whether a branch of exactly that name exists.
func (r repo) hasBranch(ctx context.Context, branch string) (bool, error) {
	_, err := r.git(ctx, "show-ref", "--verify", "--quiet", "refs/heads/"+branch)
	if exited(err, 1) {
		return false, nil
	}
	return err == nil, err
}

// errNoCheckout says that a folder is not the top of a git checkout.
var errNoCheckout = errors.New("it is no git checkout")

// isCheckout returns errNoCheckout where git does not take the folder for the top of a
// checkout, and another error where it cannot tell.
func (r repo) isCheckout(ctx context.Context) error {
	out, err := r.git(ctx, "rev-parse", "--show-prefix")
	var said *gitError
	switch {
	case errors.As(err, &said) && exited(err, 128) && strings.Contains(said.message, "not a git repository"):
		return errNoCheckout
	case err != nil:
		return err
	case strings.TrimSpace(out) != "":
		return fmt.Errorf("%w of its own", errNoCheckout)
	}
	return nil
}
