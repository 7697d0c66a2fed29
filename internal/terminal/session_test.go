package terminal

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"agentsmith/rules"
)

func TestRun_HandsEveryArgumentToTmuxAsItIs(t *testing.T) {
	tm := newTmux(t)
	hostile := []string{"a;", ";", `b\;`, "#{pid}", "$(touch x)", "`touch x`", "'\"", "-t", "=", "é\ttab", "two\nrows;", "~", "%1", ""}
	out := filepath.Join(t.TempDir(), "argv")
	script(t, out+".sh", "#!/bin/sh\nfor a; do printf '%s\\0' \"$a\"; done > "+out+".new && mv "+out+".new "+out+"\nsleep 1000\n")
	_, err := tm.Run(t.Context(), nil, append([]string{"new-session", "-d", out + ".sh"}, hostile...)...)
	require.NoError(t, err)
	require.Eventually(t, func() bool { _, err := os.Stat(out); return err == nil }, 10*time.Second, 5*time.Millisecond)
	got, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Equal(t, hostile, strings.Split(strings.TrimSuffix(string(got), "\x00"), "\x00"))
	require.Len(t, names(t, tm), 1, "one command was run")
}

// A server keeps the environment of whoever started it, and hands it to every session (X3).
func TestRun_TheServerInheritsNoSecret(t *testing.T) {
	t.Setenv("SMITH_BOT_TOKEN", "xoxb-secret")
	tm := newTmux(t)
	sleeper(t, tm, "one")
	for _, from := range []string{"-g", "-t=one"} {
		env, err := tm.Run(t.Context(), nil, "show-environment", from)
		require.NoError(t, err)
		require.NotContains(t, env, "xoxb-secret")
	}
}

func TestSessions_OfAServerThatDoesNotRunAreNone(t *testing.T) {
	tm := newTmux(t)
	require.Empty(t, names(t, tm))
	_, ok, err := tm.Find(t.Context(), "op-foo")
	require.NoError(t, err)
	require.False(t, ok)
}

// A server ends with its last session; asking one that does is no error (O7).
func TestSessions_OfAServerThatIsJustEndingAreTold(t *testing.T) {
	tm := newTmux(t)
	for range 30 {
		sleeper(t, tm, "op-foo", "SMITH_SESSION="+uuid.NewString())
		asked := make(chan error, 1)
		go func() {
			var err error
			for err == nil {
				var all []Live
				if all, err = tm.Sessions(t.Context()); len(all) == 0 {
					break
				}
			}
			asked <- err
		}()
		_, err := tm.Run(t.Context(), nil, "kill-session", "-t", "=op-foo")
		require.True(t, err == nil || gone(err), "%v", err)
		require.NoError(t, <-asked)
	}
}

// That a server cannot be reached says nothing about what runs in it.
func TestSessions_OfAServerThatCannotBeReachedAreUnknown(t *testing.T) {
	tm := newTmux(t)
	tm.Socket = filepath.Join(t.TempDir(), strings.Repeat("a", 200))
	_, err := tm.Sessions(t.Context())
	require.Error(t, err)
	require.Error(t, Check(t.Context(), tm, "foo", thread(1)))
	var exists *ExistsError
	require.NotErrorAs(t, err, &exists)
}

func TestSessions_AreReadFromTheirEnvironment(t *testing.T) {
	tm := newTmux(t)
	id := uuid.NewString()
	sleeper(t, tm, "op-foo", "SMITH_SESSION="+id, "SMITH_SEAT=smith", "SMITH_TEAM=T1", "SMITH_CHANNEL=C1", "SMITH_ROOT=1.2",
		"SMITH_SLUG=foo", "SMITH_REPO=shop", "SMITH_WORKTREE=/w", "SMITH_BRANCH=smith/foo", "SMITH_OUTBOX=/o", "OTHER=x")
	sleeper(t, tm, "mine", "SMITH_SESSION="+uuid.NewString())
	sleeper(t, tm, "op-bar")
	s, ok, err := tm.Find(t.Context(), "op-foo")
	require.NoError(t, err)
	require.True(t, ok)
	require.Positive(t, s.PanePID)
	require.Equal(t, "sleep", s.Command)
	require.WithinDuration(t, time.Now(), s.Created, time.Minute)
	require.Equal(t, Live{
		Name: "op-foo", ID: id, Kind: KindOperator, Seat: "smith", Slug: "foo", Repo: "shop", Worktree: "/w", Branch: "smith/foo", Outbox: "/o",
		Thread: rules.Thread{Team: "T1", Channel: "C1", Root: "1.2"}, PanePID: s.PanePID, Command: s.Command, Created: s.Created,
		Socket: tm.Socket, Attach: "tmux -S " + tm.Socket + " attach -t '=op-foo'", target: s.target,
	}, s)
	for name, kind := range map[string]string{"mine": KindPerson, "op-bar": ""} {
		s, ok, err := tm.Find(t.Context(), name)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, kind, s.Kind, "what a session is stands in its environment, not in its name (X5)")
	}
	_, ok, err = tm.Find(t.Context(), "op-fo")
	require.NoError(t, err)
	require.False(t, ok, "a name is found exactly")
}

