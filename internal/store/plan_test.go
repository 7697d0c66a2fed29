package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/internal/store/storetest"
	"agentsmith/rules"
)

// everyStatement calls what the store can do, and returns the statements that it ran.
func everyStatement(t *testing.T, s *store.Store) []string {
	ctx := t.Context()

	l := rules.Line{LineKey: rules.LineKey{Team: "T", Channel: "C", TS: "1700000002.000000"}, Root: "1700000001.000000", User: "U"}
	keys := []rules.LineKey{l.LineKey}
	owed := func(store.Facts) store.Verdict { return store.Verdict{State: rules.Owed} }
	_, err := s.Record(ctx, "s", l, rules.Person, owed)
	require.NoError(t, err)
	_, err = s.RecordDelete(ctx, "s", rules.LineKey{Team: "T", Channel: "C", TS: "1700000009.000000"}, l.TS)
	require.NoError(t, err)
	_, err = s.TakeLines(ctx, store.Turn{ID: "t", Seat: "s", Thread: l.Thread()}, []store.TakeLine{{Line: l, HasRow: true}})
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
		func() error { return s.SetProcess(ctx, "t", store.Process{RunID: "r"}) },
		func() error { _, err := s.LiveProcesses(ctx, "b"); return err },
		func() error { _, err := s.ThreadProcesses(ctx, "s", l.Thread()); return err },
		func() error { return s.ProcessDead(ctx, "r") },
		func() error { return s.KeepAnswer(ctx, "t", store.Answer{}) },
		func() error { _, err := s.CostSince(ctx, time.Now()); return err },
		func() error { _, err := s.FileIDs(ctx, "p"); return err },
		func() error { _, err := s.PostsOf(ctx, "p"); return err },
		func() error { _, err := s.Attempts(ctx, "b"); return err },
		func() error { _, err := s.FinishTurn(ctx, "t", "s", keys, rules.Answered, ""); return err },
		func() error {
			_, _, err := s.Claim(ctx, store.Wish{Seat: "s", Thread: l.Thread(), Slug: "fix", Claimant: "c"})
			return err
		},
		func() error { _, _, err := s.TakeOverClaim(ctx, "s", l.Thread(), "c", "d"); return err },
		func() error { _, err := s.ReleaseClaim(ctx, "s", l.Thread(), "x"); return err },
		func() error {
			_, err := s.BindClaim(ctx, "s", l.Thread(), "d", store.Bound{Session: "i"})
			return err
		},
		func() error { _, err := s.ClaimOf(ctx, "s", l.Thread()); return err },
		func() error { _, err := s.ClaimBySlug(ctx, "fix"); return err },
		func() error { _, err := s.Claims(ctx, "b"); return err },
		func() error { return s.AskedForWork(ctx, "s", l.Thread(), "fix", "") },
		func() error { _, err := s.WorkThreads(ctx, "s"); return err },
		func() error { _, err := s.EndClaim(ctx, "s", l.Thread(), "i"); return err },
		func() error { _, err := s.RegisterSession(ctx, store.Session{ID: "i"}); return err },
		func() error { _, err := s.Session(ctx, 1); return err },
		func() error { _, err := s.SessionByID(ctx, "i"); return err },
		func() error { _, err := s.Sessions(ctx); return err },
		func() error { return s.EndSession(ctx, "i") },
		func() error {
			_, err := s.QueueLines(ctx, "i", []store.SessionLine{{Key: l.LineKey}})
			return err
		},
		func() error { _, err := s.WaitingLines(ctx, "i", 1); return err },
		func() error {
			_, err := s.MoveLine(ctx, "i", l.LineKey, store.LineQueued, store.LineTyping)
			return err
		},
		func() error {
			_, err := s.AddDeposit(ctx, store.Deposit{ID: "d", Session: "i", Kind: store.DepositStop})
			return err
		},
		func() error { _, err := s.NextDeposit(ctx, "i"); return err },
		func() error { _, err := s.OwnDeposit(ctx, "d", "s", l.Thread()); return err },
		func() error { return s.DeliverDeposit(ctx, "d", l.TS) },
		func() error {
			return s.LinkPull(ctx, store.PullRequest{Repo: "a/b", Number: 1, Seat: "s", Thread: l.Thread()})
		},
		func() error { _, err := s.PullThreads(ctx, "a/b", 1); return err },
		func() error { _, err := s.PullsOf(ctx, "s", l.Thread()); return err },
		func() error { _, err := s.FreshDelivery(ctx, "x"); return err },
		func() error { _, err := s.SeenDelivery(ctx, "x"); return err },
		func() error { return s.SetPhaseMessage(ctx, "s", l.Thread(), "", "") },
		func() error { _, _, err := s.PhaseMessage(ctx, "s", l.Thread()); return err },
		func() error { return relayStatements(ctx, s) },
	} {
		require.NoError(t, call())
	}

	statements, err := s.Statements(ctx)
	require.NoError(t, err)
	require.Greater(t, len(statements), 60)
	var all []string
	for _, text := range statements {
		if strings.Contains(text, "FROM") || strings.Contains(text, "UPDATE ") {
			all = append(all, text)
		}
	}
	return all
}

