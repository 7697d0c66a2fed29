package proof_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"agentsmith/internal/proof"
	"agentsmith/internal/proof/testdata/traps"
)

func prover(t *testing.T, register func(worker.WorkflowRegistry), changes ...func(*proof.Code)) *proof.Prover {
	t.Helper()
	code := proof.Code{Register: register, Activities: traps.ActivityNames(), DisableRegistrationAliasing: true, Repeat: 2}
	for _, change := range changes {
		change(&code)
	}
	p, err := proof.New(code)
	require.NoError(t, err)
	return p
}

func often(c *proof.Code) { c.Repeat = 60 }

// Each trap is called what it is, by the SDK's matching first and the strict comparison then.
func TestReplay_CallsEachTrapWhatItIs(t *testing.T) {
	for _, c := range []struct {
		specimen  string
		register  func(worker.WorkflowRegistry)
		verdict   proof.Verdict
		event     int64
		says      string   // in the outcome
		different []string // what the strict comparison shows of a green one
	}{
		{specimen: "parallel", register: traps.After, verdict: proof.Green, different: []string{
			`event 5, activity A, input[0].n: history 1, code 2`, `event 5, activity A, input[0].name: history "one", code "two"`,
			`event 6, activity A, input[0].n: history 2, code 1`, `event 6, activity A, input[0].name: history "two", code "one"`}},
		{specimen: "timer", register: traps.After, verdict: proof.Green, different: []string{"event 5, timer, duration: history 20ms, code 25ms"}},
		{specimen: "argument", register: traps.After, verdict: proof.Green, different: []string{
			"event 5, activity A, input[0].n: history 1, code 2", `event 11, completion, result[0]: history "", code "another result"`}},
		{specimen: "argument", register: traps.Options, verdict: proof.Green, different: []string{
			"event 5, activity A, name: history A, code other.A", "event 5, activity A, task queue: history argument, code elsewhere",
			"event 5, activity A, start to close: history 1m0s, code 2m0s", "event 5, activity A, heartbeat: history 0s, code 1s",
			"event 5, activity A, retry policy: history initial 1s, coefficient 2, maximum 1m40s, attempts 1, not for [], code initial 1s, coefficient 2, maximum 1m40s, attempts 3, not for []"}},
		{specimen: "again", register: traps.After, verdict: proof.Green, different: []string{
			"event 5, continue as new Again, name: history Again, code Leaf", "event 5, continue as new Again, input[0].flag: history false, code true"}},
		{specimen: "fail", register: traps.After, verdict: proof.Green, different: []string{
			"event 5, failure, message: history it failed, code it failed otherwise", "event 5, failure, non retryable: history true, code false",
			"event 5, failure, details[0].round: history 7, code 8"}},
		{specimen: "raised", register: traps.After, verdict: proof.Stranded, event: 5, says: `removed support of version -1. for "raised"`},
		{specimen: "renamed", register: traps.After, verdict: proof.Stranded, event: 5, says: "activityID: 13"},
		{specimen: "gate-newer", register: traps.Before, verdict: proof.Stranded, event: 11, says: "activityID: 19"},
		{specimen: "named", register: traps.After, verdict: proof.FalseRed, says: `names an activity "Named" that no worker registers; the history has "custom-name"`},
		{specimen: "truncated", register: traps.After, verdict: proof.FalseRed, says: "ends at event 4, behind a task that was completed; cut it at event 3"},
		{specimen: "argument", register: traps.Nothing, verdict: proof.FalseRed, says: "unable to find workflow type"},
		{specimen: "argument", register: traps.Panics, verdict: proof.Panic, says: "nil pointer"},
		{specimen: "child", register: traps.After, verdict: proof.Green},
		{specimen: "everything", register: traps.After, verdict: proof.Green},
	} {
		t.Run(c.specimen+" "+string(c.verdict), func(t *testing.T) {
			s := load(t, c.specimen)
			found, o := prover(t, c.register).Differences(s)
			require.Equal(t, c.verdict, o.Verdict, o.String())
			require.Contains(t, o.String(), c.says)
			if c.event != 0 {
				require.Equal(t, c.event, o.Event, o.String())
			}
			if o.Verdict == proof.Stranded {
				require.Equal(t, proof.NonDeterminism, o.Code)
			}
			if o.Verdict != proof.Green {
				return
			}
			var lines []string
			for _, d := range found {
				lines = append(lines, fmt.Sprintf("event %d, %s, %s: history %s, code %s", d.Event, d.Command, d.Field, d.History, d.Code))
			}
			require.Equal(t, c.different, lines)
		})
	}
}

