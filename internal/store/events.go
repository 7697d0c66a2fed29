package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"agentsmith/rules"
)

// Reaction is a reaction put on a line or taken off it.
type Reaction struct {
	rules.LineKey
	User    string
	Name    string
	EventTS string
	Removed bool
}

// RecordReaction keeps where one person's reaction on a line stands. Fresh is false
// when something newer is on record; the very same event is fresh again, so that one
// whose caller crashed is acted on when it is redelivered.
func (s *Store) RecordReaction(ctx context.Context, r Reaction) (fresh bool, err error) {
	_, err = tsMicros(r.TS)
	if err != nil {
		return false, s.wrap("record reaction", err)
	}
	us, err := tsMicros(r.EventTS)
	if err != nil {
		return false, s.wrap("record reaction", err)
	}
	err = s.write(ctx, "record reaction", func(ctx context.Context, q query) error {
		n, err := q.exec(ctx, `INSERT INTO reactions (team, channel, ts, user_id, name, event_us, removed)
			VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (team, channel, ts, user_id, name) DO UPDATE SET
				event_us = excluded.event_us, removed = excluded.removed
			WHERE reactions.event_us <= excluded.event_us`,
			r.Team, r.Channel, r.TS, r.User, r.Name, us, flag(r.Removed))
		fresh = n > 0
		return err
	})
	if err != nil {
		return false, err
	}
	return fresh, nil
}

// RecordRaw keeps an envelope that could not be understood, and why, so that nothing
// that was acked is lost. A redelivery of it is kept once.
func (s *Store) RecordRaw(ctx context.Context, seat, envelopeID, why string, raw []byte) error {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %s%s", len(seat), len(envelopeID), seat, envelopeID)
	h.Write(raw)
	id := hex.EncodeToString(h.Sum(nil))
	return s.write(ctx, "record raw event", func(ctx context.Context, q query) error {
		_, err := q.exec(ctx, `INSERT INTO raw_events (id, seat, envelope_id, why, raw, created_at)
			VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING`, id, seat, envelopeID, why, raw, s.micros())
		return err
	})
}

// RawEvent is an envelope that RecordRaw kept.
type RawEvent struct {
	Seat, EnvelopeID, Why string
	Raw                   []byte
	At                    time.Time
}

// RawEvents returns the newest of them, for whoever looks into what was not understood.
func (s *Store) RawEvents(ctx context.Context, limit int) ([]RawEvent, error) {
	var all []RawEvent
	err := s.view(ctx, "read raw events", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT seat, envelope_id, why, raw, created_at FROM raw_events
			ORDER BY created_at DESC, id LIMIT $1`, limit)
		all, err = collect(rows, err, func(r scanner) (RawEvent, error) {
			var e RawEvent
			var at int64
			err := r.Scan(&e.Seat, &e.EnvelopeID, &e.Why, &e.Raw, &at)
			e.At = timeOf(at)
			return e, err
		})
		return err
	})
	return all, err
}
