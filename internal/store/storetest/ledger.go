package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

func testLedger(t *testing.T, newURL func(t *testing.T) string) {
	t.Run("Record_KeepsTheLineAndItsRow", func(t *testing.T) {
		w := open(t, newURL)
		l := line(1, 1, "hello")
		l.ChannelType, l.UserTeam, l.Subtype = "im", "T1", "file_share"
		l.Files = []rules.File{{ID: "F1", Name: "a/../b.txt", Size: 3}}
		l.Raw = json.RawMessage(`{"type":"message"}`)
		r, err := w.Record(w.ctx(), seat, l, rules.Person, func(store.Facts) store.Verdict {
			return store.Verdict{State: rules.Owed, Mentioned: true}
		})
		require.NoError(t, err)
		require.True(t, r.NeedsDispatch())
		require.True(t, r.Mentioned)
		require.Equal(t, rules.Person, r.Author)
		require.Equal(t, thread(1), r.Thread())
		got, err := w.Line(w.ctx(), key(1))
		require.NoError(t, err)
		require.Equal(t, l, got)
		again, err := w.RowOf(w.ctx(), seat, key(1))
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
	t.Run("Record_ARedeliveryIsNotDecidedTwice", func(t *testing.T) {
		w := open(t, newURL)
		first := w.record(line(1, 1, "hello"), rules.Owed)
		again, err := w.Record(w.ctx(), seat, line(1, 1, "hello"), rules.Person, unasked(t))
		require.NoError(t, err)
		require.Equal(t, first, again)
	})
	t.Run("Record_RaisesNotedToOwedAndNeverLowers", func(t *testing.T) {
		w := open(t, newURL)
		w.record(line(1, 1, "hello"), rules.Noted)
		r, err := w.Record(w.ctx(), seat, line(1, 1, "hello"), rules.Person, func(f store.Facts) store.Verdict {
			require.Equal(t, rules.Noted, f.Prior.State)
			return store.Verdict{State: rules.Owed, Mentioned: true}
		})
		require.NoError(t, err)
		require.True(t, r.NeedsDispatch())
		require.True(t, r.Mentioned)
		require.Equal(t, rules.Owed, w.record(line(1, 1, "hello"), rules.Noted).State)
		w.record(line(2, 2, "x"), rules.Noted)
		require.Equal(t, rules.Noted, w.record(line(2, 2, "x"), rules.Declined).State)
	})
	t.Run("Record_EachSeatHasItsOwnRow", func(t *testing.T) {
		w := open(t, newURL)
		w.record(line(1, 1, "hello"), rules.Owed)
		r, err := w.Record(w.ctx(), other, line(1, 1, "hello"), rules.Person, func(f store.Facts) store.Verdict {
			require.Nil(t, f.Prior)
			return store.Verdict{State: rules.Noted}
		})
		require.NoError(t, err)
		require.Equal(t, rules.Noted, r.State)
		w.is(1, rules.Owed, "")
	})
	t.Run("Record_DecidesByWhatIsOnRecord", func(t *testing.T) {
		w := open(t, newURL)
		facts := func(s string, l rules.Line, author rules.Author, state rules.State) (f store.Facts) {
			_, err := w.Record(w.ctx(), s, l, author, func(got store.Facts) store.Verdict {
				f = got
				return store.Verdict{State: state}
			})
			require.NoError(t, err)
			return f
		}
		reply := line(2, 1, "reply")
		f := facts(seat, reply, rules.Person, rules.Noted)
		require.Equal(t, []string{"U1"}, f.People)
		require.Empty(t, f.Seats)
		require.False(t, f.RootSeen, "the root was not seen: who began the thread is unknown")
		require.Equal(t, reply, f.Line)

		root := line(1, 1, "root")
		root.User = "U2"
		require.True(t, facts(seat, root, rules.Outsider, rules.Owed).RootSeen)
		bot := line(3, 1, "bot")
		bot.User, bot.BotID = "U9", "B9"
		facts(seat, bot, rules.OtherBot, rules.Noted)
		facts(other, root, rules.Outsider, rules.Noted)
		w.stop(thread(1), 50)
		f = facts(seat, line(4, 1, "next"), rules.Person, rules.Owed)
		require.True(t, f.RootSeen)
		require.Equal(t, []string{"U1", "U2"}, f.People)
		require.Equal(t, []string{seat}, f.Seats, "a noted line takes no part")
		require.Equal(t, ts(50), f.StopTS)

		_, err := w.BeginPost(w.ctx(), store.Post{ID: "p", Seat: other, Thread: thread(1), Part: 1, Parts: 1})
		require.NoError(t, err)
		require.Equal(t, []string{seat}, facts(seat, line(5, 1, "x"), rules.Person, rules.Owed).Seats)
		require.NoError(t, w.ConfirmPost(w.ctx(), "p", 1, ts(40)))
		require.Equal(t, []string{seat, other}, facts(seat, line(6, 1, "x"), rules.Person, rules.Owed).Seats)
		_, err = w.BeginPost(w.ctx(), store.Post{ID: "opens", Seat: other, Thread: rules.Thread{Team: team, Channel: channel}, Part: 1, Parts: 1})
		require.NoError(t, err)
		require.NoError(t, w.ConfirmPost(w.ctx(), "opens", 1, ts(60)))
		f = facts(seat, line(61, 60, "x"), rules.Person, rules.Owed)
		require.Equal(t, []string{other}, f.Seats, "whoever opened the thread takes part (D1)")
		require.True(t, f.RootSeen, "a post of ours opened it: its event may come later than an answer to it")
		require.Equal(t, []string{"U1"}, facts(seat, line(7, 7, "elsewhere"), rules.Person, rules.Owed).People)
	})
	t.Run("Record_APanicInADecisionIsAnErrorOfThatLine", func(t *testing.T) {
		w := open(t, newURL)
		_, err := w.Record(w.ctx(), seat, line(1, 1, "x"), rules.Person, func(store.Facts) store.Verdict { panic("broken rule") })
		require.ErrorContains(t, err, "broken rule")
		_, err = w.Line(w.ctx(), key(1))
		require.ErrorIs(t, err, store.ErrNotFound, "all or nothing")
		w.record(line(1, 1, "x"), rules.Owed)
	})
	t.Run("Record_RefusesWhatIsNoTS", func(t *testing.T) {
		w := open(t, newURL)
		for _, bad := range []string{"", "1", "1.2", "-1.000000", "1.0000000", "x.000000", "1.00000x", ".000000", "99999999999999999999.000000"} {
			l := line(1, 1, "x")
			l.TS = bad
			_, err := w.Record(w.ctx(), seat, l, rules.Person, says(rules.Owed))
			require.ErrorIs(t, err, store.ErrInvalid, bad)
		}
	})
	t.Run("Undispatched_GivesWhatIsOwedInTheOrderOfTS", func(t *testing.T) {
		w := open(t, newURL)
		w.record(line(3, 3, "third"), rules.Owed)
		w.record(line(1, 1, "first"), rules.Owed)
		w.record(line(2, 2, "noted"), rules.Noted)
		early := line(0, 0, "short seconds")
		early.TS, early.Root = "999999999.000001", "999999999.000001" // one digit less: text would sort it last
		w.record(early, rules.Owed)
		order := func(limit int) (texts []string) {
			all, err := w.Undispatched(w.ctx(), seat, limit)
			require.NoError(t, err)
			for _, p := range all {
				require.Equal(t, p.Row.TS, p.Line.TS)
				texts = append(texts, p.Line.Text)
			}
			return texts
		}
		require.Equal(t, []string{"short seconds", "first", "third"}, order(10))
		require.Equal(t, []string{"short seconds", "first"}, order(2))
		require.NoError(t, w.MarkDispatched(w.ctx(), seat, key(1)))
		require.Equal(t, []string{"short seconds", "third"}, order(10))
		require.ErrorIs(t, w.MarkDispatched(w.ctx(), seat, key(99)), store.ErrNotFound)
	})
	t.Run("SetRoute_TheFirstStands", func(t *testing.T) {
		w := open(t, newURL)
		w.record(line(1, 1, "x"), rules.Owed)
		for _, route := range []string{`{"to":"brain"}`, `{"to":"relay"}`} {
			got, err := w.SetRoute(w.ctx(), seat, key(1), json.RawMessage(route))
			require.NoError(t, err)
			require.JSONEq(t, `{"to":"brain"}`, string(got))
		}
		require.JSONEq(t, `{"to":"brain"}`, string(w.is(1, rules.Owed, "").Route))
		_, err := w.SetRoute(w.ctx(), seat, key(99), json.RawMessage(`{}`))
		require.ErrorIs(t, err, store.ErrNotFound)
	})
	t.Run("EndLine_EndsOnlyWhatIsOwed", func(t *testing.T) {
		w := open(t, newURL)
		w.record(line(1, 1, "x"), rules.Owed)
		done, err := w.EndLine(w.ctx(), seat, key(1), rules.Declined, rules.ReasonNotMember)
		require.NoError(t, err)
		require.True(t, done)
		done, err = w.EndLine(w.ctx(), seat, key(1), rules.Failed, rules.ReasonLost)
		require.NoError(t, err)
		require.False(t, done)
		w.is(1, rules.Declined, rules.ReasonNotMember)
		_, err = w.EndLine(w.ctx(), seat, key(1), rules.Owed, "")
		require.ErrorIs(t, err, store.ErrInvalid)
		_, err = w.EndLine(w.ctx(), seat, key(9), rules.Failed, "")
		require.ErrorIs(t, err, store.ErrNotFound)
		w.record(line(2, 2, "x"), rules.Owed)
		w.take(turn("t", 2), line(2, 2, "x"))
		done, err = w.EndLine(w.ctx(), seat, key(2), rules.Failed, rules.ReasonLost)
		require.NoError(t, err)
		require.False(t, done)
	})
	t.Run("OverdueLines_AreThoseThatABrainHasForTooLong", func(t *testing.T) {
		w := open(t, newURL)
		w.record(line(1, 1, "undispatched"), rules.Owed)
		w.record(line(2, 2, "owed"), rules.Owed)
		w.record(line(3, 3, "taken"), rules.Owed)
		w.record(line(4, 4, "ended"), rules.Owed)
		require.NoError(t, w.MarkDispatched(w.ctx(), seat, key(2)))
		w.take(turn("t3", 3), line(3, 3, ""))
		w.take(turn("t4", 4), line(4, 4, ""))
		w.finish("t4", rules.Answered, key(4))
		overdue := func() (all []string) {
			rows, err := w.OverdueLines(w.ctx(), seat, 5*time.Minute, 10)
			require.NoError(t, err)
			for _, r := range rows {
				all = append(all, r.TS)
			}
			return all
		}
		require.Empty(t, overdue())
		w.now = w.now.Add(5 * time.Minute)
		require.ElementsMatch(t, []string{ts(2), ts(3)}, overdue())
		require.NoError(t, w.TouchLines(w.ctx(), seat, []rules.LineKey{key(3), key(4)}))
		require.Equal(t, []string{ts(2)}, overdue())
	})
}
