package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"agentsmith/activities"
	"agentsmith/internal/agent"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// runs is an agent CLI.
type runs func(ctx context.Context, spec agent.Spec, started func(agent.Process) error) (agent.Result, error)

func (f runs) Run(ctx context.Context, spec agent.Spec, started func(agent.Process) error) (agent.Result, error) {
	return f(ctx, spec, started)
}

// says is an agent that answers at once.
func says(text string) runs {
	return func(_ context.Context, spec agent.Spec, started func(agent.Process) error) (agent.Result, error) {
		if err := started(processOf(spec)); err != nil {
			return agent.Result{}, err
		}
		return agent.Result{Text: text, SessionID: spec.SessionID, Model: "opus", Duration: 3 * time.Second, CostUSD: 0.25}, nil
	}
}

// works is an agent that goes on until it is ended; began hears of each.
func works(began chan<- agent.Spec) runs {
	return func(ctx context.Context, spec agent.Spec, started func(agent.Process) error) (agent.Result, error) {
		if err := started(processOf(spec)); err != nil {
			return agent.Result{}, err
		}
		began <- spec
		<-ctx.Done()
		return agent.Result{}, fmt.Errorf("%w: %w", agent.ErrStopped, ctx.Err())
	}
}

func fails(err error) runs {
	return func(context.Context, agent.Spec, func(agent.Process) error) (agent.Result, error) {
		return agent.Result{}, err
	}
}

func processOf(spec agent.Spec) agent.Process {
	return agent.Process{RunID: spec.RunID, PID: ownPID, PGID: ownPID, Start: 7, BootID: "a boot"}
}

// ownPID is that of every agent of this process's runs: it ends with its run.
const ownPID = 4242

// killed takes down whom it was asked to kill. An agent of this process has ended by then.
type killed struct {
	mu   sync.Mutex
	runs []string
	err  error
}

func (k *killed) kill(_ context.Context, p agent.Process) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.runs = append(k.runs, p.RunID)
	return k.err == nil && p.PID != ownPID, k.err
}

func (k *killed) list() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string{}, k.runs...)
}

// workshop is a room with an agent in it.
type workshop struct {
	*room
	agent *activities.Agent
	kills *killed
	stop  chan struct{} // closed when the worker stops
	ctx   context.Context
}

func newWorkshop(t *testing.T, runner activities.Runner) *workshop {
	t.Helper()
	w := &workshop{room: newRoom(t), kills: &killed{}, stop: make(chan struct{}), ctx: t.Context()}
	w.agent = &activities.Agent{
		Seats: w.seats, Ledger: w.store, Runner: runner, Kill: w.kills.kill, Places: activities.NewPlaces(2), Dirs: w.dirs,
		Box: "main", DailyCostUSD: 50, MaxOutput: 1 << 20, Drain: time.Hour, Now: time.Now, Log: w.poster.Log,
	}
	t.Cleanup(func() { activities.Finish(w.agent) })
	return w
}

// run executes RunAgent as a worker does.
func (w *workshop) run(in activities.RunAgentInput) (activities.RunAgentResult, error) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(discard()))
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: w.ctx})
	env.SetWorkerStopChannel(w.stop)
	env.SetTestTimeout(time.Minute)
	env.RegisterActivity(w.agent)
	var out activities.RunAgentResult
	v, err := env.ExecuteActivity(w.agent.RunAgent, in)
	if err != nil {
		require.NotContains(w.t, err.Error(), botToken)
		return out, err
	}
	return out, v.Get(&out)
}

type ended struct {
	activities.RunAgentResult
	err error
}

func (w *workshop) runBeside(in activities.RunAgentInput) <-chan ended {
	done := make(chan ended, 1)
	go func() {
		out, err := w.run(in)
		done <- ended{out, err}
	}()
	return done
}

func input(t activities.Turn) activities.RunAgentInput {
	return activities.RunAgentInput{Turn: t, Session: "3c0d2f5e-7d0b-4a44-8f5d-1d1c9f0a1a01", Timeout: time.Minute}
}

// requireType wants an application error of this type that is not retried.
func requireType(t *testing.T, err error, kind string, reason rules.Reason) {
	t.Helper()
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, kind, app.Type(), "%v", err)
	require.True(t, app.NonRetryable())
	if reason != "" {
		var details activities.FailureDetails
		require.NoError(t, app.Details(&details))
		require.Equal(t, reason, details.Reason)
	}
}

