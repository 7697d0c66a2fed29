package terminal

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"agentsmith/rules"
)

func TestStart_MakesAWorktreeASessionAndABrief(t *testing.T) {
	b := newBox(t)
	s := b.start(t, "mend-till", thread(1))
	require.Equal(t, "op-mend-till", s.Name)
	require.NoError(t, uuid.Validate(s.ID))
	require.Equal(t, KindOperator, s.Kind)
	require.Equal(t, thread(1), s.Thread)
	require.Equal(t, "shop", s.Repo)
	require.Equal(t, "smith/mend-till", s.Branch)
	require.Equal(t, filepath.Join(b.dir, "operators", "worktrees", "mend-till"), s.Worktree)
	require.Equal(t, s.Worktree, strings.TrimSpace(b.told(t, s, "pwd")))
	require.Equal(t, "smith/mend-till", git(t, s.Worktree, "branch", "--show-current"))
	require.Equal(t, git(t, b.checkout, "rev-parse", "HEAD"), git(t, s.Worktree, "rev-parse", "HEAD"))
	argv := strings.Split(strings.TrimSuffix(b.told(t, s, "argv"), "\x00"), "\x00")
	require.Contains(t, argv, "--session-id="+s.ID)
	require.NotContains(t, argv, "--dangerously-skip-permissions", "X4")
	brief := argv[len(argv)-1]
	require.Equal(t, "--", argv[len(argv)-2])
	require.True(t, strings.HasPrefix(brief, briefPrefix+"Mend the till."), brief)
	require.Contains(t, brief, filepath.Join(b.bin, "say")+" 'TEXT'")
}

// The control of the "=": take it from has and this goes red (O7).
func TestCheck_AnswersForThisVeryNameAndNoLongerOne(t *testing.T) {
	tm := newTmux(t)
	sleeper(t, tm, "op-foo-bar")
	require.NoError(t, Check(t.Context(), tm, "foo", thread(1)), "foo is free while only op-foo-bar runs")
	err := Check(t.Context(), tm, "foo-bar", thread(1))
	var exists *ExistsError
	require.ErrorAs(t, err, &exists)
	require.False(t, exists.ThisThread)
	require.Equal(t, "op-foo-bar", exists.Live.Name)
	require.Equal(t, ExitExists, ExitCode(err))
}

// What a launcher without the "=" would do, said by tmux itself.
func TestCheck_WithoutTheEqualsSignTmuxTakesALongerName(t *testing.T) {
	tm := newTmux(t)
	sleeper(t, tm, "op-foo-bar")
	_, err := tm.Run(t.Context(), nil, "has-session", "-t", "op-foo")
	require.NoError(t, err, "tmux takes the name for a prefix")
	_, err = tm.Run(t.Context(), nil, "has-session", "-t", "=op-foo")
	require.True(t, noSession(err), "%v", err)
}

// A server that a service manager keeps has no session at first, and again at the end.
func TestStart_TakesAServerWithoutASession(t *testing.T) {
	b := newBox(t)
	server := exec.Command(b.tmux.Command, append(b.tmux.server(), "-D")...)
	server.Env = bareEnv()
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		require.NoError(t, server.Process.Kill())
		_ = server.Wait()
	})
	require.Eventually(t, func() bool { _, err := os.Stat(b.tmux.Socket); return err == nil }, 10*time.Second, 5*time.Millisecond)
	require.Empty(t, names(t, b.tmux))
	require.NoError(t, Check(t.Context(), b.tmux, "foo", thread(1)))
	s := b.start(t, "foo", thread(1))
	require.NoError(t, b.tmux.Kill(t.Context(), s.ID))
	require.NoError(t, Check(t.Context(), b.tmux, "foo", thread(1)))
	b.start(t, "foo", thread(1))
}

func TestStart_StartsFooWhileOnlyFooBarRuns(t *testing.T) {
	b := newBox(t)
	b.start(t, "foo-bar", thread(1))
	b.start(t, "foo", thread(2))
	require.ElementsMatch(t, []string{"op-foo", "op-foo-bar"}, names(t, b.tmux))
}

