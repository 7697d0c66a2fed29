package activities

import (
	"context"
	"time"
)

// relays looks after the relays of this box: words are brought on their way at once, a death
// and a line whose wake was lost have the tick woken. It returns the sessions whose words
// it has taken. The store is asked when there is a cause, and now and then.
func (w *Watcher) relays(ctx context.Context, words, living map[string]bool, seen, changed bool) (taken map[string]bool) {
	sweep := w.Now().Sub(w.swept) >= relaySweep
	if w.Relays == nil || len(words) == 0 && !changed && !w.speaking && !sweep {
		return nil
	}
	due, err := w.Relays.Due(ctx)
	if err != nil {
		w.Log.Warn("the box's relays could not be looked up", "error", err)
		return nil
	}
	if sweep {
		w.swept = w.Now()
	}
	w.speaking = false
	taken, listened := map[string]bool{}, map[string]bool{}
	for _, d := range due {
		listened[d.Session] = true
		died := seen && d.Open() && !living[d.Session]
		if died && (changed || sweep) || d.Lines && sweep {
			if err := w.Ticks.WakeTick(ctx, d.Seat, d.Team, d.Channel, d.Box, d.ID); err != nil {
				w.Log.Warn("the tick of a relay could not be woken", "channel", d.Channel, "error", err)
				w.swept = time.Time{} // soon again
			}
		}
		if !words[d.Session] && !d.Words || taken[d.Session] {
			continue
		}
		under, err := w.Relays.Speak(ctx, d.Relay)
		if err != nil {
			w.Log.Warn("words of a session wait for the tick", "session", d.Session, "error", err)
			w.speaking = true
			continue
		}
		taken[d.Session] = true
		w.speaking = w.speaking || under
	}
	if sweep {
		w.forget(ctx, words, listened)
	}
	return taken
}

// forget has words thrown away that nobody listens to: those of a person's own session
// while no relay leads to it.
func (w *Watcher) forget(ctx context.Context, words, listened map[string]bool) {
	for session := range words {
		if listened[session] {
			continue
		}
		if err := w.Relays.Forget(ctx, session); err != nil {
			w.Log.Warn("words that nobody listens to could not be thrown away", "session", session, "error", err)
		}
	}
}