func TestRunAgent_TakesItsLinesRunsTheAgentAndKeepsTheAnswer(t *testing.T) {
	var spec agent.Spec
	w := newWorkshop(t, runs(func(ctx context.Context, s agent.Spec, started func(agent.Process) error) (agent.Result, error) {
		spec = s
		return says("Hello")(ctx, s, started)
	}))
	w.seats.ByName["smith"].Model = "opus"
	w.seats.ByName["smith"].AllowedTools = []string{"Read"}
	w.seats.ByName["smith"].SystemPrompt = "Be kind."
	w.seats.ByName["smith"].PermissionMode = "default"
	line := w.says("", "hello")
	in := input(turn(line))
	in.Drives = 1
	got, err := w.run(in)
	require.NoError(t, err)
	require.Equal(t, activities.RunAgentResult{
		Answer: activities.Answer{Text: "Hello", Model: "opus", Duration: 3 * time.Second, CostUSD: 0.25},
		PostID: turn(line).ID,
	}, got)
	w.requireOutcome(line, rules.Taken, "")
	require.Equal(t, turn(line).ID, w.row(line).Turn)

	require.Equal(t, in.Session, spec.SessionID)
	require.Equal(t, filepath.Join(w.dirs.Root, "smith", w.channel, line.Root), spec.Dir)
	require.DirExists(t, spec.Dir)
	require.Equal(t, []string{"Read", "Edit(./outbox/**)"}, spec.AllowedTools)
	require.Equal(t, []string{"Read"}, w.seats.ByName["smith"].AllowedTools, "the config's own list is not changed")
	require.True(t, strings.HasSuffix(spec.SystemPrompt, "Be kind."))
	require.Contains(t, spec.SystemPrompt, rules.ContinueForm)
	require.Contains(t, spec.SystemPrompt, "trinity")
	require.Equal(t, in.Timeout, spec.Timeout)
	require.EqualValues(t, 1<<20, spec.MaxOutput)
	require.NotContains(t, fmt.Sprint(spec), botToken)

	activities.Finish(w.agent)
	kept, err := w.store.AnswerOf(t.Context(), turn(line).ID)
	require.NoError(t, err)
	require.Equal(t, "Hello", kept.Text)
	require.InDelta(t, 0.25, kept.CostUSD, 1e-9)
	live, err := w.store.LiveProcesses(t.Context(), "main")
	require.NoError(t, err)
	require.Empty(t, live, "the run's process is marked dead")
}

// Lines that another turn has, that ended or that were stopped are dropped (L3).
func TestRunAgent_DoesNothingWhenEveryLineIsAnotherOnes(t *testing.T) {
	w := newWorkshop(t, fails(errors.New("no agent may run")))
	a := w.says("", "taken by another")
	b := w.says(a.Root, "answered")
	c := w.says(a.Root, "stopped")
	other := turn(a)
	other.ID = "smith/other"
	w.take(other)
	_, err := w.store.EndLine(t.Context(), "smith", b.LineKey, rules.Answered, "")
	require.NoError(t, err)
	_, err = w.store.RecordStop(t.Context(), "smith", a.Thread(), "9999999999.000000")
	require.NoError(t, err)
	got, err := w.run(input(turn(a, b, c)))
	require.NoError(t, err)
	require.Equal(t, activities.RunAgentResult{Nothing: true}, got)
	w.requireOutcome(a, rules.Taken, "")
	w.requireOutcome(b, rules.Answered, "")
	w.requireOutcome(c, rules.Declined, rules.ReasonStopped)
	require.Zero(t, w.calls("assistant.threads.setStatus"))
}

// The post is named by the first line that the turn took, not by the turn's first line.
func TestRunAgent_NamesThePostByTheFirstLineThatItTook(t *testing.T) {
	w := newWorkshop(t, says("Hello"))
	a := w.says("", "answered")
	b := w.says(a.Root, "mine")
	_, err := w.store.EndLine(t.Context(), "smith", a.LineKey, rules.Answered, "")
	require.NoError(t, err)
	got, err := w.run(input(turn(a, b)))
	require.NoError(t, err)
	require.Equal(t, rules.TurnID("smith", w.channel, b.TS), got.PostID)
}

// A line whose row could not be written at the door is written now, with its raw event (L1).
func TestRunAgent_WritesTheRowThatTheDoorCouldNot(t *testing.T) {
	w := newWorkshop(t, says("Hello"))
	line := rules.Line{LineKey: rules.LineKey{Team: w.team, Channel: w.channel, TS: "1700000000.000100"}, Root: "1700000000.000100", User: "U0ANA000001", Text: "hello"}
	tt := turn(line)
	tt.Lines[0].Raw = json.RawMessage(`{"text":"hello"}`)
	got, err := w.run(input(tt))
	require.NoError(t, err)
	require.Equal(t, tt.ID, got.PostID)
	w.requireOutcome(line, rules.Taken, "")
}

