package e2e_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/githubbox"
)

// O10, X4: the starter takes GitHub's webhooks, and from nobody else.
func TestO10_TheStarterTakesTheWebhooksOfGitHub(t *testing.T) {
	t.Parallel()
	s := home(t)
	const repo = "acme/webhooks"
	require.NoError(t, s.GitHub.Ping(repo))
	require.NoError(t, s.GitHub.Push(repo, "smith/nobody-works-on-this", strings.Repeat("a", 40)))
	seen := map[string]int{}
	for _, d := range s.GitHub.Deliveries() {
		seen[d.Event] = d.Status
	}
	require.Equal(t, http.StatusOK, seen["ping"])
	require.Equal(t, http.StatusAccepted, seen["push"], "no thread is about it")

	status, err := githubbox.Post(t.Context(), githubbox.Hook{URL: s.GitHubHook().URL, Secret: "what a stranger guessed"}, "ping", "d-1", []byte(`{}`))
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, status)

	resp, err := http.Get("http://" + s.StarterHealth() + "/healthz")
	require.NoError(t, err)
	defer resp.Body.Close()
	report, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(report), "green github-webhooks")
	metrics, err := http.Get("http://" + s.StarterHealth() + "/metrics")
	require.NoError(t, err)
	defer metrics.Body.Close()
	counted, err := io.ReadAll(metrics.Body)
	require.NoError(t, err)
	require.Regexp(t, `smith_github_webhooks_total\{outcome="bad_signature"`, string(counted))
}
