package rules_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/rules"
)

func TestParseAnswer_ReadsTheKnownLastLines(t *testing.T) {
	seats := []string{"trinity"}
	for name, tt := range map[string]struct {
		answer string
		want   rules.AgentAnswer
	}{
		"plain":                    {"Four.\n", rules.AgentAnswer{Text: "Four."}},
		"abstain (B4)":             {" [Nothing to add] ", rules.AgentAnswer{Abstained: true}},
		"an empty answer abstains": {" \n", rules.AgentAnswer{Abstained: true}},
		"abstain inside text is text": {
			"I wrote [nothing to add] there.", rules.AgentAnswer{Text: "I wrote [nothing to add] there."}},
		"continue (D2)": {"Half done.\n[continue: the other half]",
			rules.AgentAnswer{Text: "Half done.", Continue: "the other half"}},
		"continue without words": {"[continue: all of it]", rules.AgentAnswer{Continue: "all of it"}},
		"continue in the middle is text": {"[continue: x]\nDone.",
			rules.AgentAnswer{Text: "[continue: x]\nDone."}},
		"hand-off (D2)": {"Over to her.\n[hand off to Trinity: check the plan]",
			rules.AgentAnswer{Text: "Over to her.", HandOffTo: "trinity", HandOff: "check the plan"}},
		"hand-off to nobody known is text": {"[hand off to cypher: the codes]",
			rules.AgentAnswer{Text: "[hand off to cypher: the codes]"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, rules.ParseAnswer(tt.answer, seats))
		})
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add("Half done.\n[continue: more]")
	f.Add("[hand off to trinity: x]")
	f.Add("[nothing to add]")
	f.Add("[hand off to trinity: \u0085]")
	f.Add("[continue: \u00a0]")
	f.Fuzz(func(t *testing.T, answer string) {
		a := rules.ParseAnswer(answer, []string{"trinity"})
		if a.Abstained {
			require.Empty(t, a.Text)
			return
		}
		require.True(t, a.Text != "" || a.Continue != "" || a.HandOff != "", "an answer is never lost")
		require.Contains(t, answer, a.Text)
		require.LessOrEqual(t, strings.Count(a.Text, "\n"), strings.Count(answer, "\n"))
	})
}
