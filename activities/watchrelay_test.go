package activities_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// ears is a yard whose relays are heard.
type ears struct {
	yard
	due  []store.RelayDue
	told []string
	// looked counts the looks at the sessions.
	looked int
}

func (e *ears) note(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = append(e.told, what)
}

// with does something with what is to be seen while nobody looks.
func (e *ears) with(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do()
}

func (e *ears) Due(context.Context) ([]store.RelayDue, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.due, nil
}

func (e *ears) Speak(_ context.Context, r store.Relay) (bool, error) {
	e.note("speak " + r.Session)
	return false, nil
}

func (e *ears) Forget(_ context.Context, session string) error {
	e.note("forget " + session)
	return nil
}

func (e *ears) WakeTick(_ context.Context, _, _, channel, _, _ string) error {
	e.note("tick " + channel)
	return nil
}

func relayDue(session, channel string, lines bool) store.RelayDue {
	return store.RelayDue{Lines: lines, Relay: store.Relay{
		Relay: rules.Relay{ID: channel + "/1", Session: session, OpenedTS: "1.000000"}, Conversation: store.Conversation{Channel: channel},
	}}
}

// hear runs a watcher in which s1 lives, and a relay leads to it. It gives what was told
// since the last call.
func hear(t *testing.T, do func(t *testing.T, e *ears, hint chan struct{}, since func(time.Duration) string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &ears{due: []store.RelayDue{relayDue("s1", "D1", false)}}
		e.living, e.claims = []string{"s1"}, []store.Claim{{Seat: "smith", Slug: "one", Session: "s1"}}
		hint := make(chan struct{})
		w := &activities.Watcher{
			Ledger: e, Tasks: e, Relays: e, Ticks: e, Changed: hint, Box: "main", Every: time.Second, Again: 10 * time.Second, Now: time.Now, Log: discard(),
			Waiting: func(context.Context) ([]string, error) { e.mu.Lock(); defer e.mu.Unlock(); return e.waiting, nil },
			Living: func(context.Context) ([]string, error) {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.looked++
				return e.living, nil
			},
		}
		ctx, stop := context.WithCancel(t.Context())
		var done sync.WaitGroup
		done.Go(func() { w.Run(ctx) })
		since := func(d time.Duration) string {
			time.Sleep(d)
			synctest.Wait()
			e.mu.Lock()
			defer e.mu.Unlock()
			told := strings.Join(e.told, ", ")
			e.told = nil
			return told
		}
		synctest.Wait()
		since(500 * time.Millisecond)
		do(t, e, hint, since)
		stop()
		done.Wait()
	})
}

// R11: a word is brought on its way the moment it is left, without a look at the sessions
// and without waking the operator's task.
func TestWatcher_BringsARelaysWordAtOnce(t *testing.T) {
	hear(t, func(t *testing.T, e *ears, hint chan struct{}, since func(time.Duration) string) {
		var before, after int
		e.with(func() { before, e.waiting = e.looked, []string{"s1"} })
		hint <- struct{}{}
		require.Equal(t, "speak s1", since(0))
		e.with(func() { after, e.waiting = e.looked, nil })
		require.Equal(t, before, after)
		require.Empty(t, since(5*time.Second))
		e.with(func() { require.Empty(t, e.woken) })
	})
}

// R8: a line whose wake was lost is looked for every 20 s, a death is told at once.
func TestWatcher_WakesTheTickOfWhatNobodyHeard(t *testing.T) {
	hear(t, func(t *testing.T, e *ears, _ chan struct{}, since func(time.Duration) string) {
		e.with(func() { e.due = []store.RelayDue{relayDue("s1", "D1", true)} })
		require.Empty(t, since(10*time.Second))
		require.Equal(t, "tick D1", since(11*time.Second))
		e.with(func() { e.due = []store.RelayDue{relayDue("s1", "D1", false)} })
		require.Empty(t, since(20*time.Second))
		e.with(func() { e.living = nil })
		require.Equal(t, "tick D1", since(2*time.Second))
	})
}

// R11: what a session says that no relay leads to is thrown away, if it is a person's.
func TestWatcher_HasWordsForgottenThatNobodyListensTo(t *testing.T) {
	hear(t, func(t *testing.T, e *ears, _ chan struct{}, since func(time.Duration) string) {
		e.with(func() { e.waiting, e.living = []string{"mine"}, []string{"mine", "s1"} })
		require.Contains(t, since(21*time.Second), "forget mine")
		require.NotContains(t, since(21*time.Second), "forget s1")
	})
}
