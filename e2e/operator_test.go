package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/stack"
)

// checkout makes a git checkout with one commit, whose origin is named as on GitHub.
func checkout(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(path, 0o755))
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"config", "user.email", "ana@example.com"}, {"config", "user.name", "ana"},
		{"commit", "-q", "--allow-empty", "-m", "begin"},
		{"remote", "add", "origin", "git@github.com:example/" + name + ".git"},
	} {
		cmd := exec.Command("git", append([]string{"-C", path}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return path
}

// withOperators lets threads get operators that work in a checkout named web.
func withOperators(t testing.TB) settings {
	dir := t.TempDir()
	return func(o *stack.Options) {
		o.Seats = []string{"smith"}
		o.Operators = &stack.Operators{Checkouts: []string{checkout(t, dir, "web")}, Config: map[string]any{"skip_permissions": true}}
	}
}

// O1-O9: a line that asks for work gets exactly one operator, and is answered all the same.
func TestO_AWorkLineGetsItsOperator(t *testing.T) {
	s := start(t, withOperators(t))
	r := s.room(t)
	root := r.say("ana", "@smith please fix the login page in web")
	said := r.answer("smith", root)
	require.Contains(t, said.Text, "Operator #1 op-fix-login-page-in was started for this in web.")
	live, err := s.Tmux.Sessions(t.Context())
	require.NoError(t, err)
	require.Len(t, live, 1)
	require.True(t, strings.HasPrefix(live[0].Name, "op-"))
	require.Equal(t, root, live[0].Thread.Root)
}