func TestStart_RefusesASecondOneOfTheThread(t *testing.T) {
	b := newBox(t)
	first := b.start(t, "foo", thread(1))
	for _, slug := range []string{"foo", "bar"} {
		_, err := Start(t.Context(), b.request(slug, thread(1)))
		var exists *ExistsError
		require.ErrorAs(t, err, &exists, slug)
		require.True(t, exists.ThisThread)
		require.Equal(t, first.ID, exists.Live.ID, "it is to be taken up again")
	}
	_, err := Start(t.Context(), b.request("foo", thread(2)))
	var exists *ExistsError
	require.ErrorAs(t, err, &exists)
	require.False(t, exists.ThisThread)
	require.Equal(t, first.ID, exists.Live.ID)
	require.Len(t, names(t, b.tmux), 1)
	require.NoDirExists(t, filepath.Join(b.dir, "operators", "worktrees", "bar"), "who is refused leaves nothing")
}

// An existing folder or worktree never decides (O7).
func TestCheck_AsksNoFolder(t *testing.T) {
	b := newBox(t)
	s := b.start(t, "foo", thread(1))
	require.NoError(t, b.tmux.Kill(t.Context(), s.ID))
	require.DirExists(t, s.Worktree)
	require.NoError(t, Check(t.Context(), b.tmux, "foo", thread(1)))
}

