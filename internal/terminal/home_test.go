package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func newHome(t *testing.T) home {
	t.Helper()
	dir := t.TempDir()
	return home{dir: filepath.Join(dir, "home"), locks: locks{filepath.Join(dir, "locks")}}
}

func (h home) state(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, ".claude.json"))
	require.NoError(t, err)
	var state map[string]any
	require.NoError(t, json.Unmarshal(text, &state), "%s", text)
	return state
}

func TestHome_AnswersWhatTheCLIWouldAsk(t *testing.T) {
	h := newHome(t)
	require.NoError(t, h.prepare(t.Context(), welcome{worktree: "/w/foo", apiKey: "sk-ant-0123456789-0123456789-0123456789", person: "/p"}))
	require.Equal(t, map[string]any{
		"hasCompletedOnboarding": true, "theme": "dark",
		"customApiKeyResponses": map[string]any{"approved": []any{"123456789-0123456789"}},
		"projects":              map[string]any{"/w/foo": map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
	}, h.state(t), "and nothing about skipped permissions (X4)")
	require.NoError(t, h.prepare(t.Context(), welcome{worktree: "/w/bar", skip: true}))
	require.Equal(t, true, h.state(t)["bypassPermissionsModeAccepted"])
	st, err := os.Stat(filepath.Join(h.dir, ".claude.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	gitConfig, err := os.ReadFile(filepath.Join(h.dir, ".gitconfig"))
	require.NoError(t, err)
	require.Contains(t, string(gitConfig), `path = "/p/.gitconfig"`)
}

// A person's own file may stand there: it is merged, never rewritten.
func TestHome_KeepsWhatStandsThere(t *testing.T) {
	const was = `{"theme":"light","numStartups":12345678901234567890,"mcp":{"a":[1.50,"<&>"]},"projects":{"/mine":{"history":["x"]},"/w":{"allowedTools":["Read"]}},"customApiKeyResponses":{"approved":["k"],"rejected":["r"]}}`
	merged, err := mergeState([]byte(was), welcome{worktree: "/w", apiKey: "k"})
	require.NoError(t, err)
	var got map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(merged, &got))
	require.Equal(t, "12345678901234567890", string(got["numStartups"]))
	require.Equal(t, `"light"`, string(got["theme"]))
	require.JSONEq(t, `{"a":[1.50,"<&>"]}`, string(got["mcp"]))
	require.JSONEq(t, `{"approved":["k"],"rejected":["r"]}`, string(got["customApiKeyResponses"]))
	require.JSONEq(t, `{"/mine":{"history":["x"]},"/w":{"allowedTools":["Read"],"hasTrustDialogAccepted":true,"hasCompletedProjectOnboarding":true}}`, string(got["projects"]))
	again, err := mergeState(merged, welcome{worktree: "/w", apiKey: "k"})
	require.NoError(t, err)
	require.Equal(t, string(merged), string(again), "nothing new is nothing written")
}

func TestHome_DestroysNoFileThatItCannotRead(t *testing.T) {
	for _, bad := range []string{"{", "[]", "null", "{} x", `"x"`, "\x00"} {
		h := newHome(t)
		require.NoError(t, os.MkdirAll(h.dir, 0o700))
		path := filepath.Join(h.dir, ".claude.json")
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		require.ErrorContains(t, h.prepare(t.Context(), welcome{worktree: "/w"}), path, bad)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, bad, string(text))
	}
}

func TestHome_LosesNoAnswerWhenManyStartAtOnce(t *testing.T) {
	h := newHome(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := h.prepare(t.Context(), welcome{worktree: fmt.Sprintf("/w/%d", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Len(t, h.state(t)["projects"], 20)
	require.NoDirExists(t, filepath.Join(h.dir, ".claude.json.lock"))
}

// The CLI writes the same file, under a lock that is a folder.
func TestHome_WaitsForTheCLIsLockUnlessItsHolderIsDead(t *testing.T) {
	h := newHome(t)
	lock := filepath.Join(h.dir, ".claude.json.lock")
	require.NoError(t, os.MkdirAll(lock, 0o700))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, h.prepare(ctx, welcome{worktree: "/w"}), context.DeadlineExceeded)
	require.NoFileExists(t, filepath.Join(h.dir, ".claude.json"))
	old := time.Now().Add(-2 * cliStale)
	require.NoError(t, os.Chtimes(lock, old, old))
	require.NoError(t, h.prepare(t.Context(), welcome{worktree: "/w"}))
}

func FuzzMergeState(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"projects":3}`, `{"customApiKeyResponses":{"approved":{}}}`, `{"a":1e400}`, "[]", "{} x"} {
		f.Add(seed, "/w", "key")
	}
	f.Fuzz(func(t *testing.T, text, worktree, key string) {
		if !utf8.ValidString(worktree) || !utf8.ValidString(key[max(len(key)-keyTail, 0):]) {
			return // ours are
		}
		merged, err := mergeState([]byte(text), welcome{worktree: worktree, apiKey: key})
		if err != nil {
			return
		}
		again, err := mergeState(merged, welcome{worktree: worktree, apiKey: key})
		require.NoError(t, err)
		require.Equal(t, string(merged), string(again))
	})
}
