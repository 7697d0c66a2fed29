package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/internal/store/storetest"
	"agentsmith/rules"
)

func threadN(n int) rules.Thread {
	return rules.Thread{Team: "T1", Channel: "C1", Root: fmt.Sprintf("17%08d.000100", n)}
}

func lineN(n int) rules.Line {
	return rules.Line{LineKey: rules.LineKey{Team: "T1", Channel: "C1", TS: threadN(n).Root}, User: "U1", Text: strings.Repeat("x", n%3000)}
}

// life takes a line through several transactions, each of several statements, and returns
// how many of its steps the store said are durable.
func life(ctx context.Context, s *store.Store, n int) (steps int, err error) {
	id := fmt.Sprint("turn ", n)
	l := lineN(n)
	owed := func(store.Facts) store.Verdict { return store.Verdict{State: rules.Owed} }
	for _, step := range []func() error{
		func() error { _, err := s.Record(ctx, "smith", l, rules.Person, owed); return err },
		func() error {
			_, err := s.TakeLines(ctx, store.Turn{ID: id, Seat: "smith", Thread: l.Thread()}, []store.TakeLine{{Line: l, HasRow: true}})
			return err
		},
		func() error {
			var all []store.SessionLine
			for i := range 5 {
				all = append(all, store.SessionLine{Key: lineN(i).LineKey})
			}
			_, err := s.QueueLines(ctx, id, all)
			return err
		},
		func() error {
			_, err := s.FinishTurn(ctx, id, "smith", []rules.LineKey{l.LineKey}, rules.Answered, "")
			return err
		},
	} {
		if err := step(); err != nil {
			return steps, err
		}
		steps++
	}
	return steps, nil
}

// whole requires that of the line's steps those that were durable are there, and that no
// step is there in part.
func whole(t *testing.T, s *store.Store, n, steps int) {
	ctx, id := t.Context(), fmt.Sprint("turn ", n)
	row, err := s.RowOf(ctx, "smith", lineN(n).LineKey)
	if steps == 0 && err != nil {
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = s.Line(ctx, lineN(n).LineKey)
		require.ErrorIs(t, err, store.ErrNotFound, "a message without its row")
		return
	}
	require.NoError(t, err, "line %d was durable", n)
	_, err = s.Line(ctx, lineN(n).LineKey)
	require.NoError(t, err, "a row without its message")
	turn, err := s.TurnOf(ctx, id)
	if row.Turn == "" {
		require.Less(t, steps, 2)
		require.ErrorIs(t, err, store.ErrNotFound, "a turn without its line")
		return
	}
	require.NoError(t, err, "a line without its turn")
	queued, err := s.WaitingLines(ctx, id, 10)
	require.NoError(t, err)
	require.Contains(t, []int{0, 5}, len(queued), "lines were queued in part")
	require.True(t, steps < 3 || len(queued) == 5)
	require.Equal(t, row.State == rules.Answered, turn.State == rules.Answered, "an outcome in part")
	require.True(t, steps < 4 || row.State == rules.Answered)
}

func pgKilled(t *testing.T, p *storetest.Postgres) {
	s := opened(t, p.URL(t))
	var n atomic.Int64
	var mu sync.Mutex
	durable := map[int]int{}
	for round := range 3 {
		var all sync.WaitGroup
		acks := make(chan struct{}, 10_000)
		for range 8 {
			all.Go(func() {
				for {
					n := int(n.Add(1))
					steps, err := life(t.Context(), s, n)
					mu.Lock()
					durable[n] = steps
					mu.Unlock()
					if err != nil {
						return // the server is dead
					}
					acks <- struct{}{}
				}
			})
		}
		for range 60 {
			select {
			case <-acks:
			case <-time.After(time.Minute):
				t.Fatal("the work stands still")
			}
		}
		p.Kill()
		all.Wait()
		p.Start(t)
		require.Eventually(t, func() bool { return s.Ping(t.Context()) == nil }, 10*time.Second, time.Millisecond,
			"round %d: the store, which was not opened anew, goes on", round)
		_, err := s.Undispatched(t.Context(), "smith", 1)
		require.NoError(t, err, "its readers too")
		for n, steps := range durable {
			whole(t, s, n, steps)
		}
	}
}

