package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// The errors that callers tell apart.
var (
	// ErrNotFound: what was asked for is not on record.
	ErrNotFound = errors.New("not on record")
	// ErrInvalid: the caller's own argument can never be stored (a bad ts, a state that
	// is no outcome); trying again is useless.
	ErrInvalid = errors.New("invalid")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
)

// patience ends a call whose context has no earlier deadline: a store that is
// down or locked must not hold an envelope's ack for ever (L2).
const patience = 10 * time.Second

// Store is the SQL store. Its methods may be used from many goroutines.
type Store struct {
	name   string // what errors call it; never a secret
	w      *writer
	read   query
	again  func(error) bool  // a read that failed so may be tried again
	tidy   func(error) error // takes secrets out of an error
	close  []func() error
	closed atomic.Bool
	now    func() time.Time
	log    *slog.Logger
}

// Option changes how Open builds a Store.
type Option func(*Store)

// WithClock replaces the clock behind UpdatedAt, OverdueLines and CostSince.
func WithClock(now func() time.Time) Option { return func(s *Store) { s.now = now } }

// WithLogger replaces slog.Default for what Open reports (migrations).
func WithLogger(l *slog.Logger) Option { return func(s *Store) { s.log = l } }

// Open opens the store at url, creates it and brings its tables up to date where
// needed, and proves that it can be written. A plain path or a file: URL is SQLite,
// postgres:// and postgresql:// are PostgreSQL. It refuses a database of a newer program.
// No error holds the URL's password (X3).
func Open(ctx context.Context, url string, opts ...Option) (*Store, error) {
	s := &Store{now: time.Now, log: slog.Default()}
	for _, o := range opts {
		o(s)
	}
	open := s.openSQLite
	if isPostgres(url) {
		open = s.openPostgres
	}
	if err := open(ctx, url); err != nil {
		return nil, err
	}
	if err := s.Ping(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close waits for writes that have begun and closes the store; every later call
// fails with ErrClosed.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	var errs []error
	for _, c := range s.close {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}

// Ping proves that the store may be written: for /healthz (T6). It changes nothing and
// costs no sync.
func (s *Store) Ping(ctx context.Context) error {
	return s.write(ctx, "check the store", func(ctx context.Context, q query) error {
		_, err := q.exec(ctx, `UPDATE stops SET ts = ts WHERE seat = '' AND team = '' AND channel = '' AND root = ''`)
		return err
	})
}

// write runs fn in one transaction that is durable when write returns nil. fn may be
// run again after a failed try and may run after ctx has ended, so what it captures
// is not to be read when write returns an error. Writes are one after the other: fn
// must not call the store.
func (s *Store) write(ctx context.Context, what string, fn func(context.Context, query) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.wrap(what, s.w.do(ctx, fn))
}

// changed runs one statement and tells whether it changed a row.
func (s *Store) changed(ctx context.Context, what, text string, args ...any) (bool, error) {
	var n int64
	err := s.write(ctx, what, func(ctx context.Context, q query) (err error) {
		n, err = q.exec(ctx, text, args...)
		return err
	})
	return err == nil && n > 0, err
}

// readTries bounds how often a read is tried: a pool may hold several connections that the
// database dropped.
const readTries = maxReaders + 1

// view runs fn over the readers, without a transaction. fn may be run again after a failed
// try.
func (s *Store) view(ctx context.Context, what string, fn func(context.Context, query) error) error {
	if s.closed.Load() {
		return s.wrap(what, ErrClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := fn(ctx, s.read)
	for try := 1; try < readTries && err != nil && s.again(err) && ctx.Err() == nil; try++ {
		err = fn(ctx, s.read)
	}
	return s.wrap(what, err)
}

func (s *Store) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	err = fmt.Errorf("store %s: %s: %w", s.name, what, err)
	if s.tidy != nil {
		err = s.tidy(err)
	}
	return err
}

// micros is the store's clock as it is stored.
func (s *Store) micros() int64 { return s.now().UnixMicro() }

// timeOf is the reverse of micros; 0 is the zero time.
func timeOf(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}
