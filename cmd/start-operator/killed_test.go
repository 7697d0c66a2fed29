package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/failpoint"
)

// killedAt starts an operator, kills the launcher when it comes to that point, and
// returns when it is dead.
func (r *rig) killedAt(t *testing.T, point failpoint.Point, args ...string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, string(point)+".arm"), nil, 0o600))
	cmd := r.command("Mend it.", args...)
	cmd.Env = append(cmd.Env, "SMITH_FAILPOINTS="+dir)
	r.killWhen(t, cmd, func() bool {
		_, err := os.Stat(filepath.Join(dir, string(point)+".hit"))
		return err == nil
	})
}

func (r *rig) killWhen(t *testing.T, cmd *exec.Cmd, now func() bool) {
	t.Helper()
	var errs strings.Builder
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	require.Eventually(t, now, time.Minute, 2*time.Millisecond, "%s", &errs)
	require.NoError(t, syscall.Kill(whom(cmd), syscall.SIGKILL))
	require.Error(t, cmd.Wait())
}

// whom to kill: the launcher, with its group where it leads one.
func whom(cmd *exec.Cmd) int {
	if cmd.SysProcAttr != nil && cmd.SysProcAttr.Setpgid {
		return -cmd.Process.Pid
	}
	return cmd.Process.Pid
}

// Wherever a launcher is killed, the next try has one operator in one whole worktree: it
// starts it, or it finds it (O7, O8, O9).
func TestStartOperator_KilledAnywhereBlocksNoNextTry(t *testing.T) {
	r := withStayer(t, "failpoints")
	for i, point := range []failpoint.Point{
		failpoint.OperatorLocked, failpoint.OperatorRecorded, failpoint.OperatorChecked, failpoint.OperatorMade,
		failpoint.OperatorTrusted, failpoint.OperatorSession, failpoint.OperatorHanded,
	} {
		t.Run(string(point), func(t *testing.T) {
			defer r.end(t)
			slug := "t-" + string(point)
			args := r.flags(slug, thread(i), "--repo", "shop")
			r.killedAt(t, point, args...)
			s := r.call(t, "Mend it.", args...)
			a := s.answer(t)
			if point == failpoint.OperatorHanded {
				require.Equal(t, 3, s.code, "it runs, and is taken up again")
			} else {
				require.Equal(t, 0, s.code, s.errs)
			}
			require.True(t, a.ThisThread)
			require.Equal(t, []string{"op-" + slug}, r.names(t))
			require.Equal(t, filepath.Join(r.dir, "data", "operators", "worktrees", slug), a.Operator.Worktree)
			require.Equal(t, "a shop\n", r.read(t, filepath.Join(a.Operator.Worktree, "README")))
			require.Equal(t, r.git(t, "rev-parse", "HEAD"), r.git(t, "rev-parse", "smith/"+slug))
		})
	}
}

// The same name for another thread is free again after such a start, too.
func TestStartOperator_KilledAnywhereBlocksNoOtherThread(t *testing.T) {
	r := withStayer(t, "failpoints")
	for _, point := range []failpoint.Point{failpoint.OperatorRecorded, failpoint.OperatorChecked, failpoint.OperatorSession} {
		r.killedAt(t, point, r.flags("foo", thread(1), "--repo", "shop")...)
	}
	s := r.call(t, "Mend it.", r.flags("foo", thread(2), "--repo", "shop")...)
	require.Equal(t, 0, s.code, s.errs)
	require.Equal(t, "smith/foo-1700000000000002", s.answer(t).Operator.Branch, "the worktree of the first thread is the first thread's")
}

// slowGit makes git stop in the middle of a worktree; it returns what tells that it did,
// and what lets it go on.
func (r *rig) slowGit(t *testing.T) (stopped func() bool, goOn func()) {
	t.Helper()
	at, on := filepath.Join(r.dir, "slow"), filepath.Join(r.dir, "go-on")
	r.write(t, ".gitattributes", "slow.txt filter=slow\n")
	r.write(t, "slow.txt", "slow\n")
	r.write(t, "zebra.txt", "zebra\n")
	r.git(t, "add", "--all")
	r.git(t, "commit", "--quiet", "--message=slow")
	r.git(t, "config", "filter.slow.smudge", `: > `+at+`; while ! test -e `+on+`; do sleep 0.02; done; cat`)
	return func() bool { _, err := os.Stat(at); return err == nil }, func() { require.NoError(t, os.WriteFile(on, nil, 0o600)) }
}

// A git that goes on after its launcher was killed is waited for, not worked against.
func TestStartOperator_KilledWhileGitWorksWaitsForThatGit(t *testing.T) {
	r := withStayer(t)
	stopped, goOn := r.slowGit(t)
	args := r.flags("foo", thread(1), "--repo", "shop")
	r.killWhen(t, r.command("Mend it.", args...), stopped)
	next := make(chan said, 1)
	go func() { next <- r.call(t, "Mend it.", args...) }()
	select {
	case s := <-next:
		require.Fail(t, "the next try did not wait", "%+v", s)
	case <-time.After(300 * time.Millisecond): // long enough for one that does not wait to be caught
	}
	goOn()
	r.whole(t, <-next)
}

// A worktree that a killed git left half-made is made anew (O8, O9).
func TestStartOperator_KilledWithItsGitBlocksNoNextTry(t *testing.T) {
	r := withStayer(t)
	stopped, goOn := r.slowGit(t)
	args := r.flags("foo", thread(1), "--repo", "shop")
	cmd := r.command("Mend it.", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.killWhen(t, cmd, stopped)
	require.NoFileExists(t, filepath.Join(r.dir, "data", "operators", "worktrees", "foo", "zebra.txt"), "it is half-made")
	goOn()
	r.whole(t, r.call(t, "Mend it.", args...))
}

// whole checks that an operator was started in a worktree that lacks nothing.
func (r *rig) whole(t *testing.T, s said) {
	t.Helper()
	require.Equal(t, 0, s.code, s.errs)
	worktree := s.answer(t).Operator.Worktree
	require.Equal(t, filepath.Join(r.dir, "data", "operators", "worktrees", "foo"), worktree)
	for _, name := range []string{"slow", "zebra"} {
		require.Equal(t, name+"\n", r.read(t, filepath.Join(worktree, name+".txt")))
	}
	require.Empty(t, r.git(t, "-C", worktree, "status", "--porcelain"))
}

// A dead operator is started again in its worktree, with what it left there (O9).
func TestStartOperator_StartsADeadOperatorInItsWorktree(t *testing.T) {
	r := withStayer(t)
	args := r.flags("foo", thread(1), "--repo", "shop")
	first := r.call(t, "Mend it.", args...).answer(t).Operator
	require.NoError(t, os.WriteFile(filepath.Join(first.Worktree, "half.txt"), []byte("half"), 0o600))
	require.NoError(t, r.tmux.Kill(t.Context(), first.ID))
	s := r.call(t, "Mend it.", args...)
	require.Equal(t, 0, s.code, s.errs)
	second := s.answer(t).Operator
	require.NotEqual(t, first.ID, second.ID)
	require.Equal(t, first.Worktree, second.Worktree)
	require.Equal(t, "half", r.read(t, filepath.Join(second.Worktree, "half.txt")))
}
