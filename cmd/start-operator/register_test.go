package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/outbox"
	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
)

// mine starts a tmux session of a person's own, on a server that is not the operators'.
func (r *rig) mine(t *testing.T, name string) terminal.Tmux {
	t.Helper()
	short, err := os.MkdirTemp("", "tmux")
	require.NoError(t, err)
	own := terminal.Tmux{Command: r.tmux.Command, Socket: filepath.Join(short, "own")}
	_, err = own.Run(t.Context(), nil, "new-session", "-d", "-s", name, "sleep", "600")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = own.Run(t.Context(), nil, "kill-server")
		_ = os.RemoveAll(short)
	})
	return own
}

func (r *rig) register(t *testing.T, own terminal.Tmux, name string) (registration, said) {
	t.Helper()
	got := r.call(t, "", "--config", r.config, "--register", "--socket", own.Socket, "--session", name)
	var reg registration
	if got.code == 0 {
		require.NoError(t, json.Unmarshal([]byte(got.out), &reg), got.out)
	}
	return reg, got
}

// R1: a person's session gets its number for good, and the same one each time; its hooks
// reach the outbox; nothing in it is touched, and nothing of ours ends it (X5).
func TestRegister_APersonsSession(t *testing.T) {
	r := newRig(t, "")
	own := r.mine(t, "work")
	before, _, err := own.Find(t.Context(), "work")
	require.NoError(t, err)
	reg, got := r.register(t, own, "work")
	require.Zero(t, got.code, got.errs)
	require.Equal(t, 1, reg.Number)
	require.Equal(t, terminal.KindPerson, reg.Session.Kind)
	require.Contains(t, got.errs, "This session is #1 now.")
	require.Contains(t, got.errs, "claude --settings "+reg.Settings)
	again, _ := r.register(t, own, "work")
	require.Equal(t, reg, again)
	after, _, err := own.Find(t.Context(), "work")
	require.NoError(t, err)
	require.Equal(t, before.PanePID, after.PanePID)

	other := r.mine(t, "another")
	reg2, _ := r.register(t, other, "another")
	require.Equal(t, 2, reg2.Number)

	s, err := store.Open(t.Context(), filepath.Join(r.dir, "data", "smith.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	kept, err := s.Session(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, []string{reg.Session.ID, "work", "person", own.Socket}, []string{kept.ID, kept.Name, kept.Kind, kept.Socket})

	// The hooks speak for the session, though its programs have not got its environment.
	var settings struct {
		Hooks map[string][]struct{ Hooks []struct{ Command string } }
	}
	require.NoError(t, json.Unmarshal([]byte(r.read(t, reg.Settings)), &settings))
	require.Len(t, settings.Hooks, 3)
	cmd := exec.Command("sh", "-c", settings.Hooks["Stop"][0].Hooks[0].Command)
	cmd.Stdin = strings.NewReader(`{"hook_event_name":"Stop","session_id":"x","last_assistant_message":"It is done."}`)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	words, err := (outbox.Box{Dir: filepath.Join(r.dir, "data", "outbox")}).Words(reg.Session.ID)
	require.NoError(t, err)
	require.Len(t, words, 1)
	require.Equal(t, "It is done.", words[0].Text)

	require.ErrorContains(t, own.Kill(t.Context(), reg.Session.ID), "a person's own")
	_, alive, err := own.ByID(t.Context(), reg.Session.ID)
	require.NoError(t, err)
	require.True(t, alive)
}

func TestRegister_RefusesWhatItCannotName(t *testing.T) {
	r := newRig(t, "")
	own := r.mine(t, "work")
	for name, args := range map[string][]string{
		"no such session":  {"--socket", own.Socket, "--session", "wor"},
		"a hostile name":   {"--socket", own.Socket, "--session", "work; kill-server"},
		"a target of tmux": {"--socket", own.Socket, "--session", "=work:0"},
		"no session":       {"--socket", own.Socket},
		"not in tmux":      {},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.call(t, "", append([]string{"--config", r.config, "--register"}, args...)...)
			require.Equal(t, terminal.ExitUsage, got.code, got.errs)
			require.Empty(t, got.out)
		})
	}
	_, err := own.Run(t.Context(), nil, "new-session", "-d", "-s", "op-fix-it", "-e", terminal.EnvSession+"=11111111-1111-4111-8111-111111111111",
		"-e", terminal.EnvSlug+"=fix-it", "sleep", "600")
	require.NoError(t, err)
	_, got := r.register(t, own, "op-fix-it")
	require.Equal(t, terminal.ExitExists, got.code, "an operator has its number")
}
