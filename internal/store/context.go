package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"agentsmith/rules"
)

// LineAuthor is a line with who wrote it, as one seat sees it.
type LineAuthor struct {
	Line   rules.Line
	Author rules.Author
}

// UnansweredSince returns the thread's noted and failed lines newer than afterTS ("" for
// all), deleted ones left out, in ts order: context for the next turn (D3). Of more than
// limit, the newest.
func (s *Store) UnansweredSince(ctx context.Context, seat string, t rules.Thread, afterTS string, limit int) ([]LineAuthor, error) {
	after, err := optionalMicros(afterTS)
	if err != nil {
		return nil, s.wrap("read noted lines", err)
	}
	return s.lineAuthors(ctx, "read noted lines", `SELECT `+rowColumns+`, `+messageColumns+`
		FROM ledger l JOIN messages m ON m.team = l.team AND m.channel = l.channel AND m.ts = l.ts
		WHERE l.team = $1 AND l.channel = $2 AND l.root = $3 AND l.seat = $4 AND l.state IN ('noted', 'failed') AND l.ts_us > $5
			AND m.deleted_ts = ''
		ORDER BY l.ts_us DESC LIMIT $6`, t.Team, t.Channel, t.Root, seat, after, limit)
}

// EditedSince returns lines that the thread's earlier turns knew and whose text was
// edited since the last of them began, in ts order: context for turnID (L4). Of more
// than limit, the newest.
func (s *Store) EditedSince(ctx context.Context, seat string, t rules.Thread, turnID string, limit int) ([]LineAuthor, error) {
	var since int64
	err := s.view(ctx, "read edited lines", func(ctx context.Context, q query) error {
		return q.row(ctx, `SELECT COALESCE(MAX(u.started_at), 0) FROM turns u
			WHERE u.seat = $1 AND u.team = $2 AND u.channel = $3 AND u.root = $4 AND u.id <> $5`,
			seat, t.Team, t.Channel, t.Root, turnID).Scan(&since)
	})
	if err != nil || since == 0 {
		return nil, err
	}
	return s.lineAuthors(ctx, "read edited lines", `SELECT `+rowColumns+`, `+messageColumns+`
		FROM ledger l JOIN messages m ON m.team = l.team AND m.channel = l.channel AND m.ts = l.ts
		WHERE l.team = $1 AND l.channel = $2 AND l.root = $3 AND l.seat = $4 AND l.turn <> $5 AND l.state <> 'owed'
			AND l.author <> 'self' AND m.changed_at >= $6 AND l.created_at <= $6 AND m.deleted_ts = ''
		ORDER BY l.ts_us DESC LIMIT $7`, t.Team, t.Channel, t.Root, seat, turnID, since, limit)
}

// lineAuthors runs a statement that gives the newest first and returns the oldest first.
func (s *Store) lineAuthors(ctx context.Context, what, text string, args ...any) ([]LineAuthor, error) {
	var all []LineAuthor
	err := s.view(ctx, what, func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, text, args...)
		all, err = collect(rows, err, func(r scanner) (LineAuthor, error) {
			row, m, err := scanBoth(r)
			return LineAuthor{Line: m.line, Author: row.Author}, err
		})
		return err
	})
	slices.Reverse(all)
	return all, err
}

// LastTurnLine is the ts of the newest line that a turn of this thread took and that its
// agent answered, "" for none. What only a turn without an answer took, the agent may
// never have seen (B10).
func (s *Store) LastTurnLine(ctx context.Context, seat string, t rules.Thread) (string, error) {
	var ts string
	err := s.view(ctx, "read last turn's line", func(ctx context.Context, q query) error {
		err := q.row(ctx, `SELECT l.ts FROM ledger l
			WHERE l.team = $1 AND l.channel = $2 AND l.root = $3 AND l.seat = $4 AND l.turn <> ''
				AND EXISTS (SELECT 1 FROM turns u WHERE u.id = l.turn AND u.kept_at > 0)
			ORDER BY l.ts_us DESC LIMIT 1`, t.Team, t.Channel, t.Root, seat).Scan(&ts)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return ts, err
}

// BusyThreads returns the threads of a channel in which a turn holds lines: what a stop
// at a DM's top level stops (D4).
func (s *Store) BusyThreads(ctx context.Context, seat, team, channel string) ([]rules.Thread, error) {
	var all []rules.Thread
	err := s.view(ctx, "read busy threads", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT DISTINCT l.root FROM ledger l
			WHERE l.seat = $1 AND l.team = $2 AND l.channel = $3 AND l.state IN ('owed', 'taken') AND l.state = 'taken'
			ORDER BY l.root`, seat, team, channel)
		roots, err := texts(rows, err)
		all = nil
		for _, root := range roots {
			all = append(all, rules.Thread{Team: team, Channel: channel, Root: root})
		}
		return err
	})
	return all, err
}
