package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

const (
	dm     = "D1"
	person = "UANA"
	uuid1  = "11111111-1111-4111-8111-111111111111"
)

var standing = json.RawMessage(`{"kind":"line","stands_down":true}`)

func dmLine(n int, text string) rules.Line {
	ts := fmt.Sprintf("1712345%03d.000100", n)
	return rules.Line{LineKey: rules.LineKey{Team: team, Channel: dm, TS: ts}, Root: ts, ChannelType: "im", User: person, Text: text}
}

// typedIn records a line of a DM as owed.
func (w *world) typedIn(n int, text string) rules.Line {
	w.t.Helper()
	l := dmLine(n, text)
	_, err := w.Record(w.t.Context(), seat, l, rules.Person, func(store.Facts) store.Verdict { return store.Verdict{State: rules.Owed} })
	require.NoError(w.t, err)
	return l
}

func theDM() store.Conversation { return store.Conversation{Seat: seat, Team: team, Channel: dm} }

func relayOf(l rules.Line) store.Relay {
	return store.Relay{Relay: rules.Relay{ID: dm + "/" + l.TS, Person: person, Session: uuid1, Number: 1, OpenedTS: l.TS}, Box: box}
}

func (w *world) decides(d ...store.ConversationDecision) {
	w.t.Helper()
	require.NoError(w.t, w.DecideConversation(w.t.Context(), theDM(), func(store.ConversationState) []store.ConversationDecision { return d }))
}

// opened is a relay that the line number n opened.
func (w *world) opened(n int) store.Relay {
	w.t.Helper()
	l := w.typedIn(n, "work on 1")
	r := relayOf(l)
	w.decides(store.ConversationDecision{Key: l.LineKey, Route: json.RawMessage(`{"kind":"relay_door"}`), Open: &r})
	got, err := w.OpenRelay(w.t.Context(), theDM())
	require.NoError(w.t, err)
	return got
}

// queued is a line that the relay carries.
func (w *world) queued(r store.Relay, n int, text string) store.SessionLine {
	w.t.Helper()
	l := w.typedIn(n, text)
	w.decides(store.ConversationDecision{Key: l.LineKey, Route: standing, Queue: &store.SessionLine{
		Session: uuid1, Key: l.LineKey, Seat: seat, From: person, Text: text, Relay: r.ID,
	}})
	_, waiting, err := w.RelayBatch(w.t.Context(), r)
	require.NoError(w.t, err)
	for _, x := range waiting {
		if x.Key == l.LineKey {
			return x
		}
	}
	require.Fail(w.t, "the line does not wait")
	return store.SessionLine{}
}

func (w *world) stands(k rules.LineKey) store.Row {
	w.t.Helper()
	row, err := w.RowOf(w.t.Context(), seat, k)
	require.NoError(w.t, err)
	return row
}

func testRelays(t *testing.T, newURL func(t *testing.T) string) {
	t.Run("OneOpenRelayAConversation", func(t *testing.T) { testOneOpenRelay(t, newURL) })
	t.Run("DecidedOnce", func(t *testing.T) { testDecidedOnce(t, newURL) })
	t.Run("Typing", func(t *testing.T) { testTyping(t, newURL) })
	t.Run("TypedOrHandedBack", func(t *testing.T) { testTypedOrHandedBack(t, newURL) })
	t.Run("WaitingLines", func(t *testing.T) { testWaitingOfRelays(t, newURL) })
	t.Run("Due", func(t *testing.T) { testRelaysDue(t, newURL) })
	t.Run("Killed", func(t *testing.T) { testRelayKilled(t, newURL) })
}

