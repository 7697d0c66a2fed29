package store

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/rules"
)

// Every statement has to find its rows by an index: the ledger only grows.
func TestStore_NoStatementReadsAWholeTable(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "smith.db"), WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()

	l := rules.Line{LineKey: rules.LineKey{Team: "T", Channel: "C", TS: "1700000002.000000"}, Root: "1700000001.000000", User: "U"}
	keys := []rules.LineKey{l.LineKey}
	owed := func(Facts) Verdict { return Verdict{State: rules.Owed} }
	_, err = s.Record(ctx, "s", l, rules.Person, owed)
	require.NoError(t, err)
	_, err = s.RecordDelete(ctx, "s", rules.LineKey{Team: "T", Channel: "C", TS: "1700000009.000000"}, l.TS)
	require.NoError(t, err)
	_, err = s.TakeLines(ctx, Turn{ID: "t", Seat: "s", Thread: l.Thread()}, []TakeLine{{Line: l, HasRow: true}})
	require.NoError(t, err)
	for _, call := range []func() error{
		func() error { _, err := s.Undispatched(ctx, "s", 1); return err },
		func() error { _, err := s.SetRoute(ctx, "s", l.LineKey, []byte(`{}`)); return err },
		func() error { return s.MarkDispatched(ctx, "s", l.LineKey) },
		func() error { _, err := s.OverdueLines(ctx, "s", time.Hour, 1); return err },
		func() error { return s.TouchLines(ctx, "s", keys) },
		func() error { _, err := s.BusyThreads(ctx, "s", "T", "C"); return err },
		func() error { _, err := s.LastSeen(ctx, "s"); return err },
		func() error { _, err := s.ThreadsSince(ctx, "s", l.TS); return err },
		func() error { _, err := s.UnansweredSince(ctx, "s", l.Thread(), "", 1); return err },
		func() error { _, err := s.EditedSince(ctx, "s", l.Thread(), "t2", 1); return err },
		func() error { _, err := s.LastTurnLine(ctx, "s", l.Thread()); return err },
		func() error { return s.SetProcess(ctx, "t", Process{RunID: "r"}) },
		func() error { _, err := s.LiveProcesses(ctx, "b"); return err },
		func() error { _, err := s.ThreadProcesses(ctx, "s", l.Thread()); return err },
		func() error { return s.ProcessDead(ctx, "r") },
		func() error { return s.KeepAnswer(ctx, "t", Answer{}) },
		func() error { _, err := s.CostSince(ctx, time.Now()); return err },
		func() error { _, err := s.FileIDs(ctx, "p"); return err },
		func() error { _, err := s.PostsOf(ctx, "p"); return err },
		func() error { _, err := s.Attempts(ctx, "b"); return err },
		func() error { _, err := s.FinishTurn(ctx, "t", "s", keys, rules.Answered, ""); return err },
		func() error {
			_, _, err := s.Claim(ctx, Wish{Seat: "s", Thread: l.Thread(), Slug: "fix", Claimant: "c"})
			return err
		},
		func() error { _, _, err := s.TakeOverClaim(ctx, "s", l.Thread(), "c", "d"); return err },
		func() error { _, err := s.ReleaseClaim(ctx, "s", l.Thread(), "x"); return err },
		func() error {
			_, err := s.BindClaim(ctx, "s", l.Thread(), "d", Bound{Session: "i"})
			return err
		},
		func() error { _, err := s.ClaimOf(ctx, "s", l.Thread()); return err },
		func() error { _, err := s.ClaimBySlug(ctx, "fix"); return err },
		func() error { _, err := s.Claims(ctx, "b"); return err },
		func() error { return s.AskedForWork(ctx, "s", l.Thread(), "fix", "") },
		func() error { _, err := s.WorkThreads(ctx, "s"); return err },
		func() error { _, err := s.EndClaim(ctx, "s", l.Thread(), "i"); return err },
		func() error { _, err := s.RegisterSession(ctx, Session{ID: "i"}); return err },
		func() error { _, err := s.Session(ctx, 1); return err },
		func() error { _, err := s.SessionByID(ctx, "i"); return err },
		func() error { _, err := s.Sessions(ctx); return err },
		func() error { return s.EndSession(ctx, "i") },
		func() error {
			_, err := s.QueueLines(ctx, "i", []SessionLine{{Key: l.LineKey}})
			return err
		},
		func() error { _, err := s.WaitingLines(ctx, "i", 1); return err },
		func() error { _, err := s.MoveLine(ctx, "i", l.LineKey, LineQueued, LineTyping); return err },
		func() error {
			_, err := s.AddDeposit(ctx, Deposit{ID: "d", Session: "i", Kind: DepositStop})
			return err
		},
		func() error { _, err := s.NextDeposit(ctx, "i"); return err },
		func() error { _, err := s.OwnDeposit(ctx, "d", "s", l.Thread()); return err },
		func() error { return s.DeliverDeposit(ctx, "d", l.TS) },
		func() error {
			return s.LinkPull(ctx, PullRequest{Repo: "a/b", Number: 1, Seat: "s", Thread: l.Thread()})
		},
		func() error { _, err := s.PullThreads(ctx, "a/b", 1); return err },
		func() error { _, err := s.PullsOf(ctx, "s", l.Thread()); return err },
		func() error { _, err := s.FreshDelivery(ctx, "x"); return err },
		func() error { _, err := s.SeenDelivery(ctx, "x"); return err },
		func() error { return s.SetPhaseMessage(ctx, "s", l.Thread(), "", "") },
		func() error { _, _, err := s.PhaseMessage(ctx, "s", l.Thread()); return err },
	} {
		require.NoError(t, call())
	}

	var statements []string
	require.NoError(t, s.write(ctx, "list statements", func(_ context.Context, q query) error {
		for text := range q.(*sqliteSession).stmts {
			statements = append(statements, text)
		}
		return nil
	}))
	for text := range s.read.(*readers).stmts {
		statements = append(statements, text)
	}
	require.Greater(t, len(statements), 30)
	for _, text := range statements {
		if !strings.Contains(text, "FROM") && !strings.Contains(text, "UPDATE ") {
			continue
		}
		args := make([]any, 30)
		rows, err := s.read.(*readers).db.QueryContext(ctx, "EXPLAIN QUERY PLAN "+text, args...)
		require.NoError(t, err)
		plan, err := collect(rows, err, func(r scanner) (string, error) {
			var a, b, c any
			var detail string
			err := r.Scan(&a, &b, &c, &detail)
			return detail, err
		})
		require.NoError(t, err)
		for _, step := range plan {
			require.False(t, readsAll(step), "%s\n%s", text, strings.Join(plan, "\n"))
		}
	}
}

// readsAll tells whether a step of a plan looks at every row of a table, or of a seat.
func readsAll(step string) bool {
	for _, fine := range []string{
		"SCAN t", "SCAN n", // the groups of a subquery
		"SCAN p USING INDEX processes_live", // only what is live
		"USING COVERING INDEX ledger_seen",  // LastSeen, at boot
		"SCAN sessions USING INDEX sessions_live",
	} {
		if strings.HasSuffix(step, fine) || strings.Contains(step, fine+" ") {
			return false
		}
	}
	return strings.HasPrefix(step, "SCAN") || strings.HasSuffix(step, "ledger_seen (seat=?)")
}
