package store

import (
	"context"

	"agentsmith/rules"
)

// Drive notes that a seat drives a thread since an ask (A8). The first ask stands.
func (s *Store) Drive(ctx context.Context, seat string, t rules.Thread, askTS string) error {
	return s.write(ctx, "note a driver", func(ctx context.Context, q query) error {
		_, err := q.exec(ctx, `INSERT INTO drives (seat, team, channel, root, ask_ts) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (seat, team, channel, root) DO NOTHING`, seat, t.Team, t.Channel, t.Root, askTS)
		return err
	})
}

// HandOffsTaken counts the lines of other seats that this seat took up in a thread, over
// all its restarts (D2).
func (s *Store) HandOffsTaken(ctx context.Context, seat string, t rules.Thread) (n int, err error) {
	err = s.view(ctx, "count hand-offs", func(ctx context.Context, q query) error {
		return q.row(ctx, `SELECT COUNT(*) FROM ledger l
			WHERE l.seat = $1 AND l.team = $2 AND l.channel = $3 AND l.root = $4 AND l.author = $5 AND l.state NOT IN ('noted', 'declined')`,
			seat, t.Team, t.Channel, t.Root, string(rules.Sibling)).Scan(&n)
	})
	return n, err
}
