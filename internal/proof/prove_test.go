package proof_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"

	"agentsmith/internal/proof"
	"agentsmith/internal/proof/testdata/traps"
)

// reading is what the source of the traps says, of some gates only.
func reading(t *testing.T, ids ...string) *proof.Reading {
	t.Helper()
	all, err := proof.Read("testdata/traps")
	require.NoError(t, err)
	out := &proof.Reading{}
	for _, id := range ids {
		for _, g := range all.Gates {
			if g.ID == id {
				out.Gates = append(out.Gates, g)
			}
		}
	}
	require.Len(t, out.Gates, len(ids))
	return out
}

func prove(t *testing.T, plan proof.Plan, names ...string) *proof.Report {
	t.Helper()
	var specimens []proof.Specimen
	for _, name := range names {
		specimens = append(specimens, load(t, name))
	}
	report, err := prover(t, traps.After).Prove(t.Context(), specimens, plan)
	require.NoError(t, err)
	return report
}

func rowOf(t *testing.T, r *proof.Report, gate, specimen string) proof.Row {
	t.Helper()
	for _, row := range r.Rows {
		if row.Gate == gate && row.Specimen == specimen {
			return row
		}
	}
	require.Fail(t, "no such row", "%s × %s", gate, specimen)
	return proof.Row{}
}

func TestProve_ProvesAGateByASpecimenThatReachesIt(t *testing.T) {
	r := prove(t, proof.Plan{Reading: reading(t, "gate-add")}, "gate", "gate-vacuous", "gate-newer")
	row := rowOf(t, r, "gate-add", "gate")
	require.True(t, row.Proved, row.Why)
	require.True(t, row.MarkerAbsent && row.BranchAbsent && row.Older && row.Instrument)
	require.Equal(t, "activity A at 11", row.OldEvent) // the next event: the gate only adds
	require.Equal(t, "activity B", row.Branch)
	require.Equal(t, proof.NonDeterminism, row.Ungated.Code)
	require.Equal(t, int64(11), row.Ungated.Event)

	row = rowOf(t, r, "gate-add", "gate-vacuous")
	require.True(t, !row.Proved && row.Vacuous(), row.Why)
	require.Zero(t, row.Asked)

	row = rowOf(t, r, "gate-add", "gate-newer")
	require.False(t, row.Proved || row.Older || row.MarkerAbsent)
	require.Contains(t, row.Why, "newer")
	require.True(t, row.RenameSeen)

	require.NoError(t, r.Err())
	require.Equal(t, "gates: 1 proved, 0 unproved; specimens: 3, vacuous: 1, strict differences: 0 (allowed: 0)", r.LastLine())
}

func TestProve_FailsAGateWithoutAnInstrument(t *testing.T) {
	r := prove(t, proof.Plan{Reading: reading(t, "gate-add")}, "gate-vacuous", "gate-newer")
	require.ErrorContains(t, r.Err(), `the gate "gate-add" has no specimen that proves it`)
	require.Contains(t, r.LastLine(), "gates: 0 proved, 1 unproved")
}

func TestProve_TellsTwoAdjacentGatesApart(t *testing.T) {
	r := prove(t, proof.Plan{Reading: reading(t, "gate-add", "gate-instead")}, "adjacent", "adjacent-newer")
	add, instead := rowOf(t, r, "gate-add", "adjacent"), rowOf(t, r, "gate-instead", "adjacent")
	require.True(t, add.Proved, add.Why)
	require.True(t, instead.Proved, instead.Why)
	require.Equal(t, "activity B", add.Branch)
	require.Equal(t, "timer", instead.Branch)
	require.Equal(t, "activity A at 11", instead.OldEvent) // what the old branch did
	require.NoError(t, r.Err())
}

func TestProve_CountsHowOftenALoopAsks(t *testing.T) {
	r := prove(t, proof.Plan{Reading: reading(t, "loop-extra")}, "loop")
	row := rowOf(t, r, "loop-extra", "loop")
	require.True(t, row.Proved, row.Why)
	require.Equal(t, 3, row.Asked)
	require.NoError(t, r.Err())
}

func TestProve_CallsAGateBehindAShortCircuitVacuousWhereItIsNotAsked(t *testing.T) {
	r := prove(t, proof.Plan{Reading: reading(t, "short-extra")}, "short", "short-vacuous")
	require.True(t, rowOf(t, r, "short-extra", "short").Proved)
	require.True(t, rowOf(t, r, "short-extra", "short-vacuous").Vacuous())
	require.NoError(t, r.Err()) // this reading was built without the problems, which see Read
}

