package agent

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// captured reads a stream that the real CLI printed.
func captured(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "stream", name+".jsonl"))
	require.NoError(t, err)
	return b
}

func read(t testing.TB, stream []byte) output {
	t.Helper()
	out, err := readStream(bytes.NewReader(stream), DefaultMaxOutput, func(bool) {})
	require.NoError(t, err)
	return out
}

func TestReadStream_ReadsWhatTheCLIPrints(t *testing.T) {
	for name, text := range map[string]string{
		"answer": "I am a stand-in for the model: nobody is signed in to claude here. You said: hello", "tool": "done", "background": "started",
	} {
		out := read(t, captured(t, name))
		require.True(t, out.begun, name)
		require.Equal(t, []string{text}, out.texts, name)
		require.Equal(t, "claude-opus-4-8", out.model, name)
		require.Zero(t, out.unread, name)
		require.NoError(t, out.failure(), name)
	}
	for name, want := range map[string]APIError{
		"overloaded": {Status: 529, Kind: "overloaded"}, "overloaded-repeatedly": {Status: 529, Kind: "overloaded"}, "ratelimit": {Status: 429, Kind: "rate_limit"},
		"auth": {Status: 401, Kind: "authentication_failed"}, "dropped": {Kind: "server_error"},
	} {
		out := read(t, captured(t, name))
		var api *APIError
		require.ErrorAs(t, out.failure(), &api, name)
		require.NotEmpty(t, api.Message, name)
		api.Message = ""
		require.Equal(t, want, *api, name)
	}
	out := read(t, captured(t, "nosession"))
	require.False(t, out.begun)
	require.NoError(t, out.failure())
	require.Contains(t, out.result.Errors[0], refusedResume)
}

func TestReadStream_SkipsALongLineThatIsNoResult(t *testing.T) {
	long := `{"type":"user","image":"` + strings.Repeat("x", maxLine) + `"}` + "\n"
	out := read(t, []byte(long+result+"\n"))
	require.Equal(t, []string{"ok"}, out.texts)
	require.Equal(t, 1, out.unread)

	long = strings.Replace(long, "user", "result", 1)
	_, err := readStream(strings.NewReader(long), DefaultMaxOutput, func(bool) {})
	require.ErrorIs(t, err, ErrOutput)
}

func TestReadStream_StopsAtTheLimit(t *testing.T) {
	for _, in := range []string{strings.Repeat("x", 1001), strings.Repeat("\n", 1001)} {
		_, err := readStream(strings.NewReader(in), 1000, func(bool) {})
		require.ErrorIs(t, err, ErrOutput)
		_, err = readStream(strings.NewReader(in[1:]), 1000, func(bool) {})
		require.NoError(t, err)
	}
}

func FuzzReadStream(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "stream", "*.jsonl"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(b)
	}
	for _, seed := range []string{"", "{}", `{"type":5}`, `{"type":"result","num_turns":1e300}`, `{"type":"result","errors":[null]}`, "\x00\n\xff", `{"type":"assistant","error":{}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 1 << 16
		results := 0
		out, err := readStream(bytes.NewReader(in), limit, func(last bool) {
			if last {
				results++
			}
		})
		if err != nil {
			require.ErrorIs(t, err, ErrOutput)
			require.Greater(t, len(in), limit)
			return
		}
		require.Equal(t, int64(len(in)), out.bytes)
		require.Equal(t, results > 0, out.result != nil)
		_ = out.failure()
	})
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (sh) S 1 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 3456 1 1"))
	f.Add([]byte("12 (a) b) (c) Z 7 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 99 1 1\n"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, in []byte) {
		p, ok := parseStat(12, in)
		if ok {
			require.Equal(t, 12, p.pid)
		}
	})
}

func TestParseStat_CountsFromTheLastParenthesis(t *testing.T) {
	p, ok := parseStat(12, []byte("12 (a) b) (c) Z 7 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 99 1 1\n"))
	require.True(t, ok)
	require.Equal(t, proc{pid: 12, ppid: 7, pgid: 12, start: 99, state: 'Z'}, p)
	require.True(t, p.dead())
}