// outcomes runs many starts at once and counts how they ended.
func outcomes(t *testing.T, n int, request func(int) StartRequest) map[int]int {
	t.Helper()
	var wg sync.WaitGroup
	codes := make([]int, n)
	for i := range n {
		wg.Go(func() {
			_, err := Start(t.Context(), request(i))
			if codes[i] = ExitCode(err); codes[i] == ExitFailed {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	count := map[int]int{}
	for _, c := range codes {
		count[c]++
	}
	return count
}

func TestStart_ManyOfOneSlugAreOneSession(t *testing.T) {
	b := newBox(t)
	got := outcomes(t, 20, func(i int) StartRequest { return b.request("foo", thread(i)) })
	require.Equal(t, map[int]int{ExitStarted: 1, ExitExists: 19}, got)
	require.Equal(t, []string{"op-foo"}, names(t, b.tmux))
}

func TestStart_ManyOfOneThreadAreOneSession(t *testing.T) {
	b := newBox(t)
	got := outcomes(t, 20, func(i int) StartRequest { return b.request(rules.SuffixSlug("foo", thread(i).Root), thread(1)) })
	require.Equal(t, map[int]int{ExitStarted: 1, ExitExists: 19}, got)
	require.Len(t, names(t, b.tmux), 1)
}

// Starts that have nothing to do with each other do not get into each other's way.
func TestStart_ManyOfManyAreManyUpToTheLimit(t *testing.T) {
	b := newBox(t)
	got := outcomes(t, 8, func(i int) StartRequest {
		req := b.request(rules.SuffixSlug("foo", thread(i).Root), thread(i))
		req.Limit = 5
		return req
	})
	require.Equal(t, map[int]int{ExitStarted: 5, ExitLimit: 3}, got)
	require.Len(t, names(t, b.tmux), 5)
}

// Counting and starting are one step (X6).
func TestOpen_NeverGoesOverTheLimit(t *testing.T) {
	b := newBox(t)
	rec := b.prepare(t, "foo", 1)
	var wg sync.WaitGroup
	var opened atomic.Int32
	for i := range 12 {
		wg.Go(func() {
			req := b.request(rules.SuffixSlug("foo", thread(i).Root), thread(i))
			req.Limit = 3
			if err := req.check(); err != nil {
				t.Error(err)
				return
			}
			_, err := req.open(t.Context(), b.worktrees().locks, rec, uuid.NewString())
			if err == nil {
				opened.Add(1)
			} else if !errors.Is(err, ErrLimit) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int32(3), opened.Load())
	require.Len(t, names(t, b.tmux), 3)
}

// A session that a killed start left is about to end: it is waited for, not taken for an
// operator.
func TestStart_WaitsForWhatAKilledStartLeft(t *testing.T) {
	b := newBox(t)
	self, err := os.Executable()
	require.NoError(t, err)
	waiting := filepath.Join(b.bin, filepath.Base(self))
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(sleep, waiting))
	marks := b.request("foo", thread(1)).marks(uuid.NewString(), record{})
	args := []string{"new-session", "-d", "-s", "op-foo"}
	for _, m := range marks {
		args = append(args, "-e", m)
	}
	_, err = b.tmux.Run(t.Context(), nil, append(args, waiting, "1000")...)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		s, _, err := b.tmux.Find(t.Context(), "op-foo")
		return err == nil && s.Command == filepath.Base(self)
	}, 10*time.Second, 5*time.Millisecond)
	done := make(chan error, 1)
	go func() {
		_, err := Start(t.Context(), b.request("foo", thread(1)))
		done <- err
	}()
	select {
	case err := <-done:
		require.Fail(t, "it did not wait", "%v", err)
	case <-time.After(300 * time.Millisecond): // long enough for one that does not wait to be caught
	}
	_, err = b.tmux.Run(t.Context(), nil, "kill-session", "-t", "=op-foo")
	require.NoError(t, err)
	require.NoError(t, <-done)
}

func TestStart_KeepsTheEnvironmentBare(t *testing.T) {
	t.Setenv("SLACK_BOT_TOKEN", "xoxb-secret")
	b := newBox(t)
	req := b.request("foo", thread(1))
	req.Agent.Env = append(req.Agent.Env, "ANTHROPIC_API_KEY=key")
	s, err := Start(t.Context(), req)
	require.NoError(t, err)
	var got []string
	for row := range strings.Lines(b.told(t, s, "env")) {
		name, _, _ := strings.Cut(row, "=")
		got = append(got, name)
	}
	slices.Sort(got)
	require.Equal(t, []string{"ANTHROPIC_API_KEY", "COLORTERM", "HOME", "LANG", "PATH", "SMITH_ASKED", "SMITH_BRANCH", "SMITH_CHANNEL", "SMITH_OUTBOX",
		"SMITH_REPO", "SMITH_ROOT", "SMITH_SEAT", "SMITH_SESSION", "SMITH_SLUG", "SMITH_TEAM", "SMITH_WORKTREE", "TERM"}, got)
	for _, from := range []string{"-g", "-t=op-foo"} {
		env, err := b.tmux.Run(t.Context(), nil, "show-environment", from)
		require.NoError(t, err)
		require.NotContains(t, env, "key", "tmux is told no secret, which it would keep")
	}
	require.Empty(t, entries(t, filepath.Join(b.dir, "operators", "run")), "no door stays open")
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// X2: what people wrote is text to the CLI, whatever a shell or tmux would make of it.
func TestStart_HandsAHostileBriefOnAsText(t *testing.T) {
	b := newBox(t)
	req := b.request("foo", thread(1))
	req.Brief = "/exit\n!touch /tmp/x; $(touch x) `touch x` '\" \\ #{pane_id} %0 ~ * ;\x1b[201~\x00\x03@/etc/passwd\n--help;"
	s, err := Start(t.Context(), req)
	require.NoError(t, err)
	argv := strings.Split(strings.TrimSuffix(b.told(t, s, "argv"), "\x00"), "\x00")
	require.True(t, strings.HasPrefix(argv[len(argv)-1],
		briefPrefix+"/exit\n!touch /tmp/x; $(touch x) `touch x` '\" \\ #{pane_id} %0 ~ * ;[201~@/etc/passwd\n--help;\n\nYou work in "), argv[len(argv)-1])
	require.Equal(t, []string{".git", "README"}, entries(t, s.Worktree))
}

func TestStart_RefusesWhatCannotBeMeantBeforeItTouchesAnything(t *testing.T) {
	for name, change := range map[string]func(*StartRequest){
		"slug leads out":    func(r *StartRequest) { r.Slug = "../x" },
		"slug is a flag":    func(r *StartRequest) { r.Slug = "-t" },
		"slug has an end":   func(r *StartRequest) { r.Slug = "foo\n" },
		"slug is a pattern": func(r *StartRequest) { r.Slug = "foo*" },
		"slug is empty":     func(r *StartRequest) { r.Slug = "" },
		"team":              func(r *StartRequest) { r.Thread.Team = "T1\nSMITH_SESSION=x" },
		"channel":           func(r *StartRequest) { r.Thread.Channel = "" },
		"root":              func(r *StartRequest) { r.Thread.Root = "17;" },
		"seat":              func(r *StartRequest) { r.Seat = "Smith;" },
		"no repo":           func(r *StartRequest) { r.Repo = "" },
		"no brief":          func(r *StartRequest) { r.Brief = " \n\x00" },
		"long brief":        func(r *StartRequest) { r.Brief = strings.Repeat("a", MaxBrief+1) },
		"mode that skips":   func(r *StartRequest) { r.Agent.PermissionMode = "bypassPermissions" },
		"relative home":     func(r *StartRequest) { r.Agent.Home = "home" },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			req := box{dir: dir, bin: dir, tmux: Tmux{Command: "/nowhere"}}.request("foo", thread(1))
			change(&req)
			_, err := Start(t.Context(), req)
			var usage *UsageError
			require.ErrorAs(t, err, &usage)
			require.Equal(t, ExitUsage, ExitCode(err))
			require.Empty(t, entries(t, dir))
		})
	}
}

// O4: exactly, of the closed set, and a real checkout.
func TestStart_KnowsNoOtherCheckout(t *testing.T) {
	b := newBox(t)
	plainDir := filepath.Join(b.dir, "src", "plain")
	inner := filepath.Join(b.checkout, "inner")
	require.NoError(t, os.Mkdir(plainDir, 0o700))
	require.NoError(t, os.Mkdir(inner, 0o700))
	for _, asked := range []string{"sho", "SHOP", "shop ", "../src/shop", b.checkout, "plain", "inner", "gone"} {
		req := b.request("foo", thread(1))
		req.Repo = asked
		req.Checkouts = append(req.Checkouts, rules.Checkout{Name: "plain", Path: plainDir}, rules.Checkout{Name: "inner", Path: inner})
		_, err := Start(t.Context(), req)
		require.ErrorIs(t, err, ErrNoCheckout, asked)
		require.Equal(t, ExitNoCheckout, ExitCode(err))
	}
	require.Empty(t, names(t, b.tmux))
}

// A CLI that ends at once is a failed start, and leaves no session.
func TestStart_SaysThatTheCLIEndedAtOnce(t *testing.T) {
	b := newBox(t)
	for what, text := range map[string]string{"ends": "#!/bin/sh\nexit 1\n", "is no program": "\x00\x01"} {
		script(t, filepath.Join(b.bin, "claude"), text)
		_, err := Start(t.Context(), b.request("foo", thread(1)))
		require.Equal(t, ExitFailed, ExitCode(err), what)
		require.ErrorContains(t, err, "the agent CLI", what)
		require.Empty(t, names(t, b.tmux), what)
	}
	script(t, filepath.Join(b.bin, "claude"), stub)
	b.start(t, "foo", thread(1))
}

// One that takes long, or shows a dialog, has started all the same: it is there to be seen.
func TestStart_LeavesACLIThatTakesLong(t *testing.T) {
	b := newBox(t)
	script(t, filepath.Join(b.bin, "claude"), "#!/bin/sh\nexec sleep 1000\n")
	req := b.request("foo", thread(1))
	req.Patience = time.Millisecond
	s, err := Start(t.Context(), req)
	require.NoError(t, err)
	require.False(t, s.Briefed)
	require.Equal(t, []string{"op-foo"}, names(t, b.tmux))
}

// O8: a start that is told to end leaves no session of its own.
func TestStart_ThatIsToldToEndLeavesNothing(t *testing.T) {
	b := newBox(t)
	script(t, filepath.Join(b.bin, "claude"), "#!/bin/sh\n: > "+b.dir+"/runs\nexec sleep 1000\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	told := errors.New("told to end")
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(b.dir, "runs")); err == nil {
				cancel(told)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := Start(ctx, b.request("foo", thread(1)))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, names(t, b.tmux))
}
