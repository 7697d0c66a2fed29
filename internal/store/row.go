package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"agentsmith/rules"
)

// Row is where a line stands with one seat.
type Row struct {
	Seat string
	rules.LineKey
	Root   string
	Author rules.Author
	State  rules.State
	// Reason is set on declined and failed lines.
	Reason rules.Reason
	// Route is what was decided about where the line goes, nil until then (L2).
	Route json.RawMessage
	// Turn is the id of the turn that took the line, "" if none did.
	Turn string
	// Dispatched: a brain was told of it.
	Dispatched bool
	// Mentioned: the line names the seat.
	Mentioned bool
	UpdatedAt time.Time
}

// Thread returns the thread that the row's line stands in.
func (r Row) Thread() rules.Thread {
	return rules.Thread{Team: r.Team, Channel: r.Channel, Root: r.Root}
}

// NeedsDispatch tells whether the line is owed and no brain knows of it (L2).
func (r Row) NeedsDispatch() bool { return r.State == rules.Owed && !r.Dispatched }

// Begun tells whether a turn took the line, now or before (L4).
func (r Row) Begun() bool { return r.Turn != "" }

const rowColumns = `l.seat, l.team, l.channel, l.ts, l.root, l.author, l.state, l.reason, l.route, l.turn,
	l.dispatched, l.mentioned, l.updated_at`

// rowDest is where to scan rowColumns; finish makes the row of it.
type rowDest struct {
	row                   Row
	author, state, reason string
	route                 string
	dispatched, mentioned int64
	updated               int64
}

func (d *rowDest) dest() []any {
	r := &d.row
	return []any{&r.Seat, &r.Team, &r.Channel, &r.TS, &r.Root, &d.author, &d.state, &d.reason, &d.route, &r.Turn,
		&d.dispatched, &d.mentioned, &d.updated}
}

func (d *rowDest) finish() Row {
	r := d.row
	r.Author, r.State, r.Reason = rules.Author(d.author), rules.State(d.state), rules.Reason(d.reason)
	if d.route != "" {
		r.Route = json.RawMessage(d.route)
	}
	r.Dispatched, r.Mentioned, r.UpdatedAt = d.dispatched != 0, d.mentioned != 0, timeOf(d.updated)
	return r
}

func scanRow(r scanner) (Row, error) {
	var d rowDest
	if err := r.Scan(d.dest()...); err != nil {
		return Row{}, err
	}
	return d.finish(), nil
}

func getRow(ctx context.Context, q query, seat string, k rules.LineKey) (*Row, error) {
	return one(scanRow(q.row(ctx, `SELECT `+rowColumns+` FROM ledger l
		WHERE l.seat = $1 AND l.team = $2 AND l.channel = $3 AND l.ts = $4`, seat, k.Team, k.Channel, k.TS)))
}

// insertRow adds a row that was not there.
func (s *Store) insertRow(ctx context.Context, q query, r Row) (Row, error) {
	us, err := tsMicros(r.TS)
	if err != nil {
		return Row{}, err
	}
	if r.Root == "" {
		r.Root = r.TS
	}
	now := s.micros()
	_, err = q.exec(ctx, `INSERT INTO ledger (seat, team, channel, ts, ts_us, root, author, state, reason, mentioned,
			route, dispatched, turn, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14)`,
		r.Seat, r.Team, r.Channel, r.TS, us, r.Root, string(r.Author), string(r.State), string(r.Reason),
		flag(r.Mentioned), string(r.Route), flag(r.Dispatched), r.Turn, now)
	r.UpdatedAt = timeOf(now)
	return r, err
}

// move is a row's change of state. It is the only statement that changes one, and it
// changes none that is not exactly where the caller saw it (L3).
type move struct {
	state  rules.State
	reason rules.Reason
	turn   string // "" leaves the row's own
	// raised: the line is owed from now on, and named the seat if mentioned.
	raised, mentioned bool
	// told: a brain has the line.
	told bool
}

func (s *Store) moveRow(ctx context.Context, q query, r Row, m move) (Row, error) {
	if r.State.Ended() {
		return r, fmt.Errorf("%w: line %s ended as %s", ErrInvalid, r.TS, r.State)
	}
	to := r
	to.State, to.Reason = m.state, m.reason
	if m.turn != "" {
		to.Turn = m.turn
	}
	to.Mentioned = r.Mentioned || m.mentioned
	to.Dispatched = (r.Dispatched && !m.raised) || m.told
	now := s.micros()
	to.UpdatedAt = timeOf(now)
	n, err := q.exec(ctx, `UPDATE ledger SET state = $1, reason = $2, turn = $3, mentioned = $4, dispatched = $5,
			updated_at = $6
		WHERE seat = $7 AND team = $8 AND channel = $9 AND ts = $10 AND state = $11 AND turn = $12`,
		string(to.State), string(to.Reason), to.Turn, flag(to.Mentioned), flag(to.Dispatched), now,
		r.Seat, r.Team, r.Channel, r.TS, string(r.State), r.Turn)
	if err != nil {
		return r, err
	}
	if n != 1 {
		return r, fmt.Errorf("line %s is no longer %s: %d rows", r.TS, r.State, n)
	}
	return to, nil
}
