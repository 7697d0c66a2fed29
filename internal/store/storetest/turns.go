package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

func testTurns(t *testing.T, newURL func(t *testing.T) string) {
	one, two, three := line(1, 1, "one"), line(2, 1, "two"), line(3, 1, "three")
	t.Run("TakeLines_TakesWhatIsOwedOnce", func(t *testing.T) {
		w := open(t, newURL)
		w.record(one, rules.Owed)
		w.record(two, rules.Owed)
		w.edit(edited(two, 10, "two, edited"), rules.Owed)
		first := w.take(turn("t1", 1), one, two)
		require.Equal(t, []string{ts(1), ts(2)}, tsOf(first.Taken))
		require.Equal(t, "two, edited", first.Taken[1].Text)
		require.Empty(t, first.Dropped)
		require.Equal(t, first, w.take(turn("t1", 1), one, two), "the same turn gets the same again")
		r := w.is(1, rules.Taken, "")
		require.Equal(t, "t1", r.Turn)
		require.True(t, r.Dispatched, "a brain has it")
		second := w.take(turn("t2", 1), one, two)
		require.Empty(t, second.Taken)
		require.Len(t, second.Dropped, 2)
		require.Equal(t, "t1", second.Dropped[0].Turn)
		_, err := w.TurnOf(w.ctx(), "t2")
		require.ErrorIs(t, err, store.ErrNotFound, "a turn without a line is none")
		info, err := w.TurnOf(w.ctx(), "t1")
		require.NoError(t, err)
		require.Equal(t, turn("t1", 1), info.Turn)
	})
	t.Run("TakeLines_DropsWhatHasItsOutcome", func(t *testing.T) {
		w := open(t, newURL)
		w.record(one, rules.Owed)
		w.take(turn("t1", 1), one)
		w.finish("t1", rules.Answered, key(1))
		for _, id := range []string{"t1", "t2"} {
			got := w.take(turn(id, 1), one)
			require.Empty(t, got.Taken)
			require.Equal(t, rules.Answered, got.Dropped[0].State)
		}
	})
	t.Run("TakeLines_WritesALineWhoseRowCouldNotBeWritten", func(t *testing.T) {
		w := open(t, newURL)
		l := one
		l.Raw = []byte(`{"raw":true}`)
		take := func(id string) store.TakeResult {
			got, err := w.TakeLines(w.ctx(), turn(id, 1), []store.TakeLine{{Line: l, Author: rules.Person}})
			require.NoError(t, err)
			return got
		}
		require.Equal(t, []string{ts(1)}, tsOf(take("t1").Taken))
		require.Empty(t, take("t2").Taken)
		r := w.is(1, rules.Taken, "")
		require.Equal(t, rules.Person, r.Author)
		require.False(t, r.NeedsDispatch())
		got, err := w.Line(w.ctx(), key(1))
		require.NoError(t, err)
		require.Equal(t, l, got)
		_, err = w.Record(w.ctx(), seat, l, rules.Person, unasked(t))
		require.NoError(t, err, "its redelivery changes nothing")
		w.is(1, rules.Taken, "")
	})
	t.Run("TakeLines_TakesANotedLineThatABrainWasGiven", func(t *testing.T) {
		w := open(t, newURL)
		w.record(one, rules.Noted)
		got, err := w.TakeLines(w.ctx(), turn("t1", 1), []store.TakeLine{{Line: one, Author: rules.Person}})
		require.NoError(t, err)
		require.Len(t, got.Taken, 1)
	})
	t.Run("TakeLines_DeclinesADeletedLineWithoutARow", func(t *testing.T) {
		w := open(t, newURL)
		w.delete(1)
		got, err := w.TakeLines(w.ctx(), turn("t1", 1), []store.TakeLine{{Line: one, Author: rules.Person}})
		require.NoError(t, err)
		require.Empty(t, got.Taken)
		require.Equal(t, rules.ReasonDeleted, got.Dropped[0].Reason)
		w.is(1, rules.Declined, rules.ReasonDeleted)
	})
	t.Run("TakeLines_DeclinesWhatIsOlderThanTheStop", func(t *testing.T) {
		for name, stopped := range map[string]rules.Thread{"of the thread": thread(1), "of the channel": {Team: team, Channel: channel}} {
			t.Run(name, func(t *testing.T) {
				w := open(t, newURL)
				for _, l := range []rules.Line{one, two, three} {
					w.record(l, rules.Owed)
				}
				w.take(turn("t0", 1), one)
				w.stop(stopped, 3)
				got := w.take(turn("t1", 1), one, two, three)
				require.Equal(t, []string{ts(3)}, tsOf(got.Taken), "the stop's own second is not older than it")
				require.Equal(t, rules.Taken, got.Dropped[0].State, "a turn that began is not undone here")
				w.is(2, rules.Declined, rules.ReasonStopped)
			})
		}
		for name, stopped := range map[string]rules.Thread{"other thread": thread(9), "other channel": {Team: team, Channel: "C2"}} {
			t.Run(name, func(t *testing.T) {
				w := open(t, newURL)
				w.record(one, rules.Owed)
				w.stop(stopped, 50)
				_, err := w.RecordStop(w.ctx(), other, thread(1), ts(50))
				require.NoError(t, err)
				require.Len(t, w.take(turn("t1", 1), one).Taken, 1)
			})
		}
	})
	t.Run("TakeLines_WithoutLinesIsATurnOfItsOwn", func(t *testing.T) {
		w := open(t, newURL)
		require.Empty(t, w.take(turn("t1/drive1", 1)))
		_, err := w.TurnOf(w.ctx(), "t1/drive1")
		require.NoError(t, err)
		_, err = w.TakeLines(w.ctx(), store.Turn{}, nil)
		require.ErrorIs(t, err, store.ErrInvalid)
	})
	t.Run("FinishTurn_EndsItsLinesAndThoseThatWait", func(t *testing.T) {
		w := open(t, newURL)
		w.record(one, rules.Owed)
		w.record(two, rules.Owed)
		w.record(three, rules.Owed)
		w.record(line(4, 1, "noted"), rules.Noted)
		w.take(turn("t1", 1), one)
		w.take(turn("t2", 1), three)
		keys := []rules.LineKey{key(1), key(2), key(3), key(4), key(5)}
		open, err := w.OpenLines(w.ctx(), "t1", seat, keys)
		require.NoError(t, err)
		require.Equal(t, []rules.LineKey{key(1), key(2), key(5)}, open)
		n, err := w.FinishTurn(w.ctx(), "t1", seat, keys, rules.Failed, rules.ReasonWorkerDied)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		w.is(1, rules.Failed, rules.ReasonWorkerDied)
		w.is(2, rules.Failed, rules.ReasonWorkerDied)
		w.is(3, rules.Taken, "")
		w.is(4, rules.Noted, "")
		w.is(5, rules.Failed, rules.ReasonWorkerDied)
		require.Equal(t, 0, w.finish("t1", rules.Answered, keys...), "once")
		w.is(1, rules.Failed, rules.ReasonWorkerDied)
		open, err = w.OpenLines(w.ctx(), "t1", seat, keys)
		require.NoError(t, err)
		require.Empty(t, open)
		info, err := w.TurnOf(w.ctx(), "t1")
		require.NoError(t, err)
		require.Equal(t, rules.Failed, info.State)
		require.False(t, info.EndedAt.IsZero())
	})
	t.Run("FinishTurn_NeedsAnOutcome", func(t *testing.T) {
		w := open(t, newURL)
		_, err := w.FinishTurn(w.ctx(), "t1", seat, []rules.LineKey{key(1)}, rules.Owed, "")
		require.ErrorIs(t, err, store.ErrInvalid)
	})
	t.Run("FinishTurn_IsAllOrNothing", func(t *testing.T) {
		w := open(t, newURL)
		w.record(one, rules.Owed)
		_, err := w.FinishTurn(w.ctx(), "t1", seat, []rules.LineKey{key(1), {Team: team, Channel: channel, TS: "bad"}}, rules.Answered, "")
		require.ErrorIs(t, err, store.ErrInvalid)
		w.is(1, rules.Owed, "")
	})
}
