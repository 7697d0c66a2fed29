package histories_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/histories"
)

// clone is a git clone with a folder of specimens below its root.
type clone struct {
	t    *testing.T
	root string
}

func newClone(t *testing.T, scenarios ...string) *clone {
	t.Helper()
	c := &clone{t, t.TempDir()}
	c.git("init", "-q")
	for _, s := range scenarios {
		require.NoError(t, histories.Add(c.dir(), row(s), open()))
	}
	c.commit("add specimens")
	return c
}

func (c *clone) dir() string { return filepath.Join(c.root, "histories") }

func (c *clone) git(args ...string) {
	c.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", c.root, "-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(c.t, err, string(out))
}

func (c *clone) commit(message string) {
	c.t.Helper()
	c.git("add", "-A")
	c.git("commit", "-q", "--allow-empty", "-m", message)
}

// rewrite records a specimen again, with its row: the sums agree, and it is another one.
func (c *clone) rewrite(scenario string) {
	c.t.Helper()
	editRows(c.t, c.dir(), func(rows []histories.Row) (kept []histories.Row) {
		for _, r := range rows {
			if r.Scenario != scenario {
				kept = append(kept, r)
			}
		}
		return kept
	})
	require.NoError(c.t, os.Remove(filepath.Join(c.dir(), "reply", "1-"+scenario+".json")))
	h := open()
	h.Events[0].GetWorkflowExecutionStartedEventAttributes().WorkflowId = "smith-another"
	require.NoError(c.t, histories.Add(c.dir(), row(scenario), h))
}

func (c *clone) check() (string, error) {
	c.t.Helper()
	all, err := histories.Load(c.dir())
	require.NoError(c.t, err)
	return histories.Committed(c.t.Context(), c.dir(), all)
}

func TestCommitted_IsSilentAboutWhatNeverChanged(t *testing.T) {
	c := newClone(t, "stop", "dm")
	c.commit("something else")
	note, err := c.check()
	require.NoError(t, err)
	require.Empty(t, note)

	require.NoError(t, histories.Add(c.dir(), row("later"), open()))
	note, err = c.check()
	require.NoError(t, err)
	require.Equal(t, "specimens that are not committed yet: 1", note)
}

func TestCommitted_FindsASpecimenThatChanged(t *testing.T) {
	t.Run("and is not committed", func(t *testing.T) {
		c := newClone(t, "stop", "dm")
		c.rewrite("stop")
		_, err := c.check()
		require.ErrorContains(t, err, "reply/1-stop.json: changed since its commit")
		require.NotContains(t, err.Error(), "1-dm")
	})
	t.Run("in a commit of its own", func(t *testing.T) {
		c := newClone(t, "stop", "dm")
		c.rewrite("stop")
		c.commit("record it again")
		_, err := c.check()
		require.ErrorContains(t, err, "reply/1-stop.json: changed since its commit")
	})
	t.Run("and was taken out in between", func(t *testing.T) {
		c := newClone(t, "stop", "dm")
		text, err := os.ReadFile(filepath.Join(c.dir(), histories.ManifestFile))
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(c.dir(), "reply", "1-stop.json")))
		c.commit("take it out")
		require.NoError(t, os.WriteFile(filepath.Join(c.dir(), histories.ManifestFile), text, 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(c.dir(), "reply", "1-stop.json"), nil, 0o644))
		c.rewrite("stop")
		c.commit("and in again")
		_, err = c.check()
		require.ErrorContains(t, err, "reply/1-stop.json: changed since its commit")
	})
	t.Run("in a merge", func(t *testing.T) {
		c := newClone(t, "stop")
		c.git("checkout", "-q", "-b", "side")
		c.commit("on the side")
		c.git("checkout", "-q", "-")
		c.commit("on the main line")
		c.git("merge", "-q", "--no-commit", "side")
		c.rewrite("stop")
		c.commit("merge")
		_, err := c.check()
		require.ErrorContains(t, err, "reply/1-stop.json: changed since its commit")
	})
}

// Retired with its gate, a specimen is gone; another of that name is not the same.
func TestCommitted_LetsASpecimenRetire(t *testing.T) {
	c := newClone(t, "stop", "dm")
	editRows(t, c.dir(), func(rows []histories.Row) []histories.Row { return rows[:1] })
	require.NoError(t, os.Remove(filepath.Join(c.dir(), "reply", "1-stop.json")))
	c.commit("retire it")
	note, err := c.check()
	require.NoError(t, err)
	require.Empty(t, note)
}

// Without a history the sums of the manifest still tell, and what stands uncommitted.
func TestCommitted_SaysWhereAHistoryIsMissing(t *testing.T) {
	c := newClone(t, "stop")
	c.rewrite("stop")
	c.commit("record it again")
	shallow := &clone{t, filepath.Join(t.TempDir(), "shallow")}
	out, err := exec.Command("git", "clone", "-q", "--depth", "1", "file://"+c.root, shallow.root).CombinedOutput()
	require.NoError(t, err, string(out))
	note, err := shallow.check()
	require.NoError(t, err)
	require.Contains(t, note, "this clone has no history")
	require.NotContains(t, note, "\n")

	shallow.rewrite("stop")
	path := filepath.Join(shallow.dir(), "reply", "1-stop.json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), "smith-another", "smith-other", 1)), 0o644))
	_, err = histories.Load(shallow.dir())
	require.ErrorContains(t, err, "changed since it was captured")

	outside := &clone{t, t.TempDir()}
	require.NoError(t, histories.Add(outside.dir(), row("stop"), open()))
	note, err = outside.check()
	require.NoError(t, err)
	require.Contains(t, note, "no clone of git here")
}
