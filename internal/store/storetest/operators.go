package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

// testSessions is the registry of sessions (R1).
func testSessions(t *testing.T, newURL func(t *testing.T) string) {
	session := func(id string) store.Session {
		return store.Session{ID: id, Name: "op-" + id, Kind: "operator", Socket: "smith", Box: box, Seat: seat, Slug: id, Repo: "shop", Thread: thread(1)}
	}
	t.Run("RegisterSession_GivesANumberOnceAndForGood", func(t *testing.T) {
		w := open(t, newURL)
		register := func(id string) int {
			n, err := w.RegisterSession(w.ctx(), session(id))
			require.NoError(t, err)
			return n
		}
		require.Equal(t, 1, register("a"))
		require.Equal(t, 2, register("b"))
		require.Equal(t, 1, register("a"), "the same session keeps its number")
		require.NoError(t, w.EndSession(w.ctx(), "b"))
		require.NoError(t, w.EndSession(w.ctx(), "unknown"))
		require.Equal(t, 3, register("c"), "a number is not given again")
		_, err := w.RegisterSession(w.ctx(), store.Session{})
		require.ErrorIs(t, err, store.ErrInvalid)

		got, err := w.Session(w.ctx(), 2)
		require.NoError(t, err)
		want := session("b")
		want.Number, want.Ended, want.RegisteredAt = 2, true, w.now
		require.Equal(t, want, got, "one that ended is still known")
		byID, err := w.SessionByID(w.ctx(), "b")
		require.NoError(t, err)
		require.Equal(t, got, byID)
		_, err = w.Session(w.ctx(), 9)
		require.ErrorIs(t, err, store.ErrNotFound)
		live, err := w.Sessions(w.ctx())
		require.NoError(t, err)
		require.Len(t, live, 2)
		require.Equal(t, 1, live[0].Number)
		require.Equal(t, 3, live[1].Number)
		require.Equal(t, 2, register("b"), "one found alive after all")
		live, err = w.Sessions(w.ctx())
		require.NoError(t, err)
		require.Len(t, live, 3)
	})
}

// testSessionLines is the way of a line into a session (R10, O11).
func testSessionLines(t *testing.T, newURL func(t *testing.T) string) {
	queue := func(w *world, session string, ns ...int) int {
		var all []store.SessionLine
		for _, n := range ns {
			all = append(all, store.SessionLine{Key: key(n), Seat: seat, Text: "text\x00 of", From: "U1"})
		}
		fresh, err := w.QueueLines(w.ctx(), session, all)
		require.NoError(t, err)
		return fresh
	}
	waiting := func(w *world, session string) (all []string) {
		lines, err := w.WaitingLines(w.ctx(), session, 10)
		require.NoError(t, err)
		for _, l := range lines {
			all = append(all, l.Key.TS+" "+string(l.State))
		}
		return all
	}
	t.Run("QueueLines_KeepsTheOrderAndTakesEachOnce", func(t *testing.T) {
		w := open(t, newURL)
		require.Equal(t, 2, queue(w, "s1", 5, 3))
		require.Equal(t, 1, queue(w, "s1", 3, 4, 5))
		require.Equal(t, 1, queue(w, "s2", 3), "another session's are its own")
		require.Equal(t, []string{ts(5) + " queued", ts(3) + " queued", ts(4) + " queued"}, waiting(w, "s1"))
		one, err := w.WaitingLines(w.ctx(), "s1", 1)
		require.NoError(t, err)
		require.Len(t, one, 1)
		require.Equal(t, store.SessionLine{Session: "s1", Key: key(5), Seat: seat, Text: "text\uFFFD of", From: "U1",
			State: store.LineQueued, Seq: one[0].Seq}, one[0])
		_, err = w.QueueLines(w.ctx(), "", nil)
		require.ErrorIs(t, err, store.ErrInvalid)
	})
	t.Run("MoveLine_IsACompareAndSet", func(t *testing.T) {
		w := open(t, newURL)
		queue(w, "s1", 1, 2, 3)
		move := func(n int, from, to store.LineState) bool {
			moved, err := w.MoveLine(w.ctx(), "s1", key(n), from, to)
			require.NoError(t, err)
			return moved
		}
		require.True(t, move(1, store.LineQueued, store.LineTyping))
		require.False(t, move(1, store.LineQueued, store.LineHandedBack), "not once it is being typed")
		require.Equal(t, []string{ts(1) + " typing", ts(2) + " queued", ts(3) + " queued"}, waiting(w, "s1"))
		require.True(t, move(1, store.LineTyping, store.LineQueued), "nothing of it was typed")
		require.True(t, move(1, store.LineQueued, store.LineTyping))
		require.True(t, move(1, store.LineTyping, store.LineTyped))
		require.False(t, move(1, store.LineTyping, store.LineUnsure))
		require.True(t, move(2, store.LineQueued, store.LineHandedBack))
		require.False(t, move(9, store.LineQueued, store.LineTyping))
		require.Equal(t, []string{ts(3) + " queued"}, waiting(w, "s1"))
		require.Zero(t, queue(w, "s1", 1, 2), "a line that had its end is not typed again")
		for _, bad := range [][2]store.LineState{
			{store.LineTyped, store.LineQueued}, {store.LineUnsure, store.LineTyped}, {store.LineQueued, "gone"}, {store.LineQueued, store.LineQueued},
		} {
			_, err := w.MoveLine(w.ctx(), "s1", key(3), bad[0], bad[1])
			require.ErrorIs(t, err, store.ErrInvalid, "%v", bad)
		}
	})
}

