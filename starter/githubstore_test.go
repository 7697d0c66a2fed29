package main

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/config"
	"agentsmith/internal/githubbox"
	"agentsmith/internal/store"
	"agentsmith/internal/telemetry"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// openLinks is a store with one thread that has an operator.
func openLinks(t *testing.T) (*store.Store, rules.Thread) {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "smith.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	th := rules.Thread{Team: team, Channel: "C1", Root: ts1}
	_, won, err := s.Claim(t.Context(), store.Wish{Seat: seatName, Thread: th, Slug: hookSlug, Repo: "garden", Box: "main", Claimant: "c"})
	require.NoError(t, err)
	require.True(t, won)
	return s, th
}

func TestStoredLinks_FindThreadsByPullRequestAndBySlug(t *testing.T) {
	s, th := openLinks(t)
	links := storedLinks{s}
	found, err := links.ofSlug(t.Context(), hookSlug)
	require.NoError(t, err)
	require.Equal(t, []pullLink{{seat: seatName, thread: th, slug: hookSlug}}, found)
	found, err = links.ofSlug(t.Context(), "another")
	require.NoError(t, err)
	require.Empty(t, found)

	other := rules.Thread{Team: team, Channel: "C2", Root: ts2}
	for _, l := range []rules.Thread{th, other} {
		require.NoError(t, s.LinkPull(t.Context(), store.PullRequest{Repo: hookRepo, Number: 7, Seat: seatName, Thread: l}))
	}
	found, err = links.ofPull(t.Context(), "Acme/Garden", 7)
	require.NoError(t, err)
	require.Len(t, found, 2)
	slugs := map[string]string{}
	for _, l := range found {
		slugs[l.thread.Root] = l.slug
		require.Equal(t, 7, l.pull.Number)
	}
	require.Equal(t, map[string]string{ts1: hookSlug, ts2: ""}, slugs)
	found, err = links.ofPull(t.Context(), hookRepo, 8)
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestStoredLinks_FailWhenTheStoreDoes(t *testing.T) {
	s, th := openLinks(t)
	require.NoError(t, s.LinkPull(t.Context(), store.PullRequest{Repo: hookRepo, Number: 7, Seat: seatName, Thread: th}))
	require.NoError(t, s.Close())
	links := storedLinks{s}
	_, err := links.ofPull(t.Context(), hookRepo, 7)
	require.Error(t, err)
	_, err = links.ofSlug(t.Context(), hookSlug)
	require.Error(t, err)
	_, err = links.seen(t.Context(), hookDelivery)
	require.Error(t, err)
	require.Error(t, links.took(t.Context(), hookDelivery))
}

func TestOpenGitHub_TakesAWebhookToTheTask(t *testing.T) {
	s, _ := openLinks(t)
	log, err := telemetry.NewLogger(io.Discard, "info", "json")
	require.NoError(t, err)
	metrics, err := telemetry.NewMetrics(log)
	require.NoError(t, err)
	signals := &fakeSignals{}
	server, err := openGitHub(t.Context(), config.GitHub{Listen: "127.0.0.1:0", WebhookSecret: hookSecret}, s, signals, nil, &telemetry.Health{}, metrics, log)
	require.NoError(t, err)
	box := githubbox.New(githubbox.Options{Hook: githubbox.Hook{URL: "http://" + server.addr.String() + webhookPath, Secret: hookSecret}})
	require.NoError(t, box.Start(t.Context(), ""))
	defer func() { require.NoError(t, box.Close()) }()
	require.NoError(t, box.Push(hookRepo, rules.BranchOf(hookSlug), strings.Repeat("a", 40)))
	sent := box.Deliveries()[0]
	require.Equal(t, http.StatusOK, sent.Status)
	require.Equal(t, workflows.OperatorTaskID(seatName, hookSlug), signals.id)
	require.Equal(t, workflows.TaskTrigger{Kind: workflows.TaskGitHub, Delivery: sent.ID, Event: "push", Repo: hookRepo}, signals.arg)
	require.Eventually(t, func() bool {
		seen, err := s.SeenDelivery(t.Context(), sent.ID)
		return err == nil && seen
	}, time.Second, 10*time.Millisecond)
	signals.id = ""
	require.NoError(t, box.Redeliver(sent.ID))
	require.Empty(t, signals.id)
	require.NoError(t, server.close(t.Context()))
}
