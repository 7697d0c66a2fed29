package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/config"
	"agentsmith/internal/slackbox"
)

// The seats that work here are asked who they are; the others are known for hand-offs (D5).
func TestSeatsOf_AsksSlackWhoEachSeatIs(t *testing.T) {
	slack := slackbox.New(slackbox.Options{})
	require.NoError(t, slack.Start(t.Context(), ""))
	t.Cleanup(func() { _ = slack.Close() })
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg := &config.Config{Box: "main", Seats: []config.Seat{
		{Name: "smith", Box: "main", BotToken: "xoxb-local-smith", BotTokenEnv: "SMITH_BOT_TOKEN"},
		{Name: "trinity", Remote: true, BotUser: "U0TRINITY01"},
		{Name: "morpheus", Box: "attic"},
	}}
	cfg.Slack.APIURL, cfg.Slack.RequestTimeout = slack.URL(), 5*time.Second
	got, _, err := seatsOf(t.Context(), cfg, logger)
	require.NoError(t, err)
	require.Len(t, got.ByName, 1)
	require.Equal(t, got.BotUsers["smith"], got.ByName["smith"].BotUser)
	require.Equal(t, "U0TRINITY01", got.BotUsers["trinity"])
	require.NotContains(t, got.BotUsers, "morpheus", "nobody knows its uid")

	// A token that Slack does not take is told of by its variable's name alone (X3).
	slack.RevokeToken("xoxb-local-smith")
	_, _, err = seatsOf(t.Context(), cfg, logger)
	require.ErrorContains(t, err, "SMITH_BOT_TOKEN")
	require.NotContains(t, err.Error()+log.String(), "xoxb")
}
