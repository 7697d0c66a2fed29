package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"agentsmith/rules"
)

// PhaseMessage returns the ts of the thread's phase table and what it shows, both "" for a
// thread that has none (P3).
func (s *Store) PhaseMessage(ctx context.Context, seat string, t rules.Thread) (ts, shown string, err error) {
	err = s.view(ctx, "read phase message", func(ctx context.Context, q query) error {
		err := q.row(ctx, `SELECT ts, shown FROM phases WHERE `+claimThread, seat, t.Team, t.Channel, t.Root).Scan(&ts, &shown)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return ts, shown, err
}

// SetPhaseMessage records the thread's phase table, after it was posted or edited.
func (s *Store) SetPhaseMessage(ctx context.Context, seat string, t rules.Thread, ts, shown string) error {
	return s.write(ctx, "record phase message", func(ctx context.Context, q query) error {
		_, err := q.exec(ctx, `INSERT INTO phases (seat, team, channel, root, ts, shown) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (seat, team, channel, root) DO UPDATE SET ts = excluded.ts, shown = excluded.shown`,
			seat, t.Team, t.Channel, t.Root, ts, shown)
		return err
	})
}

// WorkThread is a thread that was found to ask for work.
type WorkThread struct {
	Thread  rules.Thread
	Slug    string
	Repo    string
	AskedAt time.Time
	// Line is the person's line that asked: the newest that the seat had then. Its TS is
	// "" where none is on record.
	Line rules.Line
}

// AskedForWork notes that the thread's line was found to ask for work, so that a sweep
// finds it when no operator came of it. Asked again before it is done, the line that asked
// first stands, with the slug and repo that are named now: "in web" is no ask by itself.
func (s *Store) AskedForWork(ctx context.Context, seat string, t rules.Thread, slug, repo string) error {
	if seat == "" || t.Channel == "" || t.Root == "" {
		return s.wrap("note work", fmt.Errorf("%w: it needs a seat and a thread", ErrInvalid))
	}
	return s.write(ctx, "note work", func(ctx context.Context, q query) error {
		_, err := q.exec(ctx, `INSERT INTO work (seat, team, channel, root, slug, repo, asked_at, done_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, 0)
			ON CONFLICT (seat, team, channel, root) DO UPDATE SET
				slug = CASE WHEN excluded.slug = '' THEN work.slug ELSE excluded.slug END,
				repo = CASE WHEN excluded.repo = '' THEN work.repo ELSE excluded.repo END,
				asked_at = CASE WHEN work.done_at = 0 THEN work.asked_at ELSE excluded.asked_at END, done_at = 0`,
			seat, t.Team, t.Channel, t.Root, slug, repo, s.micros())
		return err
	})
}

// WorkThreads returns the threads that asked seat for work that is not done (EndClaim),
// longest waiting first, whether or not an operator is at it: that is asked of tmux,
// never of the store (O7).
func (s *Store) WorkThreads(ctx context.Context, seat string) ([]WorkThread, error) {
	return s.workThreads(ctx, "", seat)
}

// WorkOf returns what a thread asked seat for, where that is not done. ErrNotFound.
func (s *Store) WorkOf(ctx context.Context, seat string, t rules.Thread) (WorkThread, error) {
	all, err := s.workThreads(ctx, `AND w.team = $2 AND w.channel = $3 AND w.root = $4`, seat, t.Team, t.Channel, t.Root)
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return WorkThread{}, err
	}
	return all[0], nil
}

func (s *Store) workThreads(ctx context.Context, which string, args ...any) ([]WorkThread, error) {
	var all []WorkThread
	err := s.view(ctx, "read threads with work", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT w.team, w.channel, w.root, w.slug, w.repo, w.asked_at FROM work w
			WHERE w.seat = $1 AND w.done_at = 0 `+which+` ORDER BY w.asked_at`, args...)
		all, err = collect(rows, err, func(r scanner) (WorkThread, error) {
			var w WorkThread
			var at int64
			err := r.Scan(&w.Thread.Team, &w.Thread.Channel, &w.Thread.Root, &w.Slug, &w.Repo, &at)
			w.AskedAt = timeOf(at)
			return w, err
		})
		if err != nil {
			return err
		}
		for i, w := range all {
			m, err := one(scanMessage(q.row(ctx, `SELECT `+messageColumns+`
				FROM ledger l JOIN messages m ON m.team = l.team AND m.channel = l.channel AND m.ts = l.ts
				WHERE l.team = $1 AND l.channel = $2 AND l.root = $3 AND l.seat = $4 AND l.author = 'person' AND l.created_at <= $5
				ORDER BY l.ts_us DESC LIMIT 1`,
				w.Thread.Team, w.Thread.Channel, w.Thread.Root, args[0], w.AskedAt.UnixMicro())))
			if err != nil {
				return err
			}
			if m != nil {
				all[i].Line = m.line
			}
		}
		return nil
	})
	return all, err
}
