package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

// testTogether lets two stores on one database, as the starter's and the worker's are,
// and many goroutines do everything to the same lines at once.
func testTogether(t *testing.T, newURL func(t *testing.T) string) {
	const lines, workers = 40, 12
	t.Run("TakeLines_EachLineOnce", func(t *testing.T) {
		w := open(t, newURL)
		stores := []*store.Store{w.Store, openURL(t, w.url)}
		var mu sync.Mutex
		takers := map[string][]string{}
		var all sync.WaitGroup
		for g := range workers {
			all.Go(func() {
				s := stores[g%len(stores)]
				for _, n := range rand.Perm(lines) {
					l := line(n, n, "hello")
					id := fmt.Sprintf("turn %d of %d", n, g)
					if _, err := s.Record(t.Context(), seat, l, rules.Person, says(rules.Owed)); err != nil {
						t.Error(err)
						return
					}
					got, err := s.TakeLines(t.Context(), turn(id, n), []store.TakeLine{{Line: l, Author: rules.Person, HasRow: true}})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					for _, taken := range got.Taken {
						takers[taken.TS] = append(takers[taken.TS], id)
					}
					mu.Unlock()
					if _, err := s.FinishTurn(t.Context(), id, seat, []rules.LineKey{l.LineKey}, rules.Answered, ""); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		require.Len(t, takers, lines)
		for n := range lines {
			require.Len(t, takers[ts(n)], 1, "line %d", n)
			r := w.is(n, rules.Answered, "")
			require.Equal(t, takers[ts(n)][0], r.Turn)
		}
	})
	t.Run("Record_BothCopiesAtOnceAreOneLine", func(t *testing.T) {
		w := open(t, newURL)
		stores := []*store.Store{w.Store, openURL(t, w.url)}
		for n := range lines {
			mention, message := line(n, n, "x"), line(n, n, "x")
			message.Files = []rules.File{{ID: "F1"}}
			var both sync.WaitGroup
			for i, l := range []rules.Line{mention, message} {
				both.Go(func() {
					state := rules.Owed
					if i == 1 {
						state = rules.Noted
					}
					if _, err := stores[i].Record(t.Context(), seat, l, rules.Person, says(state)); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
			w.is(n, rules.Owed, "")
			got, err := w.Line(w.ctx(), key(n))
			require.NoError(t, err)
			require.Equal(t, message, got)
		}
	})
	t.Run("Store_AFailedWriteTakesNoOtherWithIt", func(t *testing.T) {
		w := open(t, newURL)
		var all sync.WaitGroup
		for g := range 64 {
			all.Go(func() {
				_, err := w.Record(w.ctx(), seat, line(g, g, "x"), rules.Person, func(store.Facts) store.Verdict {
					if g%2 == 1 {
						panic("broken rule")
					}
					return store.Verdict{State: rules.Owed}
				})
				if (err != nil) != (g%2 == 1) {
					t.Errorf("line %d: %v", g, err)
				}
			})
		}
		all.Wait()
		got, err := w.Undispatched(w.ctx(), seat, 100)
		require.NoError(t, err)
		require.Len(t, got, 32)
		for g := range 64 {
			_, err := w.Line(w.ctx(), key(g))
			if g%2 == 1 {
				require.ErrorIs(t, err, store.ErrNotFound, "nothing of a failed write stays")
			} else {
				require.NoError(t, err)
			}
		}
	})
}