func pgRestarted(t *testing.T, p *storetest.Postgres) {
	s := opened(t, p.URL(t))
	asked := 0
	_, err := s.Record(t.Context(), "smith", lineN(1), rules.Person, func(store.Facts) store.Verdict {
		if asked++; asked == 1 { // the message is written, its row is not
			p.Kill()
			p.Start(t)
		}
		return store.Verdict{State: rules.Owed}
	})
	require.NoError(t, err)
	require.Equal(t, 2, asked)
	whole(t, s, 1, 1)

	_, err = s.Record(t.Context(), "smith", lineN(2), rules.Person, func(store.Facts) store.Verdict {
		p.Kill()
		return store.Verdict{State: rules.Owed}
	})
	require.Error(t, err, "a server that stays away is said soon")
	p.Start(t)
	_, err = s.Line(t.Context(), lineN(2).LineKey)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Eventually(t, func() bool { return recordN(s, 3, "x") == nil }, 10*time.Second, time.Millisecond)
}

// cutter stands between a store and its server, and drops the connection instead of the
// answer to the next COMMIT.
type cutter struct {
	armed atomic.Bool
	cuts  atomic.Int64
}

func (c *cutter) listen(t *testing.T, rawURL string) string {
	u, err := url.Parse(rawURL)
	require.NoError(t, err)
	const socket = ".s.PGSQL.5432"
	real := filepath.Join(u.Query().Get("host"), socket)
	dir, err := os.MkdirTemp("", "smith-cut-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	l, err := net.Listen("unix", filepath.Join(dir, socket))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", real)
			if err != nil {
				_ = client.Close()
				continue
			}
			go c.pass(client, server)
		}
	}()
	u.RawQuery = url.Values{"host": {dir}}.Encode()
	return u.String()
}

func (c *cutter) pass(client, server net.Conn) {
	var cut atomic.Bool
	go func() {
		defer client.Close()
		defer server.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := server.Read(b)
			if err != nil || cut.Load() {
				return // with cut: the server has answered, and nobody hears it
			}
			if _, err := client.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := client.Read(b)
		if err != nil {
			_ = server.Close()
			return
		}
		if strings.Contains(string(b[:n]), "COMMIT\x00") && c.armed.Swap(false) {
			c.cuts.Add(1)
			cut.Store(true)
		}
		if _, err := server.Write(b[:n]); err != nil {
			return
		}
	}
}

func pgUnknownCommit(t *testing.T, p *storetest.Postgres) {
	direct := p.URL(t)
	var c cutter
	s := opened(t, c.listen(t, direct))
	post := store.Post{ID: "p1", Seat: "smith", Thread: threadN(1), Part: 1, Parts: 1}
	c.armed.Store(true)
	_, err := s.BeginPost(t.Context(), post)
	require.ErrorContains(t, err, "not known whether this was written")
	require.EqualValues(t, 1, c.cuts.Load())
	got, err := s.PostsOf(t.Context(), "p1")
	require.NoError(t, err)
	require.Len(t, got, 1, "it was written")
	require.Equal(t, 1, got[0].Attempts, "once")
	again, err := s.BeginPost(t.Context(), post)
	require.NoError(t, err, "and the store goes on")
	require.Equal(t, 2, again.Attempts)
}

func pgLocked(t *testing.T, p *storetest.Postgres) {
	at := p.URL(t)
	s := opened(t, at)
	require.NoError(t, recordN(s, 1, "x"))
	db, err := sql.Open("pgx", at)
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec(fmt.Sprintf(`BEGIN; SELECT pg_advisory_xact_lock(%d)`, store.WriteLock))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	require.ErrorIs(t, s.MarkDispatched(ctx, "smith", lineN(1).LineKey), context.DeadlineExceeded)
	require.Less(t, time.Since(begun), 5*time.Second)
	_, err = s.Undispatched(t.Context(), "smith", 1)
	require.NoError(t, err, "readers do not wait for a writer")
	released := make(chan error, 1)
	go func() { released <- recordN(s, 2, "x") }() // waits
	_, err = db.Exec(`COMMIT`)
	require.NoError(t, err)
	require.NoError(t, <-released, "and goes on when the lock is free")
}

func pgFrozen(t *testing.T, p *storetest.Postgres) {
	s := opened(t, p.URL(t))
	require.NoError(t, recordN(s, 1, "x"))
	thaw := p.Freeze()
	defer thaw()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.MarkDispatched(ctx, "smith", lineN(1).LineKey), context.DeadlineExceeded)
	_, err := s.Undispatched(ctx, "smith", 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(begun), 2*time.Second)
	thaw()
	require.Eventually(t, func() bool { return recordN(s, 2, "x") == nil }, 20*time.Second, time.Millisecond)
	_, err = s.Undispatched(t.Context(), "smith", 1)
	require.NoError(t, err)
}
