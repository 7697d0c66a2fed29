package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

// childRelays has a relay carry lines until it is killed, and prints each step once the
// store has said that it is durable.
func childRelays(ctx context.Context, s *store.Store, _ string) error {
	for n := 2; ; n++ {
		l := dmLine(n, "continue")
		if _, err := s.Record(ctx, seat, l, rules.Person, says(rules.Owed)); err != nil {
			return err
		}
		fmt.Println("recorded", n)
		r, err := s.OpenRelay(ctx, theDM())
		if err != nil {
			return err
		}
		q := store.SessionLine{Session: uuid1, Key: l.LineKey, Seat: seat, From: person, Text: l.Text, Relay: r.ID}
		err = s.DecideConversation(ctx, theDM(), func(store.ConversationState) []store.ConversationDecision {
			return []store.ConversationDecision{{Key: l.LineKey, Route: standing, Queue: &q}}
		})
		if err != nil {
			return err
		}
		fmt.Println("queued", n)
		if n%3 == 0 {
			if _, err := s.HandBack(ctx, q, json.RawMessage(`{"kind":"line"}`)); err != nil {
				return err
			}
			fmt.Println("back", n)
			continue
		}
		if _, err := s.BeginTyping(ctx, q); err != nil {
			return err
		}
		fmt.Println("typing", n)
		if err := s.EndTyping(ctx, q, store.LineTyped); err != nil {
			return err
		}
		fmt.Println("typed", n)
	}
}

// testRelayKilled kills a process that carries lines, at any step: what was acknowledged
// is there, and the ledger and the queue of each line agree (L3, R10).
func testRelayKilled(t *testing.T, newURL func(t *testing.T) string) {
	for _, acks := range []int{41, 82, 83, 84} {
		w := open(t, newURL)
		r := w.opened(1)
		cmd, out := child(t, "relay", w.url, "")
		lines := bufio.NewScanner(out)
		steps := map[int]string{}
		last, seen := 0, 0
		for lines.Scan() {
			var step string
			var n int
			if _, err := fmt.Sscan(lines.Text(), &step, &n); err != nil {
				continue // the last line, cut by the kill
			}
			steps[n], last = step, n
			if seen++; seen == acks {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait())
		require.GreaterOrEqual(t, seen, acks)
		_, waiting, err := w.RelayBatch(t.Context(), r)
		require.NoError(t, err)
		waits := map[rules.LineKey]store.LineState{}
		for _, l := range waiting {
			waits[l.Key] = l.State
		}
		for n, step := range steps {
			key := dmLine(n, "").LineKey
			row := w.stands(key)
			switch {
			case row.State == rules.Taken:
				require.Equal(t, store.LineTyping, waits[key], "line %d", n)
			case row.State == rules.Owed && row.StandsDown():
				require.Equal(t, store.LineQueued, waits[key], "line %d", n)
			default:
				require.NotContains(t, waits, key, "line %d is %s", n, row.State)
			}
			switch step {
			case "typed":
				require.Equal(t, rules.Relayed, row.State)
			case "back":
				require.True(t, row.NeedsDispatch() && !row.StandsDown())
			default:
				require.Equal(t, last, n, "only the last line was cut")
			}
		}
	}
}
