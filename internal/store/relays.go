package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"agentsmith/rules"
)

// Conversation is a DM with all its threads, as one seat sees it: what a relay is bound to.
type Conversation struct{ Seat, Team, Channel string }

// Relay is a relay as it stands.
type Relay struct {
	rules.Relay
	Conversation
	// Box is where its session is.
	Box string
	// Awaiting: a line was typed whose turn has not been seen to end. TypedAt is when the
	// newest one was.
	Awaiting bool
	TypedAt  time.Time
	OpenedAt time.Time
	ClosedAt time.Time
}

const relayColumns = `r.id, r.seat, r.team, r.channel, r.user_id, r.session, r.number, r.box, r.opened_ts, r.closed_ts,
	r.awaiting, r.typed_at, r.opened_at, r.closed_at`

func scanRelay(s scanner) (Relay, error) {
	var r Relay
	var awaiting, typed, opened, closed int64
	err := s.Scan(&r.ID, &r.Seat, &r.Team, &r.Channel, &r.Person, &r.Session, &r.Number, &r.Box, &r.OpenedTS, &r.ClosedTS,
		&awaiting, &typed, &opened, &closed)
	r.Awaiting, r.TypedAt, r.OpenedAt, r.ClosedAt = awaiting != 0, timeOf(typed), timeOf(opened), timeOf(closed)
	return r, err
}

func openRelay(ctx context.Context, q query, c Conversation) (*Relay, error) {
	return one(scanRelay(q.row(ctx, `SELECT `+relayColumns+` FROM relays r
		WHERE r.seat = $1 AND r.team = $2 AND r.channel = $3 AND r.closed_us = 0`, c.Seat, c.Team, c.Channel)))
}

// OpenRelay returns the conversation's open relay. ErrNotFound.
func (s *Store) OpenRelay(ctx context.Context, c Conversation) (Relay, error) {
	var r Relay
	err := s.view(ctx, "read open relay", func(ctx context.Context, q query) error {
		found, err := openRelay(ctx, q, c)
		if err == nil && found == nil {
			return ErrNotFound
		}
		if err == nil {
			r = *found
		}
		return err
	})
	return r, err
}

// RelayByID returns a relay, also one that is closed. ErrNotFound.
func (s *Store) RelayByID(ctx context.Context, id string) (Relay, error) {
	var r Relay
	err := s.view(ctx, "read relay", func(ctx context.Context, q query) (err error) {
		r, err = scanRelay(q.row(ctx, `SELECT `+relayColumns+` FROM relays r WHERE r.id = $1`, id))
		return err
	})
	return r, err
}

// OpenRelayTo returns the open relay to a session; of two the one that was opened last.
// ErrNotFound.
func (s *Store) OpenRelayTo(ctx context.Context, session string) (Relay, error) {
	var r Relay
	err := s.view(ctx, "read the relay to a session", func(ctx context.Context, q query) (err error) {
		r, err = scanRelay(q.row(ctx, `SELECT `+relayColumns+` FROM relays r
			WHERE r.session = $1 AND r.closed_us = 0 ORDER BY r.opened_us DESC LIMIT 1`, session))
		return err
	})
	return r, err
}

// CloseRelay closes an open relay at ts; false where it was closed already. Lines of it that
// are queued stay so: whoever types hands those back that it no longer covers.
func (s *Store) CloseRelay(ctx context.Context, id, ts string) (bool, error) {
	var done bool
	err := s.write(ctx, "close relay", func(ctx context.Context, q query) (err error) {
		done, err = s.closeRelay(ctx, q, id, ts)
		return err
	})
	return done, err
}

func (s *Store) closeRelay(ctx context.Context, q query, id, ts string) (bool, error) {
	us, err := tsMicros(ts)
	if err != nil {
		return false, err
	}
	n, err := q.exec(ctx, `UPDATE relays SET closed_ts = $1, closed_us = $2, closed_at = $3 WHERE id = $4 AND closed_us = 0`,
		ts, us, s.micros(), id)
	return n > 0, err
}

func (s *Store) insertRelay(ctx context.Context, q query, r Relay) error {
	us, err := tsMicros(r.OpenedTS)
	if err != nil {
		return err
	}
	if r.ID == "" || r.Session == "" || r.Person == "" {
		return fmt.Errorf("%w: a relay needs an id, a session and a person", ErrInvalid)
	}
	_, err = q.exec(ctx, `INSERT INTO relays (id, seat, team, channel, user_id, session, number, box, opened_ts, opened_us,
			closed_ts, closed_us, awaiting, typed_at, opened_at, closed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '', 0, 0, 0, $11, 0) ON CONFLICT (id) DO NOTHING`,
		r.ID, r.Seat, r.Team, r.Channel, r.Person, r.Session, r.Number, r.Box, r.OpenedTS, us, s.micros())
	return err
}

// EndAwaiting notes that the turn of the newest line that was typed has ended (R11).
func (s *Store) EndAwaiting(ctx context.Context, id string) error {
	_, err := s.changed(ctx, "end awaiting", `UPDATE relays SET awaiting = 0 WHERE id = $1`, id)
	return err
}

// ConversationState is what is on record of a conversation when its lines are decided.
type ConversationState struct {
	// Relay is the open one, nil where there is none.
	Relay *Relay
	// Rows are the lines that are owed, and of which nothing is decided, in ts order.
	Rows []Pending
	// Sessions are the newest ones, also those that have ended.
	Sessions []Session
	// StopTS is of the newest stop of the whole conversation, "" for none.
	StopTS string
}

