package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"agentsmith/internal/githubbox"
	"agentsmith/internal/telemetry"
	"agentsmith/rules"
	"agentsmith/signals"
	"agentsmith/workflows"
)

// fakeSignals is the part of Temporal's client that signals.
type fakeSignals struct {
	signals.Client
	id, run, name string
	arg           any
	err           error
}

func (f *fakeSignals) SignalWorkflow(_ context.Context, id, run, name string, arg any) error {
	f.id, f.run, f.name, f.arg = id, run, name, arg
	return f.err
}

func TestTaskClient_SignalsARunningTaskOnly(t *testing.T) {
	f := &fakeSignals{}
	trigger := workflows.TaskTrigger{Kind: workflows.TaskGitHub, Delivery: hookDelivery}
	require.NoError(t, taskClient{f}.tell(t.Context(), seatName, hookSlug, trigger))
	require.Equal(t, &fakeSignals{id: "smith-operator-task-water-the-roses", name: "operator_task", arg: trigger}, f)

	f.err = serviceerror.NewNotFound("no such workflow")
	require.ErrorIs(t, taskClient{f}.tell(t.Context(), seatName, hookSlug, trigger), errNoTask)
	f.err = serviceerror.NewUnavailable("down")
	err := taskClient{f}.tell(t.Context(), seatName, hookSlug, trigger)
	require.Error(t, err)
	require.NotErrorIs(t, err, errNoTask)
}

// serve serves the door as the starter does.
func (r *hookRoom) serve(t *testing.T) (*githubServer, *telemetry.Health) {
	t.Helper()
	health := &telemetry.Health{}
	s, err := serveGitHub(t.Context(), r.githubDoor, githubOptions{listen: "127.0.0.1:0", health: health, log: r.log})
	require.NoError(t, err)
	return s, health
}

func TestServeGitHub_TakesWhatGitHubSendsAndClosesInPeace(t *testing.T) {
	r := newHookRoom(t)
	r.bind()
	s, health := r.serve(t)
	require.Contains(t, health.Report(t.Context()).String(), "green "+healthGitHub)
	box := githubbox.New(githubbox.Options{})
	require.NoError(t, box.Start(t.Context(), ""))
	defer func() { require.NoError(t, box.Close()) }()
	box.SetHook(githubbox.Hook{URL: "http://" + s.addr.String() + webhookPath, Secret: hookSecret})
	require.NoError(t, box.Ping(hookRepo))
	require.NoError(t, box.Push(hookRepo, rules.BranchOf(hookSlug), strings.Repeat("a", 40)))
	box.SetHook(githubbox.Hook{URL: "http://" + s.addr.String() + webhookPath, Secret: hookSecret, Form: true})
	n, err := box.OpenPull(githubbox.Pull{Repo: hookRepo, Branch: rules.BranchOf(hookSlug), SHA: strings.Repeat("a", 40), Title: "It grows"})
	require.NoError(t, err)
	require.NoError(t, box.SetCheck(hookRepo, strings.Repeat("a", 40), githubbox.CheckRun{Name: "build", Status: "completed", Conclusion: "success"}))
	require.NoError(t, box.SetStatus(hookRepo, strings.Repeat("a", 40), githubbox.Status{Context: "lint", State: "success"}))
	require.NoError(t, box.Review(hookRepo, n, githubbox.Review{State: "APPROVED"}))
	require.NoError(t, box.Merge(hookRepo, n))
	var events []string
	for _, d := range box.Deliveries() {
		require.Equal(t, http.StatusOK, d.Status, d.Event)
		events = append(events, d.Event)
	}
	require.Equal(t, []string{"ping", "push", "pull_request", "check_run", "check_suite", "status", "pull_request_review", "pull_request"}, events)
	require.Len(t, r.tasks.all(), 7)
	require.NoError(t, box.Redeliver(box.Deliveries()[1].ID))
	require.Len(t, r.tasks.all(), 7)

	resp, err := http.Get("http://" + s.addr.String() + "/")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	require.NoError(t, s.close(t.Context()))
	_, err = net.DialTimeout("tcp", s.addr.String(), time.Second)
	require.Error(t, err)
}

func TestServeGitHub_WaitsForNobodyForEver(t *testing.T) {
	s, _ := newHookRoom(t).serve(t)
	defer func() { require.NoError(t, s.close(t.Context())) }()
	for name, limit := range map[string]time.Duration{
		"headers": s.http.ReadHeaderTimeout, "body": s.http.ReadTimeout, "answer": s.http.WriteTimeout, "idle": s.http.IdleTimeout,
	} {
		require.Positive(t, limit, name)
		require.LessOrEqual(t, limit, time.Minute, name)
	}
	require.Positive(t, s.http.MaxHeaderBytes)
	require.Greater(t, s.http.WriteTimeout, s.http.ReadTimeout+webhookWork, "an answer can still be written after the slowest body")
}

func TestServeGitHub_IsIdleWithoutAddressOrSecret(t *testing.T) {
	r := newHookRoom(t)
	health := &telemetry.Health{}
	s, err := serveGitHub(t.Context(), r.githubDoor, githubOptions{health: health, log: r.log})
	require.NoError(t, err)
	require.NoError(t, s.close(t.Context()))
	r.secret = nil
	s, err = serveGitHub(t.Context(), r.githubDoor, githubOptions{listen: "127.0.0.1:0", health: health, log: r.log})
	require.NoError(t, err)
	require.NoError(t, s.close(t.Context()))
	require.Empty(t, health.Report(t.Context()).Checks)
	require.Equal(t, 2, strings.Count(r.out.String(), "\n"), "one line each")
	require.Contains(t, r.out.String(), "github.listen is not set")
	require.Contains(t, r.out.String(), "SMITH_GITHUB_WEBHOOK_SECRET is not set")
}

func TestServeGitHub_SaysWhatToDoWhenTheAddressIsTaken(t *testing.T) {
	r := newHookRoom(t)
	s, _ := r.serve(t)
	defer func() { require.NoError(t, s.close(t.Context())) }()
	_, err := serveGitHub(t.Context(), r.githubDoor, githubOptions{listen: s.addr.String(), health: &telemetry.Health{}, log: r.log})
	require.ErrorContains(t, err, "github.listen")
}