// relayStatements opens a relay, has it carry a line, and asks all that is asked of relays.
func relayStatements(ctx context.Context, s *store.Store) error {
	c := store.Conversation{Seat: "s", Team: "T", Channel: "D"}
	line := func(ts string) rules.Line {
		return rules.Line{LineKey: rules.LineKey{Team: "T", Channel: "D", TS: ts}, Root: ts, User: "U", Text: "x"}
	}
	relay := store.Relay{Box: "b", Relay: rules.Relay{ID: "r", Person: "U", Session: "i", Number: 1, OpenedTS: "1700000001.000000"}}
	l := store.SessionLine{Session: "i", Key: line("1700000002.000000").LineKey, Seat: "s", From: "U", Relay: "r"}
	var errs []error
	for _, ts := range []string{relay.OpenedTS, l.Key.TS} {
		_, err := s.Record(ctx, "s", line(ts), rules.Person, func(store.Facts) store.Verdict { return store.Verdict{State: rules.Owed} })
		errs = append(errs, err)
	}
	route := json.RawMessage(`{"stands_down":true}`)
	errs = append(errs, s.DecideConversation(ctx, c, func(store.ConversationState) []store.ConversationDecision {
		return []store.ConversationDecision{
			{Key: line(relay.OpenedTS).LineKey, Route: json.RawMessage(`{}`), Open: &relay},
			{Key: l.Key, Route: route, Queue: &l},
		}
	}))
	for _, call := range []func() error{
		func() error { _, err := s.OpenRelay(ctx, c); return err },
		func() error { _, err := s.RelayByID(ctx, "r"); return err },
		func() error { _, err := s.OpenRelayTo(ctx, "i"); return err },
		func() error { _, _, err := s.RelayBatch(ctx, relay); return err },
		func() error { _, err := s.OrphanLines(ctx, c); return err },
		func() error { _, err := s.BeginTyping(ctx, l); return err },
		func() error { return s.EndTyping(ctx, l, store.LineQueued) },
		func() error { _, err := s.HandBack(ctx, l, json.RawMessage(`{}`)); return err },
		func() error { _, err := s.TypedLast(ctx, "i"); notFound(&err); return err },
		func() error { _, err := s.LatestLine(ctx, c, "U"); return err },
		func() error { _, err := s.RelaysDue(ctx, "b"); return err },
		func() error { return s.EndAwaiting(ctx, "r") },
		func() error { _, err := s.CloseRelay(ctx, "r", "1700000003.000000"); return err },
	} {
		errs = append(errs, call())
	}
	return errors.Join(errs...)
}

// notFound takes the answer that nothing is on record for none.
func notFound(err *error) {
	if errors.Is(*err, store.ErrNotFound) {
		*err = nil
	}
}

