package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

func quiet() store.Option { return store.WithLogger(slog.New(slog.DiscardHandler)) }

func opened(t *testing.T, url string) *store.Store {
	s, err := store.Open(t.Context(), url, quiet())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func recordN(s *store.Store, n int, text string) error {
	l := rules.Line{LineKey: rules.LineKey{Team: "T1", Channel: "C1", TS: fmt.Sprintf("17%08d.000100", n)}, User: "U1", Text: text}
	_, err := s.Record(context.Background(), "smith", l, rules.Person, func(store.Facts) store.Verdict { return store.Verdict{State: rules.Owed} })
	return err
}

func rawSQL(t *testing.T, path string, statements ...string) {
	execSQL(t, "sqlite", path, statements...)
}

func execSQL(t *testing.T, driver, at string, statements ...string) {
	db, err := sql.Open(driver, at)
	require.NoError(t, err)
	defer db.Close()
	for _, s := range statements {
		_, err := db.Exec(s)
		require.NoError(t, err, s)
	}
}

func schema(t *testing.T, path string) []string {
	return textRows(t, "sqlite", path, `SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name`)
}

func textRows(t *testing.T, driver, at, query string) (all []string) {
	db, err := sql.Open(driver, at)
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query(query)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var s string
		require.NoError(t, rows.Scan(&s))
		all = append(all, s)
	}
	require.NoError(t, rows.Err())
	return all
}

func TestOpen_MigratesFromEveryVersion(t *testing.T) {
	fresh := newFile(t)
	opened(t, fresh)
	want := schema(t, fresh)
	require.NotEmpty(t, want)
	opened(t, fresh) // twice changes nothing
	require.Equal(t, want, schema(t, fresh))

	names, err := fs.Glob(os.DirFS("migrations"), "*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for v := range len(names) {
		t.Run(fmt.Sprintf("version %d", v), func(t *testing.T) {
			path := newFile(t)
			db, err := sql.Open("sqlite", path)
			require.NoError(t, err)
			p, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("migrations"), goose.WithSlog(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			if v > 0 {
				_, err = p.UpTo(t.Context(), int64(v))
				require.NoError(t, err)
			}
			require.NoError(t, db.Close())
			s := opened(t, path)
			require.Equal(t, want, schema(t, path))
			require.NoError(t, recordN(s, 1, "works"))
		})
	}
}

func TestOpen_ManyAtOnceMigrateOnce(t *testing.T) {
	for range 5 {
		path := newFile(t)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				s, err := store.Open(t.Context(), path, quiet())
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
}

func TestOpen_RefusesATableSetOfANewerProgram(t *testing.T) {
	path := newFile(t)
	opened(t, path)
	rawSQL(t, path, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9000, 1)`)
	_, err := store.Open(t.Context(), path, quiet())
	require.ErrorContains(t, err, "version 9000")
	require.ErrorContains(t, err, "newer program")
}

func TestOpen_SaysWhatIsWrongWithAURL(t *testing.T) {
	for url, want := range map[string]string{
		"":                                   "need the path of a file",
		":memory:":                           "need the path of a file",
		"file:":                              "needs a path",
		"mysql://smith:hunter2@db/smith":     `"mysql" is not supported`,
		filepath.Join("/dev/null", "x", "y"): "/dev/null",
	} {
		_, err := store.Open(t.Context(), url, quiet())
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "hunter2", "no secret in an error")
	}
}

func TestOpen_TakesAnyPath(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b.db", "q?x=1&y#z%41.db", "ü/新.db"} {
		path := filepath.Join(dir, name)
		require.NoError(t, recordN(opened(t, path), 1, "x"))
		info, err := os.Stat(path)
		require.NoError(t, err, "the file has that very name")
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "what people wrote is for its owner only")
	}
	require.NoError(t, recordN(opened(t, "file:"+filepath.Join(dir, "url.db")+"?cache=private"), 1, "x"))
}

func TestClose_FoldsTheLogIntoTheFile(t *testing.T) {
	path := newFile(t)
	s, err := store.Open(t.Context(), path, quiet())
	require.NoError(t, err)
	require.NoError(t, recordN(s, 1, "x"))
	_, err = s.Undispatched(t.Context(), "smith", 1)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "twice is no error")
	_, err = os.Stat(path + "-wal")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestStore_SyncsEachCommit(t *testing.T) {
	var level, mode string
	s := opened(t, newFile(t))
	require.NoError(t, s.Probe(t.Context(), `PRAGMA synchronous`, &level))
	require.Equal(t, "2", level, "FULL: accepted means durable")
	require.NoError(t, s.Probe(t.Context(), `PRAGMA journal_mode`, &mode))
	require.Equal(t, "wal", mode)
}

func TestStore_DiskFull(t *testing.T) {
	path := newFile(t)
	opened(t, path)
	s := opened(t, "file:"+path+"?_pragma=max_page_count(60)")
	var err error
	n := 0
	for ; n < 1000 && err == nil; n++ {
		err = recordN(s, n, strings.Repeat("x", 10_000))
	}
	require.ErrorContains(t, err, "full")
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "record line")
	got, err := s.Undispatched(t.Context(), "smith", 1000)
	require.NoError(t, err, "reading goes on")
	require.Len(t, got, n-1)
	require.NoError(t, recordN(opened(t, path), 2000, "room again"))
	require.Error(t, recordN(s, 3000, strings.Repeat("x", 100_000)), "and again an error, not a panic")
}

func TestStore_ReadOnly(t *testing.T) {
	path := newFile(t)
	opened(t, path)
	_, err := store.Open(t.Context(), "file:"+path+"?mode=ro", quiet())
	require.ErrorContains(t, err, "readonly")
	require.ErrorContains(t, err, path)
}

func TestStore_Corrupt(t *testing.T) {
	t.Run("no database at all", func(t *testing.T) {
		path := newFile(t)
		require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("not a database ", 1000)), 0o600))
		_, err := store.Open(t.Context(), path, quiet())
		require.ErrorContains(t, err, "not a database")
		require.ErrorContains(t, err, path)
	})
	t.Run("damaged pages", func(t *testing.T) {
		path := newFile(t)
		s, err := store.Open(t.Context(), path, quiet())
		require.NoError(t, err)
		for n := range 200 {
			require.NoError(t, recordN(s, n, strings.Repeat("x", 1000)))
		}
		require.NoError(t, s.Close())
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		for i := 4096 * 2; i < len(b); i++ {
			b[i] = 0xA5
		}
		require.NoError(t, os.WriteFile(path, b, 0o600))
		s, err = store.Open(t.Context(), path, quiet())
		if err == nil {
			defer s.Close()
			err = recordN(s, 1000, "x")
		}
		require.ErrorContains(t, err, "malformed")
		require.ErrorContains(t, err, path)
	})
}

func TestStore_LockedByAnotherProcessGivesUpInTime(t *testing.T) {
	path := newFile(t)
	s := opened(t, path)
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`BEGIN IMMEDIATE`)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	err = s.MarkDispatched(ctx, "smith", rules.LineKey{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(start), 2*time.Second)
	_, err = s.Undispatched(t.Context(), "smith", 1)
	require.NoError(t, err, "readers do not wait for a writer")
	_, err = db.Exec(`COMMIT`)
	require.NoError(t, err)
	require.NoError(t, recordN(s, 1, "x"), "and goes on when the lock is free")
}