func TestRunAgent_ReadsWhatTheAnswerAsksFor(t *testing.T) {
	long := strings.Repeat("x", rules.InlineText+1)
	cases := map[string]struct {
		says  string
		check func(t *testing.T, got activities.RunAgentResult)
	}{
		"nothing to add": {rules.Abstain, func(t *testing.T, got activities.RunAgentResult) { require.True(t, got.Abstained) }},
		"to go on": {"So far.\n[continue: the rest]", func(t *testing.T, got activities.RunAgentResult) {
			require.Equal(t, "the rest", got.Continue)
			require.Equal(t, "So far.", got.Answer.Text)
		}},
		"to hand off": {"So far.\n[hand off to trinity: the rest]", func(t *testing.T, got activities.RunAgentResult) {
			require.Equal(t, &activities.HandOff{Seat: "trinity", Text: "the rest", Hop: 2}, got.Answer.HandOff)
		}},
		"to hand off to itself": {"So far.\n[hand off to smith: the rest]", func(t *testing.T, got activities.RunAgentResult) {
			require.Nil(t, got.Answer.HandOff)
		}},
		"too long for a history": {long, func(t *testing.T, got activities.RunAgentResult) {
			require.True(t, got.Answer.Ref)
			require.Empty(t, got.Answer.Text)
		}},
	}
	for _, name := range sortedKeys(cases) {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t, says(cases[name].says))
			line := w.says("", "hello")
			in := input(turn(line))
			in.SiblingHop = 2
			got, err := w.run(in)
			require.NoError(t, err)
			cases[name].check(t, got)
			if name == "too long for a history" {
				kept, err := w.store.AnswerOf(t.Context(), in.Turn.ID)
				require.NoError(t, err)
				require.Equal(t, long, kept.Text, "kept before it is reported")
			}
		})
	}
}

// Files alone are an answer; they are kept before the run is reported (B4).
func TestRunAgent_KeepsTheFilesThatTheAgentLeft(t *testing.T) {
	w := newWorkshop(t, nil)
	line := w.says("", "hello")
	dir, err := w.dirs.Of(turn(line))
	require.NoError(t, err)
	w.agent.Runner = runs(func(ctx context.Context, s agent.Spec, started func(agent.Process) error) (agent.Result, error) {
		require.Contains(t, s.Prompt, "outbox"+string(filepath.Separator))
		require.NoError(t, os.WriteFile(filepath.Join(dir.Outbox, "a.txt"), []byte("A"), 0o600))
		return says(rules.Abstain)(ctx, s, started)
	})
	got, err := w.run(input(turn(line)))
	require.NoError(t, err)
	require.False(t, got.Abstained)
	require.Equal(t, 1, got.Answer.Files)
	kept, err := w.store.AnswerOf(t.Context(), turn(line).ID)
	require.NoError(t, err)
	require.Equal(t, []string{"a.txt"}, kept.Files)
}

// The day's budget is UTC's day's; used up, no agent runs (X6).
func TestRunAgent_DeclinesWhenTheDaysBudgetIsUsedUp(t *testing.T) {
	w := newWorkshop(t, says("Hello"))
	w.agent.DailyCostUSD = 0.5
	root := w.says("", "one")
	for range 2 {
		_, err := w.run(input(turn(w.says(root.Root, "more"))))
		require.NoError(t, err)
		activities.Finish(w.agent)
	}
	line := w.says(root.Root, "once too often")
	_, err := w.run(input(turn(line)))
	requireType(t, err, activities.ErrTypeDeclined, rules.ReasonBudget)
	w.requireOutcome(line, rules.Taken, "")

	w.agent.Now = func() time.Time { return time.Now().Add(24 * time.Hour) }
	_, err = w.run(input(turn(line)))
	require.NoError(t, err, "tomorrow it runs")
}