func TestAttach_IsACommandForEveryShell(t *testing.T) {
	require.Equal(t, "tmux -L smith attach -t '=op-foo'", Tmux{Socket: "smith"}.Attach("op-foo"))
	require.Equal(t, "tmux -S '/a b/s' attach -t '=op-foo'", Tmux{Socket: "/a b/s"}.Attach("op-foo"))
}

// X5: a session of the same name, and a process with another identity, are left alone.
func TestKill_EndsByIdentityOnly(t *testing.T) {
	tm := newTmux(t)
	id, other := uuid.NewString(), uuid.NewString()
	sleeper(t, tm, "op-foo", "SMITH_SESSION="+other)
	require.NoError(t, tm.Kill(t.Context(), id), "there is nothing of that identity")
	require.Equal(t, []string{"op-foo"}, names(t, tm))
	sleeper(t, tm, "renamed", "SMITH_SESSION="+id, "SMITH_SLUG=foo")
	require.NoError(t, tm.Kill(t.Context(), id))
	require.Equal(t, []string{"op-foo"}, names(t, tm))
	require.ErrorContains(t, tm.Kill(t.Context(), other), "a person's own", "what has no task is nobody's to end")
	require.Equal(t, []string{"op-foo"}, names(t, tm))
	for _, bad := range []string{"", "op-foo", "$0", "*"} {
		require.Error(t, tm.Kill(t.Context(), bad))
	}
}

func TestKill_EndsWhatASessionPutIntoTheBackground(t *testing.T) {
	tm := newTmux(t)
	id := uuid.NewString()
	mark := filepath.Join(t.TempDir(), "began")
	_, err := tm.Run(t.Context(), nil, "new-session", "-d", "-s", "op-foo", "-e", "SMITH_SESSION="+id, "-e", "SMITH_SLUG=foo",
		"sh", "-c", `setsid sh -c 'trap "" HUP TERM; : > "$0"; while :; do sleep 0.1; done' "$0" & sleep 1000`, mark)
	require.NoError(t, err)
	bystander := exec.CommandContext(t.Context(), "sleep", "1000")
	bystander.Env = []string{"SMITH_SESSION=" + uuid.NewString()}
	require.NoError(t, bystander.Start())
	require.Eventually(t, func() bool { _, err := os.Stat(mark); return err == nil }, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, tm.Kill(t.Context(), id))
	left, err := marked("SMITH_SESSION=" + id)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, bystander.Process.Signal(os.Interrupt), "a bystander lives")
	_ = bystander.Wait()
}

func TestRunAll_GivesTheOutputOfEach(t *testing.T) {
	tm := newTmux(t)
	sleeper(t, tm, "one")
	all, err := tm.RunAll(t.Context(), []string{"display-message", "-p", "first;"}, []string{"list-sessions", "-F", "#{session_name}"}, []string{"display-message", "-p", ""})
	require.NoError(t, err)
	require.Equal(t, []string{"first;\n", "one\n", "\n"}, all)
	_, err = tm.RunAll(t.Context(), []string{"display-message", "-p", "x"}, []string{"show-environment", "-t", "=none", EnvSession})
	require.True(t, noSession(err), "%v", err)
}

func TestStill_IsTrueOfTheVerySessionOnly(t *testing.T) {
	tm := newTmux(t)
	sleeper(t, tm, "one")
	_, err := tm.Run(t.Context(), nil, "set-environment", "-t", "=one", EnvSession, "11111111-1111-4111-8111-111111111111")
	require.NoError(t, err)
	l, found, err := tm.Find(t.Context(), "one")
	require.NoError(t, err)
	require.True(t, found)
	require.True(t, tm.Still(t.Context(), l))
	other := l
	other.ID = "22222222-2222-4222-8222-222222222222"
	require.False(t, tm.Still(t.Context(), other), "another that took its name")
	_, err = tm.Run(t.Context(), nil, "kill-session", "-t", "=one")
	require.NoError(t, err)
	require.False(t, tm.Still(t.Context(), l))
}
