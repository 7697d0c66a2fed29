package activities_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/store"
)

// yard is a box whose sessions are names only, on a clock of its own.
type yard struct {
	mu              sync.Mutex
	claims          []store.Claim
	waiting, living []string
	blind, deaf     error
	claimsErr       error
	asked           int
	woken           []string
	wakeErr         error
}

func (y *yard) Claims(_ context.Context, box string) ([]store.Claim, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.asked++
	if box != "main" {
		return nil, errors.New("another box")
	}
	return y.claims, y.claimsErr
}

func (y *yard) Wake(_ context.Context, seat, slug string) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.wakeErr == nil {
		y.woken = append(y.woken, seat+"/"+slug)
	}
	return y.wakeErr
}

// set changes what is to be seen, and lets some looks pass.
func (y *yard) set(looks int, change func()) string {
	y.mu.Lock()
	y.woken = nil
	change()
	y.mu.Unlock()
	time.Sleep(time.Duration(looks) * time.Second)
	synctest.Wait()
	y.mu.Lock()
	defer y.mu.Unlock()
	return strings.Join(y.woken, " ")
}

func watch(t *testing.T, do func(t *testing.T, y *yard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		y := &yard{claims: []store.Claim{
			{Seat: "smith", Slug: "one", Session: "s1"}, {Seat: "smith", Slug: "two", Session: "s2"}, {Seat: "smith", Slug: "claiming"},
		}}
		w := &activities.Watcher{
			Ledger: y, Tasks: y, Box: "main", Every: time.Second, Again: 10 * time.Second, Now: time.Now, Log: discard(),
			Waiting: func(context.Context) ([]string, error) { y.mu.Lock(); defer y.mu.Unlock(); return y.waiting, y.deaf },
			Living:  func(context.Context) ([]string, error) { y.mu.Lock(); defer y.mu.Unlock(); return y.living, y.blind },
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.Run(ctx); close(done) }()
		synctest.Wait()
		do(t, y)
		stop()
		<-done
	})
}

// R8, O10: a word wakes its task at once, and again only after a while.
func TestWatcher_WakesATaskForAWord(t *testing.T) {
	watch(t, func(t *testing.T, y *yard) {
		require.Empty(t, y.set(3, func() { y.living = []string{"s1", "s2"} }))
		require.Equal(t, "smith/two", y.set(1, func() { y.waiting = []string{"s2", "nobody's"} }))
		require.Empty(t, y.set(8, func() {}), "it knows already")
		require.Equal(t, "smith/two", y.set(3, func() {}), "it waits still")
		require.Equal(t, "smith/one", y.set(1, func() { y.waiting = []string{"s1"} }))
		require.Empty(t, y.set(1, func() { y.waiting = nil }), "it was taken")
		require.Equal(t, "smith/one", y.set(1, func() { y.waiting = []string{"s1"} }), "the next word is told at once")
	})
}

// O10: a session's death wakes its task once.
func TestWatcher_WakesATaskForADeath(t *testing.T) {
	watch(t, func(t *testing.T, y *yard) {
		require.Empty(t, y.set(2, func() { y.living = []string{"s1", "s2"} }))
		require.Equal(t, "smith/one", y.set(1, func() { y.living = []string{"s2"} }))
		require.Empty(t, y.set(30, func() {}))
		require.Equal(t, "smith/two", y.set(1, func() { y.living = nil }), "the last one too")
		require.Empty(t, y.set(5, func() { y.living = []string{"s1"} }))
		require.Equal(t, "smith/one", y.set(1, func() { y.living = nil }))
	})
}

// Not to see a session is no death; what could not be told is told again.
func TestWatcher_TakesNoFailureForADeath(t *testing.T) {
	watch(t, func(t *testing.T, y *yard) {
		y.set(2, func() { y.living = []string{"s1", "s2"} })
		require.Empty(t, y.set(5, func() { y.blind, y.living = errors.New("no tmux"), nil }))
		require.Equal(t, "smith/one", y.set(1, func() { y.blind, y.living = nil, []string{"s2"} }))
		require.Empty(t, y.set(5, func() { y.living, y.wakeErr = nil, errors.New("no Temporal") }))
		require.Equal(t, "smith/two", y.set(1, func() { y.wakeErr = nil }))
		y.set(2, func() { y.living = []string{"s1"} })
		require.Empty(t, y.set(5, func() { y.living, y.claimsErr = nil, errStore }))
		require.Equal(t, "smith/one", y.set(1, func() { y.claimsErr = nil }))
		require.Equal(t, "smith/two", y.set(1, func() { y.waiting, y.blind = []string{"s2"}, errors.New("no tmux") }), "words need no tmux")
		require.Empty(t, y.set(5, func() { y.waiting, y.deaf = nil, errors.New("no folder") }))
	})
}

// A box where nothing happens costs the store nothing.
func TestWatcher_AsksTheStoreOnlyWhenSomethingChanged(t *testing.T) {
	watch(t, func(t *testing.T, y *yard) {
		y.set(2, func() { y.living = []string{"s1", "s2"} })
		y.mu.Lock()
		before := y.asked
		y.mu.Unlock()
		y.set(100, func() {})
		y.mu.Lock()
		defer y.mu.Unlock()
		require.Equal(t, before, y.asked)
	})
}
