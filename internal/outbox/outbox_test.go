package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func newBox(t *testing.T) (Box, string) {
	t.Helper()
	return Box{Dir: filepath.Join(t.TempDir(), "data", "outbox"), Log: slog.New(slog.DiscardHandler)}, uuid.NewString()
}

func texts(t *testing.T, b Box, session string) (all []string) {
	t.Helper()
	ws, err := b.Words(session)
	require.NoError(t, err)
	for _, w := range ws {
		all = append(all, w.Text)
	}
	return all
}

func TestPut_KeepsWordsInOrderUntilTheyAreRemoved(t *testing.T) {
	b, session := newBox(t)
	sessions, err := b.Sessions()
	require.NoError(t, err)
	require.Empty(t, sessions, "a box that is not there is an empty one")
	require.Empty(t, texts(t, b, session))

	for i := range 5 {
		require.NoError(t, b.Put(t.Context(), Word{Session: session, Kind: Say, Text: fmt.Sprint("word ", i)}))
	}
	require.NoError(t, b.Put(t.Context(), Word{Session: session, Kind: Notification, Text: "may I?", Detail: "permission_prompt"}))
	ws, err := b.Words(session)
	require.NoError(t, err)
	require.Len(t, ws, 6)
	require.Equal(t, "word 0", ws[0].Text)
	require.Equal(t, "permission_prompt", ws[5].Detail)
	require.Equal(t, session, ws[0].Session)
	sessions, err = b.Sessions()
	require.NoError(t, err)
	require.Equal(t, []string{session}, sessions)

	for _, w := range ws {
		require.NoError(t, b.Remove(session, w.ID))
		require.NoError(t, b.Remove(session, w.ID), "gone already is no error")
	}
	require.Empty(t, texts(t, b, session))
	sessions, err = b.Sessions()
	require.NoError(t, err)
	require.Empty(t, sessions)
}

func TestPut_ManyWritersLoseNothing(t *testing.T) {
	b, session := newBox(t)
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 10 {
				if err := b.Put(context.Background(), Word{Session: session, Kind: Say, Text: fmt.Sprintf("%d %02d", w, i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	seen, last := map[string]bool{}, map[string]string{}
	for _, text := range texts(t, b, session) {
		require.False(t, seen[text])
		seen[text] = true
		require.Less(t, last[text[:1]], text, "each writer's own order is kept")
		last[text[:1]] = text
	}
	require.Len(t, seen, 80)
}

func TestPut_KeepsTheOrderWhenTheClockIsPutBack(t *testing.T) {
	b, session := newBox(t)
	dir, err := b.SessionDir(session)
	require.NoError(t, err)
	ahead := time.Now().Add(24 * time.Hour).UnixNano()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "last"), []byte(fmt.Sprint(ahead)), 0o600))
	for _, text := range []string{"a", "b", "c"} {
		require.NoError(t, b.Put(t.Context(), Word{Session: session, Kind: Say, Text: text}))
	}
	require.Equal(t, []string{"a", "b", "c"}, texts(t, b, session))
	ws, err := b.Words(session)
	require.NoError(t, err)
	require.Greater(t, ws[0].ID, fmt.Sprint(ahead))
}

func TestPut_SplitsALongTextAndCutsNoCharacter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		unit := rapid.StringMatching(`[a-zé漢😀\n ]{1,30}`).Draw(rt, "unit")
		text := strings.Repeat(unit, rapid.IntRange(1, 10000).Draw(rt, "times"))
		whole := ""
		for rest := text; rest != ""; {
			var head string
			head, rest = split(rest)
			require.NotEmpty(rt, head)
			require.LessOrEqual(rt, len(head), MaxText)
			require.True(rt, len(head) < 4 || strings.ToValidUTF8(head, "?") == head)
			whole += head
		}
		require.Equal(rt, text, whole)
	})
	b, session := newBox(t)
	long := strings.Repeat("one row of many\n", 2*MaxText/16) + "end"
	require.NoError(t, b.Put(t.Context(), Word{Session: session, Kind: Say, Text: long}))
	parts := texts(t, b, session)
	require.Len(t, parts, 3)
	require.Equal(t, strings.Fields(long), strings.Fields(strings.Join(parts, "\n")))
}

