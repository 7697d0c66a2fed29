package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/internal/store/storetest"
)

func pgExec(t *testing.T, at string, statements ...string) { execSQL(t, "pgx", at, statements...) }

// pgSchema is every column and index of a database.
func pgSchema(t *testing.T, at string) []string {
	return textRows(t, "pgx", at, `SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable
			FROM information_schema.columns WHERE table_schema = 'public'
		UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1`)
}

func pgMigrates(t *testing.T, p *storetest.Postgres) {
	fresh := p.NewURL(t)
	opened(t, fresh)
	want := pgSchema(t, fresh)
	require.Greater(t, len(want), 100)
	opened(t, strings.Replace(fresh, "postgres://", "postgresql://", 1)) // twice changes nothing
	require.Equal(t, want, pgSchema(t, fresh))

	names, err := fs.Glob(os.DirFS("migrations"), "*.sql")
	require.NoError(t, err)
	for v := range len(names) {
		if v == 0 {
			continue // that is fresh
		}
		at := p.NewURL(t)
		db, err := sql.Open("pgx", at)
		require.NoError(t, err)
		m, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("migrations"), goose.WithSlog(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		_, err = m.UpTo(t.Context(), int64(v))
		require.NoError(t, err)
		require.NoError(t, db.Close())
		s := opened(t, at)
		require.Equal(t, want, pgSchema(t, at), "from version %d", v)
		require.NoError(t, recordN(s, 1, "works"))
	}
}

func pgMigratesOnce(t *testing.T, p *storetest.Postgres) {
	at := p.NewURL(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s, err := store.Open(t.Context(), at, quiet())
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func pgNewer(t *testing.T, p *storetest.Postgres) {
	at := p.NewURL(t)
	opened(t, at)
	pgExec(t, at, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, true)`)
	_, err := store.Open(t.Context(), at, quiet())
	require.ErrorContains(t, err, "version 9000")
	require.ErrorContains(t, err, "newer program")
}

func pgEncoding(t *testing.T, p *storetest.Postgres) {
	at := p.NewURL(t)
	pgExec(t, at, `CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`)
	u, err := url.Parse(at)
	require.NoError(t, err)
	u.Path = "/latin"
	_, err = store.Open(t.Context(), u.String(), quiet())
	require.ErrorContains(t, err, "LATIN1")
	require.ErrorContains(t, err, "ENCODING 'UTF8'")
}

// A role or database may be set to answer before the disk has it, and to other levels.
func pgSyncs(t *testing.T, p *storetest.Postgres) {
	at := p.NewURL(t)
	name := at[strings.LastIndex(at, "/db")+1 : strings.LastIndex(at, "?")]
	pgExec(t, at, `ALTER DATABASE `+name+` SET synchronous_commit = off`,
		`ALTER DATABASE `+name+` SET default_transaction_isolation = 'repeatable read'`)
	s := opened(t, at)
	for setting, want := range map[string]string{
		"synchronous_commit": "on", "transaction_isolation": "read committed",
		"idle_in_transaction_session_timeout": "10s", "statement_timeout": "10s", "lock_timeout": "1s", "application_name": "smith",
	} {
		var got string
		require.NoError(t, s.Probe(t.Context(), `SHOW `+setting, &got))
		require.Equal(t, want, got, setting)
	}
}

func pgSecrets(t *testing.T, p *storetest.Postgres) {
	right := p.NewURL(t)
	u, err := url.Parse(right)
	require.NoError(t, err)
	change := func(f func(u *url.URL)) string {
		c := *u
		f(&c)
		return c.String()
	}
	const secret = "hunter2"
	require.Contains(t, storetest.PostgresPassword, secret)
	for name, at := range map[string]string{
		"wrong password":    change(func(u *url.URL) { u.User = url.UserPassword("smith", "not "+secret) }),
		"no such user":      change(func(u *url.URL) { u.User = url.UserPassword("neo", secret) }),
		"no such database":  change(func(u *url.URL) { u.Path = "/nowhere" }),
		"no server":         change(func(u *url.URL) { u.RawQuery = "host=/nonexistent" }),
		"nobody listens":    "postgres://smith:" + secret + "@127.0.0.1:1/smith",
		"an open bracket":   "postgres://smith:" + secret + "[@db/smith",
		"a slash":           "postgres://smith:" + secret + "/x@db/smith",
		"a slash, a port":   "postgres://smith:1/" + secret + "@db/smith",
		"a question mark":   "postgres://smith:1?" + secret + "@db/smith",
		"a hash":            "postgres://smith:1#" + secret + "@db/smith",
		"an at":             "postgres://smith:a@" + secret + "@db.invalid/smith",
		"an at, a bad port": "postgres://smith:a@" + secret + "@db:port/smith",
		"a percent":         "postgres://smith:" + secret + "%zz@db/smith",
		"a bad port":        "postgres://smith:" + secret + "@db:port/smith",
		"a bad setting":     "postgres://smith:" + secret + "@db/smith?sslmode=perhaps",
		"in the query":      "postgres://db/smith?user=smith&password=" + secret + "&sslmode=perhaps",
		"a file is missing": "postgres://smith:" + secret + "@db/smith?sslmode=verify-full&sslrootcert=/nonexistent",
		"another database":  "mysql://smith:" + secret + "@db/smith",
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := store.Open(ctx, at, store.WithLogger(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
			require.Error(t, err)
			slog.New(slog.NewTextHandler(&log, nil)).Error("open", "error", err)
			fmt.Fprintf(&log, "%v %+v %q", err, err, err)
			for cause := err; cause != nil; cause = unwrap(cause) {
				fmt.Fprintln(&log, cause.Error())
			}
			require.NotContains(t, log.String(), secret)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	// Nor once it is open, and fails.
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := store.Open(t.Context(), p.NewURL(t), store.WithLogger(logger))
	require.NoError(t, err)
	defer s.Close()
	p.Kill()
	logger.Error("write", "error", recordN(s, 1, "x"))
	_, err = s.Undispatched(t.Context(), "smith", 1)
	logger.Error("read", "error", err)
	require.Error(t, err)
	p.Start(t)
	require.Contains(t, log.String(), "record line", "it did log")
	require.NotContains(t, log.String(), secret)
}

// unwrap is the first cause, as Temporal's failures follow it.
func unwrap(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
		return many.Unwrap()[0]
	}
	one, ok := err.(interface{ Unwrap() error })
	if !ok {
		return nil
	}
	return one.Unwrap()
}
