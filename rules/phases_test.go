package rules_test

import (
	"strings"
	"testing"
	"unicode/utf8"

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
	for _, bad := range []string{"javascript:alert(1)", "https://a@b/", "https://a/|<!here>", "https://a/ b", "//a/b", "https:///a", "https:a"} {
		f.PullURL = bad
		require.NotContains(t, rules.RenderPhases(rules.Phases(f)), bad)
	}
}

func anyFacts(t *rapid.T) rules.PhaseFacts {
	word := rapid.SampledFrom([]string{"", "main", "a\nb", "`x`", "<!channel>", "\x1b[31mred", strings.Repeat("long", 30)})
	slug := rapid.SampledFrom([]string{"", "fix-it", strings.Repeat("s", 40)})
	state := rapid.SampledFrom([]string{"", "none", "pending", "passed", "failed", "requested", "approved", "changes_requested", "open", "closed", "merged"})
	return rules.PhaseFacts{
		Bound: rapid.Bool().Draw(t, "bound"), Slug: slug.Draw(t, "slug"), Repo: word.Draw(t, "repo"), Number: rapid.IntRange(0, 2).Draw(t, "number"),
		Alive: rapid.Bool().Draw(t, "alive"), Blocked: rapid.Bool().Draw(t, "blocked"), Dead: rapid.Bool().Draw(t, "dead"),
		Branch: word.Draw(t, "branch"), Commits: rapid.IntRange(0, 3).Draw(t, "commits"), Draft: rapid.Bool().Draw(t, "draft"),
		Pull: rapid.IntRange(0, 2).Draw(t, "pull"), PullURL: word.Draw(t, "url"), Checks: state.Draw(t, "checks"), Review: state.Draw(t, "review"), State: state.Draw(t, "state"),
	}
}

func TestPhases_AreTheElevenInTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var names []string
		for _, r := range rules.Phases(anyFacts(t)) {
			names = append(names, r.Name)
			require.Contains(t, []rules.PhaseState{rules.PhaseDone, rules.PhaseRunning, rules.PhaseFailed, rules.PhasePending, rules.PhaseNoSignal}, r.State)
			require.True(t, r.Link == "" || r.Name == rules.RowPull)
			require.True(t, !r.State.Gap() || r.Detail == "" && r.Link == "", "a gap has nothing to tell")
		}
		require.Equal(t, []string{"ask", "classified", "repo", "operator", "session", "branch", "commits", "pull request", "checks", "review", "merged"}, names)
	})
}

// Whatever a classifier said, a line alone is no signal (P1, P2).
func TestPhases_TellNothingOfAVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFacts(t)
		f.Bound, f.Alive, f.Pull = false, false, 0
		rows := rules.Phases(f)
		for _, name := range []string{rules.RowAsk, rules.RowClassified, rules.RowRepo, rules.RowOperator, rules.RowPull} {
			require.True(t, stateOf(t, rows, name).Gap(), name)
		}
	})
	require.False(t, rules.HasAnySignal(rules.Phases(rules.PhaseFacts{Slug: "fix-it", Repo: "web"})), "a classified line that nothing came of")
}

func TestHasAnySignal_IsThereOnceSomethingIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFacts(t)
		rows := rules.Phases(f)
		if f.Bound || f.Alive || f.Pull != 0 {
			require.True(t, rules.HasAnySignal(rows))
			require.Equal(t, rules.PhaseDone, stateOf(t, rows, rules.RowAsk))
		}
		require.Equal(t, f.Pull != 0, !stateOf(t, rows, rules.RowPull).Gap())
		onlyGaps := !strings.ContainsAny(rules.RenderPhases(rows), "●◐✕")
		require.Equal(t, onlyGaps, !rules.HasAnySignal(rows), "the table shows what the rule says")
	})
}

func TestHasAnySignal_IsOfTheRowsAlone(t *testing.T) {
	for state, signal := range map[rules.PhaseState]bool{
		rules.PhaseDone: true, rules.PhaseRunning: true, rules.PhaseFailed: true, rules.PhasePending: false, rules.PhaseNoSignal: false, "": false, "ODD": false,
	} {
		require.Equal(t, signal, rules.HasAnySignal([]rules.PhaseRow{{Name: "ask", State: rules.PhasePending}, {Name: "merged", State: state}}), state)
	}
	require.False(t, rules.HasAnySignal(nil))
}

