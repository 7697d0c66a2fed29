package activities_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

func someTurn() activities.Turn { return turnIn("1700000000.000100") }

func turnIn(root string) activities.Turn {
	return activities.Turn{
		ID: rules.TurnID("smith", "C0RANDOM001", root), Seat: "smith",
		Thread: rules.Thread{Team: "T", Channel: "C0RANDOM001", Root: root},
	}
}

// checkout is a real git checkout with one commit.
func checkout(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.Mkdir(path, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(path, "README"), []byte("hello\n"), 0o600))
	gitIn(t, path, "init", "-q", "-b", "main")
	gitIn(t, path, "add", ".")
	gitIn(t, path, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "first")
	return path
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

// No name from outside leads out of the place of the threads (X2).
func TestDirs_RefuseNamesThatLeadElsewhere(t *testing.T) {
	dirs := activities.Dirs{Root: t.TempDir()}
	for _, hostile := range []string{"", ".", "..", "../x", "a/b", "/etc", ".hidden", "a/../..", "x/"} {
		for name, change := range map[string]func(*activities.Turn){
			"seat":    func(t *activities.Turn) { t.Seat = hostile },
			"channel": func(t *activities.Turn) { t.Thread.Channel = hostile },
			"root":    func(t *activities.Turn) { t.Thread.Root = hostile },
		} {
			if name == "root" && hostile == "" {
				continue // a thread that does not exist yet: see below
			}
			tt := someTurn()
			change(&tt)
			_, err := dirs.Prepare(t.Context(), tt)
			require.Error(t, err, "%s %q", name, hostile)
		}
	}
	entries, err := os.ReadDir(dirs.Root)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing was made")

	tt := someTurn()
	tt.Thread.Root, tt.ID = "", "../../smith/../x"
	dir, err := dirs.Prepare(t.Context(), tt)
	require.NoError(t, err)
	for _, path := range []string{dir.Path, dir.Outbox} {
		rel, err := filepath.Rel(filepath.Join(dirs.Root, "smith", "C0RANDOM001"), path)
		require.NoError(t, err)
		require.False(t, strings.HasPrefix(rel, ".."), rel)
	}
}

// Two threads never write in one directory, nor in one worktree (B9).
func TestDirs_GiveEachThreadItsOwnWorktree(t *testing.T) {
	src := checkout(t, "app")
	dirs := activities.Dirs{Root: t.TempDir(), Checkouts: []string{src}}
	one, err := dirs.Prepare(t.Context(), turnIn("1700000000.000100"))
	require.NoError(t, err)
	two, err := dirs.Prepare(t.Context(), turnIn("1700000000.000200"))
	require.NoError(t, err)
	require.NotEqual(t, one.Path, two.Path)
	require.NoError(t, os.WriteFile(filepath.Join(one.Path, "app", "README"), []byte("mine\n"), 0o600))
	for _, other := range []string{filepath.Join(two.Path, "app"), src} {
		got, err := os.ReadFile(filepath.Join(other, "README"))
		require.NoError(t, err)
		require.Equal(t, "hello\n", string(got))
	}

	// A thread's work outlives its turns.
	again, err := dirs.Prepare(t.Context(), turnIn("1700000000.000100"))
	require.NoError(t, err)
	require.Equal(t, one.Path, again.Path)
	got, err := os.ReadFile(filepath.Join(one.Path, "app", "README"))
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(got))

	// Each turn has an outbox of its own: an earlier turn's files are not posted again.
	next := turnIn("1700000000.000100")
	next.ID = rules.TurnID("smith", "C0RANDOM001", "1700000000.000300")
	later, err := dirs.Prepare(t.Context(), next)
	require.NoError(t, err)
	require.Equal(t, one.Path, later.Path)
	require.NotEqual(t, one.Outbox, later.Outbox)
}

// Git fails in the middle of another's worktree: they are made one after the other, those of
// operators among them.
func TestDirs_WaitForWhoeverMakesAWorktreeOfTheCheckout(t *testing.T) {
	src := checkout(t, "app")
	dirs := activities.Dirs{Root: t.TempDir(), Checkouts: []string{src}, Operators: t.TempDir()}
	unlock, err := terminal.LockCheckout(t.Context(), dirs.Operators, src)
	require.NoError(t, err)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = dirs.Prepare(short, someTurn())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	unlock()
	errs := make([]error, 12)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = dirs.Prepare(t.Context(), turnIn(fmt.Sprintf("1700000000.%06d", i+1))) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
}

