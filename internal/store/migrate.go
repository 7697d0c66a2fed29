package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pressly/goose/v3"
	"golang.org/x/sys/unix"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrateSQLite brings the tables up to date and makes the file a WAL one. Starter and
// worker start at the same moment: one of them works, the other waits at a lock file.
func (s *Store) migrateSQLite(ctx context.Context, dsn, path string) (err error) {
	db, err := sql.Open("sqlite", withPragmas(dsn, "busy_timeout(5000) synchronous(FULL)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if current, target, err := versions(ctx, db); err == nil && current == target {
		return nil
	}
	unlock, err := lockFile(ctx, path+".migrate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, err := db.ExecContext(ctx, `PRAGMA journal_mode = WAL`); err != nil {
		return err
	}
	return s.migrate(ctx, db, goose.DialectSQLite3)
}

// migrate applies what is missing, and refuses a database that a newer program made:
// this one does not know what its tables mean.
func (s *Store) migrate(ctx context.Context, db *sql.DB, dialect goose.Dialect) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialect, db, files, goose.WithDisableGlobalRegistry(true), goose.WithSlog(s.log))
	if err != nil {
		return err
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return fmt.Errorf("the tables are of version %d and this program knows %d: start a newer program, or use another store", current, target)
	}
	_, err = p.Up(ctx)
	return err
}

// versions reads the applied version and the newest one of this program, without a
// write. It fails where no version was ever applied.
func versions(ctx context.Context, db *sql.DB) (current, target int64, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return 0, 0, err
	}
	for _, n := range names {
		v, err := goose.NumericComponent(n)
		if err != nil {
			return 0, 0, err
		}
		target = max(target, v)
	}
	err = db.QueryRowContext(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version`).Scan(&current)
	return current, target, err
}

// lockFile takes an exclusive lock that the kernel drops with the process.
func lockFile(ctx context.Context, path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f.Close, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock %s: another process migrates: %w", path, ctx.Err()), f.Close())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