// How an agent failed is told by its error's type and reason; nothing of its words goes
// into a history.
func TestRunAgent_TellsHowTheAgentFailed(t *testing.T) {
	cases := map[rules.Reason]error{
		rules.ReasonAgentTimeout:    agent.ErrTimeout,
		rules.ReasonAgentOutput:     agent.ErrOutput,
		rules.ReasonAgentUnreadable: agent.ErrUnreadable,
		rules.ReasonAgentMissing:    agent.ErrMissing,
		rules.ReasonAgentAPI:        &agent.APIError{Status: 529, Message: "secret words"},
		rules.ReasonAgentExit:       &agent.ExitError{Code: 1, Stderr: "secret words"},
	}
	for reason, failure := range cases {
		t.Run(string(reason), func(t *testing.T) {
			w := newWorkshop(t, fails(fmt.Errorf("run: %w", failure)))
			_, err := w.run(input(turn(w.says("", "hello"))))
			requireType(t, err, activities.ErrTypeAgent, reason)
			require.NotContains(t, err.Error(), "secret words")
		})
	}
	t.Run("anything else is a fault of ours", func(t *testing.T) {
		w := newWorkshop(t, fails(agent.ErrBusy))
		_, err := w.run(input(turn(w.says("", "hello"))))
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app)
		require.NotContains(t, []string{activities.ErrTypeAgent, activities.ErrTypeStopped, activities.ErrTypeWorkerDied}, app.Type())
	})
}

// The workflow was cancelled from outside: the run ends, and it is no stop.
func TestRunAgent_EndsWhenItsWorkflowIsCancelled(t *testing.T) {
	began := make(chan agent.Spec, 1)
	w := newWorkshop(t, works(began))
	ctx, cancel := context.WithCancel(t.Context())
	w.ctx = ctx
	done := w.runBeside(input(turn(w.says("", "hello"))))
	<-began
	cancel()
	got := <-done
	var app *temporal.ApplicationError
	require.ErrorAs(t, got.err, &app)
	require.Equal(t, context.Canceled.Error(), app.Message(), "what the SDK reports as cancelled")
}

// A run that was cancelled before it began leaves nothing that a later stop waits for.
func TestRunAgent_CancelledBeforeItBeganIsForgotten(t *testing.T) {
	w := newWorkshop(t, says("Hello"))
	line := w.says("", "hello")
	ctx, cancel := context.WithCancel(t.Context())
	w.ctx = ctx
	w.agent.Ledger = &cancelling{w.store, cancel}
	_, err := w.run(input(turn(line)))
	require.Error(t, err)
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got, err := w.agent.KillAgent(soon, activities.KillAgentInput{Seat: "smith", Thread: line.Thread()})
	require.NoError(t, err)
	require.Zero(t, got.Stopped)
}

// cancelling is a ledger whose caller is cancelled once the lines are taken.
type cancelling struct {
	*store.Store
	cancel func()
}

func (c *cancelling) TakeLines(ctx context.Context, turn store.Turn, lines []store.TakeLine) (store.TakeResult, error) {
	got, err := c.Store.TakeLines(ctx, turn, lines)
	c.cancel()
	return got, err
}

// Whatever of an earlier run still lives is ended before the next one starts (B3).
func TestRunAgent_EndsWhatIsLeftOfTheThread(t *testing.T) {
	w := newWorkshop(t, nil)
	first := w.says("", "one")
	w.take(turn(first))
	require.NoError(t, w.store.SetProcess(t.Context(), turn(first).ID, store.Process{RunID: "left", PID: 1, BootID: "b"}))
	elsewhere := w.says("", "another thread")
	w.take(turn(elsewhere))
	require.NoError(t, w.store.SetProcess(t.Context(), turn(elsewhere).ID, store.Process{RunID: "not mine", PID: 2, BootID: "b"}))
	w.agent.Runner = runs(func(ctx context.Context, s agent.Spec, started func(agent.Process) error) (agent.Result, error) {
		require.Equal(t, []string{"left"}, w.kills.list(), "gone before the agent runs")
		return says("Hello")(ctx, s, started)
	})
	_, err := w.run(input(turn(w.says(first.Root, "two"))))
	require.NoError(t, err)
	activities.Finish(w.agent)
	live, err := w.store.LiveProcesses(t.Context(), "main")
	require.NoError(t, err)
	require.Len(t, live, 1)
	require.Equal(t, "not mine", live[0].RunID)
}

// Who cannot be ended bars the way: two agents never work in one directory.
func TestRunAgent_DoesNotRunBesideOneThatCannotBeEnded(t *testing.T) {
	w := newWorkshop(t, fails(errors.New("no agent may run")))
	first := w.says("", "one")
	w.take(turn(first))
	require.NoError(t, w.store.SetProcess(t.Context(), turn(first).ID, store.Process{RunID: "left", PID: 1, BootID: "b"}))
	w.kills.err = errors.New("still alive")
	_, err := w.run(input(turn(w.says(first.Root, "two"))))
	require.ErrorContains(t, err, "still alive")
	live, err := w.store.LiveProcesses(t.Context(), "main")
	require.NoError(t, err)
	require.Len(t, live, 1, "it is looked for again")
}

