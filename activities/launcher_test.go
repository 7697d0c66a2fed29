package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// envLauncher makes this test binary a start-operator that does what a folder says.
const envLauncher = "SMITH_TEST_LAUNCHER"

// maybeLaunch is start-operator, where a test runs it.
func maybeLaunch() {
	dir := os.Getenv(envLauncher)
	if dir == "" {
		return
	}
	brief, _ := io.ReadAll(os.Stdin)
	seen, _ := json.Marshal(map[string]any{"args": os.Args[1:], "env": os.Environ(), "brief": string(brief), "pid": os.Getpid(), "pgid": syscall.Getpgrp()})
	_ = os.WriteFile(filepath.Join(dir, "seen"), seen, 0o600)
	if _, err := os.Stat(filepath.Join(dir, "hang")); err == nil {
		git := exec.Command("sleep", "600")
		if git.Start() != nil {
			os.Exit(1)
		}
		_ = os.WriteFile(filepath.Join(dir, "children.tmp"), []byte(strconv.Itoa(git.Process.Pid)), 0o600)
		_ = os.Rename(filepath.Join(dir, "children.tmp"), filepath.Join(dir, "children"))
		_ = git.Wait()
	}
	out, _ := os.ReadFile(filepath.Join(dir, "out"))
	_, _ = os.Stdout.Write(out)
	fmt.Fprintln(os.Stderr, "a reason\x1b[31m")
	text, _ := os.ReadFile(filepath.Join(dir, "code"))
	code, _ := strconv.Atoi(string(text))
	os.Exit(code)
}

// program is a start-operator that says out and ends with code.
type program struct {
	*activities.StartOperator
	dir string
}

func newProgram(t *testing.T, code int, out string) program {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "out"), []byte(out), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "code"), []byte(strconv.Itoa(code)), 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	return program{&activities.StartOperator{
		Program: self, Config: "/etc/smith.yaml", Env: []string{envLauncher + "=" + dir, "PATH=/usr/bin:/bin"}, Timeout: 30 * time.Second,
	}, dir}
}

// seen is what the program was given.
func (p program) seen(t *testing.T) (s struct {
	Args, Env []string
	Brief     string
	PID, PGID int
}) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, "seen"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &s))
	return s
}

func asked() activities.Launch {
	return activities.Launch{
		Seat: "smith", Thread: rules.Thread{Team: "T0LOCAL0001", Channel: "C0RANDOM001", Root: "1700000000.000100"},
		Slug: "fix-login", Repo: "shop", Brief: "fix `it`; $(reboot)",
	}
}

const started = `{"outcome":"started","this_thread":true,"operator":{"name":"op-fix-login","id":"3c0d2f5e-7d0b-4a44-8f5d-1d1c9f0a1a01",` +
	`"seat":"smith","slug":"fix-login","repo":"shop","worktree":"/w","branch":"smith/fix-login","attach":"tmux attach"}}`

func TestStartOperator_ReadsWhatTheProgramSays(t *testing.T) {
	tests := []struct {
		name string
		code int
		out  string
		want activities.LaunchOutcome
		this bool
		fail string
	}{
		{"started", terminal.ExitStarted, started, activities.LaunchStarted, true, ""},
		{"none", terminal.ExitStarted, `{"outcome":"none"}`, activities.LaunchNone, false, ""},
		{"this thread's runs", terminal.ExitExists, strings.Replace(started, `"started"`, `"exists"`, 1), activities.LaunchExists, true, ""},
		{"another's runs", terminal.ExitExists, `{"outcome":"exists","operator":{"name":"op-fix-login"}}`, activities.LaunchExists, false, ""},
		{"full", terminal.ExitLimit, "", activities.LaunchFull, false, ""},
		{"usage", terminal.ExitUsage, "", "", false, "exit status 2"},
		{"no checkout", terminal.ExitNoCheckout, "", "", false, "exit status 4"},
		{"tmux failed", terminal.ExitFailed, started, "", false, "exit status 5"},
		{"no JSON", terminal.ExitStarted, "Started!", "", false, "read what start-operator says"},
		{"nothing", terminal.ExitStarted, "", "", false, "read what start-operator says"},
		{"exists, without a word", terminal.ExitExists, "", "", false, "read what start-operator says"},
		{"more than it may say", terminal.ExitStarted, `{"outcome":"started","pad":"` + strings.Repeat("x", 1<<20) + `"}`, "", false, "read what start-operator says"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newProgram(t, tt.code, tt.out)
			got, err := p.Start(t.Context(), asked())
			if tt.fail != "" {
				require.ErrorContains(t, err, tt.fail)
				require.NotContains(t, err.Error(), "\x1b", "its words are made visible (X2)")
				require.Less(t, len(err.Error()), 70<<10)
				require.Equal(t, activities.Launched{}, got)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got.Outcome)
			require.Equal(t, tt.this, got.ThisThread)
		})
	}
	p := newProgram(t, 0, started)
	got, err := p.Start(t.Context(), asked())
	require.NoError(t, err)
	require.Equal(t, rules.Operator{
		Slug: "fix-login", Repo: "shop", Seat: "smith", Session: "3c0d2f5e-7d0b-4a44-8f5d-1d1c9f0a1a01",
		Worktree: "/w", Branch: "smith/fix-login", Attach: "tmux attach",
	}, got.Operator)
}