func TestPhases_FollowAPullRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		facts rules.PhaseFacts
		want  map[string]rules.PhaseState
	}{
		"draft":    {rules.PhaseFacts{Pull: 1, State: "open", Draft: true}, map[string]rules.PhaseState{rules.RowPull: rules.PhaseRunning, rules.RowMerged: rules.PhaseNoSignal}},
		"open":     {rules.PhaseFacts{Pull: 1, State: "open", Checks: "pending", Review: "requested"}, map[string]rules.PhaseState{rules.RowPull: rules.PhaseDone, rules.RowChecks: rules.PhaseRunning, rules.RowReview: rules.PhaseRunning}},
		"red":      {rules.PhaseFacts{Pull: 1, State: "open", Checks: "failed", Review: "changes_requested"}, map[string]rules.PhaseState{rules.RowChecks: rules.PhaseFailed, rules.RowReview: rules.PhaseFailed}},
		"merged":   {rules.PhaseFacts{Pull: 1, State: "merged", Checks: "passed", Review: "approved"}, map[string]rules.PhaseState{rules.RowPull: rules.PhaseDone, rules.RowChecks: rules.PhaseDone, rules.RowReview: rules.PhaseDone, rules.RowMerged: rules.PhaseDone}},
		"closed":   {rules.PhaseFacts{Pull: 1, State: "closed"}, map[string]rules.PhaseState{rules.RowPull: rules.PhaseFailed, rules.RowMerged: rules.PhaseFailed}},
		"no words": {rules.PhaseFacts{Pull: 1, State: "open", Checks: "none", Review: "none"}, map[string]rules.PhaseState{rules.RowChecks: rules.PhaseNoSignal, rules.RowReview: rules.PhaseNoSignal}},
		"dead":     {rules.PhaseFacts{Bound: true, Dead: true}, map[string]rules.PhaseState{rules.RowOperator: rules.PhaseDone, rules.RowSession: rules.PhaseFailed}},
		"blocked":  {rules.PhaseFacts{Bound: true, Alive: true, Blocked: true}, map[string]rules.PhaseState{rules.RowSession: rules.PhaseRunning}},
		"bound":    {rules.PhaseFacts{Bound: true}, map[string]rules.PhaseState{rules.RowSession: rules.PhasePending, rules.RowBranch: rules.PhasePending}},
		"work":     {rules.PhaseFacts{Bound: true, Alive: true, Branch: "smith/x", Commits: 2}, map[string]rules.PhaseState{rules.RowBranch: rules.PhaseDone, rules.RowCommits: rules.PhaseDone}},
	} {
		t.Run(name, func(t *testing.T) {
			rows := rules.Phases(tc.facts)
			for row, want := range tc.want {
				require.Equal(t, want, stateOf(t, rows, row), row)
			}
		})
	}
}

func TestPhases_SayWhatASessionDoes(t *testing.T) {
	for want, f := range map[string]rules.PhaseFacts{
		"◐ session: works": {Bound: true, Alive: true}, "◐ session: waits for a person": {Bound: true, Alive: true, Blocked: true},
		"✕ session: gone": {Bound: true, Dead: true}, "● session: ended": {Bound: true, Dead: true, Pull: 1, State: "merged"},
		"○ session": {Bound: true}, "◐ session: works\n": {Bound: true, Alive: true, Pull: 1, State: "merged"},
	} {
		require.Contains(t, rules.RenderPhases(rules.Phases(f))+"\n", strings.TrimSuffix(want, "\n")+"\n")
	}
}

func TestRenderPhases_IsARowAPhase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := strings.Split(rules.RenderPhases(rules.Phases(anyFacts(t))), "\n")
		require.Len(t, rows, 11)
		for _, row := range rows {
			require.LessOrEqual(t, utf8.RuneCountInString(row), 100, "a row fits on a phone in two lines at most")
			require.NotContains(t, row, "\x1b")
			require.Zero(t, strings.Count(row, "`")%2)
		}
	})
}

// What a branch or an address is called reaches nobody and breaks no row (X2).
func FuzzRenderPhases(f *testing.F) {
	for _, seed := range []string{"smith/fix", "<!here>", "a`b", "\x1b[31m", "https://github.com/a/b/pull/7", "<https://a|b>", "a\u2028b", "@channel"} {
		f.Add(seed, seed, seed)
	}
	f.Fuzz(func(t *testing.T, repo, branch, url string) {
		text := rules.RenderPhases(rules.Phases(rules.PhaseFacts{Bound: true, Slug: "x-y", Repo: repo, Branch: branch, Pull: 1, PullURL: url, State: "open"}))
		if n := strings.Count(text, "\n"); n != 10 {
			t.Fatalf("%q has %d rows", text, n+1)
		}
		posted := rules.EscapeText(text)
		if strings.ContainsAny(posted, "<>\x1b") {
			t.Fatalf("%q can be more than text", posted)
		}
	})
}
