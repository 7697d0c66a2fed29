package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/outbox"
	"agentsmith/internal/standin"
	"agentsmith/internal/tools"
	"agentsmith/rules"
)

// patience is how long the real CLI may take for anything, on a machine that is busy.
const patience = 90 * time.Second

// typeRig is the real agent CLI in a real tmux session of its own server, talking to a
// stand-in. What arrived is told by a log that a hook of its own writes, and by what the
// stand-in was asked; neither is written by what is tested.
type typeRig struct {
	t      *testing.T
	tmux   Tmux
	target Target
	dir    string // the CLI's working directory
	log    string // the oracle's log of hooks
	api    *standin.Server

	mu     sync.Mutex
	bodies []string // what the stand-in was asked
}

// buildSay builds the say program once for all tests of a run.
func buildSay(t *testing.T) string {
	t.Helper()
	say := filepath.Join(t.TempDir(), "say")
	out, err := exec.Command("go", "build", "-o", say, "agentsmith/cmd/say").CombinedOutput()
	require.NoError(t, err, string(out))
	return say
}

// newTypeRig starts the CLI with more arguments, and waits for its input box.
func newTypeRig(t *testing.T, args ...string) *typeRig {
	t.Helper()
	r := startTypeRig(t, args...)
	r.waitFor("the input box", func() bool { return r.look().held == "" })
	return r
}

// These arguments are not the CLI's: untrusted leaves the working directory to be asked
// about, withOutbox sets another outbox for its hooks, and withHook adds one on prompts.
const (
	untrusted  = "untrusted"
	withOutbox = "outbox="
	withHook   = "hook="
)

// ours takes an argument of ours out of the others.
func ours(args []string, name string) (value string, there bool, rest []string) {
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, name); ok {
			value, there = v, true
		} else {
			rest = append(rest, a)
		}
	}
	return value, there, rest
}

func startTypeRig(t *testing.T, args ...string) *typeRig {
	t.Helper()
	_, ask, args := ours(args, untrusted)
	outboxes, _, args := ours(args, withOutbox)
	added, _, args := ours(args, withHook)
	claude, err := tools.Claude()
	require.NoError(t, err)
	tmux, err := tools.Tmux()
	require.NoError(t, err)
	base, err := os.MkdirTemp("", "typing") // short: a socket's path may have 108 bytes
	require.NoError(t, err)
	base, err = filepath.EvalSymlinks(base)
	require.NoError(t, err)
	r := &typeRig{t: t, tmux: Tmux{Command: tmux, Socket: filepath.Join(base, "socket")}, dir: filepath.Join(base, "work"), log: filepath.Join(base, "hooks.jsonl"),
		target: Target{Session: "op-typing", ID: uuid.NewString(), Outbox: filepath.Join(base, "outbox")}}
	r.api, err = standin.Start(context.Background(), standin.Options{Dump: func(_ string, body []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies = append(r.bodies, string(body))
	}})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the screen:\n" + r.screen())
		}
		_, _ = r.tmux.Run(context.Background(), nil, "kill-server")
		_ = endMarked(context.Background(), EnvSession+"="+r.target.ID) // it writes until it is gone
		_ = r.api.Close()
		require.NoError(t, os.RemoveAll(base))
	})

	home := filepath.Join(base, "home")
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.NoError(t, os.MkdirAll(r.dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "file.txt"), []byte("x"), 0o600))
	writeJSON(t, filepath.Join(home, ".claude.json"), map[string]any{
		"hasCompletedOnboarding": true, "theme": "dark",
		"customApiKeyResponses": map[string]any{"approved": []string{"sk-ant-of-the-test"}},
		"projects":              map[string]any{r.dir: map[string]any{"hasTrustDialogAccepted": !ask}},
	})
	say, hooks := buildSay(t), map[string]any{}
	for event, kind := range map[string]string{"Stop": "stop", "Notification": "notification", "UserPromptSubmit": "prompt"} {
		commands := []any{
			map[string]any{"type": "command", "command": shellQuote(say) + " --hook " + kind},
			map[string]any{"type": "command", "command": "{ tr -d '\\n'; echo; } >> " + shellQuote(r.log)},
		}
		if added != "" && kind == "prompt" {
			commands = append(commands, map[string]any{"type": "command", "command": added})
		}
		hooks[event] = []any{map[string]any{"hooks": commands}}
	}
	settings := filepath.Join(base, "settings.json")
	writeJSON(t, settings, map[string]any{"hooks": hooks})

	if outboxes == "" {
		outboxes = r.target.Outbox
	}
	command := []string{"new-session", "-d", "-s", r.target.Session, "-x", "120", "-y", "40", "-c", r.dir,
		"-e", EnvSession + "=" + r.target.ID, "-e", EnvOutbox + "=" + r.target.Outbox,
		"env", "-i", "PATH=" + filepath.Dir(say) + ":" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "TERM=screen-256color", "HOME=" + home,
		"ANTHROPIC_BASE_URL=" + r.api.URL(), "ANTHROPIC_API_KEY=sk-ant-of-the-test", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", EnvSession + "=" + r.target.ID, EnvOutbox + "=" + outboxes,
		claude, "--settings", settings}
	_, err = r.tmux.Run(t.Context(), nil, append(command, args...)...)
	require.NoError(t, err)
	return r
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, raw, 0o600))
}