// ConversationDecision is what becomes of one line.
type ConversationDecision struct {
	Key rules.LineKey
	// Route is what is written on its row, where nothing was written before.
	Route json.RawMessage
	// Queue puts the line behind those that wait for its session; its Relay says which
	// relay carries it.
	Queue *SessionLine
	// CloseTS closes the open relay at that ts; Open opens one, after that.
	CloseTS string
	Open    *Relay
}

// maxSessionsRead bounds how many sessions a decision looks among.
const maxSessionsRead = 500

// DecideConversation decides the lines of a conversation in one transaction: reading the
// mode and writing the routes are one step, whoever else decides (R4). Decide is asked with
// what is on record, perhaps more than once; it must be pure and quick and must not call the
// store. A line without a decision is left as it is.
func (s *Store) DecideConversation(ctx context.Context, c Conversation, decide func(ConversationState) []ConversationDecision) error {
	return s.write(ctx, "decide conversation", func(ctx context.Context, q query) error {
		state, err := readConversation(ctx, q, c)
		if err != nil {
			return err
		}
		for _, d := range decide(state) {
			if err := s.carryOut(ctx, q, c, d); err != nil {
				return fmt.Errorf("line %s: %w", short(d.Key.TS), err)
			}
		}
		return nil
	})
}

func readConversation(ctx context.Context, q query, c Conversation) (state ConversationState, err error) {
	if state.Relay, err = openRelay(ctx, q, c); err != nil {
		return state, err
	}
	rows, err := q.rows(ctx, `SELECT `+rowColumns+`, `+messageColumns+`
		FROM ledger l JOIN messages m ON m.team = l.team AND m.channel = l.channel AND m.ts = l.ts
		WHERE l.seat = $1 AND l.team = $2 AND l.channel = $3 AND l.state = 'owed' AND l.dispatched = 0 AND l.route = ''
		ORDER BY l.ts_us`, c.Seat, c.Team, c.Channel)
	state.Rows, err = collect(rows, err, func(r scanner) (Pending, error) {
		row, m, err := scanBoth(r)
		return Pending{Row: row, Line: m.line, Author: row.Author}, err
	})
	if err != nil {
		return state, err
	}
	rows, err = q.rows(ctx, `SELECT `+sessionColumns+` FROM sessions ORDER BY number DESC LIMIT $1`, maxSessionsRead)
	if state.Sessions, err = collect(rows, err, scanSession); err != nil {
		return state, err
	}
	state.StopTS, err = newestStop(ctx, q, c.Seat, rules.Thread{Team: c.Team, Channel: c.Channel})
	return state, err
}

func (s *Store) carryOut(ctx context.Context, q query, c Conversation, d ConversationDecision) error {
	n, err := q.exec(ctx, `UPDATE ledger SET route = $1
		WHERE seat = $2 AND team = $3 AND channel = $4 AND ts = $5 AND route = '' AND state = 'owed'`,
		string(d.Route), c.Seat, d.Key.Team, d.Key.Channel, d.Key.TS)
	if err != nil || n == 0 {
		return err
	}
	if d.CloseTS != "" {
		open, err := openRelay(ctx, q, c)
		if err != nil {
			return err
		}
		if open != nil {
			if _, err := s.closeRelay(ctx, q, open.ID, d.CloseTS); err != nil {
				return err
			}
		}
	}
	if d.Open != nil {
		d.Open.Conversation = c
		if err := s.insertRelay(ctx, q, *d.Open); err != nil {
			return err
		}
	}
	if d.Queue != nil {
		_, err = s.queueLine(ctx, q, *d.Queue)
	}
	return err
}

// RelayDue is a relay that a box has something to do for.
type RelayDue struct {
	Relay
	// Lines wait to be typed, and Words of its session to be posted.
	Lines, Words bool
}

// RelaysDue returns the relays of a box's sessions that are open, that wait for the end of a
// turn, or that have lines or words under way.
func (s *Store) RelaysDue(ctx context.Context, box string) ([]RelayDue, error) {
	var all []RelayDue
	err := s.view(ctx, "read due relays", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT * FROM (
			SELECT `+relayColumns+`,
				EXISTS (SELECT 1 FROM session_lines x WHERE x.relay = r.id AND x.relay <> '' AND x.state IN ('queued', 'typing')) AS lines,
				EXISTS (SELECT 1 FROM deposits d WHERE d.session = r.session AND d.ts = '' AND d.dropped = 0
					AND (d.owner_channel = r.channel OR d.owner_seat = '' AND (r.closed_us = 0 OR r.awaiting = 1))) AS words
			FROM relays r WHERE r.box = $1 AND r.id IN (
				SELECT id FROM relays WHERE box = $1 AND (closed_us = 0 OR awaiting = 1)
				UNION SELECT relay FROM session_lines WHERE relay <> '' AND state IN ('queued', 'typing')
				UNION SELECT o.id FROM relays o WHERE o.session IN (SELECT w.session FROM deposits w WHERE w.ts = '' AND w.dropped = 0))) due
			WHERE closed_ts = '' OR awaiting = 1 OR lines OR words ORDER BY opened_at`, box)
		all, err = collect(rows, err, func(r scanner) (RelayDue, error) {
			var d RelayDue
			var err error
			d.Relay, err = scanRelay(suffixed{r, []any{&d.Lines, &d.Words}})
			return d, err
		})
		return err
	})
	return all, err
}

// suffixed scans further columns behind those that are asked for.
type suffixed struct {
	scanner
	last []any
}

func (p suffixed) Scan(dest ...any) error { return p.scanner.Scan(append(dest, p.last...)...) }
