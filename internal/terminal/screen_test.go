package terminal

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readScreen reads a screen of the CLI 2.1.197 as tmux captured it: the cursor's row, and
// then the rows with their attributes.
func readScreen(t testing.TB, name string) (screen string, cursor int) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "screens", name+".txt"))
	require.NoError(t, err)
	first, screen, _ := strings.Cut(string(raw), "\n")
	cursor, err = strconv.Atoi(first)
	require.NoError(t, err)
	return screen, cursor
}

func TestFindBox_KnowsTheInputBox(t *testing.T) {
	for name, want := range map[string]string{
		"empty": "", "after": "", "slash-menu": "/",
		"rows":      "Line from Slack: first\n| second\n| third",
		"pasted":    "[Pasted text #1 +4 lines]",
		"queued":    "",          // "Press up to edit queued messages" is only suggested
		"suggested": "see /exit", // so is the "t", but the cursor stands on it: no suggestion can be told by one letter
	} {
		box, ok := findBox(readScreen(t, name))
		require.True(t, ok, name)
		require.Equal(t, want, box.text, name)
	}
}

func TestFindBox_TakesNothingElseForIt(t *testing.T) {
	for _, name := range []string{"permission", "trust", "model-menu", "transcript", "bash-mode", "history-search"} {
		box, ok := findBox(readScreen(t, name))
		require.False(t, ok, "%s: %q", name, box.text)
	}
	rule := strings.Repeat("─", 40)
	for name, rows := range map[string][]string{
		"no rule above":         {"❯\u00a0", rule},
		"no rule below":         {rule, "❯\u00a0"},
		"no row":                {rule, rule},
		"an option of a dialog": {rule, " ❯ 1. Yes", rule},
		"a prompt of before":    {rule, "❯ yes", rule},
		"a row out of line":     {rule, "❯\u00a0one", "two", rule},
		"nothing":               {""},
	} {
		for cursor := range len(rows) + 1 {
			_, ok := findBox(strings.Join(rows, "\n"), cursor)
			require.False(t, ok, name)
		}
	}
}

func TestView_CountsATextThatStandsAboveTheBox(t *testing.T) {
	screen, cursor := readScreen(t, "queued")
	box, ok := findBox(screen, cursor)
	require.True(t, ok)
	v := view{inputBox: box, outside: outside(screen, box)}
	require.Equal(t, 1, v.above("queued one"))
	require.Zero(t, v.above("queued two"))
	require.True(t, v.busy())

	screen, cursor = readScreen(t, "rows")
	box, _ = findBox(screen, cursor)
	v = view{inputBox: box, outside: outside(screen, box)}
	require.Zero(t, v.above("Line from Slack: first\n| second\n| third"), "what is in the box is not above it")
	require.False(t, v.busy())
}

func TestShows_IsTheWholeTextAndNothingElse(t *testing.T) {
	entryOf := func(body string) *entry { return &entry{Glyphs: glyphSum(body), Rows: rowsMore(body)} }
	for _, tc := range []struct {
		body, box string
		want      bool
	}{
		{"a line", "a line", true},
		{"a line that is long enough to be broken", "a line that is long\nenough to be broken", true},
		{"a 😀 cafe\u0301", "a  caf\u00e9", true},
		{"a line", "a line and more", false},
		{"a line", "more a line", false},
		{"a line", "", false},
		{"😀", "", false},
		{"one\ntwo", "[Pasted text #3 +1 lines]", true},
		{"one", "[Pasted text #3]", true},
		{"one\ntwo", "[Pasted text #3 +2 lines]", false},
		{"one\ntwo", "[Pasted text #3 +1 lines] and more", false},
		{"one\ntwo", "[Pasted text #3 +1 lines][Pasted text #4 +1 lines]", false},
	} {
		require.Equal(t, tc.want, entryOf(tc.body).shows(view{inputBox: inputBox{text: tc.box}}), "%q in %q", tc.body, tc.box)
	}
}

func FuzzFindBox(f *testing.F) {
	for _, name := range []string{"empty", "rows", "pasted", "queued", "suggested", "permission", "trust", "transcript"} {
		screen, cursor := readScreen(f, name)
		f.Add(screen, cursor)
	}
	f.Add("────────\n❯\u00a0\x1b[7mP\x1b[0;2mress\x1b[38;2;1;2m\x1b]8;;x\x1b\\\x1b[\xff\n────────", 1)
	f.Fuzz(func(t *testing.T, screen string, cursor int) {
		box, ok := findBox(screen, cursor)
		if !ok {
			return
		}
		require.Less(t, box.row-1, cursor)
		require.Less(t, cursor, box.end+1)
		require.NotContains(t, box.text, "\x1b")
		outside(screen, box)
	})
}
