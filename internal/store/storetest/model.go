package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

const (
	modelLines   = 5
	modelThreads = 2
	modelEdits   = 4
)

// model is what the rules say about a few lines, told without a database.
type model struct {
	*world
	t       *rapid.T
	run     int
	text    map[int]string // of the newest edit seen, by line
	edit    map[int]int    // which edit that is; absent: the line was never seen
	deleted map[int]bool
	stops   map[string]int // seat/root → second; root "" is the channel
	rows    map[string]*modelRow
	turns   int
}

type modelRow struct {
	state  rules.State
	reason rules.Reason
	turn   string
	ended  int // how often it was given an outcome
}

func (m *model) key(n int) rules.LineKey {
	return rules.LineKey{Team: team, Channel: fmt.Sprintf("C%d", m.run), TS: ts(n * 10)}
}

func (m *model) root(n int) string { return ts(n % modelThreads * 10) }

// line is line n as its edit e has it; edit 0 is the original.
func (m *model) line(n, e int) rules.Line {
	l := rules.Line{LineKey: m.key(n), Root: m.root(n), User: "U1", Text: fmt.Sprintf("line %d edit %d", n, e)}
	if e > 0 {
		l.EditedTS = fmt.Sprintf("%d.000000", 1_700_000_000+n*10+e)
	}
	return l
}

func (m *model) row(s string, n int) *modelRow { return m.rows[fmt.Sprint(s, n)] }

func (m *model) setRow(s string, n int, r *modelRow) { m.rows[fmt.Sprint(s, n)] = r }

func (r *modelRow) end(state rules.State, reason rules.Reason) {
	r.state, r.reason = state, reason
	r.ended++
}

// saw merges a copy and tells whether it is older than what is known.
func (m *model) saw(n, e int) (stale, fresh bool) {
	have, known := m.edit[n]
	if known && have >= e {
		return have > e, false
	}
	m.edit[n], m.text[n] = e, m.line(n, e).Text
	return false, true
}

// arrives is a line's row after a copy that is judged as state.
func (m *model) arrives(s string, n int, state rules.State, again bool) *modelRow {
	r := m.row(s, n)
	if r == nil {
		r = &modelRow{state: state}
		m.setRow(s, n, r)
		switch {
		case state == rules.Owed && m.deleted[n]:
			r.end(rules.Declined, rules.ReasonDeleted)
		case state == rules.Declined:
			r.reason = rules.ReasonOutsider
			r.ended++
		}
		return r
	}
	if again && r.state == rules.Noted && state == rules.Owed && !m.deleted[n] {
		r.state = rules.Owed
	}
	return r
}

func (m *model) stopped(s string, n int) bool {
	newest := max(m.stops[s+"/"+m.root(n)], m.stops[s+"/"])
	return n*10 < newest
}

func verdict(state rules.State) store.Verdict {
	v := store.Verdict{State: state}
	if state == rules.Declined {
		v.Reason = rules.ReasonOutsider
	}
	return v
}

var anyState = rapid.SampledFrom([]rules.State{rules.Owed, rules.Owed, rules.Owed, rules.Noted, rules.Declined})

// testModel plays random histories of several seats against the model.
func testModel(t *testing.T, newURL func(t *testing.T) string) {
	w := open(t, newURL)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		m := &model{world: w, t: rt, run: run, text: map[int]string{}, edit: map[int]int{}, deleted: map[int]bool{},
			stops: map[string]int{}, rows: map[string]*modelRow{}}
		rt.Repeat(map[string]func(*rapid.T){
			"record":         m.stepRecord,
			"edit":           m.stepEdit,
			"delete":         m.stepDelete,
			"stop":           m.stepStop,
			"take":           m.stepTake,
			"finish":         m.stepFinish,
			"end":            m.stepEnd,
			"record again":   m.stepRecord,
			"take and again": m.stepTake,
		})
		m.check(rt)
		m.drain()
	})
}

func (m *model) draw(rt *rapid.T) (s string, n int) {
	return rapid.SampledFrom([]string{seat, other}).Draw(rt, "seat"), rapid.IntRange(0, modelLines-1).Draw(rt, "line")
}

