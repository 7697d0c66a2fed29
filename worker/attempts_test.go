package main

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"agentsmith/activities"
	"agentsmith/internal/agent"
	"agentsmith/internal/store"
)

const box = "main"

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "smith.db"), store.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newAttempts(t *testing.T, ledger attemptLedger) *attempts {
	t.Helper()
	self, err := agent.Self()
	require.NoError(t, err)
	return &attempts{ledger: ledger, box: box, self: self, log: slog.New(slog.DiscardHandler)}
}

// deadWorker is the identity of a process that lived and is gone.
func deadWorker(t *testing.T) agent.Process {
	t.Helper()
	self, err := agent.Self()
	require.NoError(t, err)
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	return agent.Process{PID: cmd.Process.Pid, Start: self.Start + 1, BootID: self.BootID}
}

func begin(t *testing.T, s *store.Store, token string, owner agent.Process) {
	t.Helper()
	require.NoError(t, s.BeginAttempt(t.Context(), store.Attempt{
		Token: []byte(token), Workflow: "smith-reply-C-1", Run: "r", Activity: "5", Type: "RunAgent", Box: box,
		PID: owner.PID, Start: owner.Start, BootID: owner.BootID,
	}))
}

// reports notes what Temporal is told, and answers with err.
type reports struct {
	tokens []string
	errs   []error
	err    error
}

func (r *reports) CompleteActivity(_ context.Context, token []byte, result any, err error) error {
	r.tokens, r.errs = append(r.tokens, string(token)), append(r.errs, err)
	if result != nil {
		return errors.New("a dead worker's activity has no result")
	}
	return r.err
}

func tokens(t *testing.T, s *store.Store) (out []string) {
	t.Helper()
	left, err := s.Attempts(t.Context(), box)
	require.NoError(t, err)
	for _, a := range left {
		out = append(out, string(a.Token))
	}
	return out
}

// What a dead worker had in hand is reported at once, and forgotten; what a living one
// has is its own (B3, X5).
func TestReportDead_ReportsWhatADeadWorkerHadInHand(t *testing.T) {
	s := openStore(t)
	a := newAttempts(t, s)
	anotherBoot, reused := a.self, a.self
	anotherBoot.BootID = "another boot"
	reused.Start--
	begin(t, s, "dead", deadWorker(t))
	begin(t, s, "another boot", anotherBoot)
	begin(t, s, "its pid is another's now", reused)
	begin(t, s, "alive", a.self)
	var told reports
	require.NoError(t, a.reportDead(t.Context(), &told))
	require.ElementsMatch(t, []string{"dead", "another boot", "its pid is another's now"}, told.tokens)
	for _, err := range told.errs {
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app)
		require.Equal(t, activities.ErrTypeWorkerDied, app.Type())
		require.False(t, app.NonRetryable(), "a post is repeated; a run has one attempt anyway")
	}
	require.Equal(t, []string{"alive"}, tokens(t, s))

	told = reports{}
	require.NoError(t, a.reportDead(t.Context(), &told))
	require.Empty(t, told.tokens, "once")
}

// Another box's activities are another box's.
func TestReportDead_LeavesOtherBoxesAlone(t *testing.T) {
	s := openStore(t)
	begin(t, s, "dead", deadWorker(t))
	a := newAttempts(t, s)
	a.box = "another"
	var told reports
	require.NoError(t, a.reportDead(t.Context(), &told))
	require.Empty(t, told.tokens)
}

// An activity that had ended, or whose workflow is gone, is forgotten: that is fine.
func TestReportDead_IsContentWithNotFound(t *testing.T) {
	s := openStore(t)
	begin(t, s, "dead", deadWorker(t))
	require.NoError(t, newAttempts(t, s).reportDead(t.Context(), &reports{err: serviceerror.NewNotFound("no such activity")}))
	require.Empty(t, tokens(t, s))
}

// What could not be reported is not forgotten: the worker is started again.
func TestReportDead_KeepsWhatCouldNotBeReported(t *testing.T) {
	s := openStore(t)
	begin(t, s, "dead", deadWorker(t))
	a := newAttempts(t, s)
	require.ErrorContains(t, a.reportDead(t.Context(), &reports{err: serviceerror.NewUnavailable("no server")}), "no server")
	require.Equal(t, []string{"dead"}, tokens(t, s))
	require.NoError(t, a.reportDead(t.Context(), &reports{}))
	require.Empty(t, tokens(t, s))
}

// slowLedger notes the beginning of an activity only when it is let.
type slowLedger struct {
	*store.Store
	let   chan struct{}
	noted chan struct{}
	err   error
}

func (l *slowLedger) BeginAttempt(ctx context.Context, a store.Attempt) error {
	defer close(l.noted)
	<-l.let
	if l.err != nil {
		return l.err
	}
	return l.Store.BeginAttempt(ctx, a)
}

// execute runs an activity between the worker's interceptors.
func execute(t *testing.T, a *attempts, do func(ctx context.Context) (string, error)) (string, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{a}})
	env.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: "RunAgent"})
	v, err := env.ExecuteActivity("RunAgent")
	if err != nil {
		return "", err
	}
	var out string
	return out, v.Get(&out)
}

// An activity in hand is on record while it runs, and no longer.
func TestAttempts_AreOnRecordWhileTheyRun(t *testing.T) {
	s := openStore(t)
	a := newAttempts(t, s)
	seen := make(chan struct{})
	noted := &signalling{s, seen}
	a.ledger = noted
	_, err := execute(t, a, func(context.Context) (string, error) {
		<-seen
		left, err := s.Attempts(t.Context(), box)
		require.NoError(t, err)
		require.Len(t, left, 1)
		require.Equal(t, "RunAgent", left[0].Type)
		require.True(t, agent.Process{PID: left[0].PID, Start: left[0].Start, BootID: left[0].BootID}.Lives(), "by this process")
		return "", nil
	})
	require.NoError(t, err)
	a.finish()
	require.Empty(t, tokens(t, s))
}

type signalling struct {
	*store.Store
	noted chan struct{}
}

func (l *signalling) BeginAttempt(ctx context.Context, a store.Attempt) error {
	defer close(l.noted)
	return l.Store.BeginAttempt(ctx, a)
}

// A store that is slow does not hold an activity up; one noted late, when the activity
// has ended, is forgotten all the same.
func TestAttempts_NotedLateAreForgottenAllTheSame(t *testing.T) {
	s := openStore(t)
	slow := &slowLedger{Store: s, let: make(chan struct{}), noted: make(chan struct{})}
	a := newAttempts(t, slow)
	got, err := execute(t, a, func(context.Context) (string, error) { return "done", nil })
	require.NoError(t, err)
	require.Equal(t, "done", got, "it did not wait for its note")
	close(slow.let)
	<-slow.noted
	a.finish()
	require.Empty(t, tokens(t, s))
}

// A store that is down does not keep an activity from its work, nor its error from Temporal.
func TestAttempts_WorkGoesOnWithoutTheStore(t *testing.T) {
	slow := &slowLedger{Store: openStore(t), let: make(chan struct{}), noted: make(chan struct{}), err: errors.New("the store is down")}
	close(slow.let)
	a := newAttempts(t, slow)
	_, err := execute(t, a, func(context.Context) (string, error) {
		return "", temporal.NewNonRetryableApplicationError("stopped", activities.ErrTypeStopped, nil)
	})
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, activities.ErrTypeStopped, app.Type())
	a.finish()
}
