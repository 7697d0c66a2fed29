package proof_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"agentsmith/internal/proof"
)

func TestRead_FindsEveryGateOfAPackage(t *testing.T) {
	r, err := proof.Read("testdata/traps")
	require.NoError(t, err)
	found := map[string]proof.Gate{}
	for _, g := range r.Gates {
		found[g.ID] = g
	}
	require.Len(t, found, 10)
	for id, c := range map[string]struct {
		maximum workflow.Version
		sites   int
		in      string
	}{
		"gate-add":     {1, 2, "gateAfter"}, // asked through a predicate, at two places
		"gate-instead": {1, 1, "adjacentAfter"},
		"loop-extra":   {1, 1, "loopAfter"},
		"short-extra":  {1, 1, "shortAfter"},
		"raised":       {1, 1, "raisedAfter"},
		"renamed":      {1, 1, "renamedAfter"},
		"renamed-once": {1, 1, "gateRenamedBefore"},
		"everything":   {2, 1, "everything"},
	} {
		g, ok := found[id]
		require.True(t, ok, id)
		require.Equal(t, c.maximum, g.Max, id)
		require.Len(t, g.Sites, c.sites, id)
		require.Equal(t, c.in, g.Sites[0].Func, id)
		require.Equal(t, id == "loop-extra", g.Sites[0].Loop, id)
	}
	require.Equal(t, workflow.Version(1), found["raised"].Min)
	require.Len(t, r.Problems, 1)
	require.Contains(t, r.Problems[0], `the gate "short-extra" is asked behind the short-circuit of &&`)
}

