package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// sayTimeout bounds the line in ops_channel: what is wrong may be Slack itself.
const sayTimeout = 30 * time.Second

// Loud says trouble loudly: an error in the log, /healthz red, and one line in the
// ops channel (T6).
type Loud struct {
	Log    *slog.Logger
	Health *Health
	// Say posts one line of plain text to the ops channel, and escapes it; nil where
	// there is none. It must be safe for use by several goroutines.
	Say func(ctx context.Context, text string) error

	saying sync.WaitGroup
}

// Alarm says that the named thing is not well. It is logged every time, and said in
// the ops channel once, until Clear. It does not wait for Slack. Args are more
// pairs for the log line.
func (l *Loud) Alarm(ctx context.Context, name, text string, args ...any) {
	l.Log.ErrorContext(ctx, text, append([]any{"check", name}, args...)...)
	if l.Health.Red(name, text) {
		l.say(ctx, text)
	}
}

// Clear says that the named thing is well again. It is quiet when it was well.
func (l *Loud) Clear(ctx context.Context, name, text string, args ...any) {
	if !l.Health.wasRed(name) {
		l.Health.Green(name, text)
		return
	}
	if l.Health.Green(name, text) {
		l.Log.InfoContext(ctx, text, append([]any{"check", name}, args...)...)
		l.say(ctx, text)
	}
}

// Wait returns when what was to be said is said, or was given up. Call it last.
func (l *Loud) Wait() { l.saying.Wait() }

func (l *Loud) say(ctx context.Context, text string) {
	if l.Say == nil {
		return
	}
	l.saying.Go(func() {
		// The alarm of a process that is ending is said as well.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout)
		defer cancel()
		if err := l.Say(ctx, string(Clean([]byte(text)))); err != nil {
			l.Log.WarnContext(ctx, "the ops channel could not be told", KeyError, err)
		}
	})
}

func (h *Health) wasRed(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, known := h.checks[name]
	return known && !c.OK
}