// testDeposits is the way of a session's words to people (R11).
func testDeposits(t *testing.T, newURL func(t *testing.T) string) {
	add := func(w *world, session, id, kind, text string) bool {
		fresh, err := w.AddDeposit(w.ctx(), store.Deposit{ID: id, Session: session, Kind: kind, Text: text})
		require.NoError(t, err)
		return fresh
	}
	t.Run("NextDeposit_TheOldestUntilItIsDelivered", func(t *testing.T) {
		w := open(t, newURL)
		_, err := w.NextDeposit(w.ctx(), "s1")
		require.ErrorIs(t, err, store.ErrNotFound)
		require.True(t, add(w, "s1", "d2", store.DepositSay, "first"))
		require.True(t, add(w, "s1", "d1", store.DepositNotification, "second"))
		require.True(t, add(w, "s2", "d3", store.DepositSay, "of another"))
		require.False(t, add(w, "s1", "d2", store.DepositSay, "first"), "the same file twice")
		next := func() string {
			d, err := w.NextDeposit(w.ctx(), "s1")
			if err != nil {
				require.ErrorIs(t, err, store.ErrNotFound)
				return ""
			}
			require.Equal(t, w.now, d.At)
			return d.ID
		}
		require.Equal(t, "d2", next())
		require.Equal(t, "d2", next(), "it is offered until it is delivered")
		require.NoError(t, w.DeliverDeposit(w.ctx(), "d2", ts(9)))
		require.NoError(t, w.DeliverDeposit(w.ctx(), "d2", ts(10)))
		got, err := w.Deposit(w.ctx(), "d2")
		require.NoError(t, err)
		require.Equal(t, ts(9), got.TS, "the first post stands")
		require.Equal(t, "d1", next())
		require.NoError(t, w.DeliverDeposit(w.ctx(), "d1", ts(11)))
		require.Empty(t, next())
		require.False(t, add(w, "s1", "d1", store.DepositSay, "again"), "what was delivered is not said again")
		require.ErrorIs(t, w.DeliverDeposit(w.ctx(), "d9", ts(1)), store.ErrNotFound)
		require.ErrorIs(t, w.DeliverDeposit(w.ctx(), "d3", "soon"), store.ErrInvalid)
		_, err = w.AddDeposit(w.ctx(), store.Deposit{ID: "d4"})
		require.ErrorIs(t, err, store.ErrInvalid)
	})
	t.Run("AddDeposit_DropsAStopThatOnlyRepeatsTheLastSay", func(t *testing.T) {
		w := open(t, newURL)
		require.True(t, add(w, "s1", "1", store.DepositSay, "Working."))
		require.True(t, add(w, "s1", "2", store.DepositSay, "Done."))
		require.True(t, add(w, "s1", "3", store.DepositNotification, "needs you"))
		require.False(t, add(w, "s1", "4", store.DepositStop, " Done.\n"))
		require.False(t, add(w, "s1", "4", store.DepositStop, " Done.\n"), "also when its file is read again")
		require.True(t, add(w, "s1", "5", store.DepositStop, "Done."), "the end of the next turn is no repetition of this one's")
		require.True(t, add(w, "s2", "6", store.DepositStop, "Done."), "nor is another session's")
		require.True(t, add(w, "s1", "7", store.DepositSay, "Done."))
		require.True(t, add(w, "s1", "8", store.DepositStop, "Done. And more."))
		var order []string
		for {
			d, err := w.NextDeposit(w.ctx(), "s1")
			if err != nil {
				break
			}
			order = append(order, d.ID)
			require.NoError(t, w.DeliverDeposit(w.ctx(), d.ID, ts(len(order))))
		}
		require.Equal(t, []string{"1", "2", "3", "5", "7", "8"}, order)
	})
	t.Run("OwnDeposit_TheFirstOwnerStands", func(t *testing.T) {
		w := open(t, newURL)
		add(w, "s1", "d1", store.DepositSay, "x")
		_, err := w.OwnDeposit(w.ctx(), "d9", seat, thread(1))
		require.ErrorIs(t, err, store.ErrNotFound)
		for _, root := range []int{1, 2} {
			d, err := w.OwnDeposit(w.ctx(), "d1", seat, thread(root))
			require.NoError(t, err)
			require.Equal(t, thread(1), d.Owner)
			require.Equal(t, seat, d.OwnerSeat)
		}
		_, err = w.OwnDeposit(w.ctx(), "d1", "", thread(1))
		require.ErrorIs(t, err, store.ErrInvalid)
	})
}

