package rules

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// checkSplit holds what must be true of every split.
func checkSplit(t require.TestingT, text string, limit int) {
	var body strings.Builder
	pieces := split(text, limit)
	for i, p := range pieces {
		body.WriteString(p.body)
		require.NotEmpty(t, p.body)
		require.LessOrEqual(t, TextLen(p.before+p.body+p.after), limit)
		if utf8.ValidString(text) {
			require.True(t, utf8.ValidString(p.body), "%q", p.body)
		}
		require.Equal(t, i > 0 && pieces[i-1].after != "", p.before != "", "a fence that is closed is opened again")
	}
	require.Equal(t, text, body.String(), "nothing is lost")
}

func TestSplitText_LeavesAShortTextAlone(t *testing.T) {
	require.Equal(t, []string{"hello\n\nworld"}, SplitText("hello\n\nworld", 100))
	require.Empty(t, SplitText("", 100))
	require.Empty(t, SplitText(" \n", 100))
}

func TestSplitText_PrefersTheBetterPlace(t *testing.T) {
	sentence := strings.Repeat("word ", 11) + "end. " // 60
	for name, c := range map[string]struct{ text, first string }{
		"paragraph over line":   {strings.Repeat("a", 60) + "\n\n" + strings.Repeat("b", 30) + "\n" + strings.Repeat("c", 60), strings.Repeat("a", 60) + "\n\n"},
		"line over sentence":    {strings.Repeat("a", 60) + "\nb. " + strings.Repeat("c", 60), strings.Repeat("a", 60) + "\n"},
		"sentence over word":    {sentence + sentence, sentence},
		"word over letters":     {strings.Repeat("a", 70) + " " + strings.Repeat("b", 70), strings.Repeat("a", 70) + " "},
		"letters, if it must":   {strings.Repeat("a", 150), strings.Repeat("a", 100)},
		"no cut behind a fence": {strings.Repeat("a", 80) + "\n```go\n" + strings.Repeat("b", 40) + "\n```", strings.Repeat("a", 80) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.first, SplitText(c.text, 100)[0])
			checkSplit(t, c.text, 100)
		})
	}
}

func TestSplitText_ReopensCodeBlocks(t *testing.T) {
	var code strings.Builder
	for i := range 30 {
		fmt.Fprintf(&code, "line %d\n", i)
	}
	parts := SplitText("Look:\n```go\n"+code.String()+"```\nDone.", 120)
	require.Greater(t, len(parts), 2)
	require.True(t, strings.HasPrefix(parts[0], "Look:\n```go\nline 0\n"))
	for _, p := range parts[1:] {
		require.True(t, strings.HasPrefix(p, "```go\n"), p)
	}
	for _, p := range parts {
		require.Zero(t, strings.Count(p, "```")%2, p)
	}
	require.True(t, strings.HasSuffix(parts[len(parts)-1], "```\nDone."))
}

func TestSplitText_KnowsWhatClosesAFence(t *testing.T) {
	filler := strings.Repeat("x", 60) + "\n"
	for name, text := range map[string]string{
		"tildes":                "~~~\n" + filler + "```\n" + filler + "~~~\n",
		"a longer fence":        "````md\n" + filler + "```\n" + filler + "````\n",
		"indented in a list":    "1. do\n     ```sh\n     " + filler + "     " + filler + "     ```\n",
		"never closed":          "```\n" + filler + filler + filler,
		"an info of a mile":     "```" + strings.Repeat("i", 90) + "\n" + filler + filler + "```\n",
		"a fence of a mile":     strings.Repeat("`", 90) + "\n" + filler + filler,
		"inline code is none":   "```not a fence``` " + filler + filler,
		"a line over the limit": "```\n" + strings.Repeat("y", 300) + "\n```\n",
	} {
		t.Run(name, func(t *testing.T) { checkSplit(t, text, 100) })
	}
}

func TestSplitText_NeverCutsACharacter(t *testing.T) {
	for name, char := range map[string]string{
		"accent": "e\u0301", "family": "👩‍👩‍👧‍👦", "skin": "👍🏽", "flag": "🇩🇪", "heart": "❤️", "england": "🏴\U000E0067\U000E0062\U000E007F",
		"hangul": "\u1112\u1161\u11ab", "crlf": "a\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat(char, 200)
			for _, p := range SplitText(text, 101) {
				require.Zero(t, len(p)%len(char), "%q", p)
			}
			checkSplit(t, text, 101)
		})
	}
}

func TestSplitText_CutsTheSameWayEachTime(t *testing.T) {
	text := strings.Repeat("A paragraph. With sentences.\n\n```\ncode\n```\n", 900)
	parts := SplitText(text, PartLimit)
	require.Greater(t, len(parts), 2)
	require.Equal(t, parts, SplitText(text, PartLimit))
}

func TestSplitText_LosesNothing(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "word ", "end. ", "\n", "\n\n", "```", "```go\n", "\n```\n", "~~~\n", "  ", "👩‍👩‍👧", "e\u0301", "🇩🇪", strings.Repeat("z", 70), "> ", "- ", "\r\n", "\xff"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(word, 0, 120).Draw(t, "words"), "")
		checkSplit(t, text, rapid.IntRange(100, 300).Draw(t, "limit"))
	})
}

func FuzzSplitText(f *testing.F) {
	f.Add("a\n\n```go\nb\n```\nc", 100)
	f.Add(strings.Repeat("```", 80)+"\n"+strings.Repeat("é👍🏽", 90), 110)
	f.Add("~~~~\n"+strings.Repeat("\u0301", 300), 100)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 100 || limit > 5000 || len(text) > 20_000 {
			return
		}
		checkSplit(t, text, limit)
	})
}
