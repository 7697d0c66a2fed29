package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What the connections are set to. FULL syncs the log at each commit: accepted means
// durable (L1). WAL, with which the readers and the writers of two processes do not
// wait for each other's reads, is a property of the file: migrateSQLite sets it.
const (
	commonPragmas = "synchronous(FULL) temp_store(MEMORY) cache_size(-16000)"
	writerPragmas = "busy_timeout(0) journal_size_limit(67108864)" // begin waits by itself
	readerPragmas = "busy_timeout(5000) query_only(1)"
)

const maxReaders = 4

// openSQLite opens the file that rawURL names and starts s's writer and readers.
func (s *Store) openSQLite(ctx context.Context, rawURL string) error {
	dsn, path, err := sqliteDSN(rawURL)
	if err != nil {
		return err
	}
	s.name = path
	// fdatasync is as durable as fsync and spares the journal of the file system; where
	// the platform has none, fsync stays.
	_, _ = sqlite.Fdatasync(true)
	if err := createPrivate(path); err != nil {
		return s.wrap("create", err)
	}
	if err := s.migrateSQLite(ctx, dsn, path); err != nil {
		return s.wrap("migrate", err)
	}
	wdb, err := sql.Open("sqlite", withPragmas(dsn, writerPragmas, commonPragmas))
	if err != nil {
		return s.wrap("open", err)
	}
	wdb.SetMaxOpenConns(1)
	rdb, err := sql.Open("sqlite", withPragmas(dsn, readerPragmas, commonPragmas))
	if err != nil {
		return s.wrap("open", errors.Join(err, wdb.Close()))
	}
	rdb.SetMaxOpenConns(maxReaders)
	rdb.SetMaxIdleConns(maxReaders)
	s.read, s.again = &readers{db: rdb, stmts: map[string]*sql.Stmt{}}, func(error) bool { return false }
	s.w = newWriter(func(ctx context.Context) (session, error) {
		// The connection outlives the call that happened to open it.
		conn, err := wdb.Conn(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		return &sqliteSession{conn: conn, stmts: map[string]*sql.Stmt{}}, nil
	}, dialect{busy: sqliteBusy, again: func(error) bool { return false }})
	// The writer last: the connection that closes last folds the log into the file.
	s.close = []func() error{rdb.Close, s.w.close, wdb.Close}
	return nil
}

// sqliteDSN turns a path or file: URL into the driver's name and the file's path.
func sqliteDSN(raw string) (dsn, path string, err error) {
	if rest, ok := strings.CutPrefix(raw, "file:"); ok {
		p, _, _ := strings.Cut(rest, "?")
		p, err := url.PathUnescape(strings.TrimPrefix(p, "//"))
		if err != nil || p == "" {
			return "", "", fmt.Errorf("%w: store url: file: needs a path", ErrInvalid)
		}
		return raw, p, nil
	}
	if scheme, _, ok := strings.Cut(raw, "://"); ok {
		// Not the url itself: it may hold a password.
		return "", "", fmt.Errorf("%w: store url: %q is not supported, use a file path or postgres://", ErrInvalid, short(scheme))
	}
	if raw == "" || raw == ":memory:" {
		return "", "", fmt.Errorf("%w: store url: need the path of a file: several connections and processes share it", ErrInvalid)
	}
	abs, err := filepath.Abs(raw)
	if err != nil {
		return "", "", fmt.Errorf("store url: %w", err)
	}
	return "file:" + (&url.URL{Path: abs}).EscapedPath(), abs, nil
}

func withPragmas(dsn string, groups ...string) string {
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	for _, g := range groups {
		for _, p := range strings.Fields(g) {
			dsn += sep + "_pragma=" + url.QueryEscape(p)
			sep = "&"
		}
	}
	return dsn
}

// createPrivate makes the file, for its owner only: it holds what people wrote. It
// never opens one that exists: closing it would drop SQLite's locks in this process.
func createPrivate(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// sqliteSession is the writer's connection with its prepared statements.
type sqliteSession struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

func (c *sqliteSession) begin(ctx context.Context) error {
	_, err := c.exec(context.WithoutCancel(ctx), `BEGIN IMMEDIATE`)
	return err
}

func (c *sqliteSession) commit(ctx context.Context) error {
	_, err := c.exec(ctx, `COMMIT`)
	return err
}

func sqliteBusy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}

func (c *sqliteSession) close() error {
	// A statement left open would keep the database open for ever.
	for _, st := range c.stmts {
		_ = st.Close()
	}
	// Returning a bad connection to its pool would hand it out again.
	_ = c.conn.Raw(func(any) error { return driver.ErrBadConn })
	return c.conn.Close()
}

func (c *sqliteSession) stmt(ctx context.Context, text string) (*sql.Stmt, error) {
	if st := c.stmts[text]; st != nil {
		return st, nil
	}
	st, err := c.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	c.stmts[text] = st
	return st, nil
}

func (c *sqliteSession) exec(ctx context.Context, text string, args ...any) (int64, error) {
	st, err := c.stmt(ctx, text)
	if err != nil {
		return 0, err
	}
	return affected(st.ExecContext(ctx, cleanArgs(args)...))
}

func (c *sqliteSession) row(ctx context.Context, text string, args ...any) scanner {
	st, err := c.stmt(ctx, text)
	if err != nil {
		return failedRow{err}
	}
	return st.QueryRowContext(ctx, cleanArgs(args)...)
}

func (c *sqliteSession) rows(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	st, err := c.stmt(ctx, text)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, cleanArgs(args)...)
}