// testWork is pull requests, webhooks, phase tables and threads that asked for work.
func testWork(t *testing.T, newURL func(t *testing.T) string) {
	t.Run("LinkPull_LinksItToItsThreads", func(t *testing.T) {
		w := open(t, newURL)
		link := func(p store.PullRequest) { require.NoError(t, w.LinkPull(w.ctx(), p)) }
		one := store.PullRequest{Repo: "Acme/Shop", Number: 7, URL: "https://github.com/Acme/Shop/pull/7", Branch: "smith/fix", Seat: seat, Thread: thread(1)}
		link(one)
		again := one
		again.URL, again.Branch = "", ""
		link(again)
		w.now = w.now.Add(time.Second)
		two := one
		two.Thread = thread(2)
		link(two)
		other := one
		other.Number = 8
		link(other)
		got, err := w.PullThreads(w.ctx(), "acme/shop", 7)
		require.NoError(t, err)
		require.Equal(t, []store.PullRequest{one, two}, got, "GitHub's names have no case")
		got, err = w.PullsOf(w.ctx(), seat, thread(1))
		require.NoError(t, err)
		require.Equal(t, []store.PullRequest{one, other}, got)
		got, err = w.PullsOf(w.ctx(), seat, thread(9))
		require.NoError(t, err)
		require.Empty(t, got)
		require.ErrorIs(t, w.LinkPull(w.ctx(), store.PullRequest{Repo: "a/b"}), store.ErrInvalid)
	})
	t.Run("FreshDelivery_EachOnce", func(t *testing.T) {
		w := open(t, newURL)
		fresh := func(id string) bool {
			f, err := w.FreshDelivery(w.ctx(), id)
			require.NoError(t, err)
			return f
		}
		seen := func(id string) bool {
			f, err := w.SeenDelivery(w.ctx(), id)
			require.NoError(t, err)
			return f
		}
		require.False(t, seen("a"))
		require.True(t, fresh("a"))
		require.True(t, seen("a"))
		require.False(t, fresh("a"))
		require.False(t, seen("b"), "looking notes nothing")
		require.True(t, fresh("b"))
		w.now = w.now.Add(29 * 24 * time.Hour)
		require.False(t, fresh("a"))
		w.now = w.now.Add(2 * 24 * time.Hour)
		require.True(t, fresh("c"))
		require.True(t, fresh("a"), "they are not kept for ever")
		_, err := w.FreshDelivery(w.ctx(), "")
		require.ErrorIs(t, err, store.ErrInvalid)
	})
	t.Run("PhaseMessage_IsOneAThread", func(t *testing.T) {
		w := open(t, newURL)
		at, shown, err := w.PhaseMessage(w.ctx(), seat, thread(1))
		require.NoError(t, err)
		require.Empty(t, at+shown)
		for _, show := range []string{"one", "two"} {
			require.NoError(t, w.SetPhaseMessage(w.ctx(), seat, thread(1), ts(5), show))
			at, shown, err = w.PhaseMessage(w.ctx(), seat, thread(1))
			require.NoError(t, err)
			require.Equal(t, ts(5), at)
			require.Equal(t, show, shown)
		}
	})
	t.Run("WorkThreads_AreThoseWhoseWorkIsNotDone", func(t *testing.T) {
		w := open(t, newURL)
		asked := func(root int, slug, repo string) {
			w.now = w.now.Add(time.Second)
			require.NoError(t, w.AskedForWork(w.ctx(), seat, thread(root), slug, repo))
		}
		w.record(line(1, 1, "fix it"), rules.Owed)
		w.record(line(2, 1, "please"), rules.Owed)
		asked(1, "fix", "shop")
		asked(2, "other", "")
		w.record(line(3, 1, "thanks"), rules.Owed)
		asked(2, "", "blog")
		got, err := w.WorkThreads(w.ctx(), seat)
		require.NoError(t, err)
		require.Len(t, got, 2)
		require.Equal(t, thread(1), got[0].Thread)
		require.Equal(t, "please", got[0].Line.Text, "the line that asked, no later one")
		asked(1, "", "shop")
		again, err := w.WorkThreads(w.ctx(), seat)
		require.NoError(t, err)
		require.Equal(t, "please", again[0].Line.Text, "asked again, the first ask stands")
		require.Equal(t, "other blog", got[1].Slug+" "+got[1].Repo)
		require.Empty(t, got[1].Line.TS)
		for _, want := range again {
			got, err := w.WorkOf(w.ctx(), seat, want.Thread)
			require.NoError(t, err)
			require.Equal(t, want, got, "one thread's ask, as the list has it")
		}
		_, err = w.WorkOf(w.ctx(), other, thread(1))
		require.ErrorIs(t, err, store.ErrNotFound)
		none, err := w.WorkThreads(w.ctx(), other)
		require.NoError(t, err)
		require.Empty(t, none)

		w.claim(wish(1, "fix", "a"))
		w.bind(1, "a", "s1")
		got, err = w.WorkThreads(w.ctx(), seat)
		require.NoError(t, err)
		require.Len(t, got, 2, "the store does not say whether an operator runs")
		_, err = w.EndClaim(w.ctx(), seat, thread(1), "s1")
		require.NoError(t, err)
		got, err = w.WorkThreads(w.ctx(), seat)
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, thread(2), got[0].Thread)
		asked(1, "more", "")
		got, err = w.WorkThreads(w.ctx(), seat)
		require.NoError(t, err)
		require.Len(t, got, 2, "asked again, it is open again")
		require.ErrorIs(t, w.AskedForWork(w.ctx(), "", thread(1), "", ""), store.ErrInvalid)
	})
}
