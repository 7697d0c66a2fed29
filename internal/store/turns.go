package store

import (
	"context"
	"fmt"

	"agentsmith/rules"
)

// Turn is one run of the agent for a thread.
type Turn struct {
	ID   string
	Seat string
	rules.Thread
	// Session is the agent session's UUID (B3).
	Session string
	Box     string
}

// TakeLine is a line that a brain wants to take.
type TakeLine struct {
	Line   rules.Line
	Author rules.Author
	// HasRow is false for a line whose inbound row could not be written: Line then has
	// all there is of it, and it is written now (L1).
	HasRow bool
}

// TakeResult is what a turn got.
type TakeResult struct {
	// Taken are the lines of this turn, with their newest text.
	Taken []rules.Line
	// Dropped are the lines it did not get, as they stand: ended, deleted, stopped, or
	// of another turn.
	Dropped []Row
}

// TakeLines gives lines that are owed to a turn, all in one transaction (L3). A line
// that is older than the newest stop that covers it is declined (D4), a deleted one too
// (L4). A line without a row is written and taken. Called again by the same turn it
// gives the same lines. The turn itself is recorded if it got a line, or asked for none;
// one that had ended, and whose id a redelivered line gives to a new turn, begins anew.
func (s *Store) TakeLines(ctx context.Context, turn Turn, lines []TakeLine) (TakeResult, error) {
	if turn.ID == "" {
		return TakeResult{}, s.wrap("take lines", fmt.Errorf("%w: a turn without an id", ErrInvalid))
	}
	var res TakeResult
	err := s.write(ctx, "take lines", func(ctx context.Context, q query) error {
		res = TakeResult{}
		for _, l := range lines {
			taken, row, err := s.take(ctx, q, turn, l)
			if err != nil {
				return fmt.Errorf("line %s: %w", short(l.Line.TS), err)
			}
			if taken != nil {
				res.Taken = append(res.Taken, *taken)
			} else {
				res.Dropped = append(res.Dropped, row)
			}
		}
		if len(res.Taken) == 0 && len(lines) > 0 {
			return nil
		}
		_, err := q.exec(ctx, `INSERT INTO turns (id, seat, team, channel, root, session, box, started_at, ended_at,
				state, reason, kept_at, answer, answer_files, model, cost_usd, duration_us)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, '', '', 0, '', '', '', 0, 0)
			ON CONFLICT (id) DO UPDATE SET ended_at = 0, state = '', reason = '', kept_at = 0, started_at = excluded.started_at
			WHERE turns.ended_at > 0`,
			turn.ID, turn.Seat, turn.Team, turn.Channel, turn.Root, turn.Session, turn.Box, s.micros())
		return err
	})
	if err != nil {
		return TakeResult{}, err
	}
	return res, nil
}

// take gives one line to the turn; taken is nil where it may not have it, and row is
// then how it stands.
func (s *Store) take(ctx context.Context, q query, turn Turn, l TakeLine) (taken *rules.Line, row Row, err error) {
	m, err := getMessage(ctx, q, l.Line.LineKey)
	if err != nil {
		return nil, Row{}, err
	}
	if m == nil || !m.present || !l.HasRow {
		saved, _, err := s.saveLine(ctx, q, l.Line, humanAuthor(l.Author))
		if err != nil {
			return nil, Row{}, err
		}
		m = &saved
	}
	r, err := getRow(ctx, q, turn.Seat, m.line.LineKey)
	if err != nil {
		return nil, Row{}, err
	}
	if r != nil && r.State == rules.Taken && r.Turn == turn.ID {
		return &m.line, *r, nil
	}
	if r != nil && (r.State != rules.Owed && r.State != rules.Noted || r.StandsDown()) {
		return nil, *r, nil // a relay carries it, as long as it is not handed back (R4)
	}
	to := move{state: rules.Taken, turn: turn.ID, told: true}
	stopTS, err := newestStop(ctx, q, turn.Seat, m.line.Thread())
	if err != nil {
		return nil, Row{}, err
	}
	stopped, err := covered(m.line.TS, stopTS)
	if err != nil {
		return nil, Row{}, err
	}
	switch {
	case m.deletedTS != "":
		to = move{state: rules.Declined, reason: rules.ReasonDeleted, told: true}
	case stopped:
		to = move{state: rules.Declined, reason: rules.ReasonStopped, told: true}
	}
	if r == nil {
		row, err = s.insertRow(ctx, q, Row{Seat: turn.Seat, LineKey: m.line.LineKey, Root: m.line.Root, Author: l.Author,
			State: to.state, Reason: to.reason, Turn: to.turn, Dispatched: true})
	} else {
		row, err = s.moveRow(ctx, q, *r, to)
	}
	if err != nil || to.state != rules.Taken {
		return nil, row, err
	}
	return &m.line, row, nil
}

