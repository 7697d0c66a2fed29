package store

import (
	"context"
	"fmt"
	"time"

	"agentsmith/rules"
)

// Session is a numbered tmux session that lines can be typed into: every operator, and
// each one that a person registers.
type Session struct {
	// Number is what people call it by. It is given once: also when the session is gone,
	// no other ever has it (R1).
	Number int
	// ID is its identity, a UUID that stands in its environment (X5).
	ID string
	// Name is its name in tmux.
	Name string
	// Kind is operator or person.
	Kind   string
	Socket string
	Box    string
	Seat   string
	Slug   string
	Repo   string
	Thread rules.Thread
	// Ended: it was seen to be gone.
	Ended        bool
	RegisteredAt time.Time
}

// Fact is what a relay is decided and told of by.
func (x Session) Fact() rules.SessionFact {
	return rules.SessionFact{Number: x.Number, ID: x.ID, Slug: x.Slug, Name: x.Name, Repo: x.Repo, Kind: x.Kind, Box: x.Box, Ended: x.Ended}
}

const sessionColumns = `number, id, name, kind, socket, box, seat, slug, repo, team, channel, root, ended, registered_at`

func scanSession(r scanner) (Session, error) {
	var x Session
	var ended, at int64
	err := r.Scan(&x.Number, &x.ID, &x.Name, &x.Kind, &x.Socket, &x.Box, &x.Seat, &x.Slug, &x.Repo,
		&x.Thread.Team, &x.Thread.Channel, &x.Thread.Root, &ended, &at)
	x.Ended, x.RegisteredAt = ended != 0, timeOf(at)
	return x, err
}

// RegisterSession gives a session its number for good, and the same one when it is
// registered again: it is then known to live. Its other facts stay those of the first time.
func (s *Store) RegisterSession(ctx context.Context, x Session) (number int, err error) {
	if x.ID == "" {
		return 0, s.wrap("register session", fmt.Errorf("%w: a session needs an identity", ErrInvalid))
	}
	err = s.write(ctx, "register session", func(ctx context.Context, q query) error {
		known, err := one(scanSession(q.row(ctx, `UPDATE sessions SET ended = 0 WHERE id = $1 RETURNING `+sessionColumns, x.ID)))
		if err != nil {
			return err
		}
		if known != nil {
			number = known.Number
			return nil
		}
		n, err := next(ctx, q, "session")
		if err != nil {
			return err
		}
		number = int(n)
		_, err = q.exec(ctx, `INSERT INTO sessions (`+sessionColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, $13)`,
			number, x.ID, x.Name, x.Kind, x.Socket, x.Box, x.Seat, x.Slug, x.Repo,
			x.Thread.Team, x.Thread.Channel, x.Thread.Root, s.micros())
		return err
	})
	if err != nil {
		return 0, err
	}
	return number, nil
}

// next gives the next number of a counter. It is never given again, and whoever gets the
// greater one commits later.
func next(ctx context.Context, q query, counter string) (int64, error) {
	var n int64
	err := q.row(ctx, `INSERT INTO counters (name, value) VALUES ($1, 1)
		ON CONFLICT (name) DO UPDATE SET value = counters.value + 1 RETURNING value`, counter).Scan(&n)
	return n, err
}

// Session returns the session of a number, also one that has ended. ErrNotFound.
func (s *Store) Session(ctx context.Context, number int) (Session, error) {
	return s.session(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE number = $1`, number)
}

// SessionByID returns the session of an identity, also one that has ended. ErrNotFound.
func (s *Store) SessionByID(ctx context.Context, id string) (Session, error) {
	return s.session(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE id = $1`, id)
}

func (s *Store) session(ctx context.Context, text string, arg any) (Session, error) {
	var x Session
	err := s.view(ctx, "read session", func(ctx context.Context, q query) (err error) {
		x, err = scanSession(q.row(ctx, text, arg))
		return err
	})
	return x, err
}

// Sessions returns the sessions that have not ended, by number.
func (s *Store) Sessions(ctx context.Context) ([]Session, error) {
	var all []Session
	err := s.view(ctx, "read sessions", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE ended = 0 ORDER BY number`)
		all, err = collect(rows, err, scanSession)
		return err
	})
	return all, err
}

// EndSession notes that a session is gone. One that is not on record is no error.
func (s *Store) EndSession(ctx context.Context, id string) error {
	_, err := s.changed(ctx, "end session", `UPDATE sessions SET ended = 1 WHERE id = $1 AND ended = 0`, id)
	return err
}
