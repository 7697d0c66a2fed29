package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// query is what statements run on: the readers, or a write transaction. Statements
// are prepared once and kept.
type query interface {
	// exec returns the number of rows changed.
	exec(ctx context.Context, text string, args ...any) (int64, error)
	row(ctx context.Context, text string, args ...any) scanner
	rows(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

var errNoWrite = fmt.Errorf("%w: a write outside of a transaction", ErrInvalid)

func affected(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// scanner is a row to be read.
type scanner interface{ Scan(dest ...any) error }

// failedRow is a row whose statement could not be prepared.
type failedRow struct{ err error }

func (f failedRow) Scan(...any) error { return f.err }

// collect reads every row with scan.
func collect[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// texts reads rows of one text.
func texts(rows *sql.Rows, err error) ([]string, error) {
	return collect(rows, err, func(r scanner) (string, error) {
		var s string
		err := r.Scan(&s)
		return s, err
	})
}

// one turns "no rows" into nil, for what may well be missing.
func one[T any](v T, err error) (*T, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// readers is the pool that reads outside of transactions.
type readers struct {
	db    *sql.DB
	mu    sync.RWMutex
	stmts map[string]*sql.Stmt
}

func (r *readers) stmt(ctx context.Context, text string) (*sql.Stmt, error) {
	r.mu.RLock()
	st := r.stmts[text]
	r.mu.RUnlock()
	if st != nil {
		return st, nil
	}
	st, err := r.db.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.stmts[text]; other != nil {
		return other, st.Close()
	}
	r.stmts[text] = st
	return st, nil
}

func (r *readers) exec(context.Context, string, ...any) (int64, error) {
	return 0, errNoWrite
}

func (r *readers) row(ctx context.Context, text string, args ...any) scanner {
	st, err := r.stmt(ctx, text)
	if err != nil {
		return failedRow{err}
	}
	return st.QueryRowContext(ctx, cleanArgs(args)...)
}

func (r *readers) rows(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	st, err := r.stmt(ctx, text)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, cleanArgs(args)...)
}
