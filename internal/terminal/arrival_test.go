package terminal

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"agentsmith/internal/outbox"
)

// The rows that the CLI 2.1.197 writes into a transcript for a prompt.
func row(kind, text string) string {
	quoted, _ := json.Marshal(text)
	switch kind {
	case "enqueue":
		return `{"type":"queue-operation","operation":"enqueue","timestamp":"2026-12-01T02:26:45.464Z","sessionId":"f7","content":` + string(quoted) + "}\n"
	case "typed", "queued":
		return `{"parentUuid":"ee","isSidechain":false,"promptId":"98","type":"user","message":{"role":"user","content":` + string(quoted) + `},"uuid":"bb","origin":{"kind":"human"},"promptSource":"` + kind + `"}` + "\n"
	}
	return `{"type":"user","message":{"role":"user","content":[{"tool_use_id":"x","type":"tool_result","content":` + string(quoted) + `}]},"promptSource":"typed"}` + "\n"
}

type proofRig struct {
	t    *testing.T
	y    *typer
	path string
}

func newProofRig(t *testing.T) *proofRig {
	dir := t.TempDir()
	r := &proofRig{t: t, path: filepath.Join(dir, "t.jsonl"), y: newTyper(Tmux{})}
	r.y.box = outbox.Box{Dir: filepath.Join(dir, "outbox")}
	r.y.target = Target{ID: uuid.NewString()}
	r.y.j = &journal{dir: dir}
	r.hook("the brief")
	return r
}

func (r *proofRig) hook(text string) {
	require.NoError(r.t, r.y.box.PutPrompt(r.t.Context(), outbox.Prompt{Session: r.y.target.ID, Text: text, Transcript: r.path}))
}

func (r *proofRig) write(rows ...string) {
	f, err := os.OpenFile(r.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(r.t, err)
	defer func() { _ = f.Close() }()
	_, err = f.WriteString(strings.Join(rows, ""))
	require.NoError(r.t, err)
}

// typing begins to type a text.
func (r *proofRig) typing(body string) *proofs {
	r.y.text = Text{ID: uuid.NewString(), Body: body}
	r.y.e = r.y.newEntry()
	r.y.j.put(r.y.e)
	p := r.y.newProofs()
	require.NoError(r.t, p.mark())
	return p
}

func TestProofs_TheHookOrTheQueueProvesArrival(t *testing.T) {
	for name, tc := range map[string]struct {
		after func(r *proofRig)
		want  bool
	}{
		"nothing":             {func(*proofRig) {}, false},
		"the hook":            {func(r *proofRig) { r.hook("go on") }, true},
		"another's hook":      {func(r *proofRig) { r.hook("go off") }, false},
		"queued":              {func(r *proofRig) { r.write(row("enqueue", "go on")) }, true},
		"typed":               {func(r *proofRig) { r.write(row("typed", "go\n on ")) }, true},
		"out of the queue":    {func(r *proofRig) { r.write(row("queued", "go on")) }, false},
		"what a tool said":    {func(r *proofRig) { r.write(row("result", "go on")) }, false},
		"half a row":          {func(r *proofRig) { r.write(strings.TrimSpace(row("typed", "go on"))) }, false},
		"no JSON":             {func(r *proofRig) { r.write(`{"type":"user"` + "\n" + `"enqueue"` + "\n") }, false},
		"unreadable":          {func(r *proofRig) { require.NoError(r.t, os.MkdirAll(r.path, 0o700)) }, false},
		"a pipe that is open": {func(r *proofRig) { require.NoError(r.t, unix.Mkfifo(r.path, 0o600)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newProofRig(t)
			p := r.typing("go on")
			tc.after(r)
			require.Equal(t, tc.want, p.found(r.y.e))
		})
	}
}

func TestProofs_WhatWasThereBeforeProvesNothing(t *testing.T) {
	r := newProofRig(t)
	r.hook("go on")
	r.write(row("typed", "go on"), row("enqueue", "go on"))
	p := r.typing("go on")
	require.False(t, p.found(r.y.e))
	r.write(row("typed", "other"))
	require.False(t, p.found(r.y.e))
	r.write(row("enqueue", "go on"))
	require.True(t, p.found(r.y.e))
}

// A line that was queued has its hook still to come: it must not prove a second line of
// the same words.
func TestProofs_ALateHookOfEqualWordsIsNotTakenForTheSecond(t *testing.T) {
	r := newProofRig(t)
	r.write(row("typed", "the brief"))
	first := r.typing("go on")
	r.write(row("enqueue", "go on"))
	require.True(t, first.found(r.y.e))
	second := r.typing("go on")
	r.hook("go on")
	r.write(row("queued", "go on"))
	require.False(t, second.found(r.y.e))
	r.write(row("typed", "go on"))
	require.True(t, second.found(r.y.e))
}

func TestJournal_KeepsTheNewestAndSetsAsideWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	j, err := openJournal(dir)
	require.NoError(t, err)
	for i := range journalTexts + 10 {
		j.put(&entry{ID: fmt.Sprint(i), State: stateArrived})
	}
	require.NoError(t, j.save())
	j, err = openJournal(dir)
	require.NoError(t, err)
	require.Len(t, j.Entries, journalTexts)
	require.Nil(t, j.find("0"))
	require.NotNil(t, j.find(fmt.Sprint(journalTexts+9)))
	j.drop(fmt.Sprint(journalTexts + 9))
	require.Nil(t, j.find(fmt.Sprint(journalTexts+9)))

	path := filepath.Join(dir, journalFile)
	for name, spoil := range map[string]func(){
		"no JSON": func() { require.NoError(t, os.WriteFile(path, []byte("{"), 0o600)) },
		"null":    func() { require.NoError(t, os.WriteFile(path, []byte(`{"entries":[null]}`), 0o600)) },
		"a pipe":  func() { require.NoError(t, os.Remove(path)); require.NoError(t, unix.Mkfifo(path, 0o600)) },
	} {
		require.NoError(t, j.save())
		spoil()
		j, err = openJournal(dir)
		require.ErrorIs(t, err, errJournal, name)
		require.Empty(t, j.Entries)
		j, err = openJournal(dir)
		require.NoError(t, err, name)
	}
}

func FuzzTranscribed(f *testing.F) {
	for _, kind := range []string{"typed", "queued", "enqueue", "result"} {
		f.Add([]byte(row(kind, "go on")))
	}
	f.Add([]byte(`{"type":"user","promptSource":"typed","message":{"content":3}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, ok := transcribed(raw)
		require.True(t, ok || text == "")
	})
}
