package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/standin"
)

// gone is the time in which everything of a run must have ended.
const gone = 2 * time.Second

// stubborn is a tool call that leaves two processes which only SIGKILL ends: one in
// a session of its own, and one that also gave up its environment, so the marker.
// Each writes its pid; the call itself goes on.
func stubborn(dir string) string {
	loop := `trap \"\" INT TERM HUP; echo $$ > %s/%s.part; mv %s/%s.part %s/%s; while :; do sleep 0.2; done`
	one := fmt.Sprintf(loop, dir, "a.pid", dir, "a.pid", dir, "a.pid")
	two := fmt.Sprintf(loop, dir, "b.pid", dir, "b.pid", dir, "b.pid")
	return `[[tool Bash {"command":"setsid -f sh -c '` + one + `'; env -i PATH=$PATH setsid -f sh -c '` + two + `'; sleep 60"}]]`
}

// stubbornPIDs waits for the two processes.
func stubbornPIDs(t *testing.T, dir string) []int {
	t.Helper()
	var pids []int
	for _, name := range []string{"a.pid", "b.pid"} {
		var pid int
		require.Eventually(t, func() bool {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return false
			}
			pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
			return err == nil
		}, 20*time.Second, 10*time.Millisecond, "the tool's process never started")
		pids = append(pids, pid)
	}
	return pids
}

// requireDead fails if a process lives; it looks by itself, not by the code under test.
func requireDead(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		require.True(t, err != nil || strings.Contains(string(b), "State:\tZ"), "pid %d lives: %.200s", pid, b)
	}
}

// requireNothingMarked looks through all environments for a run.
func requireNothingMarked(t *testing.T, runID string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, f := range files {
		b, _ := os.ReadFile(f)
		require.NotContains(t, string(b), runID, "%s carries the marker", f)
	}
}

// running is a run in the background.
type running struct {
	p      Process
	cancel context.CancelFunc
	err    chan error
}

func (r *rig) background(t *testing.T, s Spec) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	run := &running{cancel: cancel, err: make(chan error, 1)}
	began := make(chan Process, 1)
	go func() {
		_, err := r.Run(ctx, s, func(p Process) error { began <- p; return nil })
		run.err <- err
	}()
	select {
	case run.p = <-began:
	case err := <-run.err:
		require.NoError(t, err)
	}
	return run
}

// ended waits for the run's end, and measures it from begin.
func (r *running) ended(t *testing.T, begin time.Time) error {
	t.Helper()
	select {
	case err := <-r.err:
		require.Less(t, time.Since(begin), gone)
		return err
	case <-time.After(20 * time.Second):
		require.Fail(t, "the run does not end")
		return nil
	}
}

func (r *rig) asked(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return len(r.api.Log()) > 0 }, 20*time.Second, 5*time.Millisecond, "the stand-in was never asked")
}

// kept tells whether the session is on disk with a message in it.
func (r *rig) kept(t *testing.T, session string) bool {
	t.Helper()
	files, err := transcripts{home: r.home}.find(session)
	require.NoError(t, err)
	return slices.ContainsFunc(files, func(f string) bool {
		has, err := hasMessage(f)
		return err == nil && has
	})
}

func TestContract_StopsMidStreamAndResumes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, "[[say half of it]] [[hang]]")
	run := r.background(t, s)
	r.asked(t)
	at := time.Now()
	run.cancel()
	require.ErrorIs(t, run.ended(t, at), ErrStopped)
	require.False(t, Alive(run.p))
	requireDead(t, run.p.PID)
	require.Eventually(t, func() bool { return r.api.Log()[0].Outcome == standin.Aborted }, gone, 5*time.Millisecond)

	s.RunID, s.Prompt = uuid.NewString(), "[[recall]]"
	res := r.plainly(t, s)
	require.True(t, res.Resumed)
	require.Contains(t, res.Text, "- [[say half of it]] [[hang]]\n", "the session knows the line that was stopped")
}

