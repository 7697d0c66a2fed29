package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Attempt is an activity that runs on a box, so that a worker that is started again can
// fail those of a dead one at once instead of waiting for their timeout.
type Attempt struct {
	// Token is the activity's task token.
	Token    []byte
	Workflow string
	Run      string
	Activity string
	Type     string
	Box      string
	// PID, Start (ticks since boot) and BootID name the worker process that runs it.
	PID     int
	Start   uint64
	BootID  string
	BegunAt time.Time
}

// BeginAttempt records an activity that begins. The same token twice is one attempt.
func (s *Store) BeginAttempt(ctx context.Context, a Attempt) error {
	return s.write(ctx, "begin attempt", func(ctx context.Context, q query) error {
		_, err := q.exec(ctx, `INSERT INTO attempts (id, token, workflow, run, activity, type, box, pid, start_ticks, boot_id, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (id) DO NOTHING`,
			tokenID(a.Token), append([]byte{}, a.Token...), a.Workflow, a.Run, a.Activity, a.Type, a.Box, a.PID, int64(a.Start), a.BootID, s.micros())
		return err
	})
}

// EndAttempt forgets an attempt; one that is not there is no error.
func (s *Store) EndAttempt(ctx context.Context, token []byte) error {
	return s.write(ctx, "end attempt", func(ctx context.Context, q query) error {
		_, err := q.exec(ctx, `DELETE FROM attempts WHERE id = $1`, tokenID(token))
		return err
	})
}

// Attempts returns what was begun on a box and not ended, oldest first.
func (s *Store) Attempts(ctx context.Context, box string) ([]Attempt, error) {
	var all []Attempt
	err := s.view(ctx, "read attempts", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT token, workflow, run, activity, type, box, pid, start_ticks, boot_id, created_at
			FROM attempts WHERE box = $1 ORDER BY created_at, id`, box)
		all, err = collect(rows, err, func(r scanner) (Attempt, error) {
			var a Attempt
			var start, begun int64
			err := r.Scan(&a.Token, &a.Workflow, &a.Run, &a.Activity, &a.Type, &a.Box, &a.PID, &start, &a.BootID, &begun)
			a.Start, a.BegunAt = uint64(start), timeOf(begun)
			return a, err
		})
		return err
	})
	return all, err
}

func tokenID(token []byte) string {
	sum := sha256.Sum256(token)
	return hex.EncodeToString(sum[:])
}