func (r *typeRig) typer() *typer {
	y := newTyper(r.tmux)
	y.show, y.prove = patience, patience
	return y
}

func (r *typeRig) typed(id, body string) (Arrival, error) {
	return r.typer().do(r.t.Context(), r.target, Text{ID: id, Body: body})
}

// arrives types a text that must arrive.
func (r *typeRig) arrives(body string) {
	r.t.Helper()
	a, err := r.typed(uuid.NewString(), body)
	require.NoError(r.t, err)
	require.Equal(r.t, Arrived, a)
}

func (r *typeRig) look() view {
	r.t.Helper()
	y := r.typer()
	y.target = r.target
	y.target.Command = "claude"
	v, err := y.look(r.t.Context())
	require.NoError(r.t, err)
	return v
}

func (r *typeRig) screen() string {
	out, _ := r.tmux.Run(context.Background(), nil, "capture-pane", "-p", "-t", "="+r.target.Session+":")
	return strings.TrimRight(out, "\n ")
}

// press sends keys as a person at the terminal would.
func (r *typeRig) press(keys ...string) {
	r.t.Helper()
	_, err := r.tmux.Run(r.t.Context(), nil, append([]string{"send-keys", "-t", "=" + r.target.Session + ":"}, keys...)...)
	require.NoError(r.t, err)
}

// person types and enters a text by hand.
func (r *typeRig) person(text string) {
	r.t.Helper()
	r.press("-l", text)
	r.waitFor("a person's text in the box", func() bool { return strings.HasSuffix(glyphs(r.look().text), glyphs(text)) })
	r.press("Enter")
}

func (r *typeRig) waitFor(what string, is func() bool) {
	r.t.Helper()
	for until := time.Now().Add(patience); !is(); time.Sleep(30 * time.Millisecond) {
		if time.Now().After(until) {
			require.FailNow(r.t, "waited too long for "+what)
		}
	}
}

// prompts are what the CLI's own hook log says arrived, oldest first.
func (r *typeRig) prompts() (all []string) {
	return r.hooked("UserPromptSubmit", "prompt")
}

func (r *typeRig) hooked(event, field string) (all []string) {
	raw, err := os.ReadFile(r.log)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(r.t, err)
	for line := range strings.Lines(string(raw)) {
		var h map[string]any
		if json.Unmarshal([]byte(line), &h) == nil && h["hook_event_name"] == event {
			all = append(all, fmt.Sprint(h[field]))
		}
	}
	return all
}

// times counts how often a text became a prompt by the hook log, and in what the
// stand-in was asked.
func (r *typeRig) times(body string) (hooks, asked int) {
	return r.asked(rules.PlainForTerminal(body))
}

// asked is times for a text that is entered as it is.
func (r *typeRig) asked(text string) (hooks, asked int) {
	for _, p := range r.prompts() {
		if outbox.Sum(p) == outbox.Sum(text) {
			hooks++
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.bodies { // each holds the whole conversation
		asked = max(asked, strings.Count(outbox.Squash(flatten(b)), outbox.Squash(text)))
	}
	return hooks, asked
}

// conversation is all that people said to the stand-in, in its order: the longest of what
// it was asked.
func (r *typeRig) conversation() (longest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.bodies {
		if said := outbox.Squash(flatten(b)); len(said) > len(longest) {
			longest = said
		}
	}
	return longest
}

// flatten returns the texts of what people said in a request for messages.
func flatten(body string) string {
	var req struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	_ = json.Unmarshal([]byte(body), &req)
	var b strings.Builder
	for _, m := range req.Messages {
		var text string
		var blocks []struct{ Text string }
		switch {
		case m.Role == "assistant":
		case json.Unmarshal(m.Content, &text) == nil:
			b.WriteString(text + "\n")
		case json.Unmarshal(m.Content, &blocks) == nil:
			for _, x := range blocks {
				b.WriteString(x.Text + "\n")
			}
		}
	}
	return b.String()
}

// asks starts a turn in which the CLI asks whether it may make a file, and waits for that.
func (r *typeRig) asks() {
	r.t.Helper()
	r.person(`[[tool Bash {"command":"touch made"}]] [[say after]]`)
	r.waitForDialog()
}

func (r *typeRig) waitForDialog() {
	r.t.Helper()
	r.waitFor("the permission dialog", func() bool { return strings.Contains(r.screen(), "Do you want to proceed?") })
}

// requireOnce checks that a text is one prompt by both oracles.
func (r *typeRig) requireOnce(body string) {
	r.t.Helper()
	r.waitFor("the stand-in to be asked", func() bool { _, asked := r.times(body); return asked > 0 })
	r.quiet()
	hooks, asked := r.times(body)
	require.LessOrEqual(r.t, hooks, 1, "%q", body)
	require.Equal(r.t, 1, asked, "%q", body)
}

// quiet waits for the CLI to have answered everything.
func (r *typeRig) quiet() {
	r.t.Helper()
	r.waitFor("the CLI to be idle", func() bool {
		require.NoError(r.t, r.tmux.Sweep(r.t.Context(), r.target))
		s := r.screen()
		return !strings.Contains(s, "esc to interrupt") && r.look().held == "" && r.look().text == ""
	})
}
