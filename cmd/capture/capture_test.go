package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/histories"
	"agentsmith/internal/proof"
	"agentsmith/internal/stack"
	"agentsmith/workflows"
	"agentsmith/workflows/scenarios"
)

// tree is a git clone with one commit.
func tree(t *testing.T) (dir string, git func(args ...string) string) {
	t.Helper()
	dir = t.TempDir()
	git = func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	put(t, dir, "code.go", "package a")
	git("add", "-A")
	git("commit", "-q", "-m", "code")
	return dir, git
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestCleanCommit_RefusesADirtyTree(t *testing.T) {
	for name, file := range map[string]string{"a change": "code.go", "a new file": "more.go", "a new file further down": "a/b.go"} {
		t.Run(name, func(t *testing.T) {
			dir, _ := tree(t)
			put(t, dir, file, "package b")
			_, err := cleanCommit(t.Context(), dir)
			require.ErrorContains(t, err, "the tree is not clean; commit first")
		})
	}
	t.Run("seen from a folder of it", func(t *testing.T) {
		dir, _ := tree(t)
		put(t, dir, "more.go", "package b")
		require.NoError(t, os.Mkdir(filepath.Join(dir, "below"), 0o755))
		_, err := cleanCommit(t.Context(), filepath.Join(dir, "below"))
		require.ErrorContains(t, err, "not clean")
	})
}

// A capture may be followed by another before the specimens are committed.
func TestCleanCommit_TakesNewSpecimens(t *testing.T) {
	dir, git := tree(t)
	put(t, dir, "histories/reply/1-stop.json", "{}")
	commit, err := cleanCommit(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, git("rev-parse", "HEAD"), commit)

	_, err = cleanCommit(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "ask git")
}

// held is a folder with a specimen of each of these scenarios, of generation 1.
func held(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	all, err := histories.Load(filepath.Join("..", "..", "histories"))
	require.NoError(t, err)
	some := all[slices.IndexFunc(all, func(s histories.Specimen) bool { return s.Workflow == workflows.ReplyType })]
	for _, name := range names {
		row := some.Row
		row.Generation, row.Scenario = 1, name
		require.NoError(t, histories.Add(dir, row, some.History))
	}
	return dir
}

func TestRun_RefusesBeforeItStartsAnything(t *testing.T) {
	for name, c := range map[string]struct {
		flags flags
		want  string
	}{
		"no generation":       {flags{}, "say which generation"},
		"an unknown scenario": {flags{Generation: 1, Scenario: []string{"no-such"}}, `there is no scenario "no-such"; --list names them`},
		"an unknown workflow": {flags{Generation: 1, Workflow: "no-such"}, `there is no scenario of a workflow "no-such"`},
		"one that is there": {flags{Generation: 1, Workflow: "reply", Scenario: []string{"dm", "stop"}},
			"generation 1 has a specimen of stop already; one is never recorded again"},
	} {
		t.Run(name, func(t *testing.T) {
			c.flags.Dir = held(t, "stop")
			require.ErrorContains(t, run(t.Context(), c.flags, io.Discard), c.want)
		})
	}
	var names []string
	all, err := scenarios.Choose("reply")
	require.NoError(t, err)
	for _, s := range all {
		names = append(names, s.Name)
	}
	err = run(t.Context(), flags{Generation: 1, Workflow: "reply", Dir: held(t, names...)}, io.Discard)
	require.ErrorContains(t, err, "generation 1 has a specimen of every scenario already")
}

func TestRun_ListsScenariosAndTheirGenerations(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), flags{List: true, Workflow: "REPLY", Dir: held(t, "stop")}, &out))
	require.Regexp(t, `(?m)^Reply +stop +\[1\] +A stop in the middle of a turn`, out.String())
	require.Regexp(t, `(?m)^Reply +dm +\[\] +A person's line in a DM`, out.String())
}

// A scenario on the whole real system leaves a specimen that loads, names nobody, and
// replays strictly.
func TestRecordAll_WritesASpecimenThatReplays(t *testing.T) {
	some, err := scenarios.Choose("reply", "outsider")
	require.NoError(t, err)
	work := t.TempDir()
	worker, starter, err := stack.Build(t.Context(), filepath.Join(work, "bin"))
	require.NoError(t, err)
	var out bytes.Buffer
	r := recorder{flags: flags{Generation: 7, Dir: t.TempDir()}, commit: strings.Repeat("a", 40), out: &out}
	programs := scenarios.Programs{Worker: worker, Starter: starter}
	require.NoError(t, r.recordAll(t.Context(), filepath.Join(work, "quick"), programs, scenarios.Quick, some))
	require.Regexp(t, `^outsider +\d+ events`, out.String())

	all, err := histories.Load(r.Dir) // refuses what is not scrubbed or is cut wrongly
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "reply/7-outsider.json", all[0].File)
	require.Equal(t, some[0].Purpose, all[0].For)
	require.NotEmpty(t, all[0].Server)
	code, err := proof.New(proof.Code{Register: workflows.Register, DisableRegistrationAliasing: true})
	require.NoError(t, err)
	differences, outcome := code.Differences(proof.Specimen{Name: all[0].File, History: all[0].History})
	require.Equal(t, proof.Green, outcome.Verdict, outcome)
	require.Empty(t, differences)

	err = r.recordAll(t.Context(), filepath.Join(work, "again"), programs, scenarios.Quick, some)
	require.ErrorContains(t, err, "the manifest has it already")
}
