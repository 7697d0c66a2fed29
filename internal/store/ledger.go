package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"agentsmith/rules"
)

// Record writes a line that arrived and where it stands with seat; when it returns nil
// the line is durable and may be acked (L1, L2). The message is stored once for all
// seats, the fuller copy and the newer edit win (L5). Decide is asked with what is on
// record, inside the transaction, perhaps more than once; it must be pure and quick and
// must not call the store. Its verdict makes a new row; a row that exists is only ever
// raised from noted to owed. A line whose deletion came first is declined instead of owed.
//
// The row returned is as it stands: dispatch it if NeedsDispatch.
func (s *Store) Record(ctx context.Context, seat string, line rules.Line, author rules.Author, decide func(Facts) Verdict) (Row, error) {
	var row Row
	err := s.write(ctx, "record line", func(ctx context.Context, q query) error {
		m, _, err := s.saveLine(ctx, q, line, humanAuthor(author))
		if err != nil {
			return err
		}
		row, _, err = s.judge(ctx, q, seat, m, author, true, decide)
		return err
	})
	if err != nil {
		return Row{}, err
	}
	return row, nil
}

// judge makes or raises the seat's row of a stored line. A row that is there is judged
// again only if again says so.
func (s *Store) judge(ctx context.Context, q query, seat string, m message, author rules.Author, again bool,
	decide func(Facts) Verdict) (row Row, raised bool, err error) {
	prior, err := getRow(ctx, q, seat, m.line.LineKey)
	if err != nil {
		return Row{}, false, err
	}
	if prior != nil {
		if *prior, err = s.noteAuthor(ctx, q, *prior, author); err != nil {
			return Row{}, false, err
		}
		if prior.State != rules.Noted || !again || m.deletedTS != "" {
			return *prior, false, nil
		}
	}
	f, err := s.facts(ctx, q, seat, m.line, prior)
	if err != nil {
		return Row{}, false, err
	}
	v := decide(f)
	if prior != nil {
		if v.State != rules.Owed {
			return *prior, false, nil
		}
		row, err = s.moveRow(ctx, q, *prior, move{state: rules.Owed, raised: true, mentioned: v.Mentioned})
		return row, err == nil, err
	}
	switch v.State {
	case rules.Owed:
		if m.deletedTS != "" {
			v.State, v.Reason = rules.Declined, rules.ReasonDeleted
		}
	case rules.Noted, rules.Declined:
	default:
		return Row{}, false, fmt.Errorf("%w: verdict %q for a line that arrives", ErrInvalid, v.State)
	}
	row, err = s.insertRow(ctx, q, Row{Seat: seat, LineKey: m.line.LineKey, Root: m.line.Root, Author: author,
		State: v.State, Reason: v.Reason, Mentioned: v.Mentioned})
	return row, false, err
}

// noteAuthor lets a fuller copy withdraw that a person wrote the line (app_mention does
// not show an outsider's team), and never the reverse: permission hangs on it (X1).
func (s *Store) noteAuthor(ctx context.Context, q query, r Row, author rules.Author) (Row, error) {
	if author == "" || author == r.Author || (r.Author != "" && r.Author != rules.Person) {
		return r, nil
	}
	r.Author = author
	_, err := q.exec(ctx, `UPDATE ledger SET author = $1 WHERE seat = $2 AND team = $3 AND channel = $4 AND ts = $5`,
		string(author), r.Seat, r.Team, r.Channel, r.TS)
	return r, err
}

// Line returns a line with its newest text, also when it was deleted since. ErrNotFound.
func (s *Store) Line(ctx context.Context, key rules.LineKey) (rules.Line, error) {
	var line rules.Line
	err := s.view(ctx, "read line", func(ctx context.Context, q query) error {
		m, err := getMessage(ctx, q, key)
		if err != nil {
			return err
		}
		if m == nil || !m.present {
			return ErrNotFound
		}
		line = m.line
		return nil
	})
	return line, err
}

// RowOf returns where a line stands with seat. ErrNotFound.
func (s *Store) RowOf(ctx context.Context, seat string, key rules.LineKey) (Row, error) {
	var row Row
	err := s.view(ctx, "read row", func(ctx context.Context, q query) error {
		r, err := getRow(ctx, q, seat, key)
		if err != nil {
			return err
		}
		if r == nil {
			return ErrNotFound
		}
		row = *r
		return nil
	})
	return row, err
}

// Pending is a line that waits to be dispatched.
type Pending struct {
	Row    Row
	Line   rules.Line
	Author rules.Author
}