// R1: a second door switches in one step; an id opens once.
func testOneOpenRelay(t *testing.T, newURL func(t *testing.T) string) {
	w := open(t, newURL)
	ctx := t.Context()
	_, err := w.OpenRelay(ctx, theDM())
	require.ErrorIs(t, err, store.ErrNotFound)
	first := w.opened(1)
	require.Equal(t, store.Conversation{Seat: seat, Team: team, Channel: dm}, first.Conversation)
	require.Equal(t, w.now.UTC(), first.OpenedAt.UTC())

	l := w.typedIn(2, "work on 2")
	second := relayOf(l)
	w.decides(store.ConversationDecision{Key: l.LineKey, Route: json.RawMessage(`{"kind":"relay_door"}`), CloseTS: l.TS, Open: &second})
	got, err := w.OpenRelay(ctx, theDM())
	require.NoError(t, err)
	require.Equal(t, second.ID, got.ID)
	closed, err := w.RelayByID(ctx, first.ID)
	require.NoError(t, err)
	require.Equal(t, l.TS, closed.ClosedTS)
	to, err := w.OpenRelayTo(ctx, uuid1)
	require.NoError(t, err)
	require.Equal(t, second.ID, to.ID)

	done, err := w.CloseRelay(ctx, second.ID, l.TS)
	require.NoError(t, err)
	require.True(t, done)
	done, err = w.CloseRelay(ctx, second.ID, l.TS)
	require.NoError(t, err)
	require.False(t, done)
	// Two at once are refused by the database itself.
	a, b := w.typedIn(3, "work on 1"), w.typedIn(4, "work on 1")
	ra, rb := relayOf(a), relayOf(b)
	err = w.DecideConversation(ctx, theDM(), func(store.ConversationState) []store.ConversationDecision {
		return []store.ConversationDecision{{Key: a.LineKey, Route: standing, Open: &ra}, {Key: b.LineKey, Route: standing, Open: &rb}}
	})
	require.Error(t, err)
	require.Empty(t, w.stands(a.LineKey).Route, "nothing of it was written")
}

