package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

func testContext(t *testing.T, newURL func(t *testing.T) string) {
	seen := func(all []store.LineAuthor, err error) (texts []string) {
		require.NoError(t, err)
		for _, l := range all {
			texts = append(texts, l.Line.Text)
		}
		return texts
	}
	t.Run("UnansweredSince_GivesTheThreadsNotedAndFailedLines", func(t *testing.T) {
		w := open(t, newURL)
		w.record(line(3, 1, "c"), rules.Noted)
		w.record(line(1, 1, "a"), rules.Noted)
		w.record(line(2, 1, "b"), rules.Noted)
		w.record(line(4, 1, "owed"), rules.Owed)
		w.record(line(5, 5, "elsewhere"), rules.Noted)
		w.record(line(6, 1, "deleted"), rules.Noted)
		w.delete(6)
		w.record(line(7, 1, "failed"), rules.Owed)
		w.take(turn("t7", 1), line(7, 1, ""))
		w.finish("t7", rules.Failed, key(7))
		require.Equal(t, []string{"failed"}, seen(w.UnansweredSince(w.ctx(), seat, thread(1), ts(5), 10)))
		w.delete(7)
		require.Equal(t, []string{"a", "b", "c"}, seen(w.UnansweredSince(w.ctx(), seat, thread(1), "", 10)))
		require.Equal(t, []string{"b", "c"}, seen(w.UnansweredSince(w.ctx(), seat, thread(1), ts(1), 10)))
		require.Equal(t, []string{"b", "c"}, seen(w.UnansweredSince(w.ctx(), seat, thread(1), "", 2)), "the newest of too many")
		require.Empty(t, seen(w.UnansweredSince(w.ctx(), other, thread(1), "", 10)))
		_, err := w.UnansweredSince(w.ctx(), seat, thread(1), "yesterday", 10)
		require.ErrorIs(t, err, store.ErrInvalid)
	})
	t.Run("EditedSince_GivesWhatTheLastTurnKnewOtherwise", func(t *testing.T) {
		w := open(t, newURL)
		a, b, c := line(1, 1, "a"), line(2, 1, "b"), line(3, 1, "c")
		w.record(a, rules.Owed)
		w.record(b, rules.Noted)
		require.Empty(t, seen(w.EditedSince(w.ctx(), seat, thread(1), "t1", 10)), "no turn before")
		w.now = w.now.Add(time.Second)
		w.take(turn("t1", 1), a)
		w.now = w.now.Add(time.Second)
		w.record(c, rules.Owed)
		w.edit(edited(a, 20, "A"), rules.Noted)
		w.edit(edited(b, 20, "B"), rules.Noted)
		w.edit(edited(c, 20, "C"), rules.Noted)
		w.record(line(4, 1, "d"), rules.Noted)
		w.edit(edited(line(4, 1, "d"), 20, "D"), rules.Noted)
		w.now = w.now.Add(time.Second)
		w.take(turn("t2", 1), c)
		require.Equal(t, []string{"A", "B"}, seen(w.EditedSince(w.ctx(), seat, thread(1), "t2", 10)),
			"C is the turn's own, D is new and noted")
		w.now = w.now.Add(time.Second)
		require.Empty(t, seen(w.EditedSince(w.ctx(), seat, thread(1), "t3", 10)), "t2 was told")
		w.edit(edited(a, 10, "stale"), rules.Noted)
		require.Empty(t, seen(w.EditedSince(w.ctx(), seat, thread(1), "t3", 10)))
	})
	t.Run("LastTurnLine_IsTheNewestThatATurnTook", func(t *testing.T) {
		w := open(t, newURL)
		last := func() string {
			got, err := w.LastTurnLine(w.ctx(), seat, thread(1))
			require.NoError(t, err)
			return got
		}
		require.Empty(t, last())
		for n := 1; n <= 3; n++ {
			w.record(line(n, 1, "x"), rules.Owed)
		}
		w.take(turn("t1", 1), line(1, 1, ""), line(2, 1, ""))
		require.Empty(t, last(), "no agent has answered yet")
		require.NoError(t, w.KeepAnswer(w.ctx(), "t1", store.Answer{Text: "x"}))
		require.Equal(t, ts(2), last())
		w.finish("t1", rules.Answered, key(1), key(2), key(3))
		require.Equal(t, ts(2), last(), "line 3 ended without being taken")
	})
	t.Run("BusyThreads_AreThoseWithATurn", func(t *testing.T) {
		w := open(t, newURL)
		for n := 1; n <= 3; n++ {
			w.record(line(n, n, "x"), rules.Owed)
		}
		w.take(turn("t2", 2), line(2, 2, ""))
		w.take(turn("t3", 3), line(3, 3, ""))
		w.finish("t3", rules.Answered, key(3))
		got, err := w.BusyThreads(w.ctx(), seat, team, channel)
		require.NoError(t, err)
		require.Equal(t, []rules.Thread{thread(2)}, got)
		got, err = w.BusyThreads(w.ctx(), other, team, channel)
		require.NoError(t, err)
		require.Empty(t, got)
	})
	t.Run("LastSeen_IsTheNewestOfEachChannel", func(t *testing.T) {
		w := open(t, newURL)
		w.record(line(2, 2, "x"), rules.Noted)
		w.record(line(1, 1, "x"), rules.Noted)
		dm := line(5, 5, "x")
		dm.Channel = "D1"
		w.record(dm, rules.Owed)
		_, err := w.Record(w.ctx(), other, line(9, 9, "x"), rules.Person, says(rules.Noted))
		require.NoError(t, err)
		got, err := w.LastSeen(w.ctx(), seat)
		require.NoError(t, err)
		require.Equal(t, map[string]string{channel: ts(2), "D1": ts(5)}, got)
	})
	t.Run("ThreadsSince_AreThoseThatTheSeatTakesPartIn", func(t *testing.T) {
		w := open(t, newURL)
		w.record(line(1, 1, "x"), rules.Owed)
		w.record(line(2, 1, "x"), rules.Noted)
		w.record(line(3, 3, "only noted"), rules.Noted)
		w.record(line(4, 4, "posted in"), rules.Noted)
		w.delete(50)
		_, err := w.BeginPost(w.ctx(), store.Post{ID: "p", Seat: seat, Thread: thread(4), Part: 1, Parts: 1})
		require.NoError(t, err)
		require.NoError(t, w.ConfirmPost(w.ctx(), "p", 1, ts(5)))
		got, err := w.ThreadsSince(w.ctx(), seat, "")
		require.NoError(t, err)
		require.Equal(t, []store.ThreadMark{{Thread: thread(4), LastTS: ts(4)}, {Thread: thread(1), LastTS: ts(2)}}, got)
		got, err = w.ThreadsSince(w.ctx(), seat, ts(3))
		require.NoError(t, err)
		require.Equal(t, []store.ThreadMark{{Thread: thread(4), LastTS: ts(4)}}, got)
	})
}
