package store

import (
	"context"

	"agentsmith/rules"
)

// Facts is what is on record when a line is decided about; it is read inside the
// transaction that writes the decision.
type Facts struct {
	// Line is the line as it stands, with its newest text: decide by it, since the copy
	// at hand may be an older one.
	Line rules.Line
	// Prior is this seat's row for this line, nil if it never saw it.
	Prior *Row
	// People are the users who wrote in the thread, of whatever team, this line's among them.
	People []string
	// Seats are the seats that take part in the thread: a line there engaged them, or
	// they posted in it.
	Seats []string
	// RootSeen: it is known who began the thread. Without it, People may lack that person.
	RootSeen bool
	// Siblings: another seat wrote in the thread, wherever that runs.
	Siblings bool
	// Drives: this seat drives the thread (A8).
	Drives bool
	// StopTS is the ts of the newest stop that covers the thread for this seat, "" for none (D4).
	StopTS string
}

// Verdict is what is decided about a line: noted, owed, or declined with a reason.
type Verdict struct {
	State     rules.State
	Reason    rules.Reason
	Mentioned bool
}

func (s *Store) facts(ctx context.Context, q query, seat string, line rules.Line, prior *Row) (Facts, error) {
	f := Facts{Line: line, Prior: prior}
	t := line.Thread()
	var err error
	rows, err := q.rows(ctx, `SELECT DISTINCT m.user_id FROM messages m
		WHERE m.team = $1 AND m.channel = $2 AND m.root = $3 AND m.human = 1 AND m.user_id <> ''
		ORDER BY m.user_id`, t.Team, t.Channel, t.Root)
	if f.People, err = texts(rows, err); err != nil {
		return f, err
	}
	rows, err = q.rows(ctx, `SELECT l.seat FROM ledger l
			WHERE l.team = $1 AND l.channel = $2 AND l.root = $3 AND l.state <> 'noted'
		UNION SELECT p.seat FROM posts p
			WHERE p.team = $1 AND p.channel = $2 AND p.root = $3 AND p.ts <> ''
		UNION SELECT p.seat FROM posts p -- a post that opened the thread (D1)
			WHERE p.team = $1 AND p.channel = $2 AND p.root = '' AND p.ts = $3
		ORDER BY 1`, t.Team, t.Channel, t.Root)
	if f.Seats, err = texts(rows, err); err != nil {
		return f, err
	}
	if f.RootSeen, err = rootSeen(ctx, q, line); err != nil {
		return f, err
	}
	if f.Siblings, err = someRow(ctx, q, `SELECT COUNT(*) FROM ledger l
		WHERE l.team = $1 AND l.channel = $2 AND l.root = $3 AND l.seat = $4 AND l.author = $5`, t.Team, t.Channel, t.Root, seat, string(rules.Sibling)); err != nil {
		return f, err
	}
	if f.Drives, err = someRow(ctx, q, `SELECT COUNT(*) FROM drives d
		WHERE d.seat = $1 AND d.team = $2 AND d.channel = $3 AND d.root = $4`, seat, t.Team, t.Channel, t.Root); err != nil {
		return f, err
	}
	f.StopTS, err = newestStop(ctx, q, seat, t)
	return f, err
}

// someRow tells whether a count is above none.
func someRow(ctx context.Context, q query, sql string, args ...any) (bool, error) {
	var n int
	err := q.row(ctx, sql, args...).Scan(&n)
	return n > 0, err
}

// rootSeen tells whether it is known who began the line's thread: its first message is on
// record, or it is a post of ours, whose own event may come later than an answer to it.
func rootSeen(ctx context.Context, q query, line rules.Line) (bool, error) {
	if line.Root == line.TS {
		return true, nil
	}
	root, err := getMessage(ctx, q, rules.LineKey{Team: line.Team, Channel: line.Channel, TS: line.Root})
	if err != nil || root != nil && root.present {
		return err == nil, err
	}
	return someRow(ctx, q, `SELECT COUNT(*) FROM posts p WHERE p.team = $1 AND p.channel = $2 AND p.root = '' AND p.ts = $3`,
		line.Team, line.Channel, line.Root)
}
