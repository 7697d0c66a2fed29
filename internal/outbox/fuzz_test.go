package outbox

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// stopHook, noticeHook and promptHook are what the CLI 2.1.197 gave.
const (
	stopHook   = `{"session_id":"f7b667c6-e468-4828-b200-457593fbb391","transcript_path":"/h/.claude/projects/-w/f7.jsonl","cwd":"/w","prompt_id":"fa5e5332","permission_mode":"default","effort":{"level":"high"},"hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"done","background_tasks":[],"session_crons":[]}`
	noticeHook = `{"session_id":"012689fc-648f-42e8-b43f-88cda5404dca","transcript_path":"/h/t.jsonl","cwd":"/w","prompt_id":"22851b04","hook_event_name":"Notification","message":"Claude needs your permission","notification_type":"permission_prompt"}`
	promptHook = `{"session_id":"f7b667c6-e468-4828-b200-457593fbb391","transcript_path":"/h/t.jsonl","cwd":"/w","prompt_id":"fa5e5332","permission_mode":"default","hook_event_name":"UserPromptSubmit","prompt":"Alice: first row\nsecond row !cmd\nthird"}`
)

func TestReadHook_ReadsWhatTheCLIGives(t *testing.T) {
	for raw, want := range map[string]Word{
		stopHook: {Kind: Stop, Text: "done"},
		strings.Replace(stopHook, `"stop_hook_active":false`, `"stop_hook_active":true`, 1): {Kind: Stop, Text: "done"},
		noticeHook: {Kind: Notification, Text: "Claude needs your permission", Detail: "permission_prompt"},
	} {
		h, err := ReadHook(strings.NewReader(raw))
		require.NoError(t, err)
		w, ok := h.Word()
		require.True(t, ok)
		require.Equal(t, want, w)
	}
	h, err := ReadHook(strings.NewReader(promptHook))
	require.NoError(t, err)
	require.Equal(t, Hook{Event: "UserPromptSubmit", Transcript: "/h/t.jsonl", Prompt: "Alice: first row\nsecond row !cmd\nthird"}, h)
}

func TestHookWord_SaysNothingWhereThereIsNothingToSay(t *testing.T) {
	for _, raw := range []string{
		promptHook, `{}`, `{"hook_event_name":"Stop","last_assistant_message":" \n"}`, `{"hook_event_name":"Stop"}`,
		`{"hook_event_name":"Notification","message":"Claude is waiting for your input","notification_type":"idle_prompt"}`,
		`{"hook_event_name":"SubagentStop","last_assistant_message":"x"}`,
	} {
		h, err := ReadHook(strings.NewReader(raw))
		require.NoError(t, err)
		_, ok := h.Word()
		require.False(t, ok, raw)
	}
	for _, raw := range []string{"", "null x", "[]", `"x"`, `{"prompt":3}`, strings.Repeat(" ", maxHook+1)} {
		_, err := ReadHook(strings.NewReader(raw))
		require.Error(t, err)
	}
}

func FuzzReadHook(f *testing.F) {
	for _, seed := range []string{stopHook, noticeHook, promptHook, `{"hook_event_name":"Stop","last_assistant_message":"\u0000\ud800"}`, "null", "[]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		h, err := ReadHook(strings.NewReader(raw))
		if err != nil {
			return
		}
		b := Box{Dir: filepath.Join(t.TempDir(), "o"), Log: slog.New(slog.DiscardHandler)}
		session := uuid.NewString()
		if w, ok := h.Word(); ok {
			w.Session = session
			if err := b.Put(t.Context(), w); err != nil {
				require.ErrorIs(t, err, ErrEmpty)
				return
			}
			ws, err := b.Words(session)
			require.NoError(t, err)
			require.NotEmpty(t, ws, "what was put is read again")
		}
		require.NoError(t, b.PutPrompt(t.Context(), Prompt{Session: session, Text: h.Prompt, Transcript: h.Transcript}))
		ps, err := b.Prompts(session, "")
		require.NoError(t, err)
		require.Len(t, ps, 1)
		require.Equal(t, Sum(h.Prompt), ps[0].Sum)
	})
}

func FuzzWords(f *testing.F) {
	f.Add("0000000000000000001-0000000000000001.json", []byte(`{"kind":"say","text":"x"}`))
	f.Add("0000000000000000001-0000000000000001.json", []byte(`{"kind":"stop","text":"\u0000\u001b[201~"}`))
	f.Add("x", []byte("null"))
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		b := Box{Dir: filepath.Join(t.TempDir(), "o"), Log: slog.New(slog.DiscardHandler)}
		session := uuid.NewString()
		dir, err := b.SessionDir(session)
		require.NoError(t, err)
		for _, folder := range []string{words, prompts} {
			require.NoError(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
			_ = os.WriteFile(filepath.Join(dir, folder, filepath.Base(name)), content, 0o600)
		}
		ws, err := b.Words(session)
		require.NoError(t, err)
		for _, w := range ws {
			require.NotEmpty(t, w.Text)
			require.NotContains(t, w.Text, "\x1b")
			require.NotContains(t, w.Text, "\x00")
			require.NoError(t, b.Remove(session, w.ID))
		}
		again, err := b.Words(session)
		require.NoError(t, err)
		require.Empty(t, again, "each is read and removed, or set aside")
		_, err = b.Prompts(session, "")
		require.NoError(t, err)
	})
}