// R4: reading the mode and writing the routes are one step: of many who decide at once, each
// line is decided by one.
func testDecidedOnce(t *testing.T, newURL func(t *testing.T) string) {
	w := open(t, newURL)
	r := w.opened(1)
	other := openURL(t, w.url)
	for n := range 20 {
		w.typedIn(n+2, "continue")
	}
	var mu sync.Mutex
	wrote := map[string]int{}
	var wg sync.WaitGroup
	for _, s := range []*store.Store{w.Store, other, w.Store, other} {
		wg.Go(func() {
			var mine []string
			err := s.DecideConversation(t.Context(), theDM(), func(st store.ConversationState) (out []store.ConversationDecision) {
				mine = nil
				if st.Relay == nil || st.Relay.ID != r.ID {
					return nil
				}
				for _, row := range st.Rows {
					mine = append(mine, row.Row.TS)
					out = append(out, store.ConversationDecision{Key: row.Row.LineKey, Route: standing, Queue: &store.SessionLine{
						Session: uuid1, Key: row.Row.LineKey, Seat: seat, From: person, Text: row.Line.Text, Relay: r.ID,
					}})
				}
				return out
			})
			if err != nil {
				t.Errorf("decide: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, ts := range mine {
				wrote[ts]++
			}
		})
	}
	wg.Wait()
	require.Len(t, wrote, 20)
	for ts, n := range wrote {
		require.Equal(t, 1, n, ts)
	}
	_, waiting, err := w.RelayBatch(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, waiting, 20)
}

// L3, R4, R10: a line that a relay carries is no turn's; its end is written with its typing.
func testTyping(t *testing.T, newURL func(t *testing.T) string) {
	w := open(t, newURL)
	ctx := t.Context()
	r := w.opened(1)
	l := w.queued(r, 2, "continue")
	require.True(t, w.stands(l.Key).StandsDown())
	got, err := w.TakeLines(ctx, store.Turn{ID: "turn", Seat: seat, Thread: rules.Thread{Team: team, Channel: dm, Root: l.Key.TS}},
		[]store.TakeLine{{Line: dmLine(2, "continue"), Author: rules.Person, HasRow: true}})
	require.NoError(t, err)
	require.Empty(t, got.Taken)

	_, err = w.TypedLast(ctx, uuid1)
	require.ErrorIs(t, err, store.ErrNotFound)
	begun, err := w.BeginTyping(ctx, l)
	require.NoError(t, err)
	require.True(t, begun)
	begun, err = w.BeginTyping(ctx, l)
	require.NoError(t, err)
	require.True(t, begun, "a crash is gone on from")
	require.Equal(t, rules.Taken, w.stands(l.Key).State)
	last, err := w.TypedLast(ctx, uuid1)
	require.NoError(t, err)
	require.Equal(t, r.ID, last.Relay)

	require.NoError(t, w.EndTyping(ctx, l, store.LineQueued))
	require.Equal(t, rules.Owed, w.stands(l.Key).State)
	_, err = w.BeginTyping(ctx, l)
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, w.EndTyping(ctx, l, store.LineTyped))
	}
	require.Equal(t, rules.Relayed, w.stands(l.Key).State)
	after, err := w.RelayByID(ctx, r.ID)
	require.NoError(t, err)
	require.True(t, after.Awaiting)
	require.Equal(t, w.now.UTC(), after.TypedAt.UTC())
	require.NoError(t, w.EndAwaiting(ctx, r.ID))
	_, err = w.BeginTyping(ctx, l)
	require.ErrorIs(t, err, store.ErrLineMoved)

	unsure := w.queued(r, 3, "and this")
	_, err = w.BeginTyping(ctx, unsure)
	require.NoError(t, err)
	require.NoError(t, w.EndTyping(ctx, unsure, store.LineUnsure))
	row := w.stands(unsure.Key)
	require.Equal(t, []any{rules.Failed, rules.ReasonUnsure}, []any{row.State, row.Reason})

	gone := w.queued(r, 4, "not this")
	_, err = w.RecordDelete(ctx, seat, gone.Key, "1712345900.000100")
	require.NoError(t, err)
	begun, err = w.BeginTyping(ctx, gone)
	require.NoError(t, err)
	require.False(t, begun, "a deleted line is not typed")
	withdrawn := w.queued(r, 5, "nor this")
	done, err := w.Withdraw(ctx, seat, withdrawn.Key, rules.Declined, rules.ReasonStopped)
	require.NoError(t, err)
	require.True(t, done)
	done, err = w.Withdraw(ctx, seat, withdrawn.Key, rules.Declined, rules.ReasonStopped)
	require.NoError(t, err)
	require.False(t, done)

	back := json.RawMessage(`{"kind":"line"}`)
	typing := w.queued(r, 6, "in the middle of it")
	_, err = w.BeginTyping(ctx, typing)
	require.NoError(t, err)
	done, err = w.HandBack(ctx, typing, back)
	require.NoError(t, err)
	require.False(t, done, "a line that is being typed is nobody else's (R4)")
	require.Equal(t, rules.Taken, w.stands(typing.Key).State)
	require.NoError(t, w.EndTyping(ctx, typing, store.LineTyped))
	deleted := w.queued(r, 7, "thought better of")
	_, err = w.RecordDelete(ctx, seat, deleted.Key, "1712345900.000100")
	require.NoError(t, err)
	done, err = w.HandBack(ctx, deleted, back)
	require.NoError(t, err)
	require.False(t, done, "a deleted line is no brain's")
	row = w.stands(deleted.Key)
	require.Equal(t, []any{rules.Declined, rules.ReasonDeleted}, []any{row.State, row.Reason})
	require.False(t, row.NeedsDispatch())
	_, waiting, err := w.RelayBatch(ctx, r)
	require.NoError(t, err)
	require.Empty(t, waiting)
}

// R9: of typing and handing back exactly one wins, whoever tries at once.
func testTypedOrHandedBack(t *testing.T, newURL func(t *testing.T) string) {
	w := open(t, newURL)
	other := openURL(t, w.url)
	r := w.opened(1)
	for n := range 25 {
		l := w.queued(r, n+2, "continue")
		var begun, back bool
		var typeErr, backErr error
		var wg sync.WaitGroup
		wg.Go(func() { begun, typeErr = w.BeginTyping(t.Context(), l) })
		wg.Go(func() { back, backErr = other.HandBack(t.Context(), l, json.RawMessage(`{"kind":"line"}`)) })
		wg.Wait()
		require.NoError(t, backErr)
		if back {
			require.ErrorIs(t, typeErr, store.ErrLineMoved)
			row := w.stands(l.Key)
			require.True(t, row.NeedsDispatch())
			require.False(t, row.StandsDown())
			require.JSONEq(t, `{"kind":"line"}`, string(row.Route))
		} else {
			require.NoError(t, typeErr)
			require.Equal(t, rules.Taken, w.stands(l.Key).State)
		}
		require.NotEqual(t, begun, back)
	}
}

