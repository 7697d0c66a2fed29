package replaytests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"agentsmith/histories"
	"agentsmith/workflows"
)

const root = ".."

// Every specimen replays strictly, every gate in the code has an instrument, no command
// can be dropped, retyped or swapped unseen, and the page in docs says so.
func TestReplay_Proof(t *testing.T) {
	p, err := Prove(t.Context(), root)
	require.NoError(t, err)
	require.NoError(t, p.Print(os.Stdout))
	require.NoError(t, p.Err())
	kept, err := os.ReadFile(MatrixFile(root))
	require.NoError(t, err)
	require.Equal(t, string(kept), p.Matrix(), "docs/matrix.md is stale; task replay:docs writes it")
}

// quickly is the house without mutants, each specimen once.
func quickly() place {
	p := at(root)
	p.repeat, p.mutate = 1, false
	return p
}

// ran proves a place that must not hold, and returns what it prints.
func ran(t *testing.T, p place, want string) (printed string) {
	t.Helper()
	proof, err := p.prove(t.Context())
	require.NoError(t, err)
	require.ErrorContains(t, proof.Err(), want)
	var b strings.Builder
	require.NoError(t, proof.Print(&b))
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	require.Equal(t, proof.Report.LastLine(), lines[len(lines)-1])
	require.Contains(t, b.String(), "FAILS: ")
	return b.String()
}

// as registers other code under the name of the brain.
func as(brain func(workflow.Context, workflows.ReplyInput) error) func(worker.WorkflowRegistry) {
	return func(r worker.WorkflowRegistry) {
		r.RegisterWorkflowWithOptions(brain, workflow.RegisterOptions{Name: workflows.ReplyType})
	}
}

func TestProve_RefusesAnEmptyFolder(t *testing.T) {
	p := quickly()
	p.histories = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(p.histories, histories.ManifestFile), []byte("[]"), 0o644))
	_, err := p.prove(t.Context())
	require.ErrorContains(t, err, "there is no specimen")
}

func TestProve_FailsOnASpecimenThatNoLongerReplays(t *testing.T) {
	p := quickly()
	p.register = as(func(ctx workflow.Context, in workflows.ReplyInput) error {
		if in.Trigger.Kind == workflows.KindCheck {
			return nil
		}
		return workflows.Reply(ctx, in)
	})
	printed := ran(t, p, "reply/1-checked.json does not replay: stranded")
	require.NotContains(t, printed, "FAILS: reply/1-mention.json")
}

func TestProve_FailsOnAGateThatTheMatrixDoesNotKnow(t *testing.T) {
	p := quickly()
	p.register = as(func(ctx workflow.Context, in workflows.ReplyInput) error {
		workflow.GetVersion(ctx, "planted", workflow.DefaultVersion, 1)
		return workflows.Reply(ctx, in)
	})
	ran(t, p, `the gate "planted" is asked in Reply, and reading the code did not find it`)
}

func TestProve_FailsOnADifferenceThatNobodyReviewed(t *testing.T) {
	p := quickly()
	p.register = as(func(ctx workflow.Context, in workflows.ReplyInput) error {
		in.Settings.Box = "another"
		return workflows.Reply(ctx, in)
	})
	printed := ran(t, p, "a difference that nobody has reviewed: reply/1-mention.json")
	require.NotContains(t, printed, "strict differences: 0 (")
}

func TestProve_FailsOnASpecimenThatChangedSinceItsCommit(t *testing.T) {
	p := quickly()
	p.clone = t.TempDir()
	p.histories = filepath.Join(p.clone, "histories")
	require.NoError(t, os.CopyFS(p.histories, os.DirFS(filepath.Join(root, "histories"))))
	git := func(args ...string) {
		out, err := exec.Command("git", append([]string{"-C", p.clone, "-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	git("init", "-q")
	git("add", "-A")
	git("commit", "-q", "-m", "specimens")

	// Recorded again: another history stands under the name, with a row that agrees.
	all, err := histories.Load(p.histories)
	require.NoError(t, err)
	forget(t, p.histories, "reply/1-stop.json")
	for _, s := range all {
		if s.Scenario == "mention" {
			row := s.Row
			row.Scenario = "stop"
			require.NoError(t, histories.Add(p.histories, row, s.History))
		}
	}
	ran(t, p, "reply/1-stop.json: changed since its commit")

	// Edited: the manifest's sum tells.
	path := filepath.Join(p.histories, "reply", "1-mention.json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, '\n'), 0o644))
	_, err = p.prove(t.Context())
	require.ErrorContains(t, err, "reply/1-mention.json: changed since it was captured")
}

func TestProve_FailsOnAGateWithoutAnInstrument(t *testing.T) {
	p := quickly()
	p.source = t.TempDir()
	require.NoError(t, os.CopyFS(p.source, os.DirFS(filepath.Join(root, "workflows"))))
	planted := `package workflows

import "go.temporal.io/sdk/workflow"

func Planted(ctx workflow.Context) error {
	workflow.GetVersion(ctx, "planted", workflow.DefaultVersion, 1)
	return nil
}
`
	require.NoError(t, os.WriteFile(filepath.Join(p.source, "planted.go"), []byte(planted), 0o644))
	printed := ran(t, p, `the gate "planted" has no specimen that proves it`)
	require.Contains(t, printed, "proved, 1 unproved; specimens: ")
}