// Two schedules of one channel have no thread yet, and do not end each other.
func TestRunAgent_SchedulesOfAChannelDoNotEndEachOther(t *testing.T) {
	began := make(chan agent.Spec, 2)
	w := newWorkshop(t, works(began))
	ctx, cancel := context.WithCancel(t.Context())
	w.ctx = ctx
	var done []<-chan ended
	var dirs []string
	for _, name := range []string{"smith/standup", "smith/report"} {
		in := input(activities.Turn{ID: name, Seat: "smith", Thread: rules.Thread{Team: w.team, Channel: w.channel}})
		in.Prompt, in.Author = "do it", rules.Schedule
		done = append(done, w.runBeside(in))
		dirs = append(dirs, (<-began).Dir)
	}
	require.NotEqual(t, dirs[0], dirs[1], "each in a directory of its own (B9)")
	require.Empty(t, w.kills.list())
	cancel()
	for _, d := range done {
		<-d
	}
}

// A run whose worker lost its server for too long is ended before the thread's next (B9).
func TestRunAgent_SupersedesAnEarlierRunOfTheThread(t *testing.T) {
	began := make(chan agent.Spec, 2)
	w := newWorkshop(t, works(began))
	first := w.says("", "one")
	old := w.runBeside(input(turn(first)))
	<-began
	w.agent.Runner = says("Hello")
	got, err := w.run(input(turn(w.says(first.Root, "two"))))
	require.NoError(t, err)
	require.Equal(t, "Hello", got.Answer.Text)
	requireType(t, (<-old).err, activities.ErrTypeStopped, "")
}

// When the worker stops, a run has the time to drain, then is ended and reported (T6, B3).
func TestRunAgent_EndsWithItsWorker(t *testing.T) {
	t.Run("at work", func(t *testing.T) {
		began := make(chan agent.Spec, 1)
		w := newWorkshop(t, works(began))
		w.agent.Drain = time.Millisecond
		done := w.runBeside(input(turn(w.says("", "hello"))))
		<-began
		close(w.stop)
		requireType(t, (<-done).err, activities.ErrTypeWorkerDied, "")
	})
	t.Run("while it waits for a place", func(t *testing.T) {
		w := newWorkshop(t, fails(errors.New("no agent may run")))
		w.agent.Drain = time.Millisecond
		w.agent.Places = activities.NewPlaces(0)
		done := w.runBeside(input(turn(w.says("", "hello"))))
		w.waitForStatus(rules.WaitingStatus(1))
		close(w.stop)
		requireType(t, (<-done).err, activities.ErrTypeWorkerDied, "")
	})
	t.Run("done in time", func(t *testing.T) {
		began, finish := make(chan agent.Spec, 1), make(chan struct{})
		w := newWorkshop(t, runs(func(ctx context.Context, s agent.Spec, started func(agent.Process) error) (agent.Result, error) {
			began <- s
			select {
			case <-finish:
				return says("Hello")(ctx, s, started)
			case <-ctx.Done():
				return agent.Result{}, agent.ErrStopped
			}
		}))
		done := w.runBeside(input(turn(w.says("", "hello"))))
		<-began
		close(w.stop)
		close(finish)
		got := <-done
		require.NoError(t, got.err)
		require.Equal(t, "Hello", got.Answer.Text)
	})
}

func (w *workshop) waitForStatus(text string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(w.t, w.box.Wait(ctx, func() bool {
		for _, s := range w.box.Log(0).Statuses {
			if s.Status == text {
				return true
			}
		}
		return false
	}), "status %q", text)
}

// Before a worker takes work, the agents that earlier workers left are ended (B3).
func TestEndLeftovers_EndsTheAgentsOfDeadWorkers(t *testing.T) {
	w := newWorkshop(t, nil)
	line := w.says("", "one")
	w.take(turn(line))
	require.NoError(t, w.store.SetProcess(t.Context(), turn(line).ID, store.Process{RunID: "left", PID: 1, BootID: "another boot"}))
	w.kills.err = errors.New("still alive")
	require.ErrorContains(t, activities.EndLeftovers(t.Context(), w.agent), "still alive")
	w.kills.err = nil
	require.NoError(t, activities.EndLeftovers(t.Context(), w.agent))
	require.NoError(t, activities.EndLeftovers(t.Context(), w.agent))
	require.Equal(t, []string{"left", "left"}, w.kills.list(), "until it is gone, and not once more")
}
