package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// result is a line that a program must print to be taken for the CLI.
const result = `{"type":"result","subtype":"success","is_error":false,"result":"ok","num_turns":1}`

// fake is a runner of a shell script in the CLI's place, for what the real one
// cannot be made to do.
func fake(t *testing.T, script string, env ...string) *Runner {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claude")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	r := New(Options{Command: path, Home: t.TempDir(), Env: append([]string{"PATH=" + os.Getenv("PATH")}, env...)})
	t.Cleanup(r.Close)
	return r
}

func TestRun_TellsEndsApart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script string
		check  func(t *testing.T, err error)
	}{
		"no output": {"cat >/dev/null", func(t *testing.T, err error) { require.ErrorIs(t, err, ErrUnreadable) }},
		"no JSON":   {"cat >/dev/null; echo hello; echo '{'", func(t *testing.T, err error) { require.ErrorIs(t, err, ErrUnreadable) }},
		"a result cut short": {`cat >/dev/null; printf '{"type":"result","is_er'`, func(t *testing.T, err error) {
			require.ErrorIs(t, err, ErrUnreadable)
		}},
		"exit code": {"cat >/dev/null; echo it broke >&2; exit 7", func(t *testing.T, err error) {
			var exit *ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, ExitError{Code: 7, Stderr: "it broke"}, *exit)
		}},
		"signal": {"kill -TERM $$", func(t *testing.T, err error) {
			var exit *ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, ExitError{Code: -1, Signal: "SIGTERM"}, *exit)
		}},
		"an error of its own": {`cat >/dev/null; echo '{"type":"system","subtype":"init"}'; echo '{"type":"result","is_error":true,"errors":["too many turns"]}'; exit 1`,
			func(t *testing.T, err error) {
				var exit *ExitError
				require.ErrorAs(t, err, &exit)
				require.Equal(t, "too many turns", exit.Stderr)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := fake(t, tc.script).Run(t.Context(), spec(t, "hello"), nil)
			tc.check(t, err)
		})
	}
}

func TestRun_SaysThatTheProgramIsMissing(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"/no/such/claude", "no-such-claude", t.TempDir()} {
		_, err := New(Options{Command: command, Env: []string{"PATH=" + os.Getenv("PATH")}}).Run(t.Context(), spec(t, "hello"), nil)
		require.ErrorIs(t, err, ErrMissing, command)
	}
}

func TestRun_RefusesABadSpec(t *testing.T) {
	t.Parallel()
	r := fake(t, "echo '"+result+"'")
	for name, change := range map[string]func(*Spec){
		"no run id":           func(s *Spec) { s.RunID = "" },
		"session is no UUID":  func(s *Spec) { s.SessionID = "../../x" },
		"empty prompt":        func(s *Spec) { s.Prompt = " \x00\n" },
		"relative directory":  func(s *Spec) { s.Dir = "here" },
		"no directory":        func(s *Spec) { s.Dir = "/no/such/directory" },
		"a file":              func(s *Spec) { s.Dir = "/etc/passwd" },
		"skipped permissions": func(s *Spec) { s.PermissionMode = "bypassPermissions" },
		"unknown mode":        func(s *Spec) { s.PermissionMode = "yolo" },
		"system prompt":       func(s *Spec) { s.SystemPrompt = strings.Repeat("x", MaxSystemPrompt+1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spec(t, "hello")
			change(&s)
			_, err := r.Run(t.Context(), s, func(Process) error { return errors.New("it was started") })
			require.ErrorContains(t, err, "run an agent: ")
		})
	}
}

func TestRun_KillsAnAgentThatIgnoresTheInterrupt(t *testing.T) {
	t.Parallel()
	r := fake(t, `trap '' INT TERM HUP; (trap '' INT TERM HUP; while :; do sleep 0.1; done) & while :; do sleep 0.1; done`)
	s := spec(t, "hello")
	run := (&rig{Runner: r}).background(t, s)
	at := time.Now()
	run.cancel()
	require.ErrorIs(t, run.ended(t, at), ErrStopped)
	requireDead(t, run.p.PID)
	requireNothingMarked(t, s.RunID)
}

func TestKill_EndsAnAgentThatIgnoresTheInterrupt(t *testing.T) {
	t.Parallel()
	r := fake(t, `trap '' INT TERM HUP; while :; do sleep 0.1; done`)
	run := (&rig{Runner: r}).background(t, spec(t, "hello"))
	at := time.Now()
	killed, err := Kill(t.Context(), run.p)
	require.NoError(t, err)
	require.True(t, killed)
	requireDead(t, run.p.PID)
	require.ErrorIs(t, run.ended(t, at), ErrStopped)
}