// A history that ends before the branch says nothing of it.
func TestProve_CallsASpecimenThatEndsBeforeTheBranchVacuous(t *testing.T) {
	s := load(t, "gate")
	s.History = &historypb.History{Events: s.History.Events[:9]} // a task has only started
	r, err := prover(t, traps.After).Prove(t.Context(), []proof.Specimen{s}, proof.Plan{Reading: reading(t, "gate-add")})
	require.NoError(t, err)
	require.True(t, rowOf(t, r, "gate-add", "gate").Vacuous())
	require.Error(t, r.Err())

	s = load(t, "loop")
	s.History = &historypb.History{Events: s.History.Events[:14]} // asked, and ended before the answer matters
	r, err = prover(t, traps.After).Prove(t.Context(), []proof.Specimen{s}, proof.Plan{Reading: reading(t, "loop-extra")})
	require.NoError(t, err)
	row := rowOf(t, r, "loop-extra", "loop")
	require.True(t, row.Asked == 1 && !row.Instrument && row.Vacuous(), row.Why)
}

// A gate that only adds, where the old code gave nothing and waited: the next event counts.
func TestProve_ProvesAGateThatAddsWhereTheOldCodeWaits(t *testing.T) {
	r := prove(t, proof.Plan{Reading: reading(t, "open-extra")}, "waiting")
	row := rowOf(t, r, "open-extra", "waiting")
	require.True(t, row.Proved, row.Why)
	require.Equal(t, "what follows the task at 11", row.OldEvent)
	require.Equal(t, "activity B", row.Branch)
	require.Equal(t, int64(11), row.Ungated.Event)
}

// A gate before a change that the SDK does not look at proves nothing: no run strands.
func TestProve_FailsAGateThatNothingStrandsWithout(t *testing.T) {
	r, err := prover(t, traps.Quiet).Prove(t.Context(), []proof.Specimen{load(t, "argument")}, proof.Plan{Reading: reading(t, "quiet")})
	require.NoError(t, err)
	row := rowOf(t, r, "quiet", "argument")
	require.True(t, row.Older && row.Instrument && !row.Proved)
	require.Equal(t, "it does not strand without the gate", row.Why)
	require.Error(t, r.Err())
}

func TestProve_FailsOnWhatReadingReports(t *testing.T) {
	all, err := proof.Read("testdata/traps")
	require.NoError(t, err)
	require.ErrorContains(t, prove(t, proof.Plan{Reading: all}, "short").Err(), "behind the short-circuit")
}

func TestProve_CallsASpecimenWhoseCommitKnowsTheGateNotOlder(t *testing.T) {
	s := load(t, "gate")
	s.Commit = "c"
	for _, c := range []struct {
		gates  []proof.Gate
		err    error
		want   proof.CommitKnows
		proved bool
	}{
		{gates: []proof.Gate{{ID: "gate-add", Max: 1}}, want: proof.Knows},
		{gates: []proof.Gate{{ID: "gate-add", Max: 0}, {ID: "gate-instead", Max: 1}}, want: proof.KnowsNot, proved: true},
		{err: proof.ErrNoCommit, want: proof.NotHere, proved: true},
	} {
		r, err := prover(t, traps.After).Prove(t.Context(), []proof.Specimen{s}, proof.Plan{
			Reading: reading(t, "gate-add"), Commits: func(context.Context, string) ([]proof.Gate, error) { return c.gates, c.err },
		})
		require.NoError(t, err)
		row := rowOf(t, r, "gate-add", "gate")
		require.Equal(t, c.want, row.Commit)
		require.Equal(t, c.proved, row.Proved, row.Why)
	}
}

func TestProve_FailsAGateThatReadingDidNotFind(t *testing.T) {
	r := prove(t, proof.Plan{Reading: reading(t, "gate-instead")}, "adjacent")
	require.ErrorContains(t, r.Err(), `the gate "gate-add" is asked in Adjacent, and reading the code did not find it`)
}

func TestProve_FailsOnWhatDoesNotReplayAndOnNothingAtAll(t *testing.T) {
	require.ErrorContains(t, prove(t, proof.Plan{}, "raised").Err(), "raised does not replay: stranded")
	_, err := prover(t, traps.After).Prove(t.Context(), nil, proof.Plan{})
	require.ErrorContains(t, err, "there is no specimen")
}

func TestProve_AllowsReviewedDifferencesOnly(t *testing.T) {
	require.ErrorContains(t, prove(t, proof.Plan{}, "timer").Err(), "nobody has reviewed: timer event 5, timer, duration")

	allow := func(entries ...proof.AllowedEntry) *proof.Allowed {
		a, err := proof.NewAllowed(entries)
		require.NoError(t, err)
		return a
	}
	longer := proof.AllowedEntry{Specimen: "tim*", Command: "timer", Field: "duration", Code: "25ms", Reason: "the pause was too short"}
	r := prove(t, proof.Plan{Allowed: allow(longer)}, "timer")
	require.NoError(t, r.Err())
	require.Contains(t, r.LastLine(), "strict differences: 0 (allowed: 1)")

	other := longer
	other.Code = "30ms" // another change than the one that was reviewed
	err := prove(t, proof.Plan{Allowed: allow(other)}, "timer").Err()
	require.ErrorContains(t, err, "nobody has reviewed")
	require.ErrorContains(t, err, "allowed difference 1 is not needed")
	require.ErrorContains(t, prove(t, proof.Plan{Allowed: allow(longer)}, "parallel").Err(), "is not needed")

	for _, bad := range []proof.AllowedEntry{
		{Command: "timer", Field: "duration", Reason: "r"}, {Specimen: "*", Field: "duration", Reason: "r"},
		{Specimen: "*", Command: "timer", Reason: "r"}, {Specimen: "*", Command: "timer", Field: "duration", Reason: " "},
		{Specimen: "*", Command: "timer", Field: "*", Reason: "r"}, {Specimen: "[", Command: "timer", Field: "f", Reason: "r"},
		{Specimen: "*", Command: "timer", Field: "f", Mutant: "drop", Reason: "r"},
	} {
		_, err := proof.NewAllowed([]proof.AllowedEntry{bad})
		require.Error(t, err, "%+v", bad)
	}
}

