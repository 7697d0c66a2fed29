package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"agentsmith/rules"
)

func stateOf(t require.TestingT, rows []rules.PhaseRow, name string) rules.PhaseState {
	for _, r := range rows {
		if r.Name == name {
			return r.State
		}
	}
	require.Fail(t, "no row", name)
	return ""
}

func TestPhases_AreElevenGapsWhileNothingIsKnown(t *testing.T) {
	rows := rules.Phases(rules.PhaseFacts{})
	require.Len(t, rows, 11)
	require.False(t, rules.HasAnySignal(rows))
}

// A table tells of work, not of what was thought about a line (P1).
func TestPhases_AskIsAGapUntilSomethingCameOfIt(t *testing.T) {
	for name, f := range map[string]rules.PhaseFacts{
		"a binding": {Bound: true}, "a session": {Alive: true}, "a pull request": {Pull: 7, State: "open"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, rules.PhaseDone, stateOf(t, rules.Phases(f), rules.RowAsk))
		})
	}
}

// A thread with a pull request and no operator has something to show (P2).
func TestHasAnySignal_KnowsAPullRequestWithoutAnOperator(t *testing.T) {
	rows := rules.Phases(rules.PhaseFacts{Pull: 7, PullURL: "https://github.com/a/b/pull/7", State: "merged"})
	require.True(t, rules.HasAnySignal(rows))
	require.Equal(t, rules.PhaseDone, stateOf(t, rows, rules.RowMerged))
	require.True(t, stateOf(t, rows, rules.RowOperator).Gap())
}

func TestRenderPhases_ShowsConfirmedLinksOnly(t *testing.T) {
	f := rules.PhaseFacts{Pull: 7, State: "open"}
	require.NotContains(t, rules.RenderPhases(rules.Phases(f)), "http")
	f.PullURL = "https://github.com/a/b/pull/7"
	require.Contains(t, rules.RenderPhases(rules.Phases(f)), "pull request: #7 https://github.com/a/b/pull/7")
	for _, bad := range []string{"javascript:alert(1)", "https://a@b/", "https://a/|<!here>", "https://a/ b", "//a/b"} {
		f.PullURL = bad
		require.NotContains(t, rules.RenderPhases(rules.Phases(f)), bad)
	}
}

func TestRenderPhases_IsARowAPhase(t *testing.T) {
	word := rapid.SampledFrom([]string{"", "main", "a\nb", "`x`", "<!channel>", "\x1b[31mred", strings.Repeat("long", 30)})
	state := rapid.SampledFrom([]string{"", "none", "pending", "passed", "failed", "requested", "approved", "changes_requested", "open", "closed", "merged"})
	rapid.Check(t, func(t *rapid.T) {
		f := rules.PhaseFacts{
			Bound: rapid.Bool().Draw(t, "bound"), Slug: word.Draw(t, "slug"), Repo: word.Draw(t, "repo"),
			Alive: rapid.Bool().Draw(t, "alive"), Blocked: rapid.Bool().Draw(t, "blocked"), Dead: rapid.Bool().Draw(t, "dead"),
			Branch: word.Draw(t, "branch"), Commits: rapid.IntRange(0, 3).Draw(t, "commits"),
			Pull: rapid.IntRange(0, 2).Draw(t, "pull"), Checks: state.Draw(t, "checks"), Review: state.Draw(t, "review"), State: state.Draw(t, "state"),
		}
		rows := rules.Phases(f)
		text := rules.RenderPhases(rows)
		require.Len(t, strings.Split(text, "\n"), 11)
		require.NotContains(t, text, "\x1b")
		signal := false
		for _, r := range rows {
			signal = signal || r.State == rules.PhaseDone || r.State == rules.PhaseRunning || r.State == rules.PhaseFailed
		}
		require.Equal(t, signal, rules.HasAnySignal(rows))
	})
}
