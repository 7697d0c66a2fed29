package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// The advisory locks, which are a database's own. The write lock makes writers of all
// processes and boxes come one after the other, as SQLite's does: what a transaction read
// is still so when it commits, though PostgreSQL only promises what was committed before
// each statement.
const (
	writeLock   = 0x736d69746801
	migrateLock = 0x736d69746802
)

const (
	pgConnect = 5 * time.Second
	// pgBegin is longer than a wait for the lock may be: a connection that says nothing for
	// so long is dead.
	pgBegin = 3 * time.Second
	// pgLimit ends a transaction whose connection hangs. The database itself gives up
	// sooner on a client that went away holding the write lock.
	pgLimit = 20 * time.Second
	pgIdle  = 5 * time.Minute
)

// pgSettings are what every connection is set to: limits, so that nobody holds the write
// lock for long, and a commit that is on disk when it returns (L1).
const pgSettings = `SELECT set_config('lock_timeout', '1s', false), set_config('statement_timeout', '10s', false),
	set_config('idle_in_transaction_session_timeout', '10s', false),
	set_config('default_transaction_isolation', 'read committed', false),
	set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
		ELSE current_setting('synchronous_commit') END, false)`

func isPostgres(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

// openPostgres connects to the database that rawURL names and starts s's writer and
// readers: at most maxReaders+1 connections a process.
func (s *Store) openPostgres(ctx context.Context, rawURL string) error {
	cfg, err := pgConfig(rawURL)
	if err != nil {
		return err
	}
	s.name = pgName(cfg)
	secret := cfg.Password
	if len(secret) < 4 || secret == cfg.User || secret == cfg.Database {
		secret = "" // no secret, and to hide it would garble every error
	}
	s.tidy = func(err error) error { return tidy(err, secret) }
	s.again = pgAgain
	if err := s.migratePostgres(ctx, cfg); err != nil {
		return s.wrap("migrate", err)
	}
	set := stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, pgSettings)
		return err
	})
	wdb := stdlib.OpenDB(*cfg, set)
	wdb.SetMaxOpenConns(1)
	rdb := stdlib.OpenDB(*cfg, set)
	rdb.SetMaxOpenConns(maxReaders)
	rdb.SetMaxIdleConns(maxReaders)
	rdb.SetConnMaxIdleTime(pgIdle)
	s.read = pgReaders{rdb}
	s.w = newWriter(func(ctx context.Context) (session, error) {
		conn, err := wdb.Conn(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		return &pgSession{conn: conn}, nil
	}, dialect{busy: func(err error) bool { return pgCode(err) == "55P03" }, again: pgAgain, limit: pgLimit})
	s.close = []func() error{rdb.Close, s.w.close, wdb.Close}
	return nil
}

func pgConfig(rawURL string) (*pgx.ConnConfig, error) {
	why := "it is none; write postgres://user:password@host:5432/database, with special characters of the password as %xx"
	cfg, err := pgx.ParseConfig(rawURL)
	// The reason may quote the url, and so the password; a file that is missing does not.
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		why = file.Error()
	}
	if err != nil || !oneUser(rawURL) {
		return nil, fmt.Errorf("%w: store url: a PostgreSQL URL: %s", ErrInvalid, why)
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = pgConnect
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "smith"
	}
	return cfg, nil
}

// oneUser tells whether a url has no @ but the one that ends its user and password. Else a
// part of the password is taken for a host, a port or a database, which errors do name.
func oneUser(rawURL string) bool {
	_, rest, _ := strings.Cut(rawURL, "://")
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	return strings.Count(rest, "@") == strings.Count(authority, "@") && strings.Count(rest, "@") <= 1
}

// pgName is what errors call the database.
func pgName(cfg *pgx.ConnConfig) string {
	return net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port))) + "/" + cfg.Database
}

// migratePostgres brings the tables up to date. Those who start at the same moment wait
// at an advisory lock, which the database drops with its connection.
func (s *Store) migratePostgres(ctx context.Context, cfg *pgx.ConnConfig) (err error) {
	db := stdlib.OpenDB(*cfg)
	defer func() { err = errors.Join(err, db.Close()) }()
	var encoding string
	if err := db.QueryRowContext(ctx, `SHOW server_encoding`).Scan(&encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database's encoding is %s: make one with ENCODING 'UTF8', what people write does not fit into another", encoding)
	}
	if current, target, err := versions(ctx, db); err == nil && current == target {
		return nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, int64(migrateLock)); err != nil {
		return fmt.Errorf("wait for another process that migrates: %w", err)
	}
	return s.migrate(ctx, db, goose.DialectPostgres)
}

