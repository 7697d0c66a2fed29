package replaytests

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"agentsmith/histories"
	"agentsmith/workflows"
)

const specimens = "../histories"

// Every specimen replays on the code as it is now, by the SDK alone.
func TestReplay_EverySpecimen(t *testing.T) {
	all, err := histories.Load(specimens)
	require.NoError(t, err)
	for _, s := range all {
		t.Run(s.File, func(t *testing.T) {
			for range Repeats {
				require.NoError(t, replay(s, worker.WorkflowReplayerOptions{DisableRegistrationAliasing: true}))
			}
		})
	}
	t.Logf("specimens: %d, each replayed %d times", len(all), Repeats)
}

// The replay is an instrument: with a workflow that does something else, every specimen
// strands.
func TestReplay_StrandsOnOtherCode(t *testing.T) {
	all, err := histories.Load(specimens)
	require.NoError(t, err)
	for _, s := range all {
		replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableRegistrationAliasing: true})
		require.NoError(t, err)
		replayer.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ workflows.ReplyInput) error {
			return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 1}), "SomethingElse").Get(ctx, nil)
		}, workflow.RegisterOptions{Name: s.Workflow})
		err = replayWith(replayer, s)
		require.ErrorContains(t, err, "TMPRL1100", s.File)
	}
}

func replay(s histories.Specimen, o worker.WorkflowReplayerOptions) error {
	replayer, err := worker.NewWorkflowReplayerWithOptions(o)
	if err != nil {
		return fmt.Errorf("make a replayer: %w", err)
	}
	workflows.Register(replayer)
	return replayWith(replayer, s)
}

// replayWith replays under the run's own ids: the code derives others from them.
func replayWith(replayer worker.WorkflowReplayer, s histories.Specimen) error {
	id, run := s.Execution()
	return replayer.ReplayWorkflowHistoryWithOptions(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), s.History, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: id, RunID: run},
	})
}
