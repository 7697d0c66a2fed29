package replaytests

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/histories"
	"agentsmith/internal/proof"
	"agentsmith/workflows"
)

// allowed lists the intended strict differences, and the mutants that cannot be made or
// seen, each with its reason.
const allowed = "allowed.json"

// Every specimen replays strictly, every gate in the code has an instrument, and no
// command can be dropped, retyped or swapped unseen. The matrix is printed.
func TestReplay_Proof(t *testing.T) {
	all, err := histories.Load(specimens)
	require.NoError(t, err)
	var some []proof.Specimen
	for _, s := range all {
		some = append(some, proof.Specimen{Name: s.File, History: s.History, Commit: s.Commit})
	}
	code, err := proof.New(proof.Code{
		Register: workflows.Register, DisableRegistrationAliasing: true, Repeat: replays,
	})
	require.NoError(t, err)
	reading, err := proof.Read("../workflows")
	require.NoError(t, err)
	list, err := proof.LoadAllowed(allowed)
	require.NoError(t, err)
	report, err := code.Prove(t.Context(), some, proof.Plan{
		Reading: reading, Allowed: list, Commits: proof.Git("..", "workflows"), Mutate: true,
	})
	require.NoError(t, err)
	report.Print(os.Stdout)
	require.NoError(t, report.Err())
}