// A worktree that was lost or half made when its worker died is made anew.
func TestDirs_RecoverAWorktreeThatIsNotWhole(t *testing.T) {
	cases := map[string]func(t *testing.T, src, path string){
		"its folder is gone":      func(t *testing.T, _, path string) { require.NoError(t, os.RemoveAll(path)) },
		"its folder is empty":     func(t *testing.T, _, path string) { empty(t, path) },
		"git was killed in it":    func(t *testing.T, _, path string) { interrupted(t, path) },
		"killed, and folder gone": func(t *testing.T, _, path string) { interrupted(t, path); require.NoError(t, os.RemoveAll(path)) },
	}
	for _, name := range sortedKeys(cases) {
		t.Run(name, func(t *testing.T) {
			src := checkout(t, "app")
			dirs := activities.Dirs{Root: t.TempDir(), Checkouts: []string{src}}
			dir, err := dirs.Prepare(t.Context(), someTurn())
			require.NoError(t, err)
			path := filepath.Join(dir.Path, "app")
			cases[name](t, src, path)
			_, err = dirs.Prepare(t.Context(), someTurn())
			require.NoError(t, err)
			got, err := os.ReadFile(filepath.Join(path, "README"))
			require.NoError(t, err)
			require.Equal(t, "hello\n", string(got))
			require.Empty(t, gitIn(t, path, "status", "--porcelain"))
		})
	}
}

func empty(t *testing.T, path string) {
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.Mkdir(path, 0o700))
}

// interrupted leaves a worktree as a git that is killed while it makes it.
func interrupted(t *testing.T, path string) {
	admin := gitIn(t, path, "rev-parse", "--absolute-git-dir")
	require.NoError(t, os.WriteFile(filepath.Join(admin, "locked"), []byte("initializing\n"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(path, "README")))
}

// A worktree that its agent broke is its agent's to mend: nothing of it is removed.
func TestDirs_KeepAWorktreeThatAnAgentBroke(t *testing.T) {
	src := checkout(t, "app")
	dirs := activities.Dirs{Root: t.TempDir(), Checkouts: []string{src}}
	dir, err := dirs.Prepare(t.Context(), someTurn())
	require.NoError(t, err)
	path := filepath.Join(dir.Path, "app")
	require.NoError(t, os.WriteFile(filepath.Join(path, "work"), []byte("hours\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(path, ".git"), []byte("rubbish\n"), 0o600))
	_, err = dirs.Prepare(t.Context(), someTurn())
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(path, "work"))
}

// An agent can write a checkout's git config and hooks. What git runs for us must not
// run them with this process's secrets (X3).
func TestDirs_GitGetsNoSecretsAndRunsNoHook(t *testing.T) {
	src := checkout(t, "app")
	hooked := filepath.Join(t.TempDir(), "hooked")
	hook := "#!/bin/sh\nenv > " + hooked + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(src, ".git", "hooks", "post-checkout"), []byte(hook), 0o700))
	filtered := filepath.Join(t.TempDir(), "filtered")
	gitIn(t, src, "config", "filter.spy.smudge", "env > "+filtered+"; cat")
	require.NoError(t, os.WriteFile(filepath.Join(src, ".git", "info", "attributes"), []byte("* filter=spy\n"), 0o600))
	t.Setenv("SMITH_BOT_TOKEN", "xoxb-very-secret")

	_, err := activities.Dirs{Root: t.TempDir(), Checkouts: []string{src}}.Prepare(t.Context(), someTurn())
	require.NoError(t, err)
	require.NoFileExists(t, hooked)
	seen, err := os.ReadFile(filtered)
	require.NoError(t, err, "the filter ran, so its environment is known")
	require.NotContains(t, string(seen), "xoxb")
}

// A checkout that git refuses fails the turn with git's words, on one row.
func TestDirs_TellWhyAWorktreeCannotBeMade(t *testing.T) {
	src := filepath.Join(t.TempDir(), "app")
	require.NoError(t, os.Mkdir(src, 0o700))
	gitIn(t, src, "init", "-q", "-b", "main") // no commit: no HEAD to stand on
	_, err := activities.Dirs{Root: t.TempDir(), Checkouts: []string{src}}.Prepare(t.Context(), someTurn())
	require.ErrorContains(t, err, "make a worktree of "+src)
	require.NotContains(t, err.Error(), "\n")
}
