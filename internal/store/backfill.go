package store

import (
	"context"

	"agentsmith/rules"
)

// LastSeen returns, by channel, the ts of the newest line that seat has a row for: from
// there the history is read after a gap (L6).
func (s *Store) LastSeen(ctx context.Context, seat string) (map[string]string, error) {
	seen := map[string]string{}
	err := s.view(ctx, "read last seen", func(ctx context.Context, q query) error {
		type mark struct {
			channel string
			us      int64
		}
		rows, err := q.rows(ctx, `SELECT channel, MAX(ts_us) FROM ledger WHERE seat = $1 GROUP BY channel`, seat)
		marks, err := collect(rows, err, func(r scanner) (mark, error) {
			var m mark
			err := r.Scan(&m.channel, &m.us)
			return m, err
		})
		for _, m := range marks {
			seen[m.channel] = microsTS(m.us)
		}
		return err
	})
	return seen, err
}

// ThreadMark is a thread with the ts of its newest line on record.
type ThreadMark struct {
	rules.Thread
	LastTS string
}

// ThreadsSince returns the threads that seat takes part in (a line engaged it there, or
// it posted) and that have a line at or after sinceTS ("" for all), newest first: what is
// read again after a gap (L6).
func (s *Store) ThreadsSince(ctx context.Context, seat, sinceTS string) ([]ThreadMark, error) {
	since, err := optionalMicros(sinceTS)
	if err != nil {
		return nil, s.wrap("read threads", err)
	}
	var all []ThreadMark
	err = s.view(ctx, "read threads", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT t.team, t.channel, t.root, m.ts
			FROM (SELECT n.team, n.channel, n.root, MAX(n.ts_us) AS newest FROM messages n
				WHERE n.present = 1 AND n.ts_us >= $1 GROUP BY n.team, n.channel, n.root) t
			JOIN messages m ON m.team = t.team AND m.channel = t.channel AND m.root = t.root AND m.ts_us = t.newest
			WHERE (EXISTS (SELECT 1 FROM ledger l WHERE l.team = t.team AND l.channel = t.channel AND l.root = t.root
					AND l.seat = $2 AND l.state <> 'noted')
				OR EXISTS (SELECT 1 FROM posts p WHERE p.team = t.team AND p.channel = t.channel AND p.root = t.root
					AND p.seat = $2 AND p.ts <> ''))
			ORDER BY t.newest DESC`, since, seat)
		all, err = collect(rows, err, func(r scanner) (ThreadMark, error) {
			var m ThreadMark
			err := r.Scan(&m.Team, &m.Channel, &m.Root, &m.LastTS)
			return m, err
		})
		return err
	})
	return all, err
}
