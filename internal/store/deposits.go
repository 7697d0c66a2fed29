package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentsmith/rules"
)

// The kinds of a Deposit: said on purpose, the last words of a turn, a notification.
const (
	DepositSay          = "say"
	DepositStop         = "stop"
	DepositNotification = "notification"
)

// Deposit is a session's words on their way to people (R11).
type Deposit struct {
	ID      string
	Session string
	Kind    string
	Text    string
	// Seq is its place among all deposits; the store gives it.
	Seq int64
	// Owner and OwnerSeat are the thread that it is spoken in, and by whom; empty until
	// it is first offered.
	Owner     rules.Thread
	OwnerSeat string
	// TS is that of its post, "" until the post is confirmed.
	TS string
	// At is when it was added.
	At time.Time
}

const depositColumns = `id, session, seq, kind, body, owner_seat, owner_team, owner_channel, owner_root, ts, added_at`

func scanDeposit(r scanner) (Deposit, error) {
	var d Deposit
	var at int64
	err := r.Scan(&d.ID, &d.Session, &d.Seq, &d.Kind, &d.Text, &d.OwnerSeat, &d.Owner.Team, &d.Owner.Channel, &d.Owner.Root, &d.TS, &at)
	d.At = timeOf(at)
	return d, err
}

// AddDeposit puts a session's words behind those that wait. It is idempotent by ID. The
// text with which a turn stops is dropped where it only repeats what was said last in that
// turn, and stays known, so that it is dropped again (R11). Fresh is false for both.
func (s *Store) AddDeposit(ctx context.Context, d Deposit) (fresh bool, err error) {
	if d.ID == "" || d.Session == "" {
		return false, s.wrap("add deposit", fmt.Errorf("%w: a deposit needs an id and a session", ErrInvalid))
	}
	err = s.write(ctx, "add deposit", func(ctx context.Context, q query) error {
		fresh = false
		dropped := false
		if d.Kind == DepositStop {
			var kind, body string
			err := q.row(ctx, `SELECT kind, body FROM deposits WHERE session = $1 AND kind IN ('say', 'stop')
				ORDER BY seq DESC LIMIT 1`, d.Session).Scan(&kind, &body)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
			dropped = kind == DepositSay && strings.TrimSpace(body) == strings.TrimSpace(clean(d.Text))
		}
		seq, err := next(ctx, q, "deposit")
		if err != nil {
			return err
		}
		n, err := q.exec(ctx, `INSERT INTO deposits (`+depositColumns+`, dropped)
			VALUES ($1, $2, $3, $4, $5, '', '', '', '', '', $6, $7) ON CONFLICT (id) DO NOTHING`,
			d.ID, d.Session, seq, d.Kind, d.Text, s.micros(), flag(dropped))
		fresh = n > 0 && !dropped
		return err
	})
	if err != nil {
		return false, err
	}
	return fresh, nil
}

// NextDeposit returns the session's oldest words that are not delivered: the next ones
// wait for it. ErrNotFound.
func (s *Store) NextDeposit(ctx context.Context, session string) (Deposit, error) {
	var d Deposit
	err := s.view(ctx, "read next deposit", func(ctx context.Context, q query) (err error) {
		d, err = scanDeposit(q.row(ctx, `SELECT `+depositColumns+` FROM deposits
			WHERE session = $1 AND ts = '' AND dropped = 0 ORDER BY seq LIMIT 1`, session))
		return err
	})
	return d, err
}

// Deposit returns a session's words. ErrNotFound.
func (s *Store) Deposit(ctx context.Context, id string) (Deposit, error) {
	var d Deposit
	err := s.view(ctx, "read deposit", func(ctx context.Context, q query) (err error) {
		d, err = getDeposit(ctx, q, id)
		return err
	})
	return d, err
}

func getDeposit(ctx context.Context, q query, id string) (Deposit, error) {
	return scanDeposit(q.row(ctx, `SELECT `+depositColumns+` FROM deposits WHERE id = $1`, id))
}

// OwnDeposit fixes the thread and the seat that speak it, at its first offer, and returns
// it as it stands: the first owner does, whoever asks later (R11). ErrNotFound.
func (s *Store) OwnDeposit(ctx context.Context, id, seat string, owner rules.Thread) (Deposit, error) {
	if seat == "" {
		return Deposit{}, s.wrap("own deposit", fmt.Errorf("%w: an owner needs a seat", ErrInvalid))
	}
	var d Deposit
	err := s.write(ctx, "own deposit", func(ctx context.Context, q query) error {
		_, err := q.exec(ctx, `UPDATE deposits SET owner_seat = $1, owner_team = $2, owner_channel = $3, owner_root = $4
			WHERE id = $5 AND owner_seat = ''`, seat, owner.Team, owner.Channel, owner.Root, id)
		if err != nil {
			return err
		}
		d, err = getDeposit(ctx, q, id)
		return err
	})
	if err != nil {
		return Deposit{}, err
	}
	return d, nil
}

// DropDeposit takes words out of the way that are for nobody; words that have an owner stay.
func (s *Store) DropDeposit(ctx context.Context, id string) error {
	_, err := s.changed(ctx, "drop deposit", `UPDATE deposits SET dropped = 1 WHERE id = $1 AND owner_seat = ''`, id)
	return err
}

// DeliverDeposit records that its post is confirmed, under ts. The first ts stands.
// ErrNotFound.
func (s *Store) DeliverDeposit(ctx context.Context, id, ts string) error {
	if _, err := tsMicros(ts); err != nil {
		return s.wrap("deliver deposit", err)
	}
	return s.write(ctx, "deliver deposit", func(ctx context.Context, q query) error {
		n, err := q.exec(ctx, `UPDATE deposits SET ts = $1 WHERE id = $2 AND ts = ''`, ts, id)
		if err != nil || n > 0 {
			return err
		}
		_, err = getDeposit(ctx, q, id)
		return err
	})
}