func TestRead_ReportsWhatItCannotTellAndWhatIsNotAskedUnconditionally(t *testing.T) {
	const head = `package p
import (
	wf "go.temporal.io/sdk/workflow"
	"somewhere/else/other"
)
const id = "a" + "b"
func gate(ctx wf.Context) bool { return wf.GetVersion(ctx, id, wf.DefaultVersion, 3) >= 3 }
`
	for name, c := range map[string]struct{ body, problem string }{
		"asked plainly":             {`func w(ctx wf.Context) { if gate(ctx) { println() } }`, ""},
		"asked before a loop":       {`func w(ctx wf.Context) { g := gate(ctx); for { _ = g } }`, ""},
		"in a short-circuit's left": {`func w(ctx wf.Context, f bool) { _ = gate(ctx) && f }`, ""},
		"in a short-circuit":        {`func w(ctx wf.Context, f bool) { _ = f || gate(ctx) }`, "behind the short-circuit of ||"},
		"in an if":                  {`func w(ctx wf.Context, f bool) { if f { gate(ctx) } }`, "in the body of an if"},
		"in an else if":             {`func w(ctx wf.Context, f bool) { if f { } else if gate(ctx) { } }`, "in the else of an if"},
		"in a case":                 {`func w(ctx wf.Context, f bool) { switch { case f: case gate(ctx): } }`, "in a case of a switch"},
		"deferred":                  {`func w(ctx wf.Context) { defer gate(ctx) }`, "in a deferred call"},
		"a predicate of conditions": {`func w(ctx wf.Context, f bool) bool { return f && wf.GetVersion(ctx, "c", 1, 2) == 2 }`, `the gate "c" is asked behind`},
		"asked by nobody":           {`func w(ctx wf.Context) bool { return wf.GetVersion(ctx, "c", 1, 2) == 2 }`, "nothing calls w"},
		"a variable":                {`var v = "x"; func w(ctx wf.Context) { wf.GetVersion(ctx, v, 1, 2) }`, "no constant of the package"},
		"another package's":         {`func w(ctx wf.Context) { wf.GetVersion(ctx, other.ID, 1, 2) }`, "no constant of the package"},
		"a value":                   {`func w(ctx wf.Context) { g := wf.GetVersion; g(ctx, "x", 1, 2) }`, "GetVersion is handed on as a value"},
		"a predicate as a value":    {`func w(ctx wf.Context) { g := gate; g(ctx) }`, "gate asks a gate and is handed on as a value"},
		"through a helper":          {`func h(ctx wf.Context, n int, s string) bool { return wf.GetVersion(ctx, s, 1, wf.Version(n)) > 1 }; func w(ctx wf.Context, s string) { h(ctx, 2, "h"); h(ctx, 2, s) }`, "nothing calls w"},
		"a loop's body":             {`func w(ctx wf.Context, f bool) { for f { g := gate(ctx); _ = g } }`, ""},
		"a method":                  {`type b struct{}; func (b) g(ctx wf.Context) bool { return wf.GetVersion(ctx, "m", 1, 2) > 1 }; func (x b) w(ctx wf.Context, f bool) { for f { if f { x.g(ctx) } } }`, `the gate "m" is asked in the body of an if`},
		"a helper's condition":      {`func h(ctx wf.Context, s string, f bool) bool { return f && wf.GetVersion(ctx, s, 1, 2) > 1 }; func w(ctx wf.Context) { h(ctx, "h", true) }`, "the gates of h are asked behind the short-circuit"},
		"a helper as a value":       {`func h(ctx wf.Context, s string) bool { println(); return wf.GetVersion(ctx, s, 1, 2) > 1 }; func w(ctx wf.Context) { h(ctx, "a"); f := h; f(ctx, "b") }`, "h asks a gate and is handed on as a value"},
		"a helper in an interface":  {`type i interface{ Ask(wf.Context, string) bool }; type x struct{}; func (x) Ask(ctx wf.Context, s string) bool { println(); return wf.GetVersion(ctx, s, 1, 2) > 1 }; func w(ctx wf.Context, v i) { x{}.Ask(ctx, "a"); v.Ask(ctx, "b") }`, "Ask may ask a gate and is called through an interface"},
		"a predicate in one":        {`type i interface{ Ask(wf.Context) bool }; type x struct{}; func (x) Ask(ctx wf.Context) bool { return wf.GetVersion(ctx, "x", 1, 2) > 1 }; func w(ctx wf.Context, v i, f bool) { x{}.Ask(ctx); if f && v.Ask(ctx) { } }`, "Ask may ask a gate and is called through an interface"},
		"a helper of any type":      {`func h[T any](ctx wf.Context, s string) bool { return wf.GetVersion(ctx, s, 1, 2) > 1 }; func w(ctx wf.Context) { h[int](ctx, "a") }`, "h asks a gate and is handed on as a value"},
		"a helper that adds to it":  {`func h(ctx wf.Context, s string) bool { s += "x"; return wf.GetVersion(ctx, s, 1, 2) > 1 }; func w(ctx wf.Context) { h(ctx, "a") }`, "h changes the change ID that it is given"},
		"a helper's list":           {`func h(ctx wf.Context, all ...string) { for _, s := range all { wf.GetVersion(ctx, s, 1, 2) } }; func w(ctx wf.Context) { h(ctx, "a") }`, "no constant of the package"},
		"a literal":                 {`func w(ctx wf.Context, x bool) { f := func() bool { return wf.GetVersion(ctx, "l", 1, 2) > 1 }; if x && f() { } }`, "in a function that is kept as a value"},
		"put together":              {`func w(ctx wf.Context, s string) { wf.GetVersion(ctx, "x-"+s, 1, 2) }`, "no constant of the package"},
		"a field":                   {`type c struct{ s string }; func w(ctx wf.Context, x c) { wf.GetVersion(ctx, x.s, 1, 2) }`, "no constant of the package"},
		"no newest version":         {`func w(ctx wf.Context, n int) { wf.GetVersion(ctx, "m", 1, wf.Version(n)) }`, `the newest version of the gate "m" is no constant`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := proof.ReadFiles(map[string][]byte{"p.go": []byte(head + c.body)})
			require.NoError(t, err)
			if !strings.Contains(c.body, "gate(ctx)") && !strings.Contains(c.body, "gate;") {
				// The head's own predicate is asked by nobody in these.
				r.Problems = without(r.Problems, `the gate "ab" is never asked`)
			}
			if c.problem == "" {
				require.Empty(t, r.Problems)
				require.Equal(t, "ab", r.Gates[0].ID)
				require.Equal(t, workflow.Version(3), r.Gates[0].Max)
				require.Equal(t, name == "a loop's body", r.Gates[0].Sites[0].Loop)
				return
			}
			require.Contains(t, strings.Join(r.Problems, "\n"), c.problem)
		})
	}
}

