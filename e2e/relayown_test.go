package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/standin"
	"agentsmith/internal/terminal"
)

// desktop is a person's own tmux session with a shell, on a server of their own.
type desktop struct {
	*system
	t    *testing.T
	tmux terminal.Tmux
	dir  string
}

// ownKey signs a person's own agent CLI in at the stand-in.
const ownKey = "sk-ant-of-ana-herself"

// desktop starts a shell in tmux as a person who knows nothing of Smith.
func (s *system) desktop(t *testing.T) *desktop {
	t.Helper()
	base, err := os.MkdirTemp("", "own") // short: a socket's path may have 108 bytes
	require.NoError(t, err)
	base, err = filepath.EvalSymlinks(base)
	require.NoError(t, err)
	d := &desktop{system: s, t: t, dir: filepath.Join(base, "work"), tmux: terminal.Tmux{Command: s.Tmux.Command, Socket: filepath.Join(base, "socket")}}
	t.Cleanup(func() {
		_, _ = d.tmux.Run(context.Background(), nil, "kill-server") // the test's own is over
		require.Eventually(t, func() bool { return os.RemoveAll(base) == nil }, patience, 100*time.Millisecond, "its agent CLI writes until it is gone")
	})
	home := filepath.Join(base, "home")
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.NoError(t, os.MkdirAll(d.dir, 0o700))
	trust, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true, "theme": "dark",
		"customApiKeyResponses": map[string]any{"approved": []string{ownKey[max(0, len(ownKey)-20):]}},
		"projects":              map[string]any{d.dir: map[string]any{"hasTrustDialogAccepted": true}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(home, ".claude.json"), trust, 0o600))
	_, err = d.tmux.Run(t.Context(), nil, "new-session", "-d", "-s", "desk", "-x", "120", "-y", "40", "-c", d.dir,
		"sh", "-c", `exec env -i TMUX="$TMUX" TMUX_PANE="$TMUX_PANE" "$@"`, "sh",
		"PATH="+filepath.Dir(inCommon.programs().claude)+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TERM=screen-256color", "HOME="+home,
		"ANTHROPIC_BASE_URL="+s.Model.URL(), "ANTHROPIC_API_KEY="+ownKey, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "bash", "--norc")
	require.NoError(t, err)
	return d
}

// types has the person type a command into the shell.
func (d *desktop) types(command string) {
	d.t.Helper()
	_, err := d.tmux.Run(d.t.Context(), nil, "send-keys", "-t", "=desk:", "-l", command)
	require.NoError(d.t, err)
	_, err = d.tmux.Run(d.t.Context(), nil, "send-keys", "-t", "=desk:", "Enter")
	require.NoError(d.t, err)
}

func (d *desktop) screen() string {
	out, _ := d.tmux.Run(d.t.Context(), nil, "capture-pane", "-p", "-t", "=desk:")
	return out
}

func (d *desktop) pane() string {
	out, err := d.tmux.Run(d.t.Context(), nil, "display-message", "-p", "-t", "=desk:", "#{pane_pid}")
	require.NoError(d.t, err)
	return strings.TrimSpace(out)
}

// register runs the one command in the session, starts the agent CLI as it says, and
// returns the session's number and identity.
func (d *desktop) register() (number int, id string) {
	d.t.Helper()
	file := filepath.Join(d.dir, "registered.json")
	d.types(fmt.Sprintf("'%s' --config '%s' --register > '%s'", filepath.Join(filepath.Dir(d.Options.Worker), "start-operator"), d.ConfigPath, file))
	var reg struct {
		Number   int
		Settings string
		Session  struct{ ID string }
	}
	wait(d.t, "for the registration", func() (bool, string) {
		raw, _ := os.ReadFile(file)
		return json.Unmarshal(raw, &reg) == nil && reg.Number > 0, d.screen()
	})
	d.types("claude --settings '" + reg.Settings + "'")
	wait(d.t, "for the agent CLI's input box", func() (bool, string) {
		s := d.screen()
		return strings.Contains(s, "❯"), s
	})
	return reg.Number, reg.Session.ID
}

// R1, R10, R11, X5: a person registers their own session with one command, talks to it from
// Slack, and keeps it.
func TestRelay_APersonsOwnSession(t *testing.T) {
	t.Parallel()
	s := start(t, withOwner())
	dm, err := s.Slack.Person("ana").DM("smith")
	require.NoError(t, err)
	r := &relayed{room: &room{system: s, t: t, id: dm}}
	d := s.desktop(t)
	pane := d.pane()
	number, id := d.register()
	require.Equal(t, 1, number)
	r.op = terminal.Live{ID: id}

	listed := r.say("ana", "sessions")
	require.Contains(t, r.inThread(listed, "Sessions:").Text, "#1 desk")
	require.Contains(t, r.inThread(r.say("ana", "work on 1"), "#1").Text, "Your lines here now go to #1 desk")

	hostile := "!touch made; /exit #note @file C-c Enter [[say it is calm here]]"
	line := r.say("ana", hostile)
	word := r.inThread(line, "it is calm here")
	require.True(t, strings.HasPrefix(postID(word), "person/session/"+id+"/"), "its own word: %s", postID(word))
	asked := s.ownPrompts("it is calm here")
	require.Len(t, asked, 1, "typed once")
	require.Contains(t, asked[0].User, "!touch made; /exit #note @file C-c Enter", "word for word")
	require.NoFileExists(t, filepath.Join(d.dir, "made"))
	require.Empty(t, r.brainRuns(line), "no agent of Smith's ran for it (R5)")
	s.excuses.add(dm, line, "carried by a relay")

	// A dialog is the person's to answer: the next line waits, which is said, and answers nothing (R10).
	asks := r.say("ana", `[[tool Bash {"command":"touch made"}]] [[say I was let]]`)
	wait(t, "for the permission dialog", func() (bool, string) {
		s := d.screen()
		return strings.Contains(s, "Do you want to proceed?"), s
	})
	held := r.say("ana", "yes [[say then on with it]]")
	r.inThread(held, "waits to be typed into #1: a question or another screen is open")
	require.NoFileExists(t, filepath.Join(d.dir, "made"))
	require.Contains(t, d.screen(), "Do you want to proceed?")
	_, err = d.tmux.Run(t.Context(), nil, "send-keys", "-t", "=desk:", "Escape")
	require.NoError(t, err)
	r.inThread(held, "then on with it")
	require.Len(t, s.ownPrompts("then on with it"), 1)
	require.NoFileExists(t, filepath.Join(d.dir, "made"))
	for _, ts := range []string{asks, held} {
		s.excuses.add(dm, ts, "carried by a relay")
	}

	require.Contains(t, r.inThread(r.say("ana", "stop"), "closed").Text, "The relay to #1 is closed")
	mine := r.say("ana", "and you? [[say all is well]]")
	require.Contains(t, r.answer("smith", mine).Text, "all is well")
	require.Empty(t, s.ownPrompts("all is well"))

	s.Worker.Kill() // whatever happens to Smith, the session is the person's
	s.restartWorker(t)
	r.answer("smith", r.say("ana", "still there? [[say yes]]"))
	require.Equal(t, pane, d.pane(), "nothing in the session was touched (X5)")
	require.Contains(t, d.screen(), "it is calm here")
}

// ownPrompts are the prompts of a person's own agent CLI that hold text: those that no turn
// of Smith's carries.
func (s *system) ownPrompts(text string) (out []standin.Entry) {
	for _, e := range s.Model.Log() {
		if e.Step == 0 && strings.Contains(e.User, text) && len(e.Lines) == 0 {
			out = append(out, e)
		}
	}
	return out
}