// O11, L4: lines of brains and of relays do not mix; what waits has its newest text.
func testWaitingOfRelays(t *testing.T, newURL func(t *testing.T) string) {
	w := open(t, newURL)
	ctx := t.Context()
	r := w.opened(1)
	w.queued(r, 3, "second")
	w.queued(r, 2, "first")
	_, err := w.QueueLines(ctx, uuid1, []store.SessionLine{{Session: uuid1, Key: rules.LineKey{Team: team, Channel: "C1", TS: "1712345678.000100"}, Seat: seat, Text: "a brain's"}})
	require.NoError(t, err)
	passed, err := w.WaitingLines(ctx, uuid1, 10)
	require.NoError(t, err)
	require.Len(t, passed, 1)
	require.Equal(t, "a brain's", passed[0].Text)
	edited := dmLine(2, "first, better")
	edited.EditedTS = "1712345900.000100"
	_, err = w.RecordEdit(ctx, seat, edited, rules.Person, func(*rules.Line, store.Facts) store.Verdict { return store.Verdict{State: rules.Noted} })
	require.NoError(t, err)
	stop := w.typedIn(4, "stop")
	rows, waiting, err := w.RelayBatch(ctx, r)
	require.NoError(t, err)
	require.Equal(t, []string{"first, better", "second"}, []string{waiting[0].Text, waiting[1].Text}, "in ts order")
	require.Len(t, rows, 3)
	require.Equal(t, stop.TS, rows[2].Line.TS, "what nobody has decided is planned too")
	begun, err := w.BeginTyping(ctx, waiting[1])
	require.NoError(t, err)
	require.True(t, begun)
	_, waiting, err = w.RelayBatch(ctx, r)
	require.NoError(t, err)
	require.Equal(t, store.LineTyping, waiting[0].State, "what is being typed comes first")

	latest, err := w.LatestLine(ctx, theDM(), person)
	require.NoError(t, err)
	require.Equal(t, stop.TS, latest.TS)
	orphans, err := w.OrphanLines(ctx, theDM())
	require.NoError(t, err)
	require.Empty(t, orphans)
	lost := r
	lost.ID = "D1/lost"
	l := w.typedIn(5, "lost")
	w.decides(store.ConversationDecision{Key: l.LineKey, Route: standing, Queue: &store.SessionLine{Session: uuid1, Key: l.LineKey, Seat: seat, From: person, Relay: lost.ID}})
	orphans, err = w.OrphanLines(ctx, theDM())
	require.NoError(t, err)
	require.Len(t, orphans, 1)
}

// R8: what a box has something to do for, and nothing else.
func testRelaysDue(t *testing.T, newURL func(t *testing.T) string) {
	w := open(t, newURL)
	ctx := t.Context()
	due := func() []store.RelayDue {
		all, err := w.RelaysDue(ctx, box)
		require.NoError(t, err)
		return all
	}
	require.Empty(t, due())
	r := w.opened(1)
	require.Equal(t, []bool{false, false}, []bool{due()[0].Lines, due()[0].Words})
	l := w.queued(r, 2, "continue")
	require.True(t, due()[0].Lines)
	_, err := w.BeginTyping(ctx, l)
	require.NoError(t, err)
	require.NoError(t, w.EndTyping(ctx, l, store.LineTyped))
	require.False(t, due()[0].Lines)
	_, err = w.CloseRelay(ctx, r.ID, l.Key.TS)
	require.NoError(t, err)
	require.Len(t, due(), 1, "words of the line may come")
	_, err = w.AddDeposit(ctx, store.Deposit{ID: "d1", Session: uuid1, Kind: store.DepositSay, Text: "word"})
	require.NoError(t, err)
	require.True(t, due()[0].Words)
	require.NoError(t, w.EndAwaiting(ctx, r.ID))
	require.Empty(t, due(), "a word that nobody owns is not this relay's any more")
	_, err = w.OwnDeposit(ctx, "d1", seat, rules.Thread{Team: team, Channel: dm, Root: l.Key.TS})
	require.NoError(t, err)
	require.Len(t, due(), 1)
	require.NoError(t, w.DropDeposit(ctx, "d1"))
	require.Len(t, due(), 1, "an owned word is not dropped")
	require.NoError(t, w.DeliverDeposit(ctx, "d1", l.Key.TS))
	require.Empty(t, due())
	elsewhere, err := w.RelaysDue(ctx, "another")
	require.NoError(t, err)
	require.Empty(t, elsewhere)
}
