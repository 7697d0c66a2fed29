package store

import (
	"context"
	"fmt"

	"agentsmith/rules"
)

// LineState is how far a line came on its way into a session (R10).
type LineState string

// A line is queued, then being typed; the others are ends. A line that is being typed may
// be queued again only where it is known that nothing of it was typed.
const (
	LineQueued     LineState = "queued"
	LineTyping     LineState = "typing"
	LineTyped      LineState = "typed"
	LineUnsure     LineState = "unsure"
	LineHandedBack LineState = "handed_back"
)

func (l LineState) waits() bool { return l == LineQueued || l == LineTyping }

func (l LineState) known() bool {
	return l.waits() || l == LineTyped || l == LineUnsure || l == LineHandedBack
}

// SessionLine is a person's line for a session (O11).
type SessionLine struct {
	Session string
	Key     rules.LineKey
	Seat    string
	Text    string
	// From is the user who wrote it.
	From  string
	State LineState
	// Relay is the relay that carries it, "" for a line that a brain passes on.
	Relay string
	// Seq is its place among all lines of sessions; the store gives it.
	Seq int64
}

// QueueLines puts lines behind those that wait for a session, in the order given, and
// returns how many are new to it: a line that it ever had is not queued again, whatever
// became of it.
func (s *Store) QueueLines(ctx context.Context, session string, lines []SessionLine) (fresh int, err error) {
	if session == "" {
		return 0, s.wrap("queue lines", fmt.Errorf("%w: lines need a session", ErrInvalid))
	}
	err = s.write(ctx, "queue lines", func(ctx context.Context, q query) error {
		fresh = 0
		for _, l := range lines {
			l.Session = session
			n, err := s.queueLine(ctx, q, l)
			if err != nil {
				return err
			}
			fresh += int(n)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return fresh, nil
}

func (s *Store) queueLine(ctx context.Context, q query, l SessionLine) (int64, error) {
	seq, err := next(ctx, q, "line")
	if err != nil {
		return 0, err
	}
	now := s.micros()
	return q.exec(ctx, `INSERT INTO session_lines (session, team, channel, ts, seq, seat, user_id, body, state, queued_at, moved_at, relay)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'queued', $9, $9, $10) ON CONFLICT (session, team, channel, ts) DO NOTHING`,
		l.Session, l.Key.Team, l.Key.Channel, l.Key.TS, seq, l.Seat, l.From, l.Text, now, l.Relay)
}

const sessionLineColumns = `x.session, x.team, x.channel, x.ts, x.seq, x.seat, x.user_id, x.body, x.state, x.relay`

func scanSessionLine(r scanner) (SessionLine, error) {
	var l SessionLine
	var state string
	err := r.Scan(&l.Session, &l.Key.Team, &l.Key.Channel, &l.Key.TS, &l.Seq, &l.Seat, &l.From, &l.Text, &state, &l.Relay)
	l.State = LineState(state)
	return l, err
}

// WaitingLines returns the lines that brains passed on to a session and that are queued or
// being typed, first come first, at most limit. Those of relays are RelayBatch's.
func (s *Store) WaitingLines(ctx context.Context, session string, limit int) ([]SessionLine, error) {
	var all []SessionLine
	err := s.view(ctx, "read waiting lines", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT `+sessionLineColumns+` FROM session_lines x
			WHERE session = $1 AND relay = '' AND state IN ('queued', 'typing') ORDER BY seq LIMIT $2`, session, limit)
		all, err = collect(rows, err, scanSessionLine)
		return err
	})
	return all, err
}

// MoveLine moves a line by compare-and-set: false where it is not in from, and nothing was
// changed. Only a line that waits can move.
func (s *Store) MoveLine(ctx context.Context, session string, key rules.LineKey, from, to LineState) (bool, error) {
	if !from.waits() || !to.known() || from == to {
		return false, s.wrap("move line", fmt.Errorf("%w: no line moves from %q to %q", ErrInvalid, short(string(from)), short(string(to))))
	}
	return s.changed(ctx, "move line", `UPDATE session_lines SET state = $1, moved_at = $2
		WHERE session = $3 AND team = $4 AND channel = $5 AND ts = $6 AND state = $7`,
		string(to), s.micros(), session, key.Team, key.Channel, key.TS, string(from))
}
