package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"agentsmith/rules"
)

// ErrLineMoved says that a line does not wait for its session any more.
var ErrLineMoved = errors.New("the line does not wait any more")

// StandsDown tells whether a relay carries the row's line, so that no turn may take it (R4).
func (r Row) StandsDown() bool {
	var route struct {
		StandsDown bool `json:"stands_down"`
	}
	return len(r.Route) > 0 && json.Unmarshal(r.Route, &route) == nil && route.StandsDown
}

// relayTurn is the turn that a relay takes its lines by.
func relayTurn(relay string) string { return "relay/" + relay }

// RelayBatch returns what a tick plans again: the lines of the relay's conversation, since it
// was opened, that wait for its session or of which nothing is decided (what is decided shows
// in the relay itself); and those that wait, the one that is being typed first. Both have the
// text that the line has now: an edit that came before the typing counts (L4).
func (s *Store) RelayBatch(ctx context.Context, r Relay) (rows []rules.RelayRow, waiting []SessionLine, err error) {
	err = s.view(ctx, "read relay batch", func(ctx context.Context, q query) error {
		opened, err := tsMicros(r.OpenedTS)
		if err != nil {
			return err
		}
		found, err := q.rows(ctx, `SELECT `+rowColumns+`, `+messageColumns+`
			FROM ledger l JOIN messages m ON m.team = l.team AND m.channel = l.channel AND m.ts = l.ts
			WHERE l.seat = $1 AND l.team = $2 AND l.channel = $3 AND l.state IN ('owed', 'taken') AND l.ts_us > $4
				AND (l.route = '' OR EXISTS (SELECT 1 FROM session_lines x WHERE x.relay = $5 AND x.relay <> '' AND x.state IN ('queued', 'typing')
					AND x.team = l.team AND x.channel = l.channel AND x.ts = l.ts))
			ORDER BY l.ts_us`, r.Seat, r.Team, r.Channel, opened, r.ID)
		rows, err = collect(found, err, func(x scanner) (rules.RelayRow, error) {
			row, m, err := scanBoth(x)
			return rules.RelayRow{Line: m.line, Author: row.Author}, err
		})
		if err != nil {
			return err
		}
		found, err = q.rows(ctx, `SELECT x.session, x.team, x.channel, x.ts, x.seq, x.seat, x.user_id, m.body, x.state, x.relay
			FROM session_lines x JOIN messages m ON m.team = x.team AND m.channel = x.channel AND m.ts = x.ts
			WHERE x.relay = $1 AND x.relay <> '' AND x.state IN ('queued', 'typing')
			ORDER BY CASE x.state WHEN 'typing' THEN 0 ELSE 1 END, m.ts_us`, r.ID)
		waiting, err = collect(found, err, scanSessionLine)
		return err
	})
	return rows, waiting, err
}