// Undispatched returns the lines that are owed and that no brain knows of, oldest ts
// first (L2), at most limit.
func (s *Store) Undispatched(ctx context.Context, seat string, limit int) ([]Pending, error) {
	var all []Pending
	err := s.view(ctx, "read undispatched lines", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT `+rowColumns+`, `+messageColumns+`
			FROM ledger l JOIN messages m ON m.team = l.team AND m.channel = l.channel AND m.ts = l.ts
			WHERE l.seat = $1 AND l.state = 'owed' AND l.dispatched = 0
			ORDER BY l.ts_us LIMIT $2`, seat, limit)
		all, err = collect(rows, err, func(r scanner) (Pending, error) {
			row, m, err := scanBoth(r)
			return Pending{Row: row, Line: m.line, Author: row.Author}, err
		})
		return err
	})
	return all, err
}

// scanBoth reads rowColumns and messageColumns.
func scanBoth(r scanner) (Row, message, error) {
	var d rowDest
	m, err := scanMessage(prefixed{r, d.dest()})
	return d.finish(), m, err
}

// prefixed scans further columns before those that are asked for.
type prefixed struct {
	scanner
	first []any
}

func (p prefixed) Scan(dest ...any) error { return p.scanner.Scan(append(p.first, dest...)...) }

// SetRoute keeps where a line is to go and returns the route that stands: that of the
// first caller, so nothing is decided twice (L2). ErrNotFound.
func (s *Store) SetRoute(ctx context.Context, seat string, key rules.LineKey, route json.RawMessage) (json.RawMessage, error) {
	var stands string
	err := s.write(ctx, "record route", func(ctx context.Context, q query) error {
		_, err := q.exec(ctx, `UPDATE ledger SET route = $1
			WHERE seat = $2 AND team = $3 AND channel = $4 AND ts = $5 AND route = ''`,
			string(route), seat, key.Team, key.Channel, key.TS)
		if err != nil {
			return err
		}
		return q.row(ctx, `SELECT route FROM ledger WHERE seat = $1 AND team = $2 AND channel = $3 AND ts = $4`,
			seat, key.Team, key.Channel, key.TS).Scan(&stands)
	})
	if err != nil {
		return nil, err
	}
	return json.RawMessage(stands), nil
}

// MarkDispatched notes that a brain has the line. ErrNotFound.
func (s *Store) MarkDispatched(ctx context.Context, seat string, key rules.LineKey) error {
	return s.write(ctx, "mark dispatched", func(ctx context.Context, q query) error {
		n, err := q.exec(ctx, `UPDATE ledger SET dispatched = 1, updated_at = $1
			WHERE seat = $2 AND team = $3 AND channel = $4 AND ts = $5`,
			s.micros(), seat, key.Team, key.Channel, key.TS)
		if err == nil && n == 0 {
			return ErrNotFound
		}
		return err
	})
}

// EndLine gives a line that waits its outcome. It is false when the line is not owed:
// a turn has it, or it has its outcome. ErrNotFound.
func (s *Store) EndLine(ctx context.Context, seat string, key rules.LineKey, state rules.State, reason rules.Reason) (bool, error) {
	if !state.Ended() {
		return false, s.wrap("end line", fmt.Errorf("%w: %q is no outcome", ErrInvalid, state))
	}
	var done bool
	err := s.write(ctx, "end line", func(ctx context.Context, q query) error {
		done = false
		r, err := getRow(ctx, q, seat, key)
		if err != nil {
			return err
		}
		if r == nil {
			return ErrNotFound
		}
		if r.State != rules.Owed {
			return nil
		}
		_, err = s.moveRow(ctx, q, *r, move{state: state, reason: reason})
		done = err == nil
		return err
	})
	if err != nil {
		return false, err
	}
	return done, nil
}

// OverdueLines returns the lines that a brain knows of and that still have no outcome,
// untouched for olderThan: what the sweep asks about (L3). Longest untouched first.
func (s *Store) OverdueLines(ctx context.Context, seat string, olderThan time.Duration, limit int) ([]Row, error) {
	var all []Row
	err := s.view(ctx, "read overdue lines", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT `+rowColumns+` FROM ledger l
			WHERE l.seat = $1 AND l.state IN ('owed', 'taken') AND l.dispatched = 1 AND l.updated_at <= $2
			ORDER BY l.updated_at LIMIT $3`, seat, s.now().Add(-olderThan).UnixMicro(), limit)
		all, err = collect(rows, err, scanRow)
		return err
	})
	return all, err
}

// TouchLines makes lines without an outcome count as untouched from now: after the
// sweep asked about them, or while their turn is seen to run.
func (s *Store) TouchLines(ctx context.Context, seat string, keys []rules.LineKey) error {
	return s.write(ctx, "touch lines", func(ctx context.Context, q query) error {
		for _, k := range keys {
			if _, err := q.exec(ctx, `UPDATE ledger SET updated_at = $1
				WHERE seat = $2 AND team = $3 AND channel = $4 AND ts = $5 AND state IN ('owed', 'taken')`,
				s.micros(), seat, k.Team, k.Channel, k.TS); err != nil {
				return err
			}
		}
		return nil
	})
}
