package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

// BenchmarkSync is the floor of every write: appending 4 KiB to a file and syncing it.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	require.NoError(b, err)
	defer f.Close()
	page := make([]byte, 4096)
	for b.Loop() {
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPath measures each call on the path of a line, in its order.
func BenchmarkPath(b *testing.B) {
	ctx := context.Background()
	s, err := store.Open(ctx, filepath.Join(b.TempDir(), "smith.db"))
	require.NoError(b, err)
	defer s.Close()
	spent := map[string]time.Duration{}
	names := []string{"Record", "Undispatched", "SetRoute", "MarkDispatched", "TakeLines", "SetProcess", "KeepAnswer",
		"BeginPost", "ConfirmPost", "FinishTurn"}
	n := 0
	for b.Loop() {
		n++
		line := rules.Line{LineKey: rules.LineKey{Team: "T1", Channel: "C1", TS: fmt.Sprintf("17%08d.000100", n)}, User: "U1", Text: "hello"}
		line.Root = line.TS
		turn := store.Turn{ID: "smith/C1/" + line.TS, Seat: "smith", Thread: line.Thread(), Box: "main"}
		calls := []func() error{
			func() error {
				_, err := s.Record(ctx, "smith", line, rules.Person, func(store.Facts) store.Verdict { return store.Verdict{State: rules.Owed} })
				return err
			},
			func() error { _, err := s.Undispatched(ctx, "smith", 100); return err },
			func() error { _, err := s.SetRoute(ctx, "smith", line.LineKey, []byte(`{"kind":"brain"}`)); return err },
			func() error { return s.MarkDispatched(ctx, "smith", line.LineKey) },
			func() error {
				_, err := s.TakeLines(ctx, turn, []store.TakeLine{{Line: line, Author: rules.Person, HasRow: true}})
				return err
			},
			func() error { return s.SetProcess(ctx, turn.ID, store.Process{RunID: turn.ID, PID: 1, PGID: 1}) },
			func() error { return s.KeepAnswer(ctx, turn.ID, store.Answer{Text: "answer"}) },
			func() error {
				_, err := s.BeginPost(ctx, store.Post{ID: turn.ID, Seat: "smith", Thread: line.Thread(), Part: 1, Parts: 1})
				return err
			},
			func() error { return s.ConfirmPost(ctx, turn.ID, 1, line.TS) },
			func() error {
				_, err := s.FinishTurn(ctx, turn.ID, "smith", []rules.LineKey{line.LineKey}, rules.Answered, "")
				return err
			},
		}
		for i, call := range calls {
			start := time.Now()
			if err := call(); err != nil {
				b.Fatal(err)
			}
			spent[names[i]] += time.Since(start)
		}
	}
	for _, name := range names {
		b.ReportMetric(float64(spent[name].Microseconds())/float64(n), name+"-µs")
	}
}

// BenchmarkRecordTogether shows what writes that wait together share: one commit.
func BenchmarkRecordTogether(b *testing.B) {
	ctx := context.Background()
	s, err := store.Open(ctx, filepath.Join(b.TempDir(), "smith.db"))
	require.NoError(b, err)
	defer s.Close()
	var n atomic.Int64
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			line := rules.Line{LineKey: rules.LineKey{Team: "T1", Channel: "C1", TS: fmt.Sprintf("17%08d.000100", n.Add(1))}, User: "U1", Text: "hello"}
			if _, err := s.Record(ctx, "smith", line, rules.Person, func(store.Facts) store.Verdict { return store.Verdict{State: rules.Owed} }); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