// OrphanLines returns the lines of relays that are no longer on record, of one conversation:
// they are to be handed back (R9). They are sorted by seq + 0, so that the few that wait are
// read, and not every line there is in the order of seq.
func (s *Store) OrphanLines(ctx context.Context, c Conversation) ([]SessionLine, error) {
	var all []SessionLine
	err := s.view(ctx, "read orphaned lines", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT `+sessionLineColumns+` FROM session_lines x
			WHERE x.relay <> '' AND x.state IN ('queued', 'typing') AND x.seat = $1 AND x.team = $2 AND x.channel = $3
				AND NOT EXISTS (SELECT 1 FROM relays r WHERE r.id = x.relay)
			ORDER BY x.seq + 0`, c.Seat, c.Team, c.Channel)
		all, err = collect(rows, err, scanSessionLine)
		return err
	})
	return all, err
}

// BeginTyping takes a waiting line for its relay, all in one step: it is being typed, and
// no turn can take it any more. A line that is being typed already is taken again. It is
// false where the line has its outcome, or is a turn's: then it waits no longer.
func (s *Store) BeginTyping(ctx context.Context, l SessionLine) (bool, error) {
	var begun bool
	err := s.write(ctx, "begin typing", func(ctx context.Context, q query) error {
		begun = false
		row, err := getRow(ctx, q, l.Seat, l.Key)
		if err != nil {
			return err
		}
		to := LineHandedBack
		switch {
		case row != nil && row.State == rules.Taken && row.Turn == relayTurn(l.Relay):
			to, begun = LineTyping, true
		case row != nil && row.State == rules.Owed && row.StandsDown():
			if _, err := s.moveRow(ctx, q, *row, move{state: rules.Taken, turn: relayTurn(l.Relay), told: true}); err != nil {
				return err
			}
			to, begun = LineTyping, true
		}
		n, err := s.moveSessionLine(ctx, q, l, LineQueued, to)
		if err != nil || n > 0 {
			return err
		}
		// It was being typed, or somebody else was faster.
		var state string
		if err := q.row(ctx, `SELECT state FROM session_lines WHERE session = $1 AND team = $2 AND channel = $3 AND ts = $4`,
			l.Session, l.Key.Team, l.Key.Channel, l.Key.TS).Scan(&state); err != nil {
			return err
		}
		if LineState(state) != LineTyping {
			return fmt.Errorf("%w: the line is %s", ErrLineMoved, short(state))
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	return begun, nil
}

// EndTyping gives a line that was being typed its end: typed is relayed, and its words are
// awaited; unsure is failed; queued is a line of which it is sure that nothing was typed.
// A repeat changes nothing.
func (s *Store) EndTyping(ctx context.Context, l SessionLine, to LineState) error {
	return s.write(ctx, "end typing", func(ctx context.Context, q query) error {
		n, err := s.moveSessionLine(ctx, q, l, LineTyping, to)
		if err != nil || n == 0 {
			return err
		}
		row, err := getRow(ctx, q, l.Seat, l.Key)
		if err != nil {
			return err
		}
		if to == LineTyped {
			if _, err := q.exec(ctx, `UPDATE relays SET awaiting = 1, typed_at = $1 WHERE id = $2`, s.micros(), l.Relay); err != nil {
				return err
			}
		}
		if row == nil || row.State != rules.Taken || row.Turn != relayTurn(l.Relay) {
			return nil
		}
		switch to {
		case LineTyped:
			_, err = s.moveRow(ctx, q, *row, move{state: rules.Relayed})
		case LineUnsure:
			_, err = s.moveRow(ctx, q, *row, move{state: rules.Failed, reason: rules.ReasonUnsure})
		case LineQueued:
			_, err = q.exec(ctx, `UPDATE ledger SET state = 'owed', turn = '', updated_at = $1
				WHERE seat = $2 AND team = $3 AND channel = $4 AND ts = $5 AND state = 'taken'`,
				s.micros(), l.Seat, l.Key.Team, l.Key.Channel, l.Key.TS)
		default:
			err = fmt.Errorf("%w: typing does not end as %q", ErrInvalid, short(string(to)))
		}
		return err
	})
}

// HandBack gives a line that waits for a session to the brain, by compare-and-set, with the
// brain's route (R9). It is owed, and no brain has it yet: whoever hands it back tells the
// brain, or else the starter does. It is false where the line is being typed or has its
// outcome.
func (s *Store) HandBack(ctx context.Context, l SessionLine, route json.RawMessage) (bool, error) {
	var done bool
	err := s.write(ctx, "hand a line back", func(ctx context.Context, q query) error {
		done = false
		n, err := s.moveSessionLine(ctx, q, l, LineQueued, LineHandedBack)
		if err != nil || n == 0 {
			return err
		}
		n, err = q.exec(ctx, `UPDATE ledger SET route = $1, dispatched = 0, updated_at = $2
			WHERE seat = $3 AND team = $4 AND channel = $5 AND ts = $6 AND state = 'owed'`,
			string(route), s.micros(), l.Seat, l.Key.Team, l.Key.Channel, l.Key.TS)
		done = n > 0
		return err
	})
	if err != nil {
		return false, err
	}
	return done, nil
}

// Withdraw takes a line that waits for a session back, with an outcome; false where it is
// being typed or has one.
func (s *Store) Withdraw(ctx context.Context, seat string, key rules.LineKey, state rules.State, reason rules.Reason) (bool, error) {
	var done bool
	err := s.write(ctx, "withdraw a line", func(ctx context.Context, q query) error {
		done = false
		row, err := getRow(ctx, q, seat, key)
		if err != nil || row == nil || row.State != rules.Owed || !row.StandsDown() {
			return err
		}
		if _, err := s.moveRow(ctx, q, *row, move{state: state, reason: reason, told: true}); err != nil {
			return err
		}
		_, err = q.exec(ctx, `UPDATE session_lines SET state = 'handed_back', moved_at = $1
			WHERE seat = $2 AND team = $3 AND channel = $4 AND ts = $5 AND state = 'queued' AND relay <> ''`,
			s.micros(), seat, key.Team, key.Channel, key.TS)
		done = err == nil
		return err
	})
	if err != nil {
		return false, err
	}
	return done, nil
}

func (s *Store) moveSessionLine(ctx context.Context, q query, l SessionLine, from, to LineState) (int64, error) {
	return q.exec(ctx, `UPDATE session_lines SET state = $1, moved_at = $2
		WHERE session = $3 AND team = $4 AND channel = $5 AND ts = $6 AND state = $7`,
		string(to), s.micros(), l.Session, l.Key.Team, l.Key.Channel, l.Key.TS, string(from))
}

// TypedLast returns the line that was typed into a session last, or may have been, with the
// relay that carried it: its words go to whoever typed it (R11). ErrNotFound.
func (s *Store) TypedLast(ctx context.Context, session string) (SessionLine, error) {
	var l SessionLine
	err := s.view(ctx, "read the line typed last", func(ctx context.Context, q query) (err error) {
		l, err = scanSessionLine(q.row(ctx, `SELECT `+sessionLineColumns+` FROM session_lines x
			WHERE session = $1 AND state IN ('typing', 'typed', 'unsure') ORDER BY moved_at DESC, seq DESC LIMIT 1`, session))
		return err
	})
	return l, err
}

// LatestLine returns a person's newest line of a conversation that was not deleted: its
// thread's brain is the voice of deposits (R11). ErrNotFound.
func (s *Store) LatestLine(ctx context.Context, c Conversation, person string) (rules.Line, error) {
	var line rules.Line
	err := s.view(ctx, "read the latest line", func(ctx context.Context, q query) error {
		m, err := scanMessage(q.row(ctx, `SELECT `+messageColumns+` FROM messages m
			WHERE m.team = $1 AND m.channel = $2 AND m.user_id = $3 AND m.present = 1 AND m.deleted_ts = ''
			ORDER BY m.ts_us DESC LIMIT 1`, c.Team, c.Channel, person))
		line = m.line
		return err
	})
	return line, err
}
