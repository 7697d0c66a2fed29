package store

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"agentsmith/rules"
)

// genCopies draws what Slack may send of one line: each copy is a version of it, by its
// edit, with some of its fields left out.
func genCopies(t *rapid.T) []rules.Line {
	texts := []string{"original", "edit one", "edit two"}
	edits := []string{"", "1700000010.000000", "1700000020.000000"}
	maybe := func(name, v string) string {
		if rapid.Bool().Draw(t, name) {
			return v
		}
		return ""
	}
	n := rapid.IntRange(1, 5).Draw(t, "copies")
	var all []rules.Line
	for range n {
		v := rapid.IntRange(0, 2).Draw(t, "version")
		l := rules.Line{Text: texts[v], EditedTS: edits[v],
			ChannelType: maybe("type", "im"), User: maybe("user", "U1"), BotID: maybe("bot", "B1"),
			AppID: maybe("app", "A1"), UserTeam: maybe("team", "T1"), Subtype: maybe("subtype", "file_share")}
		if rapid.Bool().Draw(t, "files") {
			l.Files = []rules.File{{ID: "F1", Name: "a"}}
		}
		all = append(all, l)
	}
	return all
}

func merged1(copies []rules.Line) rules.Line {
	m := &message{}
	for _, c := range copies {
		us, err := optionalMicros(c.EditedTS)
		if err != nil {
			panic(err)
		}
		m.merge(c, us, false, 1)
	}
	return m.line
}

func TestMerge_TheOrderOfCopiesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		copies := genCopies(t)
		shuffled := rapid.Permutation(copies).Draw(t, "order")
		require.Equal(t, merged1(copies), merged1(shuffled))
		require.Equal(t, merged1(copies), merged1(append(append([]rules.Line{}, copies...), shuffled...)), "nor redelivery")
	})
}

func TestMerge_TheFullerListOfFilesWins(t *testing.T) {
	poor := []rules.File{{ID: "F1"}}
	rich := []rules.File{{ID: "F1", Name: "a", Size: 3, URLPrivate: "https://files"}}
	two := []rules.File{{ID: "F1"}, {ID: "F2"}}
	for _, c := range []struct{ a, b, want []rules.File }{
		{poor, rich, rich}, {poor, two, two}, {rich, two, two}, {nil, poor, poor},
	} {
		for _, order := range [][]rules.Line{{{Files: c.a}, {Files: c.b}}, {{Files: c.b}, {Files: c.a}}} {
			require.Equal(t, c.want, merged1(order).Files)
		}
	}
	removed := []rules.Line{{Text: "a", Files: two}, {Text: "b", EditedTS: "1700000010.000000", Files: poor}}
	require.Equal(t, two, merged1(removed).Files, "a file is not taken away: fetching one that is gone fails by itself")
}
