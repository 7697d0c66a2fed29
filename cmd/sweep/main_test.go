package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
	"agentsmith/internal/tools"
	"agentsmith/rules"
)

// box is a machine with a real tmux server, a real store and the real start-operator.
type box struct {
	config, program string
	tmux            terminal.Tmux
	store           *store.Store
}

func newBox(t *testing.T) *box {
	t.Helper()
	dir := t.TempDir()
	command, err := tools.Tmux()
	require.NoError(t, err)
	short, err := os.MkdirTemp("", "tmux") // a socket's path is short
	require.NoError(t, err)
	b := &box{
		config: filepath.Join(dir, "smith.yaml"), program: filepath.Join(dir, "start-operator"),
		tmux: terminal.Tmux{Command: command, Socket: filepath.Join(short, "s")},
	}
	t.Cleanup(func() {
		_, _ = b.tmux.Run(context.Background(), nil, "kill-server")
		require.NoError(t, os.RemoveAll(short))
	})
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", b.program, "agentsmith/cmd/start-operator").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.WriteFile(b.config, fmt.Appendf(nil, "data_dir: %s\nseats: [{name: smith}]\noperators: {tmux: %s, socket: %s}\n",
		dir, command, b.tmux.Socket), 0o600))
	b.store, err = store.Open(t.Context(), filepath.Join(dir, "smith.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.store.Close() })
	return b
}

// session runs something that says it is the thread's operator.
func (b *box) session(t *testing.T, slug string, th rules.Thread) {
	t.Helper()
	args := []string{"new-session", "-d", "-s", rules.OperatorName(slug)}
	for name, value := range map[string]string{
		terminal.EnvSession: "0b9e2f6a-0000-4000-8000-000000000001", terminal.EnvSlug: slug, terminal.EnvSeat: "smith",
		terminal.EnvTeam: th.Team, terminal.EnvChannel: th.Channel, terminal.EnvRoot: th.Root,
	} {
		args = append(args, "-e", name+"="+value)
	}
	_, err := b.tmux.Run(t.Context(), nil, append(args, "cat")...)
	require.NoError(t, err)
}

func (b *box) sweep(t *testing.T, more ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	code = run(t.Context(), append([]string{"--config", b.config, "--program", b.program}, more...), &o, &e)
	return code, o.String(), e.String()
}

func at(root string) rules.Thread { return rules.Thread{Team: "T1", Channel: "C1", Root: root} }

// O7: only the terminals say which thread has an operator, and a name is never taken for
// the beginning of another. Without the "=" of has-session, foo counts as op-foo-bar's.
func TestO7_TheSweepListsFooWhileOnlyFooBarRuns(t *testing.T) {
	b := newBox(t)
	foo, fooBar := at("1700000000.000001"), at("1700000000.000002")
	require.NoError(t, b.store.AskedForWork(t.Context(), "smith", foo, "foo", "web"))
	require.NoError(t, b.store.AskedForWork(t.Context(), "smith", fooBar, "foo-bar", "web"))
	b.session(t, "foo-bar", fooBar)
	code, out, errs := b.sweep(t)
	require.Equal(t, exitDone, code, errs)
	rows := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, rows, 2, out)
	require.True(t, strings.HasPrefix(rows[0], "smith  C1  1700000000.000001  foo  web  asked "), out)
	require.True(t, strings.HasSuffix(rows[0], "  no operator"), out)
	require.Equal(t, "1 thread has no operator. --bind binds one to each.", rows[1])
}

// O7: an entry in the store makes no operator.
func TestO7_TheSweepDoesNotBelieveTheStore(t *testing.T) {
	b := newBox(t)
	require.NoError(t, b.store.AskedForWork(t.Context(), "smith", at("1700000000.000001"), "foo", "web"))
	_, won, err := b.store.Claim(t.Context(), store.Wish{Seat: "smith", Thread: at("1700000000.000001"), Slug: "foo", Repo: "web", Box: "main", Claimant: "x"})
	require.NoError(t, err)
	require.True(t, won)
	_, err = b.store.BindClaim(t.Context(), "smith", at("1700000000.000001"), "x", store.Bound{Session: "0b9e2f6a-0000-4000-8000-000000000009", Number: 1})
	require.NoError(t, err)
	code, out, errs := b.sweep(t)
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, out, "1 thread has no operator.")
}

func TestSweep_ExitCodesTellWhatWentWrong(t *testing.T) {
	b := newBox(t)
	code, out, _ := b.sweep(t, "--help")
	require.Equal(t, exitDone, code)
	require.Contains(t, out, "Exit codes:")
	code, _, _ = b.sweep(t, "--what")
	require.Equal(t, exitUsage, code)
	code, _, errs := b.sweep(t, "--seat", "neo")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, `"neo" is no seat`)
	code, _, errs = b.sweep(t, "--config", filepath.Join(t.TempDir(), "none.yaml"))
	require.Equal(t, exitUsage, code, errs)

	require.NoError(t, b.store.AskedForWork(t.Context(), "smith", at("1700000000.000001"), "foo", "web"))
	b.program = filepath.Join(t.TempDir(), "gone")
	code, _, errs = b.sweep(t)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "ask whether an operator runs")
	t.Setenv("SMITH_AUTO_OPERATOR", "off")
	code, _, errs = b.sweep(t, "--bind")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "SMITH_AUTO_OPERATOR is off")
}