func TestRun_DoesNotWaitForACLIThatLingersAfterItsAnswer(t *testing.T) {
	t.Parallel()
	r := fake(t, "cat >/dev/null; echo '"+result+"'; sleep 60")
	r.linger = 50 * time.Millisecond
	res, err := r.Run(t.Context(), spec(t, "hello"), nil)
	require.NoError(t, err)
	require.Equal(t, "ok", res.Text)
}

func TestRun_WaitsForATurnThatFollowsTheAnswer(t *testing.T) {
	t.Parallel()
	second := `{"type":"result","subtype":"success","is_error":false,"result":"and the tests pass","num_turns":2,"total_cost_usd":0.5}`
	r := fake(t, "cat >/dev/null; echo '"+result+`'; echo '{"type":"assistant","message":{"model":"m"}}'; sleep 0.5; echo '`+second+"'")
	r.linger = 200 * time.Millisecond
	res, err := r.Run(t.Context(), spec(t, "hello"), nil)
	require.NoError(t, err)
	require.Equal(t, "ok\n\nand the tests pass", res.Text)
	require.Equal(t, 3, res.Turns)
	require.InDelta(t, 0.5, res.CostUSD, 1e-9)
}

func TestRun_ACancelledContextStartsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("a person said stop")
	cancel(why)
	_, err := fake(t, "echo '"+result+"'").Run(ctx, spec(t, "hello"), func(Process) error { return errors.New("it was started") })
	require.ErrorIs(t, err, ErrStopped)
	require.ErrorIs(t, err, why)
}

func TestRun_AStopWhileTheStartIsRecordedGivesNoPrompt(t *testing.T) {
	t.Parallel()
	s := spec(t, "hello")
	r := fake(t, "cat > got; echo '"+result+"'")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := r.Run(ctx, s, func(Process) error { cancel(); return nil })
	require.ErrorIs(t, err, ErrStopped)
	got, _ := os.ReadFile(filepath.Join(s.Dir, "got"))
	require.NotContains(t, string(got), "hello")
	requireNothingMarked(t, s.RunID)
}

func TestRun_TriesAnotherWayWhenTheSessionIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ before, script, calls string }{
		"it was thought new": {"", `echo "$*" >> calls; case "$*" in *--session-id*) echo "Error: Session ID x is already in use." >&2; exit 1;; esac; cat >> got; echo '` + result + `'`,
			"session-id resume"},
		"it was thought old": {`{"type":"user"}`, `echo "$*" >> calls; case "$*" in *--resume*) echo "No conversation found with session ID: x" >&2; exit 1;; esac; cat >> got; echo '` + result + `'`,
			"resume session-id"},
		"a transcript of nothing": {`{"type":"queue-operation"}`, `echo "$*" >> calls; cat >> got; echo '` + result + `'`, "session-id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := fake(t, tc.script)
			s := spec(t, "hello")
			dir := filepath.Join(r.home, ".claude", "projects", "-x")
			require.NoError(t, os.MkdirAll(dir, 0o700))
			if tc.before != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, s.SessionID+".jsonl"), []byte(tc.before+"\n"), 0o600))
			}
			_, err := r.Run(t.Context(), s, nil)
			require.NoError(t, err)
			calls, err := os.ReadFile(filepath.Join(s.Dir, "calls"))
			require.NoError(t, err)
			var ways []string
			for line := range strings.Lines(string(calls)) {
				for _, way := range []string{"session-id", "resume"} {
					if strings.Contains(line, "--"+way+"="+s.SessionID) {
						ways = append(ways, way)
					}
				}
			}
			require.Equal(t, tc.calls, strings.Join(ways, " "))
			got, err := os.ReadFile(filepath.Join(s.Dir, "got"))
			require.NoError(t, err)
			require.Equal(t, hold+"hello", string(got), "the prompt is run once")
		})
	}
}

func TestRun_NeverRunsAPromptTwice(t *testing.T) {
	t.Parallel()
	r := fake(t, `cat >> got; echo '{"type":"system","subtype":"init"}'; echo "No conversation found with session ID; is already in use" >&2; exit 1`)
	s := spec(t, "hello")
	_, err := r.Run(t.Context(), s, nil)
	var exit *ExitError
	require.ErrorAs(t, err, &exit)
	got, err := os.ReadFile(filepath.Join(s.Dir, "got"))
	require.NoError(t, err)
	require.Equal(t, hold+"hello", string(got))
}

func TestRun_ErrorsHoldNoSecretAndNoControlCharacter(t *testing.T) {
	t.Parallel()
	r := fake(t, `cat >/dev/null; head -c 20000 /dev/zero | tr '\0' x >&2; printf '\033[31mkey %s and xoxb-1-2-abc\033[0m\r\nend\n' "$ANTHROPIC_API_KEY" >&2; exit 1`,
		"ANTHROPIC_API_KEY=a-key-of-some-shape")
	_, err := r.Run(t.Context(), spec(t, "hello"), nil)
	var exit *ExitError
	require.ErrorAs(t, err, &exit)
	require.LessOrEqual(t, len(exit.Stderr), tailBytes)
	require.True(t, strings.HasSuffix(exit.Stderr, "key [secret] and [secret][0m end"), exit.Stderr[len(exit.Stderr)-80:])
}

