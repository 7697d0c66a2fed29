package terminal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/rules"
)

func (b box) worktrees() worktrees {
	dir := filepath.Join(b.dir, "operators")
	return worktrees{dir: dir, locks: locks{filepath.Join(dir, "locks")}}
}

func (b box) owner(slug string, n int) owner {
	return owner{seat: "smith", slug: slug, thread: thread(n), checkout: rules.Checkout{Name: "shop", Path: b.checkout}}
}

// repoBox is a box whose tmux is not asked.
func repoBox(t *testing.T) box {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	b := box{dir: dir, checkout: filepath.Join(dir, "src", "shop")}
	newCheckout(t, b.checkout)
	return b
}

func (b box) prepare(t *testing.T, slug string, n int) record {
	t.Helper()
	rec, err := b.worktrees().prepare(t.Context(), b.owner(slug, n))
	require.NoError(t, err)
	require.True(t, rec.Made)
	return rec
}

func commit(t *testing.T, dir, name string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "--quiet", "--message="+name)
}

// No hook of the checkout runs: who may write there must not run code here by it (X2).
func TestPrepare_RunsNoHook(t *testing.T) {
	b := repoBox(t)
	hook := filepath.Join(b.checkout, ".git", "hooks", "post-checkout")
	require.NoError(t, os.MkdirAll(filepath.Dir(hook), 0o700))
	script(t, hook, "#!/bin/sh\n: > "+b.dir+"/ran\n")
	b.prepare(t, "foo", 1)
	require.NoFileExists(t, filepath.Join(b.dir, "ran"))
	git(t, b.checkout, "worktree", "add", "--quiet", filepath.Join(b.dir, "control"))
	require.FileExists(t, filepath.Join(b.dir, "ran"), "the control: git runs it where nobody forbids it")
}

// A worktree that was cleaned up comes back with what the branch holds.
func TestPrepare_TakesUpTheBranchOfARemovedWorktree(t *testing.T) {
	b := repoBox(t)
	rec := b.prepare(t, "foo", 1)
	commit(t, rec.Worktree, "work")
	git(t, b.checkout, "worktree", "remove", rec.Worktree)
	again := b.prepare(t, "foo", 1)
	require.Equal(t, rec.Worktree, again.Worktree)
	require.FileExists(t, filepath.Join(again.Worktree, "work"))
	require.Equal(t, "smith/foo", git(t, again.Worktree, "branch", "--show-current"))
}

// What another thread, or nobody that is known, has under that name is left alone (X5).
func TestPrepare_LeavesAloneWhatIsNotThisTasks(t *testing.T) {
	const suffixed = "foo-1700000000000002"
	for name, before := range map[string]func(*testing.T, box){
		"another thread's":  func(t *testing.T, b box) { commit(t, b.prepare(t, "foo", 1).Worktree, "work") },
		"a person's branch": func(t *testing.T, b box) { git(t, b.checkout, "branch", "smith/foo") },
		"a person's folder": func(t *testing.T, b box) {
			require.NoError(t, os.MkdirAll(filepath.Join(b.dir, "operators", "worktrees", "foo"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(b.dir, "operators", "worktrees", "foo", "mine"), nil, 0o600))
		},
		"another repo's": func(t *testing.T, b box) {
			other := b
			other.checkout = filepath.Join(b.dir, "src", "other")
			newCheckout(t, other.checkout)
			_, err := other.worktrees().prepare(t.Context(), other.owner("foo", 2))
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := repoBox(t)
			before(t, b)
			was := entries(t, filepath.Join(b.checkout, ".git", "refs", "heads"))
			rec := b.prepare(t, "foo", 2)
			require.Equal(t, "smith/"+suffixed, rec.Branch)
			require.Equal(t, suffixed, filepath.Base(rec.Worktree))
			require.Equal(t, "begin", git(t, rec.Worktree, "log", "-1", "--format=%s"), "not a word of the other task's work")
			require.Subset(t, append(entries(t, filepath.Join(b.checkout, ".git", "refs", "heads")), "smith"), was)
			require.Equal(t, rec, b.prepare(t, "foo", 2), "it is found again")
		})
	}
}

// An agent's work is never thrown away: what git can work in no more is moved aside.
func TestPrepare_MovesABrokenWorktreeAside(t *testing.T) {
	b := repoBox(t)
	rec := b.prepare(t, "foo", 1)
	require.NoError(t, os.WriteFile(filepath.Join(rec.Worktree, "half"), []byte("half"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(rec.Worktree, ".git")))
	b.prepare(t, "foo", 1)
	require.NoFileExists(t, filepath.Join(rec.Worktree, "half"))
	aside, err := filepath.Glob(rec.Worktree + ".broken-*/half")
	require.NoError(t, err)
	require.Len(t, aside, 1)
}

// A git that cannot be run is no proof that a worktree is broken.
func TestPrepare_KeepsAWorktreeThatItCannotLookAt(t *testing.T) {
	b := repoBox(t)
	rec := b.prepare(t, "foo", 1)
	t.Setenv("PATH", "/nowhere")
	_, err := b.worktrees().prepare(t.Context(), b.owner("foo", 1))
	require.Error(t, err)
	require.DirExists(t, rec.Worktree)
	aside, err := filepath.Glob(rec.Worktree + ".broken-*")
	require.NoError(t, err)
	require.Empty(t, aside)
}

func TestPrepare_SaysThatACheckoutHasNoCommit(t *testing.T) {
	b := repoBox(t)
	b.checkout = filepath.Join(b.dir, "src", "empty")
	require.NoError(t, os.Mkdir(b.checkout, 0o700))
	git(t, b.checkout, "init", "--quiet")
	_, err := b.worktrees().prepare(t.Context(), b.owner("foo", 1))
	require.ErrorContains(t, err, "make the worktree foo: git worktree:")
	commit(t, b.checkout, "first")
	b.prepare(t, "foo", 1)
}

// A half-written record would block the task's name for ever.
func TestRecord_IsReplacedWhole(t *testing.T) {
	b := repoBox(t)
	b.prepare(t, "foo", 1)
	require.Equal(t, []string{"foo", "foo.json"}, entries(t, filepath.Join(b.dir, "operators", "worktrees")))
	require.NoError(t, os.WriteFile(b.worktrees().recordPath("foo"), []byte("{"), 0o600))
	_, err := b.worktrees().prepare(t.Context(), b.owner("foo", 1))
	require.ErrorContains(t, err, "read its record", "doubt touches nothing")
}