// X2, X3: the brief is standard input and no argument, and the environment is what is given.
func TestStartOperator_GivesNoMoreThanItMust(t *testing.T) {
	t.Setenv("SMITH_SLACK_BOT_TOKEN", "xoxb-secret")
	t.Setenv("SMITH_GITHUB_TOKEN", "ghp_secret")
	p := newProgram(t, 0, started)
	_, err := p.Start(t.Context(), asked())
	require.NoError(t, err)
	seen := p.seen(t)
	require.Equal(t, []string{
		"--config=/etc/smith.yaml", "--seat=smith", "--team=T0LOCAL0001", "--channel=C0RANDOM001", "--root=1700000000.000100",
		"--slug=fix-login", "--repo=shop",
	}, seen.Args)
	require.Equal(t, asked().Brief, seen.Brief)
	require.ElementsMatch(t, p.Env, seen.Env)
	require.Equal(t, seen.PID, seen.PGID, "in a process group of its own")

	p = newProgram(t, 0, `{"outcome":"none"}`)
	ask := asked()
	ask.Slug, ask.Repo = "", ""
	_, err = p.Check(t.Context(), ask)
	require.NoError(t, err)
	require.Contains(t, p.seen(t).Args, "--check")
	require.Empty(t, p.seen(t).Brief, "a look takes no brief")
	require.NotContains(t, strings.Join(p.seen(t).Args, " "), "--repo")
}

// O4, X2: without a slug and a checkout nothing is run at all.
func TestStartOperator_StartsNothingWithoutASlugAndARepo(t *testing.T) {
	for _, change := range []func(*activities.Launch){
		func(l *activities.Launch) { l.Repo = "" },
		func(l *activities.Launch) { l.Slug = "" },
		func(l *activities.Launch) { l.Slug = "--check" },
		func(l *activities.Launch) { l.Slug = "a b;reboot" },
		func(l *activities.Launch) { l.Slug = "../../etc" },
	} {
		p := newProgram(t, 0, started)
		ask := asked()
		change(&ask)
		_, err := p.Start(t.Context(), ask)
		require.Error(t, err)
		require.NoFileExists(t, filepath.Join(p.dir, "seen"))
	}
}

// O8: of a launcher that hangs the whole group is ended, git too, before anything else is done.
func TestStartOperator_EndsTheWholeGroupOfOneThatHangs(t *testing.T) {
	for _, how := range []string{"timeout", "stop"} {
		t.Run(how, func(t *testing.T) {
			p := newProgram(t, 0, started)
			require.NoError(t, os.WriteFile(filepath.Join(p.dir, "hang"), nil, 0o600))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if how == "timeout" {
				p.Timeout = 3 * time.Second
			}
			done := make(chan error, 1)
			go func() {
				_, err := p.Start(ctx, asked())
				done <- err
			}()
			require.Eventually(t, func() bool {
				_, err := os.Stat(filepath.Join(p.dir, "children"))
				return err == nil
			}, 20*time.Second, 5*time.Millisecond)
			if how == "stop" {
				cancel()
			}
			require.Error(t, <-done)
			text, err := os.ReadFile(filepath.Join(p.dir, "children"))
			require.NoError(t, err)
			child, err := strconv.Atoi(string(text))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return isGone(child) }, 10*time.Second, 5*time.Millisecond, "its child is gone")
		})
	}
}

// isGone tells whether a process is gone, or waits to be buried.
func isGone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z")
}
