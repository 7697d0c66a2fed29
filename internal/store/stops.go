package store

import (
	"context"
	"database/sql"
	"errors"

	"agentsmith/rules"
)

// RecordStop keeps the ts of a stop for a seat's thread, or with Root "" for its whole
// channel (D4). Newest is false when a newer stop is on record; the very same stop is
// newest again, so that one whose caller crashed is acted on when it is redelivered.
func (s *Store) RecordStop(ctx context.Context, seat string, t rules.Thread, ts string) (newest bool, err error) {
	us, err := tsMicros(ts)
	if err != nil {
		return false, s.wrap("record stop", err)
	}
	err = s.write(ctx, "record stop", func(ctx context.Context, q query) error {
		n, err := q.exec(ctx, `INSERT INTO stops (seat, team, channel, root, ts, ts_us) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (seat, team, channel, root) DO UPDATE SET ts = excluded.ts, ts_us = excluded.ts_us
			WHERE stops.ts_us <= excluded.ts_us`, seat, t.Team, t.Channel, t.Root, ts, us)
		newest = n > 0
		return err
	})
	if err != nil {
		return false, err
	}
	return newest, nil
}

// NewestStop is the ts of the newest stop that covers the thread, "" for none (D4).
func (s *Store) NewestStop(ctx context.Context, seat string, t rules.Thread) (string, error) {
	var ts string
	err := s.view(ctx, "read stop", func(ctx context.Context, q query) (err error) {
		ts, err = newestStop(ctx, q, seat, t)
		return err
	})
	return ts, err
}

func newestStop(ctx context.Context, q query, seat string, t rules.Thread) (string, error) {
	var ts string
	err := q.row(ctx, `SELECT s.ts FROM stops s
		WHERE s.seat = $1 AND s.team = $2 AND s.channel = $3 AND s.root IN ($4, '')
		ORDER BY s.ts_us DESC LIMIT 1`, seat, t.Team, t.Channel, t.Root).Scan(&ts)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return ts, err
}

// covered tells whether a stop at stopTS ends what a line at ts asked for: only a line
// that is older than the stop.
func covered(ts, stopTS string) (bool, error) {
	if stopTS == "" {
		return false, nil
	}
	a, err := tsMicros(ts)
	if err != nil {
		return false, err
	}
	b, err := tsMicros(stopTS)
	return a < b, err
}
