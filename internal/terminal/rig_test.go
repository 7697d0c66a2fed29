package terminal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/tools"
	"agentsmith/rules"
)

// newTmux is a tmux server of the test's own. It ends with the test.
func newTmux(t *testing.T) Tmux {
	t.Helper()
	command, err := tools.Tmux()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "tmux") // a socket's path is short
	require.NoError(t, err)
	tm := Tmux{Command: command, Socket: filepath.Join(dir, "s")}
	t.Cleanup(func() {
		_, err := tm.Run(context.Background(), nil, "kill-server")
		require.True(t, err == nil || noServer(err), "%v", err)
		require.NoError(t, os.RemoveAll(dir))
	})
	return tm
}

// sleeper starts a session that just stays, with an environment.
func sleeper(t *testing.T, tm Tmux, name string, env ...string) {
	t.Helper()
	args := []string{"new-session", "-d", "-s", name}
	for _, kv := range env {
		args = append(args, "-e", kv)
	}
	_, err := tm.Run(t.Context(), nil, append(args, "sleep", "1000")...)
	require.NoError(t, err)
}

// stub is an agent CLI that takes its brief, writes down how it was called, and stays.
const stub = `#!/bin/sh
dir="$SMITH_OUTBOX/$SMITH_SESSION"
mkdir -p "$dir/prompts"
pwd > "$dir/pwd"
tr '\0' '\n' < /proc/$$/environ > "$dir/env"
for a; do printf '%s\0' "$a"; done > "$dir/argv"
: > "$dir/prompts/1.json"
exec sleep 1000
`

// box is a machine with one checkout, named shop.
type box struct {
	tmux     Tmux
	dir      string
	checkout string
	bin      string
}

func newBox(t *testing.T) box {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	b := box{tmux: newTmux(t), dir: dir, checkout: filepath.Join(dir, "src", "shop"), bin: filepath.Join(dir, "bin")}
	newCheckout(t, b.checkout)
	require.NoError(t, os.Mkdir(b.bin, 0o700))
	script(t, filepath.Join(b.bin, "claude"), stub)
	script(t, filepath.Join(b.bin, "say"), "#!/bin/sh\n")
	return b
}

func newCheckout(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(path, 0o700))
	git(t, path, "init", "--quiet", "--initial-branch=main")
	require.NoError(t, os.WriteFile(filepath.Join(path, "README"), []byte("a shop\n"), 0o600))
	git(t, path, "add", "--all")
	git(t, path, "commit", "--quiet", "--message=begin")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=T", "-c", "user.email=t@localhost"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), "git %v: %s", args, &out)
	return strings.TrimSpace(out.String())
}

func script(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
}

// thread is the nth thread of the tests.
func thread(n int) rules.Thread {
	return rules.Thread{Team: "T0001", Channel: "C0001", Root: fmt.Sprintf("1700000000.%06d", n)}
}

// request asks for an operator of a thread in the box's checkout.
func (b box) request(slug string, thread rules.Thread) StartRequest {
	return StartRequest{
		Tmux: b.tmux, Seat: "smith", Slug: slug, Thread: thread,
		Repo: "shop", Checkouts: []rules.Checkout{{Name: "shop", Path: b.checkout}}, Brief: "Mend the till.",
		Dir: filepath.Join(b.dir, "operators"), Outbox: filepath.Join(b.dir, "outbox"), Patience: 30 * time.Second,
		Agent: Agent{
			Command: filepath.Join(b.bin, "claude"), Say: filepath.Join(b.bin, "say"), Home: filepath.Join(b.dir, "operators", "home"),
			Env: []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"},
		},
	}
}

// start starts an operator that must start.
func (b box) start(t *testing.T, slug string, thread rules.Thread) Live {
	t.Helper()
	live, err := Start(t.Context(), b.request(slug, thread))
	require.NoError(t, err)
	require.True(t, live.Briefed)
	return live
}

// told is what the stub wrote down of how it was called.
func (b box) told(t *testing.T, s Live, what string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "outbox", s.ID, what))
	require.NoError(t, err)
	return string(text)
}

func names(t *testing.T, tm Tmux) []string {
	t.Helper()
	all, err := tm.Sessions(t.Context())
	require.NoError(t, err)
	var out []string
	for _, s := range all {
		out = append(out, s.Name)
	}
	return out
}
