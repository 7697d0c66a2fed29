package slackapi

import (
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/rules"
)

func collect(t *testing.T, lines iter.Seq2[rules.Line, error]) []string {
	t.Helper()
	var out []string
	for line, err := range lines {
		require.NoError(t, err)
		out = append(out, line.TS)
	}
	return out
}

func TestReplies_ReadsAllPagesInOrder(t *testing.T) {
	f := newFake(t)
	f.on("conversations.replies",
		says(`{"ok":true,"messages":[{"ts":"1.000000","text":"root"},{"ts":"2.000000","thread_ts":"1.000000","text":"odd","blocks":[{"type":7}],"new_field":{"a":1}}],"has_more":true,"response_metadata":{"next_cursor":"p2"}}`),
		says(`{"ok":true,"messages":[{"ts":"1.000000","text":"root"},{"no":"ts"},{"ts":"3.000000","thread_ts":"1.000000"}]}`))
	var lines []rules.Line
	for line, err := range f.client().Replies(t.Context(), "C1", "1.000000", "1.000000") {
		require.NoError(t, err)
		lines = append(lines, line)
	}
	require.Len(t, lines, 2, "the root stands on every page, and is not newer than asked")
	require.Equal(t, rules.LineKey{Team: "T1", Channel: "C1", TS: "2.000000"}, lines[0].Key())
	require.Equal(t, "1.000000", lines[0].Root)
	require.Contains(t, string(lines[0].Raw), `"new_field":{"a":1}`, "nothing of the message is lost")
	require.Equal(t, "3.000000", lines[1].TS)
}

func TestReplies_StopsWhenItsCallerHasEnough(t *testing.T) {
	f := newFake(t)
	f.on("conversations.replies", says(`{"ok":true,"messages":[{"ts":"1.000000"},{"ts":"2.000000"}],"response_metadata":{"next_cursor":"p2"}}`))
	for range f.client().Replies(t.Context(), "C1", "1.000000", "") {
		break
	}
	require.Equal(t, 1, f.count("conversations.replies"))
}

func TestReplies_SaysThatTheThreadIsGone(t *testing.T) {
	f := newFake(t)
	f.on("conversations.replies", says(`{"ok":false,"error":"thread_not_found"}`))
	var last error
	for _, err := range f.client().Replies(t.Context(), "C1", "1.000000", "") {
		last = err
	}
	require.ErrorIs(t, last, ErrParentGone)
}

func TestReplies_DoesNotGoRoundInCircles(t *testing.T) {
	f := newFake(t)
	f.on("conversations.replies", says(`{"ok":true,"messages":[],"response_metadata":{"next_cursor":"same"}}`))
	var last error
	for _, err := range f.client().Replies(t.Context(), "C1", "1.000000", "") {
		last = err
	}
	require.ErrorIs(t, last, ErrAmbiguous)
}

func TestHistory_GivesTheOldestFirst(t *testing.T) {
	f := newFake(t)
	pages := func() {
		f.on("conversations.history",
			says(`{"ok":true,"messages":[{"ts":"5.000000"},{"ts":"4.000000"}],"has_more":true,"response_metadata":{"next_cursor":"p2"}}`),
			says(`{"ok":true,"messages":[{"ts":"3.000000"},{"ts":"2.000000"}]}`))
	}
	c := f.client()
	pages()
	require.Equal(t, []string{"3.000000", "4.000000", "5.000000"}, collect(t, c.History(t.Context(), "C1", "2.000000", 0)))
	require.Equal(t, "2.000000", f.form("conversations.history").Get("oldest"))
	pages()
	require.Equal(t, []string{"3.000000", "4.000000", "5.000000"}, collect(t, c.History(t.Context(), "C1", "", 3)), "the newest three")
}

func TestHistory_SaysWhatWentWrong(t *testing.T) {
	f := newFake(t)
	f.on("conversations.history", says(`{"ok":false,"error":"channel_not_found"}`))
	var last error
	for _, err := range f.client().History(t.Context(), "C1", "", 0) {
		last = errors.Join(last, err)
	}
	require.True(t, IsRejected(last, "channel_not_found"))
}

func TestConversations_ListsWhereTheSeatIs(t *testing.T) {
	f := newFake(t)
	f.on("users.conversations",
		says(`{"ok":true,"channels":[{"id":"C1","name":"general","is_channel":true},{"id":"G1","name":"secret","is_private":true}],"response_metadata":{"next_cursor":"p2"}}`),
		says(`{"ok":true,"channels":[{"id":"D1","is_im":true,"user":"U1"},{"id":"G2","name":"mpdm-a","is_mpim":true,"is_private":true}]}`))
	got, err := f.client().Conversations(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Conversation{
		{ID: "C1", Name: "general", Kind: "channel"}, {ID: "G1", Name: "secret", Kind: "group"},
		{ID: "D1", Kind: "im", User: "U1"}, {ID: "G2", Name: "mpdm-a", Kind: "mpim"},
	}, got)
}
