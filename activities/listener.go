package activities

import (
	"context"
	"errors"
	"fmt"

	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
)

// Listener is what a box's watcher asks of its relays. It is no activity: a word that comes
// back by it costs its offer and its post, and nothing more (R11).
type Listener struct{ Relay *Relay }

// Due are the relays that this box has something to do for.
func (x Listener) Due(ctx context.Context) ([]store.RelayDue, error) { return x.Relay.due(ctx) }

// Speak brings the words of a relay's session on their way, at once and without a tick (R11).
// It tells whether one is under way.
func (x Listener) Speak(ctx context.Context, relay store.Relay) (bool, error) {
	r := x.Relay
	v, err := r.voice(ctx, relay)
	if err != nil {
		return false, err
	}
	if err := r.speech().collect(ctx, v, relay.OpenedAt); err != nil {
		return false, err
	}
	return r.speak(ctx, relay, v)
}

// Forget throws away what a person's own session says while no relay listens to it.
func (x Listener) Forget(ctx context.Context, session string) error {
	r := x.Relay
	s, err := r.Ledger.SessionByID(ctx, session)
	if errors.Is(err, store.ErrNotFound) || err == nil && s.Kind != terminal.KindPerson {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up a session: %w", err)
	}
	words, err := r.Words.Words(session)
	if err != nil {
		return fmt.Errorf("look for words of a session: %w", err)
	}
	for _, w := range words {
		if err := r.Words.Remove(session, w.ID); err != nil {
			return fmt.Errorf("forget a word: %w", err)
		}
	}
	return nil
}
