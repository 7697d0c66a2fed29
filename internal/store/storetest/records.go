package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

// testEvents is what comes beside lines: stops, reactions, what is not understood.
func testEvents(t *testing.T, newURL func(t *testing.T) string) {
	t.Run("RecordStop_TheNewestStands", func(t *testing.T) {
		w := open(t, newURL)
		newest := func(want string) {
			t.Helper()
			got, err := w.NewestStop(w.ctx(), seat, thread(1))
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		newest("")
		require.True(t, w.stop(thread(1), 5))
		require.True(t, w.stop(thread(1), 5), "a redelivery is acted on again")
		require.False(t, w.stop(thread(1), 4))
		newest(ts(5))
		w.stop(rules.Thread{Team: team, Channel: channel}, 7)
		newest(ts(7))
		w.stop(thread(1), 9)
		newest(ts(9))
		_, err := w.RecordStop(w.ctx(), seat, thread(1), "stop")
		require.ErrorIs(t, err, store.ErrInvalid)
	})
	t.Run("RecordReaction_AnOlderOneChangesNothing", func(t *testing.T) {
		w := open(t, newURL)
		react := func(n int, removed bool) bool {
			fresh, err := w.RecordReaction(w.ctx(), store.Reaction{LineKey: key(1), User: "U1", Name: "x", EventTS: ts(n), Removed: removed})
			require.NoError(t, err)
			return fresh
		}
		require.True(t, react(5, false))
		require.True(t, react(5, false), "a redelivery is acted on again")
		require.True(t, react(7, true))
		require.False(t, react(5, false))
		_, err := w.RecordReaction(w.ctx(), store.Reaction{LineKey: key(1)})
		require.ErrorIs(t, err, store.ErrInvalid)
	})
	t.Run("RecordRaw_KeepsTheBytesOnce", func(t *testing.T) {
		w := open(t, newURL)
		raw := []byte("\x00\xff{not json")
		for range 2 {
			require.NoError(t, w.RecordRaw(w.ctx(), seat, "E1", "malformed", raw))
		}
		require.NoError(t, w.RecordRaw(w.ctx(), seat, "", "no id", nil))
		all, err := w.RawEvents(w.ctx(), 10)
		require.NoError(t, err)
		require.Len(t, all, 2)
		for _, e := range all {
			if e.EnvelopeID == "E1" {
				require.Equal(t, raw, e.Raw)
				require.Equal(t, "malformed", e.Why)
			}
		}
	})
}

// testRecords is what turns leave: answers, processes, posts, attempts.
func testRecords(t *testing.T, newURL func(t *testing.T) string) {
	t.Run("KeepAnswer_TheFirstStands", func(t *testing.T) {
		w := open(t, newURL)
		require.ErrorIs(t, w.KeepAnswer(w.ctx(), "t1", store.Answer{}), store.ErrNotFound)
		w.take(turn("t1", 1))
		_, err := w.AnswerOf(w.ctx(), "t1")
		require.ErrorIs(t, err, store.ErrNotFound)
		a := store.Answer{Text: "done", Model: "m", CostUSD: 0.25, Duration: 1500 * time.Millisecond, Files: []string{"a", "b"}}
		require.NoError(t, w.KeepAnswer(w.ctx(), "t1", a))
		require.NoError(t, w.KeepAnswer(w.ctx(), "t1", store.Answer{Text: "other"}))
		got, err := w.AnswerOf(w.ctx(), "t1")
		require.NoError(t, err)
		require.Equal(t, a, got)
	})
	t.Run("CostSince_AddsUpTheAnswers", func(t *testing.T) {
		w := open(t, newURL)
		start := w.now
		for _, id := range []string{"t1", "t2", "t3"} {
			w.take(turn(id, 1))
			require.NoError(t, w.KeepAnswer(w.ctx(), id, store.Answer{CostUSD: 0.5}))
			w.now = w.now.Add(time.Hour)
		}
		cost := func(since time.Time) float64 {
			c, err := w.CostSince(w.ctx(), since)
			require.NoError(t, err)
			return c
		}
		require.InDelta(t, 1.5, cost(start), 1e-9)
		require.InDelta(t, 1.0, cost(start.Add(time.Hour)), 1e-9)
		require.Zero(t, cost(w.now))
	})
	t.Run("Processes_LiveUntilTheyAreKnownToBeDead", func(t *testing.T) {
		w := open(t, newURL)
		p := store.Process{RunID: "r1", PID: 10, PGID: 10, Start: 1<<63 + 5, BootID: "boot"}
		require.ErrorIs(t, w.SetProcess(w.ctx(), "t1", p), store.ErrNotFound)
		w.take(turn("t1", 1))
		require.NoError(t, w.SetProcess(w.ctx(), "t1", p))
		want := []store.TurnProcess{{TurnID: "t1", Seat: seat, Thread: thread(1), Process: p}}
		for _, read := range []func() ([]store.TurnProcess, error){
			func() ([]store.TurnProcess, error) { return w.LiveProcesses(w.ctx(), box) },
			func() ([]store.TurnProcess, error) { return w.ThreadProcesses(w.ctx(), seat, thread(1)) },
		} {
			got, err := read()
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		got, err := w.LiveProcesses(w.ctx(), "other box")
		require.NoError(t, err)
		require.Empty(t, got)
		require.NoError(t, w.ProcessDead(w.ctx(), "r1"))
		require.NoError(t, w.ProcessDead(w.ctx(), "unknown"))
		got, err = w.ThreadProcesses(w.ctx(), seat, thread(1))
		require.NoError(t, err)
		require.Empty(t, got)
	})
	t.Run("BeginPost_CountsAndKeepsTheFirst", func(t *testing.T) {
		w := open(t, newURL)
		p := store.Post{ID: "p1", Seat: seat, Thread: thread(1), Part: 1, Parts: 3, Kind: "answer"}
		require.ErrorIs(t, w.ConfirmPost(w.ctx(), "p1", 1, ts(5)), store.ErrNotFound)
		got, err := w.BeginPost(w.ctx(), p)
		require.NoError(t, err)
		require.Equal(t, 1, got.Attempts)
		require.Empty(t, got.TS)
		require.True(t, got.BegunAt.Equal(w.now))
		failure := p
		failure.Parts, failure.Kind = 1, "failure"
		got, err = w.BeginPost(w.ctx(), failure)
		require.NoError(t, err)
		require.Equal(t, 2, got.Attempts)
		require.Equal(t, "answer", got.Kind, "one of the two is posted, the one that began")
		require.Equal(t, 3, got.Parts)
		require.NoError(t, w.ConfirmPost(w.ctx(), "p1", 1, ts(5)))
		require.NoError(t, w.ConfirmPost(w.ctx(), "p1", 1, ts(6)), "again is no error")
		require.ErrorIs(t, w.ConfirmPost(w.ctx(), "p1", 1, ""), store.ErrInvalid)
		_, err = w.BeginPost(w.ctx(), store.Post{ID: "p1", Seat: seat, Thread: thread(1), Part: 2, Parts: 3})
		require.NoError(t, err)
		all, err := w.PostsOf(w.ctx(), "p1")
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, ts(5), all[0].TS)
		require.Empty(t, all[1].TS)
	})
	t.Run("FileIDs_AreAllKept", func(t *testing.T) {
		w := open(t, newURL)
		require.NoError(t, w.KeepFileID(w.ctx(), "p1", 1, "a.txt", "F1"))
		w.now = w.now.Add(time.Second)
		require.NoError(t, w.KeepFileID(w.ctx(), "p1", 1, "a.txt", "F2"))
		require.NoError(t, w.KeepFileID(w.ctx(), "p1", 1, "a.txt", "F1"))
		require.NoError(t, w.ConfirmFile(w.ctx(), "p1", "F2"))
		require.ErrorIs(t, w.ConfirmFile(w.ctx(), "p1", "F3"), store.ErrNotFound)
		got, err := w.FileIDs(w.ctx(), "p1")
		require.NoError(t, err)
		require.Equal(t, []store.PostFile{{Part: 1, Name: "a.txt", FileID: "F1"}, {Part: 1, Name: "a.txt", FileID: "F2", Confirmed: true}}, got)
	})
	t.Run("Attempts_AreThoseThatDidNotEnd", func(t *testing.T) {
		w := open(t, newURL)
		a := store.Attempt{Token: []byte("\x00token"), Workflow: "w", Run: "r", Activity: "1", Type: "RunAgent", Box: box,
			PID: 7, Start: 8, BootID: "b", BegunAt: w.now}
		for range 2 {
			require.NoError(t, w.BeginAttempt(w.ctx(), a))
		}
		got, err := w.Attempts(w.ctx(), box)
		require.NoError(t, err)
		require.Equal(t, []store.Attempt{a}, got)
		require.NoError(t, w.EndAttempt(w.ctx(), a.Token))
		require.NoError(t, w.EndAttempt(w.ctx(), a.Token))
		got, err = w.Attempts(w.ctx(), box)
		require.NoError(t, err)
		require.Empty(t, got)
	})
	t.Run("Store_FailsAtOnceWhenItsTimeIsUp", func(t *testing.T) {
		w := open(t, newURL)
		ctx, cancel := context.WithCancel(w.ctx())
		cancel()
		_, err := w.Record(ctx, seat, line(1, 1, "x"), rules.Person, says(rules.Owed))
		require.ErrorIs(t, err, context.Canceled)
		_, err = w.RowOf(ctx, seat, key(1))
		require.ErrorIs(t, err, context.Canceled)
		_, err = w.RowOf(w.ctx(), seat, key(1))
		require.ErrorIs(t, err, store.ErrNotFound)
	})
	t.Run("Store_ClosedSaysSo", func(t *testing.T) {
		w := open(t, newURL)
		require.NoError(t, w.Ping(w.ctx()))
		require.NoError(t, w.Close())
		require.ErrorIs(t, w.Ping(w.ctx()), store.ErrClosed)
		_, err := w.RowOf(w.ctx(), seat, key(1))
		require.ErrorIs(t, err, store.ErrClosed)
	})
}

// testText is what people and machines may write.
func testText(t *testing.T, newURL func(t *testing.T) string) {
	big := strings.Repeat("ä\x00", 1<<19)
	for name, c := range map[string]struct{ in, want string }{
		"NUL":           {"a\x00b", "a\uFFFDb"},
		"invalid UTF-8": {"a\xff\xfeb\xed\xa0\x80", "a\uFFFDb\uFFFD"},
		"SQL":           {"'); DROP TABLE messages; -- $1 ?", "'); DROP TABLE messages; -- $1 ?"},
		"emoji":         {"👩‍💻 \u202eabc", "👩‍💻 \u202eabc"},
		"a megabyte":    {big, strings.ReplaceAll(big, "\x00", "\uFFFD")},
	} {
		t.Run("Record_KeepsHostileText: "+name, func(t *testing.T) {
			w := open(t, newURL)
			l := line(1, 1, c.in)
			l.Raw = []byte(c.in)
			l.Files = []rules.File{{ID: "F1", Name: c.in}}
			w.record(l, rules.Owed)
			got, err := w.Line(w.ctx(), key(1))
			require.NoError(t, err)
			require.True(t, c.want == got.Text)
			require.True(t, c.in == string(got.Raw), "raw keeps its bytes")
			require.Len(t, got.Files, 1)
			w.take(turn("t"+c.in[:1], 1), l)
			require.NoError(t, w.KeepAnswer(w.ctx(), "t"+c.in[:1], store.Answer{Text: c.in}))
			a, err := w.AnswerOf(w.ctx(), "t"+c.in[:1])
			require.NoError(t, err)
			require.True(t, c.want == a.Text)
			require.False(t, w.edit(edited(l, 10, c.in), rules.Noted).TextChanged, "compared as it is stored")
		})
	}
	t.Run("Record_HostileKeysStayApart", func(t *testing.T) {
		w := open(t, newURL)
		l := line(1, 1, "x")
		l.Channel = "C\x001"
		w.record(l, rules.Owed)
		r, err := w.RowOf(w.ctx(), seat, l.LineKey)
		require.NoError(t, err)
		require.Equal(t, rules.Owed, r.State)
		_, err = w.RowOf(w.ctx(), seat, key(1))
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}
