package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

func testEdits(t *testing.T, newURL func(t *testing.T) string) {
	original := line(1, 1, "one")
	t.Run("RecordEdit_TheNewestWinsInAnyOrder", func(t *testing.T) {
		for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {2, 1, 0, 1, 2, 0}} {
			w := open(t, newURL)
			for _, i := range order {
				switch i {
				case 0:
					w.record(original, rules.Owed)
				case 1:
					w.edit(edited(original, 10, "two"), rules.Owed)
				case 2:
					w.edit(edited(original, 20, "three"), rules.Owed)
				}
			}
			require.Equal(t, "three", w.text(1), order)
			w.is(1, rules.Owed, "")
		}
	})
	t.Run("RecordEdit_SaysWhatItDid", func(t *testing.T) {
		w := open(t, newURL)
		w.record(original, rules.Owed)
		r := w.edit(edited(original, 20, "two"), rules.Noted)
		require.True(t, r.TextChanged)
		require.False(t, r.Stale || r.RaisedToOwed || r.Begun)
		require.Equal(t, rules.Owed, r.Row.State)
		require.Equal(t, r, w.edit(edited(original, 20, "two"), rules.Noted), "a redelivery is answered alike")
		r = w.edit(edited(original, 10, "old"), rules.Noted)
		require.True(t, r.Stale)
		require.False(t, r.TextChanged)
		w.take(turn("t", 1), original)
		require.True(t, w.edit(edited(original, 30, "three"), rules.Noted).Begun)
		w.finish("t", rules.Answered, key(1))
		require.True(t, w.edit(edited(original, 40, "four"), rules.Owed).Begun)
		w.is(1, rules.Answered, "")
	})
	t.Run("RecordEdit_WithoutANewTextIsNothing", func(t *testing.T) {
		w := open(t, newURL)
		w.record(original, rules.Noted)
		unfurl := original
		unfurl.EditedTS = "1700000012.345678" // an event_ts, where the edit after it has the whole second
		r, err := w.RecordEdit(w.ctx(), seat, unfurl, rules.Person, func(*rules.Line, store.Facts) store.Verdict {
			t.Error("decided about an edit that changes no text")
			return store.Verdict{State: rules.Owed}
		})
		require.NoError(t, err)
		require.False(t, r.TextChanged || r.RaisedToOwed || r.Stale)
		require.True(t, w.edit(edited(original, 12, "two"), rules.Noted).TextChanged)
		require.Equal(t, "two", w.text(1))
	})
	t.Run("RecordEdit_TwoInOneSecond", func(t *testing.T) {
		w := open(t, newURL)
		w.record(original, rules.Noted)
		w.edit(edited(original, 10, "two"), rules.Noted)
		require.True(t, w.edit(edited(original, 10, "three"), rules.Noted).TextChanged)
		require.True(t, w.edit(edited(original, 10, "two"), rules.Noted).Stale, "a redelivery of the first of them")
		require.Equal(t, "three", w.text(1))
	})
	t.Run("RecordEdit_RaisesNotedToOwedOnce", func(t *testing.T) {
		w := open(t, newURL)
		w.record(original, rules.Noted)
		r, err := w.RecordEdit(w.ctx(), seat, edited(original, 10, "<@U0> one"), rules.Person, func(prev *rules.Line, f store.Facts) store.Verdict {
			require.Equal(t, "one", prev.Text)
			require.Equal(t, "<@U0> one", f.Line.Text)
			return store.Verdict{State: rules.Owed, Mentioned: true}
		})
		require.NoError(t, err)
		require.True(t, r.RaisedToOwed)
		require.True(t, r.Row.NeedsDispatch() && r.Row.Mentioned)
		r = w.edit(edited(original, 10, "<@U0> one"), rules.Owed)
		require.False(t, r.RaisedToOwed)
		require.True(t, r.Row.NeedsDispatch())
	})
	t.Run("RecordEdit_BothSeatsAreRaisedByTheirOwnDelivery", func(t *testing.T) {
		w := open(t, newURL)
		for _, s := range []string{seat, other} {
			_, err := w.Record(w.ctx(), s, original, rules.Person, says(rules.Noted))
			require.NoError(t, err)
		}
		for _, s := range []string{seat, other} {
			r, err := w.RecordEdit(w.ctx(), s, edited(original, 10, "both"), rules.Person, saysEdit(rules.Owed))
			require.NoError(t, err)
			require.True(t, r.RaisedToOwed && r.TextChanged, s)
		}
	})
	t.Run("RecordEdit_BeforeItsMessageIsTheMessage", func(t *testing.T) {
		w := open(t, newURL)
		r, err := w.RecordEdit(w.ctx(), seat, edited(original, 10, "two"), rules.Person, func(prev *rules.Line, f store.Facts) store.Verdict {
			require.Nil(t, prev)
			require.Nil(t, f.Prior)
			return store.Verdict{State: rules.Owed}
		})
		require.NoError(t, err)
		require.True(t, r.TextChanged && r.Row.NeedsDispatch())
		_, err = w.Record(w.ctx(), seat, original, rules.Person, unasked(t))
		require.NoError(t, err)
		require.Equal(t, "two", w.text(1))
	})
	t.Run("RecordEdit_AStaleOneStillGivesANewSeatItsRow", func(t *testing.T) {
		w := open(t, newURL)
		w.edit(edited(original, 20, "three"), rules.Owed)
		r, err := w.RecordEdit(w.ctx(), other, edited(original, 10, "two"), rules.Person, func(_ *rules.Line, f store.Facts) store.Verdict {
			require.Equal(t, "three", f.Line.Text)
			return store.Verdict{State: rules.Owed}
		})
		require.NoError(t, err)
		require.True(t, r.Stale && r.Row.NeedsDispatch())
	})
	t.Run("RecordEdit_NeedsItsTS", func(t *testing.T) {
		w := open(t, newURL)
		_, err := w.RecordEdit(w.ctx(), seat, original, rules.Person, saysEdit(rules.Owed))
		require.ErrorIs(t, err, store.ErrInvalid)
	})
	t.Run("RecordDelete_DeclinesALineThatWaits", func(t *testing.T) {
		w := open(t, newURL)
		w.record(original, rules.Owed)
		for range 2 {
			r := w.delete(1)
			require.True(t, r.WasOwed)
			require.False(t, r.Begun)
		}
		w.is(1, rules.Declined, rules.ReasonDeleted)
		require.True(t, w.edit(edited(original, 30, "ghost"), rules.Owed).Stale)
		w.is(1, rules.Declined, rules.ReasonDeleted)
	})
	t.Run("RecordDelete_BeforeItsMessageIsRemembered", func(t *testing.T) {
		w := open(t, newURL)
		require.Nil(t, w.delete(1).Row)
		_, err := w.Line(w.ctx(), key(1))
		require.ErrorIs(t, err, store.ErrNotFound)
		r := w.record(original, rules.Owed)
		require.Equal(t, rules.Declined, r.State)
		require.Equal(t, rules.ReasonDeleted, r.Reason)
		require.Equal(t, "one", w.text(1))
		require.Nil(t, w.delete(2).Row)
		w.edit(edited(line(2, 2, ""), 30, "edit first"), rules.Owed)
		w.is(2, rules.Declined, rules.ReasonDeleted)
		w.delete(3)
		require.Equal(t, rules.Noted, w.record(line(3, 3, "x"), rules.Noted).State, "what engages nobody needs no outcome")
		require.Equal(t, rules.Noted, w.record(line(3, 3, "x"), rules.Owed).State, "and is not raised")
	})
	t.Run("RecordDelete_LeavesATurnThatBegan", func(t *testing.T) {
		w := open(t, newURL)
		w.record(original, rules.Owed)
		w.take(turn("t", 1), original)
		r := w.delete(1)
		require.True(t, r.Begun)
		require.False(t, r.WasOwed)
		w.is(1, rules.Taken, "")
		w.finish("t", rules.Answered, key(1))
		w.delete(1)
		w.is(1, rules.Answered, "")
	})
	t.Run("RecordDelete_OfOneSeatIsSeenByTheOthersTurn", func(t *testing.T) {
		w := open(t, newURL)
		w.record(original, rules.Owed)
		_, err := w.RecordDelete(w.ctx(), other, key(1), ts(9))
		require.NoError(t, err)
		require.Empty(t, w.take(turn("t", 1), original).Taken)
		w.is(1, rules.Declined, rules.ReasonDeleted)
	})
	t.Run("RecordDelete_RefusesWhatIsNoTS", func(t *testing.T) {
		w := open(t, newURL)
		_, err := w.RecordDelete(w.ctx(), seat, rules.LineKey{Team: team, Channel: channel, TS: "x"}, ts(1))
		require.ErrorIs(t, err, store.ErrInvalid)
		_, err = w.RecordDelete(w.ctx(), seat, key(1), "now")
		require.ErrorIs(t, err, store.ErrInvalid)
	})
}
