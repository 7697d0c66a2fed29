package github_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/github"
	"agentsmith/internal/githubbox"
)

const (
	token  = "github_pat_very_secret_0123456789"
	repo   = "acme/garden"
	branch = "smith/fix-the-gate"
	sha    = "aa11bb22cc33dd44ee55ff66aa77bb88cc99dd00"
)

// loud keeps what is said loudly and still stands.
type loud struct {
	mu     sync.Mutex
	stands map[string]string
}

func (l *loud) Alarm(_ context.Context, name, text string, _ ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stands[name] = text
}

func (l *loud) Clear(_ context.Context, name, _ string, _ ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.stands, name)
}

func (l *loud) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.stands)
}

// start starts a local GitHub and a client of it.
func start(t *testing.T) (*githubbox.Server, *github.Client, *loud) {
	t.Helper()
	box := githubbox.New(githubbox.Options{Token: token})
	require.NoError(t, box.Start(t.Context(), ""))
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	said := &loud{stands: map[string]string{}}
	c, err := github.New(github.Options{APIURL: box.URL(), Token: token, Timeout: 5 * time.Second, Loud: said})
	require.NoError(t, err)
	return box, c, said
}

// open opens a pull request of the branch.
func open(t *testing.T, box *githubbox.Server) int {
	t.Helper()
	n, err := box.OpenPull(githubbox.Pull{Repo: repo, Branch: branch, SHA: sha, Title: "Fix the gate"})
	require.NoError(t, err)
	return n
}

func headers(kind, delivery string) http.Header {
	h := http.Header{}
	h.Set("X-GitHub-Event", kind)
	h.Set("X-GitHub-Delivery", delivery)
	return h
}

func requireNoToken(t *testing.T, text string) {
	t.Helper()
	require.NotContains(t, text, token)
	require.NotContains(t, strings.ToLower(text), "bearer")
}
