package activities

import (
	"context"
	"log/slog"

	"agentsmith/rules"
)

// ShowStatus is for tests of what is shown, and when.
func ShowStatus(ctx context.Context, slack SlackClient, t rules.Thread, log *slog.Logger) (set func(string), end func()) {
	s := showStatus(ctx, slack, t, log)
	return s.set, s.end
}
