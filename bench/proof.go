package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"agentsmith/histories"
	"agentsmith/internal/proof"
	"agentsmith/replaytests"
	"agentsmith/workflows"
)

// proofRounds is how often the proof and its floor are run in turn, so that what drifts drifts for both.
const proofRounds = 3

// proofSpecimens is the number that the whole time is scaled to.
const proofSpecimens = 50

// proofPart measures what the proof of the committed histories costs: all of it but what
// it asks git. The floor is a loop of the SDK's bare replayer over the same files, on as
// many processors; it proves nothing. It needs no server.
func proofPart(ctx context.Context, _ runFlags) error {
	specimens, err := histories.Load("histories")
	if err != nil {
		return err
	}
	var took, bareTook time.Duration
	var replays, bareReplays int
	for range proofRounds {
		d, n, err := proveOnce(ctx, specimens)
		if err != nil {
			return err
		}
		took, replays = took+d, replays+n
		if d, err = replayBare(specimens, n); err != nil {
			return err
		}
		bareTook, bareReplays = bareTook+d, bareReplays+n
	}
	scale := float64(proofSpecimens) / float64(len(specimens)) / proofRounds
	report("proof replays/s", float64(replays)/took.Seconds(), float64(bareReplays)/bareTook.Seconds())
	report(fmt.Sprintf("proof-of-%d-specimens-s", proofSpecimens), took.Seconds()*scale, bareTook.Seconds()*scale)
	return nil
}

// proveOnce takes the whole way of `task replay`: source, controls, strict comparison, mutants.
func proveOnce(ctx context.Context, specimens []histories.Specimen) (time.Duration, int, error) {
	began := time.Now()
	code, err := proof.New(proof.Code{Register: workflows.Register, DisableRegistrationAliasing: true, Repeat: replaytests.Repeats})
	if err != nil {
		return 0, 0, err
	}
	reading, err := proof.Read("workflows")
	if err != nil {
		return 0, 0, err
	}
	allowed, err := proof.LoadAllowed("replaytests/allowed.json")
	if err != nil {
		return 0, 0, err
	}
	var some []proof.Specimen
	for _, s := range specimens {
		some = append(some, proof.Specimen{Name: s.File, History: s.History, Commit: s.Commit})
	}
	r, err := code.Prove(ctx, some, proof.Plan{Reading: reading, Allowed: allowed, Mutate: true})
	if err != nil {
		return 0, 0, err
	}
	return time.Since(began), r.Replays, nil
}

// replayBare replays the specimens in turn, n times in all.
func replayBare(specimens []histories.Specimen, n int) (time.Duration, error) {
	hands := runtime.GOMAXPROCS(0)
	errs := make([]error, hands)
	began := time.Now()
	var wg sync.WaitGroup
	for h := range hands {
		wg.Go(func() { errs[h] = bareLoop(specimens, h, n, hands) })
	}
	wg.Wait()
	return time.Since(began), errors.Join(errs...)
}

func bareLoop(specimens []histories.Specimen, from, to, step int) error {
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableRegistrationAliasing: true})
	if err != nil {
		return err
	}
	workflows.Register(r)
	for i := from; i < to; i += step {
		s := specimens[i%len(specimens)]
		id, run := s.Execution()
		if err := r.ReplayWorkflowHistoryWithOptions(silent{}, s.History, worker.ReplayWorkflowHistoryOptions{
			OriginalExecution: workflow.Execution{ID: id, RunID: run},
		}); err != nil {
			return fmt.Errorf("%s does not replay: %w", s.File, err)
		}
	}
	return nil
}

// silent takes the SDK's words, which would cost the floor its time.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