func TestContract_ResumesAfterAKillMidStream(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, "[[say half of it]] [[hang]]")
	run := r.background(t, s)
	r.asked(t)
	require.Eventually(t, func() bool { return r.kept(t, s.SessionID) }, 5*time.Second, 5*time.Millisecond,
		"the CLI writes a session down some 0.1 s late")
	at := time.Now()
	require.NoError(t, syscall.Kill(run.p.PID, syscall.SIGKILL))
	var exit *ExitError
	require.ErrorAs(t, run.ended(t, at), &exit)
	require.Equal(t, "SIGKILL", exit.Signal)

	s.RunID, s.Prompt = uuid.NewString(), "[[recall]]"
	res := r.plainly(t, s)
	require.True(t, res.Resumed)
	require.Contains(t, res.Text, "- [[say half of it]] [[hang]]\n")
}

func TestContract_StopKillsWhatToolsLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, "")
	s.Prompt, s.AllowedTools = stubborn(s.Dir), []string{"Bash"}
	run := r.background(t, s)
	pids := stubbornPIDs(t, s.Dir)
	at := time.Now()
	run.cancel()
	require.ErrorIs(t, run.ended(t, at), ErrStopped)
	requireDead(t, append(pids, run.p.PID)...)
	requireNothingMarked(t, s.RunID)
}

func TestContract_AnAnswerLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, "")
	s.Prompt = strings.Replace(stubborn(s.Dir), "sleep 60", "until test -f a.pid -a -f b.pid; do sleep 0.05; done", 1) + " [[say done]]"
	s.AllowedTools = []string{"Bash"}
	res := r.plainly(t, s)
	require.Equal(t, "done", res.Text)
	requireDead(t, stubbornPIDs(t, s.Dir)...)
	requireNothingMarked(t, s.RunID)
}

func TestContract_KillWorksFromOutside(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]func(Process) Process{
		"by identity": func(p Process) Process { return p },
		"by marker":   func(p Process) Process { return Process{RunID: p.RunID} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := spec(t, "")
			s.Prompt, s.AllowedTools = stubborn(s.Dir), []string{"Bash"}
			run := r.background(t, s)
			pids := stubbornPIDs(t, s.Dir)
			at := time.Now()
			killed, err := Kill(t.Context(), target(run.p))
			require.NoError(t, err)
			require.True(t, killed)
			require.Less(t, time.Since(at), gone)
			requireDead(t, append(pids, run.p.PID)...)
			require.ErrorIs(t, run.ended(t, at), ErrStopped)

			killed, err = Kill(t.Context(), target(run.p))
			require.NoError(t, err)
			require.False(t, killed, "there is nothing left")
		})
	}
}

// startWorker runs the agent in another process, as a worker does.
func startWorker(t *testing.T, r *rig, s Spec) (*exec.Cmd, Process, *bufio.Reader) {
	t.Helper()
	job, err := json.Marshal(workerJob{Options: Options{Command: r.command, Home: r.home, Env: r.env}, Spec: s})
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{workerEnv + "=" + string(job)}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	var p Process
	require.NoError(t, json.Unmarshal([]byte(line), &p), line)
	return cmd, p, lines
}

// requireGone waits until all is dead, for at most gone.
func requireGone(t *testing.T, at time.Time, p Process, pids ...int) {
	t.Helper()
	for time.Since(at) < gone {
		dead := !Alive(p)
		for _, pid := range pids {
			q, ok := readProc(pid)
			dead = dead && (!ok || q.dead())
		}
		if dead {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	requireDead(t, append(pids, p.PID)...)
	requireNothingMarked(t, p.RunID)
}

func TestContract_ADeadWorkerLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, "")
	s.Prompt, s.AllowedTools = stubborn(s.Dir), []string{"Bash"}
	cmd, p, _ := startWorker(t, r, s)
	pids := stubbornPIDs(t, s.Dir)
	supervisor := parent(t, p.PID)
	at := time.Now()
	require.NoError(t, cmd.Process.Kill())
	requireGone(t, at, p, append(pids, supervisor)...)

	s.RunID, s.Prompt = uuid.NewString(), "[[recall]]"
	require.True(t, r.plainly(t, s).Resumed, "the next line takes the same session up")
}