func TestPut_RefusesWhatIsNoWord(t *testing.T) {
	b, session := newBox(t)
	require.ErrorIs(t, b.Put(t.Context(), Word{Session: session, Kind: Say, Text: " \x1b[31m\x00\n"}), ErrEmpty)
	require.ErrorContains(t, b.Put(t.Context(), Word{Session: session, Kind: "post", Text: "x"}), "unknown kind")
	for _, bad := range []string{"", "x", "../" + session, "..", "/", strings.ToUpper("abcdef00-0000-4000-8000-000000000000"), "{" + session + "}", "urn:uuid:" + session, strings.ReplaceAll(session, "-", "")} {
		require.ErrorIs(t, b.Put(t.Context(), Word{Session: bad, Kind: Say, Text: "x"}), ErrSession, bad)
		require.ErrorIs(t, b.PutPrompt(t.Context(), Prompt{Session: bad, Text: "x"}), ErrSession, bad)
		_, err := b.Words(bad)
		require.ErrorIs(t, err, ErrSession, bad)
		_, err = b.SessionDir(bad)
		require.ErrorIs(t, err, ErrSession, bad)
	}
	require.Error(t, b.Remove(session, "../../x"))
	require.NoDirExists(t, b.Dir)
}

func TestPut_CleansTheText(t *testing.T) {
	b, session := newBox(t)
	require.NoError(t, b.Put(t.Context(), Word{Session: session, Kind: Say, Text: "\x1b[31mred\x1b[0m\x00 and\u009b201~ \xff"}))
	require.Equal(t, []string{"red and201~ \uFFFD"}, texts(t, b, session))
}

func TestPut_SaysWhenTooManyWordsWait(t *testing.T) {
	b, session := newBox(t)
	require.NoError(t, b.Put(t.Context(), Word{Session: session, Kind: Say, Text: "x"}))
	for i := range maxWaiting {
		name := fmt.Sprintf("%019d-%016x.json", i, i)
		require.NoError(t, os.WriteFile(filepath.Join(b.Dir, session, words, name), nil, 0o600))
	}
	require.ErrorIs(t, b.Put(t.Context(), Word{Session: session, Kind: Say, Text: "x"}), ErrFull)
}

func TestPut_IsNotHeldUpByAWriterThatIsStopped(t *testing.T) {
	b, session := newBox(t)
	dir, err := b.SessionDir(session)
	require.NoError(t, err)
	f, err := os.Create(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	at := time.Now()
	require.NoError(t, b.Put(t.Context(), Word{Session: session, Kind: Say, Text: "x"}))
	require.Less(t, time.Since(at), lockPatience+5*time.Second)
	require.Equal(t, []string{"x"}, texts(t, b, session))
}

func TestWords_SetAsideWhatTheyCannotRead(t *testing.T) {
	b, session := newBox(t)
	require.NoError(t, b.Put(t.Context(), Word{Session: session, Kind: Say, Text: "first"}))
	dir := filepath.Join(b.Dir, session, words)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(`{"kind":"say","text":"secret"}`), 0o600))
	id := func(n int) string { return filepath.Join(dir, fmt.Sprintf("%019d-%016x.json", n, n)) }
	require.NoError(t, os.WriteFile(id(1), []byte("no json"), 0o600))
	require.NoError(t, os.WriteFile(id(2), nil, 0o600))
	require.NoError(t, os.WriteFile(id(3), []byte(`{"kind":"post","text":"x"}`), 0o600))
	require.NoError(t, os.WriteFile(id(4), []byte(`{"kind":"say","text":"\u0000"}`), 0o600))
	require.NoError(t, os.Symlink(secret, id(5)))
	require.NoError(t, unix.Mkfifo(id(6), 0o600))
	require.NoError(t, os.Mkdir(id(7), 0o700))
	require.NoError(t, os.Truncate(func() string { require.NoError(t, os.WriteFile(id(8), nil, 0o600)); return id(8) }(), maxFile+1))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o600))
	require.NoError(t, b.Put(t.Context(), Word{Session: session, Kind: Say, Text: "last"}))

	require.Equal(t, []string{"first", "last"}, texts(t, b, session))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2)
	aside, err := os.ReadDir(filepath.Join(b.Dir, session, bad))
	require.NoError(t, err)
	require.Len(t, aside, 9)
	require.FileExists(t, secret)
}