// A goroutine of a workflow is no condition, and is read through.
func TestRead_ReadsWhatIsHandedToACall(t *testing.T) {
	r, err := proof.ReadFiles(map[string][]byte{"p.go": []byte(`package p
import "go.temporal.io/sdk/workflow"
func w(ctx workflow.Context) { workflow.Go(ctx, func(ctx workflow.Context) { workflow.GetVersion(ctx, "go", 1, 2) }) }
`)})
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	require.Equal(t, "go", r.Gates[0].ID)
}

// What hides a gate from the reading is refused, not read past.
func TestRead_RefusesASourceThatHidesItsGates(t *testing.T) {
	r, err := proof.ReadFiles(map[string][]byte{"p.go": []byte(`package p
import . "go.temporal.io/sdk/workflow"
func w(ctx Context) { GetVersion(ctx, "dot", 1, 2) }
`)})
	require.NoError(t, err)
	require.Contains(t, strings.Join(r.Problems, "\n"), "imported under no name")

	dir := t.TempDir()
	below := filepath.Join(dir, "below", "deeper")
	require.NoError(t, os.MkdirAll(below, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.go"), []byte("package p\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(below, "q.go"), []byte("package q\nimport wf \"go.temporal.io/sdk/workflow\"\nvar ask = wf.GetVersion\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(below, "r.go"), []byte("package q\nimport \"go.temporal.io/sdk/workflow\"\nvar sleep = workflow.Sleep\n"), 0o644))
	r, err = proof.Read(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"below/deeper/q.go:3: GetVersion stands in a package below: the gates that it asks are not read"}, r.Problems)
}

func without(lines []string, part string) (out []string) {
	for _, l := range lines {
		if !strings.Contains(l, part) {
			out = append(out, l)
		}
	}
	return out
}

func TestRead_RefusesWhatIsNoSource(t *testing.T) {
	_, err := proof.Read(t.TempDir())
	require.ErrorContains(t, err, "no Go source")
	_, err = proof.ReadFiles(map[string][]byte{"p.go": []byte("package")})
	require.Error(t, err)
}

// A gate is looked for in the code of a specimen's commit, where the clone has it.
func TestGit_ReadsTheGatesOfACommit(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	write := func(text string) string {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "w"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "w", "w.go"), []byte(text), 0o644))
		git("add", "-A")
		git("commit", "-q", "-m", "m")
		return git("rev-parse", "HEAD")
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "nothing")
	none := git("rev-parse", "HEAD")
	before := write("package w\n")
	after := write("package w\nimport \"go.temporal.io/sdk/workflow\"\nfunc w(ctx workflow.Context) { workflow.GetVersion(ctx, \"g\", workflow.DefaultVersion, 1) }\n")

	commits := proof.Git(dir, "a/w")
	for commit, want := range map[string]int{none: 0, before: 0, after: 1} {
		gates, err := commits(t.Context(), commit)
		require.NoError(t, err)
		require.Len(t, gates, want)
	}
	_, err := commits(t.Context(), strings.Repeat("0", 40))
	require.ErrorIs(t, err, proof.ErrNoCommit)
	_, err = proof.Git(filepath.Join(dir, "a", "nowhere"), "a/w")(t.Context(), after)
	require.Error(t, err)
	require.NotErrorIs(t, err, proof.ErrNoCommit)
}
