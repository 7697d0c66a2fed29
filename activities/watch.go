package activities

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"agentsmith/internal/store"
)

// Watcher wakes the tasks of a box's operators when there is something to see: a word was
// left, or a session is gone. So a tick is a safety net only (O10, R8).
type Watcher struct {
	Ledger WatchLedger
	// Waiting are the sessions that left a word, Living those that run, by their identities.
	Waiting func(ctx context.Context) ([]string, error)
	Living  func(ctx context.Context) ([]string, error)
	Tasks   TaskWaker
	// Relays brings the words of relays on their way, and Ticks wakes what looks after one;
	// both are nil where there are no relays.
	Relays RelayWatch
	Ticks  TickWaker
	// Changed tells that a word was left, so that nobody waits for the next look; nil never does.
	Changed <-chan struct{}
	Box     string
	// Every is the time between two looks, Again that between two wakes for one cause.
	Every, Again time.Duration
	Now          func() time.Time
	Log          *slog.Logger

	woken map[string]time.Time
	lived map[string]bool
	// speaking: a relay's word was under way at the last look. swept is when relays were
	// looked for without a cause.
	speaking bool
	swept    time.Time
}

// RelayWatch is what Watcher asks of the relays.
type RelayWatch interface {
	// Due are the relays that this box has something to do for.
	Due(ctx context.Context) ([]store.RelayDue, error)
	// Speak brings the words of a relay's session on their way, and tells whether one is.
	Speak(ctx context.Context, r store.Relay) (bool, error)
	// Forget throws away what a session says that nobody listens to.
	Forget(ctx context.Context, session string) error
}

// TickWaker wakes the tick of a conversation's relays.
type TickWaker interface {
	WakeTick(ctx context.Context, seat, team, channel, box, relay string) error
}

// relaySweep is the time between two looks for relays whose wake was lost (R8).
const relaySweep = 20 * time.Second

// WatchLedger is what Watcher needs of the store.
type WatchLedger interface {
	Claims(ctx context.Context, box string) ([]store.Claim, error)
}

// Run looks until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	w.woken, w.lived = map[string]time.Time{}, map[string]bool{}
	tick := time.NewTicker(w.Every)
	defer tick.Stop()
	for hint := false; ; {
		w.look(ctx, hint)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			hint = false
		case _, ok := <-w.Changed:
			hint = true
			if !ok {
				w.Changed = nil
			}
		}
	}
}

// look wakes the tasks that have something to see. What cannot be read now is left to the
// next look, and to the tasks' own ticks. On a hint that a word was left the sessions are not
// looked at: that is a program for each, and the word would wait for it.
func (w *Watcher) look(ctx context.Context, hint bool) {
	waiting, err := w.Waiting(ctx)
	if err != nil {
		w.Log.Warn("words of sessions could not be looked for", "error", err)
	}
	words := set(waiting)
	if err == nil {
		// What was taken is no cause any more: the next word is a new one.
		maps.DeleteFunc(w.woken, func(session string, _ time.Time) bool { return !words[session] })
	}
	now, seen, changed := w.lived, false, false
	if !hint {
		living, err := w.Living(ctx)
		if err != nil {
			w.Log.Warn("sessions could not be looked for", "error", err)
		}
		now, seen = set(living), err == nil
		changed = !seen || !maps.Equal(now, w.lived)
	}
	taken := w.relays(ctx, words, now, seen, changed)
	if len(waiting) == 0 && !changed {
		return // nothing is new: the store is not asked
	}
	claims, err := w.Ledger.Claims(ctx, w.Box)
	if err != nil {
		w.Log.Warn("the box's operators could not be looked up", "error", err)
		return
	}
	for _, c := range claims {
		if c.Session == "" {
			continue
		}
		died := seen && w.lived[c.Session] && !now[c.Session]
		if words[c.Session] && !taken[c.Session] && w.Now().Sub(w.woken[c.Session]) >= w.Again || died {
			w.woken[c.Session] = w.Now()
			if err := w.Tasks.Wake(ctx, c.Seat, c.Slug); err != nil {
				w.Log.Warn("an operator's task could not be woken; it ticks", "slug", c.Slug, "error", err)
				delete(w.woken, c.Session)
				if died {
					now[c.Session] = true // its death is told again
				}
			}
		}
	}
	if seen {
		w.lived = now
	}
}

func set(names []string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}