func (m *model) stepRecord(rt *rapid.T) {
	s, n := m.draw(rt)
	state := anyState.Draw(rt, "verdict")
	e := 0
	if rapid.IntRange(0, 4).Draw(rt, "from history") == 0 { // history brings the line as edited
		e = rapid.IntRange(0, modelEdits).Draw(rt, "edit")
	}
	got, err := m.Record(m.ctx(), s, m.line(n, e), rules.Person, func(store.Facts) store.Verdict { return verdict(state) })
	require.NoError(rt, err)
	m.saw(n, e)
	m.same(rt, m.arrives(s, n, state, true), got)
}

func (m *model) stepEdit(rt *rapid.T) {
	s, n := m.draw(rt)
	state := anyState.Draw(rt, "verdict")
	e := rapid.IntRange(1, modelEdits).Draw(rt, "edit")
	before := m.row(s, n)
	var was rules.State
	if before != nil {
		was = before.state
	}
	got, err := m.RecordEdit(m.ctx(), s, m.line(n, e), rules.Person, func(*rules.Line, store.Facts) store.Verdict { return verdict(state) })
	require.NoError(rt, err)
	stale, _ := m.saw(n, e)
	stale = stale || m.deleted[n]
	r := m.arrives(s, n, state, !stale)
	m.same(rt, r, got.Row)
	require.Equal(rt, stale, got.Stale)
	require.Equal(rt, !stale, got.TextChanged)
	require.Equal(rt, was == rules.Noted && r.state == rules.Owed, got.RaisedToOwed)
	require.Equal(rt, r.turn != "", got.Begun)
}

func (m *model) stepDelete(rt *rapid.T) {
	s, n := m.draw(rt)
	got, err := m.RecordDelete(m.ctx(), s, m.key(n), ts(n*10+900))
	require.NoError(rt, err)
	m.deleted[n] = true
	r := m.row(s, n)
	if r == nil {
		require.Nil(rt, got.Row)
		return
	}
	if r.state == rules.Owed {
		r.end(rules.Declined, rules.ReasonDeleted)
	}
	m.same(rt, r, *got.Row)
	require.Equal(rt, r.reason == rules.ReasonDeleted, got.WasOwed)
	require.Equal(rt, r.turn != "", got.Begun)
}

func (m *model) stepStop(rt *rapid.T) {
	s, n := m.draw(rt)
	at := rapid.IntRange(0, modelLines).Draw(rt, "before line")*10 - 5
	root := rapid.SampledFrom([]string{"", m.root(n)}).Draw(rt, "root")
	at = max(at, 1)
	newest, err := m.RecordStop(m.ctx(), s, rules.Thread{Team: team, Channel: m.key(0).Channel, Root: root}, ts(at))
	require.NoError(rt, err)
	require.Equal(rt, at >= m.stops[s+"/"+root], newest)
	m.stops[s+"/"+root] = max(at, m.stops[s+"/"+root])
}

// stepTake lets a new turn, or an old one again, take lines of one thread: those on
// record, and one that only the brain knows of.
func (m *model) stepTake(rt *rapid.T) {
	s, first := m.draw(rt)
	id := rapid.IntRange(max(0, m.turns-1), m.turns).Draw(rt, "turn")
	m.turns = max(m.turns, id+1)
	m.takeAs(rt, s, fmt.Sprintf("%d/%s/%d", m.run, s, id), first)
}

func (m *model) takeAs(rt *rapid.T, s, id string, first int) {
	var lines []store.TakeLine
	var taken []string
	var dropped []store.Row
	for n := first % modelThreads; n < modelLines; n += modelThreads {
		r := m.row(s, n)
		if r == nil && n != first || r != nil && r.state == rules.Noted {
			continue
		}
		lines = append(lines, store.TakeLine{Line: m.line(n, 0), Author: rules.Person, HasRow: r != nil})
		if _, known := m.edit[n]; !known || r == nil {
			m.saw(n, 0) // the brain's copy is written where the line is not
		}
		if r == nil {
			r = &modelRow{state: rules.Owed}
			m.setRow(s, n, r)
		}
		switch {
		case r.state == rules.Owed && m.deleted[n]:
			r.end(rules.Declined, rules.ReasonDeleted)
		case r.state == rules.Owed && m.stopped(s, n):
			r.end(rules.Declined, rules.ReasonStopped)
		case r.state == rules.Owed:
			r.state, r.turn = rules.Taken, id
		}
		if r.state == rules.Taken && r.turn == id {
			taken = append(taken, m.text[n])
		} else {
			dropped = append(dropped, store.Row{LineKey: m.key(n), State: r.state, Reason: r.reason})
		}
	}
	got, err := m.TakeLines(m.ctx(), store.Turn{ID: id, Seat: s, Thread: rules.Thread{Team: team, Channel: m.key(0).Channel, Root: m.root(first)}, Box: box}, lines)
	require.NoError(rt, err)
	var texts []string
	for _, l := range got.Taken {
		texts = append(texts, l.Text)
	}
	require.Equal(rt, taken, texts)
	require.Len(rt, got.Dropped, len(dropped))
	for i, d := range dropped {
		require.Equal(rt, d.LineKey, got.Dropped[i].LineKey)
		require.Equal(rt, d.State, got.Dropped[i].State)
		require.Equal(rt, d.Reason, got.Dropped[i].Reason)
	}
}