func TestWords_NeverLeadOutOfTheBox(t *testing.T) {
	b, session := newBox(t)
	outside := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(outside, words), 0o700))
	name := fmt.Sprintf("%019d-%016x.json", 1, 1)
	require.NoError(t, os.WriteFile(filepath.Join(outside, words, name), []byte(`{"kind":"say","text":"x"}`), 0o600))
	require.NoError(t, os.MkdirAll(b.Dir, 0o700))
	require.NoError(t, os.Symlink(outside, filepath.Join(b.Dir, session)))
	_, err := b.Words(session)
	require.Error(t, err, "the session's folder is a link out")

	other := uuid.NewString()
	dir, err := b.SessionDir(other)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(filepath.Join(outside, words), filepath.Join(dir, words)))
	_, err = b.Words(other)
	require.Error(t, err, "its folder of words is one")
	_, err = b.Sessions()
	require.NoError(t, err)
}

func TestPrompts_AreReadAfterAMarkAndTheNewestKept(t *testing.T) {
	b, session := newBox(t)
	mark, err := b.LastPrompt(session)
	require.NoError(t, err)
	require.Empty(t, mark)
	require.NoError(t, b.PutPrompt(t.Context(), Prompt{Session: session, Text: "one", Transcript: "/t.jsonl"}))
	mark, err = b.LastPrompt(session)
	require.NoError(t, err)
	long := strings.Repeat("x", MaxText+10)
	require.NoError(t, b.PutPrompt(t.Context(), Prompt{Session: session, Text: long}))
	ps, err := b.Prompts(session, mark)
	require.NoError(t, err)
	require.Len(t, ps, 1)
	require.Equal(t, Sum(long), ps[0].Sum, "a cut text keeps the sum of all of it")
	ps, err = b.Prompts(session, "")
	require.NoError(t, err)
	require.Equal(t, "/t.jsonl", ps[0].Transcript)

	dir := filepath.Join(b.Dir, session, prompts)
	for i := range keptPrompts + 20 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%019d-%016x.json", i, i)), []byte("{}"), 0o600))
	}
	require.NoError(t, b.PutPrompt(t.Context(), Prompt{Session: session, Text: "new"}))
	ps, err = b.Prompts(session, "")
	require.NoError(t, err)
	require.Len(t, ps, keptPrompts)
	require.Equal(t, "new", ps[len(ps)-1].Text)
}

func TestSum_KnowsNoWhiteSpaceAndNoCompositionOfLetters(t *testing.T) {
	require.Equal(t, Sum("caf\u00e9 noir\n x"), Sum("cafe\u0301\tnoir x \n"))
	require.NotEqual(t, Sum("a"), Sum("b"))
}

// putEnv names an outbox: this test binary then puts words until it is killed.
const putEnv = "OUTBOX_TEST_PUT"

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(putEnv); ok {
		b := Box{Dir: filepath.Dir(dir)}
		for i := 0; ; i++ {
			if err := b.Put(context.Background(), Word{Session: filepath.Base(dir), Kind: Say, Text: fmt.Sprint(i)}); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println(i)
		}
	}
	os.Exit(m.Run())
}

func TestPut_AKillLeavesEachWordWholeOrNotThere(t *testing.T) {
	b, session := newBox(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	for range 5 {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), putEnv+"="+filepath.Join(b.Dir, session))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		n := 0
		for n < 3 { // killed at once after a word that it told of
			if _, err := fmt.Fscanln(out, &n); err != nil {
				t.Fatal(err)
			}
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		ws, err := b.Words(session)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(ws), n+1)
		for i, w := range ws {
			require.Equal(t, fmt.Sprint(i), w.Text)
			require.NoError(t, b.Remove(session, w.ID))
		}
	}
	_, err = os.Stat(filepath.Join(b.Dir, session, bad))
	require.ErrorIs(t, err, os.ErrNotExist)
}
