package activities

import (
	"context"
	"log/slog"
	"time"

	"agentsmith/rules"
)

// statusRefresh is when a status is shown again: Slack takes it away after 2 minutes (B7).
const statusRefresh = 90 * time.Second

// status shows what the agent is doing under the thread's composer. It never holds the
// run up: Slack is told in the background, and only the newest text counts.
type status struct {
	texts  chan string
	cancel context.CancelFunc
	done   chan struct{}
}

// showStatus starts to show. A thread that does not exist yet has no status.
func showStatus(ctx context.Context, slack SlackClient, t rules.Thread, log *slog.Logger) *status {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &status{texts: make(chan string, 1), cancel: cancel, done: make(chan struct{})}
	if t.Root == "" {
		close(s.done)
		return s
	}
	go s.run(ctx, slack, t, log)
	return s
}

func (s *status) run(ctx context.Context, slack SlackClient, t rules.Thread, log *slog.Logger) {
	defer close(s.done)
	refresh := time.NewTicker(statusRefresh)
	defer refresh.Stop()
	var text string
	for {
		select {
		case <-ctx.Done():
			return
		case text = <-s.texts:
		case <-refresh.C:
		}
		if text == "" {
			continue
		}
		if err := slack.SetStatus(ctx, t.Channel, t.Root, text); err != nil && ctx.Err() == nil {
			log.Warn("the status could not be shown", "channel", t.Channel, "thread", t.Root, "error", err)
		}
	}
}

// set shows another text. Only the newest that was not shown yet is kept.
func (s *status) set(text string) {
	for {
		select {
		case s.texts <- text:
			return
		default:
		}
		select {
		case <-s.texts:
		default:
		}
	}
}

// end stops showing, and returns when no call is under way any more: what clears the
// status afterwards is the last word.
func (s *status) end() {
	s.cancel()
	<-s.done
}
