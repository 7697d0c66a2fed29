package proof_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"agentsmith/internal/proof"
	"agentsmith/internal/proof/testdata/traps"
)

// BenchmarkReplay stands beside its floor, the SDK's replayer alone.
func BenchmarkReplay(b *testing.B) {
	s := loadFor(b, "everything")
	p, err := proof.New(proof.Code{Register: traps.After, DisableRegistrationAliasing: true})
	require.NoError(b, err)
	b.Run("proof", func(b *testing.B) {
		for b.Loop() {
			require.Equal(b, proof.Green, p.Replay(s).Verdict)
		}
	})
	b.Run("floor", func(b *testing.B) {
		replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableRegistrationAliasing: true})
		require.NoError(b, err)
		traps.After(replayer)
		first := s.History.Events[0].GetWorkflowExecutionStartedEventAttributes()
		opts := worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: first.GetWorkflowId(), RunID: first.GetOriginalExecutionRunId()}}
		for b.Loop() {
			require.NoError(b, replayer.ReplayWorkflowHistoryWithOptions(quiet{}, s.History, opts))
		}
	})
}

type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