// pgSession is the writer's connection.
type pgSession struct{ conn *sql.Conn }

func (c *pgSession) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pgBegin)
	defer cancel()
	err := c.raw(func(pc *pgconn.PgConn) error {
		return pc.Exec(ctx, fmt.Sprintf(`BEGIN; SELECT pg_advisory_xact_lock(%d)`, int64(writeLock))).Close()
	})
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the connection hangs: %w", driver.ErrBadConn)
	}
	_, undo := c.exec(ctx, `ROLLBACK`)
	return errors.Join(err, undo)
}

// errUnknown marks a commit of which it is not known whether it took place.
var errUnknown = errors.New("the connection was lost, and it is not known whether this was written")

func (c *pgSession) commit(ctx context.Context) error {
	return c.raw(func(pc *pgconn.PgConn) error {
		// To COMMIT a transaction that failed is to roll it back, and is no error to PostgreSQL.
		if pc.TxStatus() != 'T' {
			return fmt.Errorf("the transaction failed before (status %c)", pc.TxStatus())
		}
		err := pc.Exec(ctx, `COMMIT`).Close()
		if err != nil && !pgRefused(err) {
			return fmt.Errorf("%w: %w", errUnknown, err)
		}
		return err
	})
}

func (c *pgSession) raw(fn func(*pgconn.PgConn) error) error {
	return c.conn.Raw(func(dc any) error { return fn(dc.(*stdlib.Conn).Conn().PgConn()) })
}

func (c *pgSession) close() error {
	_ = c.conn.Raw(func(any) error { return driver.ErrBadConn }) // so that its pool does not hand it out again
	return c.conn.Close()
}

// The driver keeps the statements of a connection prepared.

func (c *pgSession) exec(ctx context.Context, text string, args ...any) (int64, error) {
	return affected(c.conn.ExecContext(ctx, text, cleanArgs(args)...))
}

func (c *pgSession) row(ctx context.Context, text string, args ...any) scanner {
	return c.conn.QueryRowContext(ctx, text, cleanArgs(args)...)
}

func (c *pgSession) rows(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return c.conn.QueryContext(ctx, text, cleanArgs(args)...)
}

// pgReaders is the pool that reads outside of transactions.
type pgReaders struct{ db *sql.DB }

func (r pgReaders) exec(context.Context, string, ...any) (int64, error) { return 0, errNoWrite }

func (r pgReaders) row(ctx context.Context, text string, args ...any) scanner {
	return r.db.QueryRowContext(ctx, text, cleanArgs(args)...)
}

func (r pgReaders) rows(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	return r.db.QueryContext(ctx, text, cleanArgs(args)...)
}

func pgCode(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// pgRefused tells whether the database said that a commit did not take place.
func pgRefused(err error) bool {
	switch code := pgCode(err); {
	case strings.HasPrefix(code, "40"), strings.HasPrefix(code, "23"), strings.HasPrefix(code, "25"):
		return true
	}
	return false
}

// pgAgain tells whether for sure nothing was written, and another try may succeed: the
// transaction met another, or the connection or the database is gone.
func pgAgain(err error) bool {
	if errors.Is(err, errUnknown) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	switch code := pgCode(err); {
	case code == "":
	case strings.HasPrefix(code, "40"), strings.HasPrefix(code, "08"), strings.HasPrefix(code, "57P"),
		code == "53300", // too many connections
		code == "25P03", // we were too slow between two statements
		code == "0A000": // a prepared statement's tables changed; it is prepared anew
		return true
	default:
		return false
	}
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, pgconn.ErrConnClosed) || errors.As(err, &network)
}

// tidy makes an error one line, and takes a secret out of it, should a driver ever put it
// there (X3).
func tidy(err error, secret string) error {
	text := strings.ReplaceAll(strings.ReplaceAll(err.Error(), ":\n\t", ": "), "\n\t", "; ")
	if secret != "" {
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), url.UserPassword("", secret).String()[1:]} {
			text = strings.ReplaceAll(text, form, "[hidden]")
		}
	}
	if text == err.Error() {
		return err
	}
	return &tidied{text, err}
}

// tidied is an error in other words. It does not unwrap: whoever walks down to its cause,
// as Temporal does, would write that one's text.
type tidied struct {
	text string
	err  error
}

func (h *tidied) Error() string        { return h.text }
func (h *tidied) Is(target error) bool { return errors.Is(h.err, target) }
func (h *tidied) As(target any) bool   { return errors.As(h.err, target) }