// The code that a history was captured from replays it, and gives nothing else.
func TestReplay_IsGreenOnTheCodeThatWasCaptured(t *testing.T) {
	p := prover(t, traps.Before)
	for _, s := range scenarios() {
		if s.register != nil || s.until != nil {
			continue // captured on the changed code, or cut on purpose
		}
		found, o := p.Differences(load(t, s.name))
		require.Equal(t, proof.Green, o.Verdict, "%s: %s", s.name, o)
		require.Empty(t, found, s.name)
	}
}

// A map range: the SDK sees it only where the activities differ, and both only sometimes.
func TestReplay_SeesByRepetitionWhatShowsOnlySometimes(t *testing.T) {
	found, o := prover(t, traps.After, often).Differences(load(t, "map"))
	require.Equal(t, proof.Green, o.Verdict)
	require.NotEmpty(t, found)

	o = prover(t, traps.Kinds, often).Replay(load(t, "kinds"))
	require.Equal(t, proof.Stranded, o.Verdict)
	require.True(t, o.Sometimes(), o.String())
	require.Contains(t, o.String(), "of 60")
}

// Ids derived from the workflow's are right under its own id, and a false red under another.
func TestReplay_TellsAWrongExecutionFromAChange(t *testing.T) {
	o := prover(t, traps.After, func(c *proof.Code) { c.Execution = workflow.Execution{ID: "ReplayId"} }).Replay(load(t, "child"))
	require.Equal(t, proof.FalseRed, o.Verdict, o.String())
	require.Contains(t, o.Reason, `replayed as "ReplayId", the history is of "trap-child"`)
}

func TestReplay_CallsABrokenHistoryAFalseRed(t *testing.T) {
	s := load(t, "argument")
	for _, h := range []*historypb.History{{}, {Events: s.History.Events[:2]}, {Events: s.History.Events[1:]}} {
		o := prover(t, traps.Before).Replay(proof.Specimen{Name: "broken", History: h})
		require.Equal(t, proof.FalseRed, o.Verdict, o.String())
	}
}

// A replay that never ends is ended, and the next one still runs.
func TestReplay_EndsOneThatHangs(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	p := prover(t, func(r worker.WorkflowRegistry) {
		r.RegisterWorkflowWithOptions(func(workflow.Context, traps.In) error { <-stop; return nil }, workflow.RegisterOptions{Name: "Argument"})
	}, func(c *proof.Code) { c.Timeout, c.Repeat, c.Parallel = 1, 1, 1 })
	require.Equal(t, proof.Hung, p.Replay(load(t, "argument")).Verdict)
	require.Equal(t, proof.Hung, p.Replay(load(t, "argument")).Verdict)
}

func TestControls_StrandWhatHoldsTheGate(t *testing.T) {
	p := prover(t, traps.After)
	old, newer := load(t, "gate"), load(t, "gate-newer")
	for _, c := range []struct {
		control    proof.Control
		old, newer proof.Verdict
	}{
		{proof.GateRemoved("gate-add"), proof.Stranded, proof.Green},
		{proof.BranchForced("gate-add"), proof.Stranded, proof.Green},
		{proof.GateRenamed("gate-add", "another"), proof.Green, proof.Stranded},
		{proof.MinimumRaised("gate-add", 1), proof.Stranded, proof.Green},
		{proof.MinimumRaised("gate-add", 2), proof.Stranded, proof.Stranded},
		{proof.GateRemoved("unheard-of"), proof.Green, proof.Green},
	} {
		require.Equal(t, c.old, p.Replay(old, c.control).Verdict, "%s on the older", c.control)
		require.Equal(t, c.newer, p.Replay(newer, c.control).Verdict, "%s on the newer", c.control)
	}
	// Where the SDK is blind to a gate that is gone, the strict comparison is not.
	found, o := p.Differences(newer, proof.GateRemoved("gate-add"))
	require.Equal(t, proof.Green, o.Verdict)
	require.True(t, slices.ContainsFunc(found, func(d proof.Difference) bool {
		return d.Command == "version marker gate-add" && d.Field == "command" && d.Code == "absent"
	}), "%v", found)
}