func (m *model) stepFinish(rt *rapid.T) {
	s, n := m.draw(rt)
	id := fmt.Sprintf("%d/%s/%d", m.run, s, rapid.IntRange(0, max(0, m.turns-1)).Draw(rt, "turn"))
	m.finishAs(rt, s, id, n)
}

func (m *model) finishAs(rt *rapid.T, s, id string, lines ...int) {
	want := 0
	var keys []rules.LineKey
	for _, n := range lines {
		keys = append(keys, m.key(n))
		r := m.row(s, n)
		if r == nil {
			r = &modelRow{state: rules.Owed}
			m.setRow(s, n, r)
		}
		if r.state == rules.Owed || r.state == rules.Taken && r.turn == id {
			r.end(rules.Answered, "")
			want++
		}
	}
	got, err := m.FinishTurn(m.ctx(), id, s, keys, rules.Answered, "")
	require.NoError(rt, err)
	require.Equal(rt, want, got)
}

func (m *model) stepEnd(rt *rapid.T) {
	s, n := m.draw(rt)
	r := m.row(s, n)
	if r == nil {
		return
	}
	got, err := m.EndLine(m.ctx(), s, m.key(n), rules.Failed, rules.ReasonLost)
	require.NoError(rt, err)
	require.Equal(rt, r.state == rules.Owed, got)
	if got {
		r.end(rules.Failed, rules.ReasonLost)
	}
}

func (m *model) same(rt *rapid.T, want *modelRow, got store.Row) {
	require.Equal(rt, want.state, got.State)
	require.Equal(rt, want.reason, got.Reason)
	require.Equal(rt, want.turn, got.Turn)
}

// check compares everything with the model; each step compares the row that it touched.
func (m *model) check(rt *rapid.T) {
	for n := range modelLines {
		l, err := m.Line(m.ctx(), m.key(n))
		if _, seen := m.edit[n]; seen {
			require.NoError(rt, err)
			require.Equal(rt, m.text[n], l.Text, "the newest edit wins")
		} else {
			require.ErrorIs(rt, err, store.ErrNotFound)
		}
		for _, s := range []string{seat, other} {
			r := m.row(s, n)
			got, err := m.RowOf(m.ctx(), s, m.key(n))
			if r == nil {
				require.ErrorIs(rt, err, store.ErrNotFound)
				continue
			}
			require.NoError(rt, err)
			m.same(rt, r, got)
			require.LessOrEqual(rt, r.ended, 1)
		}
	}
}

// drain finishes what is left: every line that was owed ends in exactly one outcome.
func (m *model) drain() {
	for _, s := range []string{seat, other} {
		for n := range modelThreads {
			m.takeAs(m.t, s, fmt.Sprintf("%d/%s/last%d", m.run, s, n), n)
		}
		var held []string
		for n := range modelLines {
			if r := m.row(s, n); r != nil && r.turn != "" && !slices.Contains(held, r.turn) {
				held = append(held, r.turn)
			}
		}
		for _, id := range held {
			var lines []int
			for n := range modelLines {
				if r := m.row(s, n); r != nil && r.turn == id {
					lines = append(lines, n)
				}
			}
			m.finishAs(m.t, s, id, lines...)
		}
		for n := range modelLines {
			if r := m.row(s, n); r != nil && r.state != rules.Noted {
				require.Equal(m.t, 1, r.ended)
				require.True(m.t, r.state.Ended())
			}
		}
	}
	m.check(m.t)
}