func TestRun_AnswersCarryNoSecretOfTheEnvironment(t *testing.T) {
	t.Parallel()
	r := fake(t, `cat >/dev/null; echo '{"type":"result","result":"the key is '$ANTHROPIC_API_KEY'"}'`, "ANTHROPIC_API_KEY=a-key-of-some-shape")
	res, err := r.Run(t.Context(), spec(t, "hello"), nil)
	require.NoError(t, err)
	require.Equal(t, "the key is [secret]", res.Text)
}

func TestRun_ManyAtOnce(t *testing.T) {
	t.Parallel()
	r := fake(t, `p=$(tail -n +2); echo '{"type":"result","result":"'"$p"'"}'`)
	errs := make(chan error)
	const n = 12
	for i := range n {
		s := spec(t, fmt.Sprintf("line %d", i))
		go func() {
			res, err := r.Run(context.Background(), s, nil)
			if err == nil && res.Text != s.Prompt {
				err = fmt.Errorf("got %q for %q", res.Text, s.Prompt)
			}
			errs <- err
		}()
	}
	for range n {
		require.NoError(t, <-errs)
	}
}

func TestRunner_CloseLeavesNoSupervisor(t *testing.T) {
	t.Parallel()
	r := fake(t, "echo '"+result+"'")
	r.ready = 2
	r.Prepare()
	require.Len(t, r.spares, 2)
	spares := r.spares
	r.Close()
	for _, s := range spares {
		pid := s.cmd.Process.Pid
		require.Eventually(t, func() bool { p, ok := readProc(pid); return !ok || p.dead() }, gone, time.Millisecond)
	}
	r.Prepare()
	require.Empty(t, r.spares)
	_, err := r.Run(t.Context(), spec(t, "hello"), nil)
	require.NoError(t, err, "a run needs none to be ready")
}

func TestRun_ASupervisorThatDiedIdleIsReplaced(t *testing.T) {
	t.Parallel()
	r := fake(t, "cat >/dev/null; echo '"+result+"'")
	r.Prepare()
	dead := r.spares[0]
	require.NoError(t, dead.cmd.Process.Kill())
	for range dead.reports { // closed when it is gone
	}
	_, err := r.Run(t.Context(), spec(t, "hello"), nil)
	require.NoError(t, err)
}

func TestKill_LeavesOthersAlone(t *testing.T) {
	t.Parallel()
	r := fake(t, `sleep 60`)
	run := (&rig{Runner: r}).background(t, spec(t, "hello"))
	for name, change := range map[string]func(*Process){
		"another start": func(p *Process) { p.RunID = ""; p.Start++ },
		"another boot":  func(p *Process) { p.BootID = uuid.NewString() },
		"another run":   func(p *Process) { *p = Process{RunID: p.RunID + "x"} },
		"part of a run": func(p *Process) { *p = Process{RunID: p.RunID[:8]} },
		"nothing":       func(p *Process) { *p = Process{} },
	} {
		p := run.p
		change(&p)
		require.False(t, Alive(p), name)
		killed, err := Kill(t.Context(), p)
		require.NoError(t, err, name)
		require.False(t, killed, name)
	}
	require.True(t, Alive(run.p))
	run.cancel()
	require.ErrorIs(t, <-run.err, ErrStopped)
	require.False(t, Alive(run.p))
}

func TestRun_IsNotHeldByAProcessOutOfReach(t *testing.T) {
	t.Parallel()
	// It keeps standard error open, has no marker, and its supervisor is killed.
	r := fake(t, `env -i PATH="$PATH" setsid -f sh -c 'echo $$ > other.part; mv other.part other; exec sleep 60'; sleep 60`)
	s := spec(t, "hello")
	run := (&rig{Runner: r}).background(t, s)
	var other int
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(filepath.Join(s.Dir, "other"))
		_, serr := fmt.Sscan(string(b), &other)
		return err == nil && serr == nil
	}, 20*time.Second, 5*time.Millisecond)
	t.Cleanup(func() { _ = syscall.Kill(other, syscall.SIGKILL) })
	require.NoError(t, syscall.Kill(parent(t, run.p.PID), syscall.SIGKILL))
	var exit *ExitError
	require.ErrorAs(t, <-run.err, &exit)
}

func TestFollow_ReadsAllThatWasWrittenBeforeTheEnd(t *testing.T) {
	f, err := newStdout()
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		for range 100 {
			_, _ = f.WriteString(strings.Repeat("x", 999) + "\n")
		}
		close(ended)
	}()
	b, err := io.ReadAll(&follow{file: f, ended: ended})
	require.NoError(t, err)
	require.Len(t, b, 100_000)
}
