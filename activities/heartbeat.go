package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// heartbeatAfter is when an activity first says that it lives, and how often. Most end
// sooner: a heartbeat is a billable action.
const heartbeatAfter = 10 * time.Second

// beat sends heartbeats until the returned func is called.
func beat(ctx context.Context) (end func()) {
	done := make(chan struct{})
	go func() {
		ticks := time.NewTicker(heartbeatAfter)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				activity.RecordHeartbeat(ctx)
			case <-done:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { close(done) }
}

// Wait waits for d, or for the context's end.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