func TestContract_ADeadSupervisorLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, "")
	s.Prompt, s.AllowedTools = stubborn(s.Dir), []string{"Bash"}
	run := r.background(t, s)
	pids := stubbornPIDs(t, s.Dir)
	// The one without a marker and without a supervisor is out of reach: see agent.go.
	t.Cleanup(func() { _ = syscall.Kill(pids[1], syscall.SIGKILL) })
	at := time.Now()
	require.NoError(t, syscall.Kill(parent(t, run.p.PID), syscall.SIGKILL))
	var exit *ExitError
	require.ErrorAs(t, run.ended(t, at), &exit)
	requireDead(t, run.p.PID, pids[0])
	requireNothingMarked(t, s.RunID)
}

func TestContract_BootKillsWhatWorkerAndSupervisorLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, "")
	s.Prompt, s.AllowedTools = stubborn(s.Dir), []string{"Bash"}
	cmd, p, _ := startWorker(t, r, s)
	pids := stubbornPIDs(t, s.Dir)
	t.Cleanup(func() { _ = syscall.Kill(pids[1], syscall.SIGKILL) })
	supervisor := parent(t, p.PID)
	require.NoError(t, syscall.Kill(supervisor, syscall.SIGSTOP)) // it must not see the worker die
	require.NoError(t, cmd.Process.Kill())
	require.NoError(t, syscall.Kill(supervisor, syscall.SIGKILL))
	require.Eventually(t, func() bool { q, ok := readProc(p.PID); return !ok || q.dead() }, gone, time.Millisecond,
		"the CLI itself dies with its supervisor")
	at := time.Now()
	killed, err := KillRun(t.Context(), s.RunID)
	require.NoError(t, err)
	require.True(t, killed, "the tool's process outlived both")
	requireGone(t, at, p, pids[0])
}

func parent(t *testing.T, pid int) int {
	t.Helper()
	p, ok := readProc(pid)
	require.True(t, ok)
	return p.ppid
}

func TestContract_OneRunOfASessionAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, "[[hang]]")
	run := r.background(t, s)
	r.asked(t)
	second := s
	second.RunID, second.Prompt = uuid.NewString(), "hello"
	_, err := r.Run(t.Context(), second, func(Process) error { return errors.New("it was started") })
	require.ErrorIs(t, err, ErrBusy)
	run.cancel()
	require.ErrorIs(t, run.ended(t, time.Now()), ErrStopped)
	require.Len(t, r.api.Log(), 1)
	r.plainly(t, second)
}

func TestContract_NothingIsAskedBeforeTheStartIsRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, "hello")
	cannot := errors.New("the store is down")
	var p Process
	_, err := r.Run(t.Context(), s, func(q Process) error { p = q; return cannot })
	require.ErrorIs(t, err, cannot)
	requireDead(t, p.PID)
	requireNothingMarked(t, s.RunID)
	require.Empty(t, r.api.Log())
}

func TestContract_WaitsForAStartThatIsRecordedSlowly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res, err := r.Run(t.Context(), spec(t, "[[say hello]]"), func(Process) error {
		time.Sleep(6 * time.Second) // the CLI gives an empty input 3 s
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "hello", res.Text)
}

func TestContract_LimitsHold(t *testing.T) {
	t.Parallel()
	t.Run("time", func(t *testing.T) {
		t.Parallel()
		s := spec(t, "[[hang]]")
		s.Timeout = 1500 * time.Millisecond
		at := time.Now()
		_, err := newRig(t).Run(t.Context(), s, nil)
		require.ErrorIs(t, err, ErrTimeout)
		require.NotErrorIs(t, err, ErrStopped)
		require.Less(t, time.Since(at), s.Timeout+gone)
		requireNothingMarked(t, s.RunID)
	})
	t.Run("output", func(t *testing.T) {
		t.Parallel()
		s := spec(t, "[[long 90000]]")
		s.MaxOutput = 60_000
		_, err := newRig(t).Run(t.Context(), s, nil)
		require.ErrorIs(t, err, ErrOutput)
		requireNothingMarked(t, s.RunID)
	})
}
