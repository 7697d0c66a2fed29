package store

import (
	"context"
	"time"

	"agentsmith/rules"
)

// Answer is what the agent said in a turn.
type Answer struct {
	Text     string
	Model    string
	CostUSD  float64
	Duration time.Duration
	// Files are the paths of the files it wants posted.
	Files []string
}

// KeepAnswer keeps a turn's answer until it is posted, and its cost. The first one
// stands: parts of it may have been posted. ErrNotFound without TakeLines.
func (s *Store) KeepAnswer(ctx context.Context, turnID string, a Answer) error {
	files, err := jsonText(a.Files)
	if err != nil {
		return s.wrap("keep answer", err)
	}
	return s.write(ctx, "keep answer", func(ctx context.Context, q query) error {
		n, err := q.exec(ctx, `UPDATE turns SET answer = $1, answer_files = $2, model = $3, cost_usd = $4,
				duration_us = $5, kept_at = $6
			WHERE id = $7 AND kept_at = 0`,
			a.Text, files, a.Model, a.CostUSD, a.Duration.Microseconds(), s.micros(), turnID)
		if err != nil || n > 0 {
			return err
		}
		var id string
		return q.row(ctx, `SELECT id FROM turns WHERE id = $1`, turnID).Scan(&id)
	})
}

// AnswerOf returns the answer that a turn kept. ErrNotFound.
func (s *Store) AnswerOf(ctx context.Context, turnID string) (Answer, error) {
	var a Answer
	err := s.view(ctx, "read answer", func(ctx context.Context, q query) error {
		var files string
		var us int64
		err := q.row(ctx, `SELECT answer, answer_files, model, cost_usd, duration_us FROM turns
			WHERE id = $1 AND kept_at > 0`, turnID).Scan(&a.Text, &files, &a.Model, &a.CostUSD, &us)
		if err != nil {
			return err
		}
		a.Duration = time.Duration(us) * time.Microsecond
		a.Files, err = fromJSON[string](files)
		return err
	})
	if err != nil {
		return Answer{}, err
	}
	return a, nil
}

// CostSince adds up what the turns cost, in US dollars, whose answers were kept at t or
// later, over all seats (X6). A turn that ended without an answer is not in it.
func (s *Store) CostSince(ctx context.Context, t time.Time) (float64, error) {
	var sum float64
	err := s.view(ctx, "read cost", func(ctx context.Context, q query) error {
		return q.row(ctx, `SELECT COALESCE(SUM(cost_usd), 0.0) FROM turns WHERE kept_at > 0 AND kept_at >= $1`,
			t.UnixMicro()).Scan(&sum)
	})
	return sum, err
}

// TurnInfo is a turn as it stands.
type TurnInfo struct {
	Turn
	StartedAt time.Time
	// EndedAt is zero while it runs; State and Reason are then empty.
	EndedAt time.Time
	State   rules.State
	Reason  rules.Reason
}

// TurnOf returns a turn. ErrNotFound.
func (s *Store) TurnOf(ctx context.Context, turnID string) (TurnInfo, error) {
	var t TurnInfo
	err := s.view(ctx, "read turn", func(ctx context.Context, q query) (err error) {
		t, err = getTurn(ctx, q, turnID)
		return err
	})
	return t, err
}

func getTurn(ctx context.Context, q query, turnID string) (TurnInfo, error) {
	var t TurnInfo
	var started, ended int64
	var state, reason string
	err := q.row(ctx, `SELECT id, seat, team, channel, root, session, box, started_at, ended_at, state, reason
		FROM turns WHERE id = $1`, turnID).Scan(&t.ID, &t.Seat, &t.Team, &t.Channel, &t.Root, &t.Session, &t.Box,
		&started, &ended, &state, &reason)
	t.StartedAt, t.EndedAt = timeOf(started), timeOf(ended)
	t.State, t.Reason = rules.State(state), rules.Reason(reason)
	return t, err
}
