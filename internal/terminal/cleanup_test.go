package terminal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each reason to keep a worktree has a case; with none of them it goes, and its branch
// stays (O10, X5).
func TestRemoveWorktree_RemovesOnlyWhatLosesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		do     func(*testing.T, box, Live)
		alive  bool
		change func(worktree, branch *string)
		kept   string
	}{
		"nothing was done": {},
		"merged": {do: func(t *testing.T, b box, s Live) {
			commit(t, s.Worktree, "work")
			git(t, b.checkout, "merge", "--quiet", s.Branch)
		}},
		"pushed": {do: func(t *testing.T, b box, s Live) {
			commit(t, s.Worktree, "work")
			git(t, b.checkout, "update-ref", "refs/remotes/origin/"+s.Branch, s.Branch)
		}},
		"committed only": {kept: "no other branch", do: func(t *testing.T, _ box, s Live) { commit(t, s.Worktree, "work") }},
		"on no branch": {kept: "no other branch", do: func(t *testing.T, _ box, s Live) {
			git(t, s.Worktree, "checkout", "--quiet", "--detach")
			commit(t, s.Worktree, "work")
		}},
		"not committed": {kept: "not committed", do: func(t *testing.T, _ box, s Live) {
			require.NoError(t, os.WriteFile(filepath.Join(s.Worktree, "new"), nil, 0o600))
		}},
		"still running":   {kept: "work in foo", alive: true},
		"another branch":  {kept: "not known", change: func(_, branch *string) { *branch = "main" }},
		"not recorded":    {kept: "not known", do: func(t *testing.T, b box, _ Live) { require.NoError(t, os.Remove(b.worktrees().recordPath("foo"))) }},
		"leads out":       {kept: "no place", change: func(w, _ *string) { *w += "/../../../src/shop" }},
		"the checkout":    {kept: "no place", change: func(w, _ *string) { *w = filepath.Join(*w, "..", "..", "..", "src", "shop") }},
		"no path":         {kept: "no place", change: func(w, _ *string) { *w = "" }},
		"a relative path": {kept: "no place", change: func(w, _ *string) { *w = "worktrees/foo" }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			s := b.start(t, "foo", thread(1))
			if tc.do != nil {
				tc.do(t, b, s)
			}
			if !tc.alive {
				require.NoError(t, b.tmux.Kill(t.Context(), s.ID))
			}
			worktree, branch := s.Worktree, s.Branch
			if tc.change != nil {
				tc.change(&worktree, &branch)
			}
			err := RemoveWorktree(t.Context(), worktree, branch)
			require.NotEmpty(t, git(t, b.checkout, "rev-parse", s.Branch), "the branch always stays")
			if tc.kept != "" {
				require.ErrorIs(t, err, ErrKept)
				require.ErrorContains(t, err, tc.kept)
				require.DirExists(t, s.Worktree)
				return
			}
			require.NoError(t, err)
			require.NoDirExists(t, s.Worktree)
			require.NoError(t, RemoveWorktree(t.Context(), worktree, branch), "a second time is no error")
			require.Equal(t, s.Worktree, b.start(t, "foo", thread(1)).Worktree, "the thread's next operator goes on there")
		})
	}
}
