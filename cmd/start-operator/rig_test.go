package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/terminal"
	"agentsmith/internal/tools"
	"agentsmith/rules"
)

// TestMain lets a session that run starts in this process become its agent CLI.
func TestMain(m *testing.M) {
	terminal.MaybeSession()
	os.Exit(m.Run())
}

// rig is a machine with the real programs, one checkout and a tmux server of its own.
type rig struct {
	dir, bin, checkout, config string
	tmux                       terminal.Tmux
	env                        []string
}

// newRig builds the programs and writes a config; more is put at its end.
func newRig(t *testing.T, more string, tags ...string) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	command, err := tools.Tmux()
	require.NoError(t, err)
	short, err := os.MkdirTemp("", "tmux") // a socket's path is short
	require.NoError(t, err)
	r := &rig{
		dir: dir, bin: filepath.Join(dir, "bin"), checkout: filepath.Join(dir, "src", "shop"), config: filepath.Join(dir, "smith.yaml"),
		tmux: terminal.Tmux{Command: command, Socket: filepath.Join(short, "s")},
		env:  []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SLACK_BOT_TOKEN=xoxb-secret", "SMITH_BOT_TOKEN=xoxb-secret"},
	}
	t.Cleanup(func() {
		r.end(t)
		require.NoError(t, os.RemoveAll(short))
	})
	build(t, r.bin, tags...)
	r.newCheckout(t)
	text := fmt.Sprintf("data_dir: %s/data\nseats:\n- name: smith\n  allowed_tools: [Read, Write, Bash]\nwritable_roots: [%s]\n%s\noperators:\n  tmux: %s\n  socket: %s\n",
		dir, r.checkout, more, command, r.tmux.Socket)
	require.NoError(t, os.WriteFile(r.config, []byte(text), 0o600))
	return r
}

func build(t *testing.T, into string, tags ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-tags", strings.Join(tags, ","), "-o", into+"/", "agentsmith/cmd/start-operator", "agentsmith/cmd/say")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func (r *rig) newCheckout(t *testing.T) {
	t.Helper()
	require.NoError(t, os.MkdirAll(r.checkout, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(r.checkout, "README"), []byte("a shop\n"), 0o600))
	r.git(t, "init", "--quiet", "--initial-branch=main")
	r.git(t, "add", "--all")
	r.git(t, "commit", "--quiet", "--message=begin")
}

func (r *rig) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", r.checkout, "-c", "user.name=T", "-c", "user.email=t@localhost"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

// thread is the nth thread of the tests.
func thread(n int) rules.Thread {
	return rules.Thread{Team: "T0001", Channel: "C0001", Root: fmt.Sprintf("1700000000.%06d", n)}
}

func (r *rig) flags(slug string, thread rules.Thread, more ...string) []string {
	return append([]string{"--config", r.config, "--seat", "smith", "--team", thread.Team, "--channel", thread.Channel, "--root", thread.Root, "--slug", slug}, more...)
}

// said is how a program ended.
type said struct {
	code      int
	out, errs string
}

func (s said) answer(t *testing.T) answer {
	t.Helper()
	var a answer
	dec := json.NewDecoder(strings.NewReader(s.out))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&a), "%+v", s)
	return a
}

// command is start-operator with a brief on its standard input.
func (r *rig) command(brief string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(r.bin, "start-operator"), args...)
	cmd.Env, cmd.Dir = r.env, r.dir
	cmd.Stdin = strings.NewReader(brief)
	return cmd
}

func (r *rig) call(t *testing.T, brief string, args ...string) said {
	t.Helper()
	cmd := r.command(brief, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	return said{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func (r *rig) names(t *testing.T) []string {
	t.Helper()
	all, err := r.tmux.Sessions(t.Context())
	require.NoError(t, err)
	names := []string{}
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// allow changes what the seat's agents may do unasked, operators adds a line on operators.
func (r *rig) allow(t *testing.T, tools string) {
	r.edit(t, "allowed_tools: [Read, Write, Bash]", "allowed_tools: "+tools)
}
func (r *rig) operators(t *testing.T, line string) {
	r.edit(t, "operators:\n", "operators:\n  "+line+"\n")
}

func (r *rig) edit(t *testing.T, old, other string) {
	t.Helper()
	text, err := os.ReadFile(r.config)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	require.NoError(t, os.WriteFile(r.config, []byte(strings.Replace(string(text), old, other, 1)), 0o600))
}

// write puts a file into the checkout.
func (r *rig) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(r.checkout, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// end ends every session, with all that runs in it, and the server.
func (r *rig) end(t *testing.T) {
	ctx := context.Background()
	all, err := r.tmux.Sessions(ctx)
	require.NoError(t, err)
	for _, s := range all {
		if s.Kind == terminal.KindOperator {
			require.NoError(t, r.tmux.Kill(ctx, s.ID))
		}
	}
	_, _ = r.tmux.Run(ctx, nil, "kill-server")
}

// program puts a script beside the real programs.
func (r *rig) program(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(r.bin, name), []byte(text), 0o700))
}

func (r *rig) read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