// Two of the specimen as it is, one without the gate; the mutants come on top.
func TestProve_CountsItsReplays(t *testing.T) {
	require.Equal(t, 3, prove(t, proof.Plan{Reading: reading(t, "gate-add")}, "gate").Replays)
	r := prove(t, proof.Plan{Mutate: true}, "gate")
	require.Equal(t, 2+r.Scores[0].Mutants, r.Replays)
}

func TestMutants_AllAreFoundWhereEachCommandIsTried(t *testing.T) {
	r := prove(t, proof.Plan{Mutate: true}, "everything", "gate-newer", "adjacent-newer", "loop", "timer", "child")
	tried := map[string]int{}
	for _, s := range r.Scores {
		require.Empty(t, s.Survivors, s.Workflow)
		require.Positive(t, s.Mutants, s.Workflow)
		require.Equal(t, s.Mutants, s.Stranded+s.Strict)
		tried[s.Workflow] = s.Commands
		for _, m := range s.Untried {
			require.NotContains(t, m.Why, "never took place", m.String())
		}
	}
	require.Equal(t, 20, tried["Everything"]) // every command of it, three cancellations among them
}

// The planted survivor: two twins change places, and nobody can tell.
func TestMutants_FindThePlantedSurvivor(t *testing.T) {
	r := prove(t, proof.Plan{Mutate: true}, "twins")
	require.Len(t, r.Scores, 1)
	require.Len(t, r.Scores[0].Survivors, 1)
	m := r.Scores[0].Survivors[0]
	require.Equal(t, []any{"twins", int64(5), "activity A", "swap"}, []any{m.Specimen, m.Event, m.Command, m.Change})
	require.ErrorContains(t, r.Err(), "a mutant survived: twins event 5, swap activity A")

	allowed, err := proof.NewAllowed([]proof.AllowedEntry{{Specimen: "twins", Command: "activity A", Mutant: "swap", Reason: "twins"}})
	require.NoError(t, err)
	r = prove(t, proof.Plan{Mutate: true, Allowed: allowed}, "twins")
	require.NoError(t, r.Err())
	require.Len(t, r.Scores[0].Allowed, 1)
}

// An excuse hides mutants, and the score says so.
func TestMutants_SurviveBehindAnAllowedDifference(t *testing.T) {
	allowed, err := proof.NewAllowed([]proof.AllowedEntry{{Specimen: "*", Command: "activity A", Field: "name", Reason: "renamed on purpose"}})
	require.NoError(t, err)
	r := prove(t, proof.Plan{Mutate: true, Allowed: allowed}, "parallel")
	var names []string
	for _, m := range r.Scores[0].Survivors {
		names = append(names, m.Change)
	}
	require.Contains(t, names, "requalify")
}

func TestPrint_ShowsARowAGateAndSpecimenAndTheLastLine(t *testing.T) {
	var b strings.Builder
	require.NoError(t, prove(t, proof.Plan{Reading: reading(t, "gate-add"), Mutate: true}, "gate", "gate-vacuous").Print(&b))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Regexp(t, `^gate-add +gate +yes \(commit unchecked\) +asked 1, answer -1, activity A at 11 +green +stranded at event 11 .*branch: activity B +proved$`, lines[1])
	require.Regexp(t, `^gate-add +gate-vacuous .* never asked: vacuous$`, lines[2])
	require.Equal(t, "gates: 1 proved, 0 unproved; specimens: 2, vacuous: 1, strict differences: 0 (allowed: 0)", lines[len(lines)-1])
}

// Of an open run the SDK does not match what the last completed task gave: such a specimen
// does not strand, and the strict comparison alone looks at that task.
func TestProve_KnowsThatTheLastTaskOfAnOpenRunStrandsNothing(t *testing.T) {
	s := load(t, "waiting")
	s.History = &historypb.History{Events: s.History.Events[:13]}
	r, err := prover(t, traps.After).Prove(t.Context(), []proof.Specimen{s}, proof.Plan{Reading: reading(t, "open-extra")})
	require.NoError(t, err)
	row := rowOf(t, r, "open-extra", "waiting")
	require.Equal(t, "it does not strand without the gate", row.Why)
}