// Every statement has to find its rows by an index: the ledger only grows.
func TestSQLite_NoStatementReadsAWholeTable(t *testing.T) {
	path := newFile(t)
	s := opened(t, path)
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	for _, text := range everyStatement(t, s) {
		plan := explain(t, db, "EXPLAIN QUERY PLAN "+text, 4, make([]any, 30)...)
		for _, step := range plan {
			require.False(t, readsAll(step), "%s\n%s", text, strings.Join(plan, "\n"))
		}
	}
}

// explain returns the last of the plan's columns, row by row.
func explain(t *testing.T, db *sql.DB, text string, columns int, args ...any) (plan []string) {
	rows, err := db.QueryContext(t.Context(), text, args...)
	require.NoError(t, err, text)
	defer rows.Close()
	for rows.Next() {
		dest := make([]any, columns)
		for i := range dest {
			dest[i] = new(any)
		}
		var step string
		dest[columns-1] = &step
		require.NoError(t, rows.Scan(dest...))
		plan = append(plan, step)
	}
	require.NoError(t, rows.Err())
	return plan
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// pgPlans asks for the plans of the same statements where an index is taken if one will do.
func pgPlans(t *testing.T, p *storetest.Postgres) {
	at := p.NewURL(t) // one without the statistics of other tests
	opened(t, at)
	db, err := sql.Open("pgx", at)
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan`)
	require.NoError(t, err)
	for _, text := range everyStatement(t, opened(t, newFile(t))) {
		args := 0
		for _, m := range parameter.FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			args = max(args, n)
		}
		_, err := db.Exec(`PREPARE explained AS ` + text)
		require.NoError(t, err, text)
		values := ""
		if args > 0 {
			values = "(NULL" + strings.Repeat(", NULL", args-1) + ")"
		}
		plan := explain(t, db, `EXPLAIN EXECUTE explained`+values, 1)
		whole := strings.Join(plan, "\n")
		for i, step := range plan {
			require.NotContains(t, step, "Seq Scan", "%s\n%s", text, whole)
			if !strings.Contains(step, "Index") || !strings.Contains(step, "Scan") || pgFine(step) {
				continue
			}
			require.Less(t, i+1, len(plan), "%s\n%s", text, whole)
			require.Contains(t, plan[i+1], "Index Cond", "%s\n%s", text, whole)
		}
		_, err = db.Exec(`DEALLOCATE explained`)
		require.NoError(t, err)
	}
}

// pgFine tells whether a step may look at a whole index: it holds only what is live.
func pgFine(step string) bool {
	for _, live := range []string{"sessions_live", "processes_live", "session_lines_relay", "deposits_waiting", "relays_open", "relays_live"} {
		if strings.Contains(step, "using "+live+" ") || strings.Contains(step, "Bitmap Index Scan on "+live+" ") {
			return true
		}
	}
	return strings.Contains(step, "Backward using sessions_pkey ") // the newest, at most a limit
}

// readsAll tells whether a step of a plan looks at every row of a table, or of a seat.
func readsAll(step string) bool {
	for _, fine := range []string{
		"SCAN t", "SCAN n", // the groups of a subquery
		"SCAN p USING INDEX processes_live", // only what is live
		"USING COVERING INDEX ledger_seen",  // LastSeen, at boot
		"SCAN sessions USING INDEX sessions_live",
		"SCAN sessions USING INDEX sqlite_autoindex_sessions_1", // the newest, by number, at most a limit
		"SCAN session_lines USING INDEX session_lines_relay",    // what waits
		"SCAN x USING INDEX session_lines_relay",
		"SCAN w USING INDEX deposits_waiting",
		"SCAN w USING COVERING INDEX deposits_waiting",
	} {
		if strings.HasSuffix(step, fine) || strings.Contains(step, fine+" ") {
			return false
		}
	}
	return strings.HasPrefix(step, "SCAN") || strings.HasSuffix(step, "ledger_seen (seat=?)")
}
