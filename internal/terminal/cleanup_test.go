package terminal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/rules"
)

func operator(s Live) rules.Operator {
	return rules.Operator{Slug: s.Slug, Repo: s.Repo, Seat: s.Seat, Thread: s.Thread, Session: s.ID, Worktree: s.Worktree, Branch: s.Branch}
}

// Each reason to keep a worktree has a case; with none of them it goes, and its branch
// stays (O10).
func TestCleanup_RemovesOnlyWhatLosesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		do      func(*testing.T, box, Live) (landed []string)
		running bool
		change  func(*rules.Operator)
		kept    string
	}{
		"nothing was done": {},
		"merged here": {do: func(t *testing.T, b box, s Live) []string {
			commit(t, s.Worktree, "work")
			git(t, b.checkout, "merge", "--quiet", s.Branch)
			return nil
		}},
		"pushed": {do: func(t *testing.T, b box, s Live) []string {
			commit(t, s.Worktree, "work")
			git(t, b.checkout, "update-ref", "refs/remotes/origin/"+s.Branch, s.Branch)
			return nil
		}},
		"merged elsewhere": {do: func(t *testing.T, _ box, s Live) []string {
			commit(t, s.Worktree, "work")
			return []string{git(t, s.Worktree, "rev-parse", "HEAD")}
		}},
		"committed only": {kept: KeptUnpushed, do: func(t *testing.T, _ box, s Live) []string {
			commit(t, s.Worktree, "work")
			return []string{"", "HEAD"}
		}},
		"on no branch": {kept: KeptUnpushed, do: func(t *testing.T, _ box, s Live) []string {
			git(t, s.Worktree, "checkout", "--quiet", "--detach")
			commit(t, s.Worktree, "work")
			return nil
		}},
		"not committed": {kept: KeptDirty, do: func(t *testing.T, _ box, s Live) []string {
			require.NoError(t, os.WriteFile(filepath.Join(s.Worktree, "new"), nil, 0o600))
			return nil
		}},
		"still running":    {kept: KeptInUse, running: true},
		"another thread's": {kept: KeptUnknown, change: func(o *rules.Operator) { o.Thread = thread(9) }},
		"another repo's":   {kept: KeptUnknown, change: func(o *rules.Operator) { o.Repo = "other" }},
		"leads out":        {kept: KeptUnknown, change: func(o *rules.Operator) { o.Worktree += "/../../../src/shop" }},
		"no path":          {kept: KeptUnknown, change: func(o *rules.Operator) { o.Worktree = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			s := b.start(t, "foo", thread(1))
			var landed []string
			if tc.do != nil {
				landed = tc.do(t, b, s)
			}
			if !tc.running {
				require.NoError(t, b.tmux.Kill(t.Context(), s.ID))
			}
			o := operator(s)
			if tc.change != nil {
				tc.change(&o)
			}
			kept, err := Cleanup(t.Context(), b.tmux, b.request("foo", thread(1)).Dir, o, landed...)
			require.NoError(t, err)
			require.Equal(t, tc.kept, kept)
			require.NotEmpty(t, git(t, b.checkout, "rev-parse", s.Branch), "the branch always stays")
			if tc.kept != "" {
				require.DirExists(t, s.Worktree)
				return
			}
			require.NoDirExists(t, s.Worktree)
			kept, err = Cleanup(t.Context(), b.tmux, b.request("foo", thread(1)).Dir, o, landed...)
			require.NoError(t, err, "a second time is no error")
			require.Empty(t, kept)
			require.Equal(t, s.Worktree, b.start(t, "foo", thread(1)).Worktree, "the thread's next operator goes on there")
		})
	}
}