// FinishTurn gives lines their outcome: those of keys that are owed, and those that this
// turn took. A line without a row gets one, so that it too has its outcome; every other
// line stands as it is. It returns how many changed: 0 the second time.
func (s *Store) FinishTurn(ctx context.Context, turnID, seat string, keys []rules.LineKey, state rules.State, reason rules.Reason) (int, error) {
	if !state.Ended() {
		return 0, s.wrap("finish turn", fmt.Errorf("%w: %q is no outcome", ErrInvalid, state))
	}
	n := 0
	err := s.write(ctx, "finish turn", func(ctx context.Context, q query) error {
		n = 0
		for _, k := range keys {
			open, r, err := openTo(ctx, q, turnID, seat, k)
			if err != nil {
				return err
			}
			if !open {
				continue
			}
			if r != nil {
				_, err = s.moveRow(ctx, q, *r, move{state: state, reason: reason, told: true})
			} else {
				err = s.insertEnded(ctx, q, turnID, seat, k, state, reason)
			}
			if err != nil {
				return fmt.Errorf("line %s: %w", short(k.TS), err)
			}
			n++
		}
		_, err := q.exec(ctx, `UPDATE turns SET ended_at = $1, state = $2, reason = $3 WHERE id = $4 AND ended_at = 0`,
			s.micros(), string(state), string(reason), turnID)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// insertEnded writes the outcome of a line whose inbound row was never written.
func (s *Store) insertEnded(ctx context.Context, q query, turnID, seat string, k rules.LineKey, state rules.State, reason rules.Reason) error {
	root := k.TS
	if m, err := getMessage(ctx, q, k); err != nil {
		return err
	} else if m != nil && m.present {
		root = m.line.Root
	}
	_, err := s.insertRow(ctx, q, Row{Seat: seat, LineKey: k, Root: root, State: state, Reason: reason, Dispatched: true})
	return err
}

// openTo tells whether FinishTurn would give the line its outcome.
func openTo(ctx context.Context, q query, turnID, seat string, k rules.LineKey) (bool, *Row, error) {
	r, err := getRow(ctx, q, seat, k)
	if err != nil || r == nil {
		return err == nil, nil, err
	}
	return r.State == rules.Owed || r.State == rules.Taken && r.Turn == turnID, r, nil
}

// OpenLines returns those of keys that FinishTurn would change.
func (s *Store) OpenLines(ctx context.Context, turnID, seat string, keys []rules.LineKey) ([]rules.LineKey, error) {
	var open []rules.LineKey
	err := s.view(ctx, "read open lines", func(ctx context.Context, q query) error {
		open = nil
		for _, k := range keys {
			if _, err := tsMicros(k.TS); err != nil {
				return err
			}
			ok, _, err := openTo(ctx, q, turnID, seat, k)
			if err != nil {
				return err
			}
			if ok {
				open = append(open, k)
			}
		}
		return nil
	})
	return open, err
}
