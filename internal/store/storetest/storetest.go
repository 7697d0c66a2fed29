// Package storetest holds the tests that every database behind package store must
// pass (T3).
package storetest

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

// Run runs the tests. Each call of newURL gives the URL of a new, empty database; the
// tests open it several times, from several processes too: the test binary must call
// Main from its TestMain. Verify looks into a closed database whose writer was killed
// for damage that the store's own methods would not show.
func Run(t *testing.T, newURL func(t *testing.T) string, verify func(t *testing.T, url string)) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, newURL func(t *testing.T) string)
	}{
		{"Ledger", testLedger},
		{"Copies", testCopies},
		{"Edits", testEdits},
		{"Events", testEvents},
		{"Turns", testTurns},
		{"Context", testContext},
		{"Records", testRecords},
		{"Text", testText},
		{"Claims", testClaims},
		{"ClaimModel", testClaimModel},
		{"ClaimRace", testClaimRace},
		{"Sessions", testSessions},
		{"SessionLines", testSessionLines},
		{"Deposits", testDeposits},
		{"Relays", testRelays},
		{"Work", testWork},
		{"Model", testModel},
		{"Together", testTogether},
		{"Processes", testProcesses},
		{"Killed", func(t *testing.T, newURL func(t *testing.T) string) { testKilled(t, newURL, verify) }},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newURL) })
	}
}

const (
	seat    = "smith"
	other   = "trinity"
	team    = "T1"
	channel = "C1"
	box     = "main"
)

// world is an open store with a clock that a test sets.
type world struct {
	*store.Store
	t   *testing.T
	url string
	now time.Time
}

func open(t *testing.T, newURL func(t *testing.T) string) *world {
	w := &world{t: t, url: newURL(t), now: time.Unix(1_712_345_678, 0)}
	w.Store = openURL(t, w.url, store.WithClock(func() time.Time { return w.now }))
	return w
}

func openURL(t *testing.T, url string, opts ...store.Option) *store.Store {
	s, err := store.Open(t.Context(), url, append(opts, quiet())...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func quiet() store.Option { return store.WithLogger(slog.New(slog.DiscardHandler)) }

// ts is the Slack ts n seconds into the test.
func ts(n int) string { return fmt.Sprintf("%d.000100", 1_700_000_000+n) }

func key(n int) rules.LineKey { return rules.LineKey{Team: team, Channel: channel, TS: ts(n)} }

// line is a person's line at second n, in the thread of second root.
func line(n, root int, text string) rules.Line {
	return rules.Line{LineKey: key(n), Root: ts(root), User: "U1", Text: text}
}

func edited(l rules.Line, n int, text string) rules.Line {
	l.EditedTS, l.Text = fmt.Sprintf("%d.000000", 1_700_000_000+n), text
	return l
}

func thread(root int) rules.Thread { return rules.Thread{Team: team, Channel: channel, Root: ts(root)} }

func turn(id string, root int) store.Turn {
	return store.Turn{ID: id, Seat: seat, Thread: thread(root), Session: "s", Box: box}
}

// says is a decision that is always the same.
func says(state rules.State) func(store.Facts) store.Verdict {
	return func(store.Facts) store.Verdict { return store.Verdict{State: state} }
}

func saysEdit(state rules.State) func(*rules.Line, store.Facts) store.Verdict {
	return func(*rules.Line, store.Facts) store.Verdict { return store.Verdict{State: state} }
}

// unasked fails the test when a decision is asked for.
func unasked(t *testing.T) func(store.Facts) store.Verdict {
	return func(store.Facts) store.Verdict {
		t.Error("decided again about a line that has its row")
		return store.Verdict{State: rules.Noted}
	}
}

func (w *world) record(l rules.Line, state rules.State) store.Row {
	w.t.Helper()
	r, err := w.Record(w.ctx(), seat, l, rules.Person, says(state))
	require.NoError(w.t, err)
	return r
}

func (w *world) edit(l rules.Line, state rules.State) store.EditResult {
	w.t.Helper()
	r, err := w.RecordEdit(w.ctx(), seat, l, rules.Person, saysEdit(state))
	require.NoError(w.t, err)
	return r
}

func (w *world) delete(n int) store.DeleteResult {
	w.t.Helper()
	r, err := w.RecordDelete(w.ctx(), seat, key(n), ts(n+1000))
	require.NoError(w.t, err)
	return r
}

func (w *world) take(tu store.Turn, lines ...rules.Line) store.TakeResult {
	w.t.Helper()
	var all []store.TakeLine
	for _, l := range lines {
		all = append(all, store.TakeLine{Line: l, Author: rules.Person, HasRow: true})
	}
	r, err := w.TakeLines(w.ctx(), tu, all)
	require.NoError(w.t, err)
	return r
}

func (w *world) finish(turnID string, state rules.State, keys ...rules.LineKey) int {
	w.t.Helper()
	n, err := w.FinishTurn(w.ctx(), turnID, seat, keys, state, "")
	require.NoError(w.t, err)
	return n
}

func (w *world) stop(t rules.Thread, n int) bool {
	w.t.Helper()
	newest, err := w.RecordStop(w.ctx(), seat, t, ts(n))
	require.NoError(w.t, err)
	return newest
}

// is requires that the seat's row of the line is in state, for reason.
func (w *world) is(n int, state rules.State, reason rules.Reason) store.Row {
	w.t.Helper()
	r, err := w.RowOf(w.ctx(), seat, key(n))
	require.NoError(w.t, err)
	require.Equal(w.t, state, r.State)
	require.Equal(w.t, reason, r.Reason)
	return r
}

func (w *world) text(n int) string {
	w.t.Helper()
	l, err := w.Line(w.ctx(), key(n))
	require.NoError(w.t, err)
	return l.Text
}

func (w *world) ctx() context.Context { return w.t.Context() }

func tsOf(lines []rules.Line) (all []string) {
	for _, l := range lines {
		all = append(all, l.TS)
	}
	return all
}
