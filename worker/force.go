package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"agentsmith/activities"
	"agentsmith/internal/config"
	"agentsmith/internal/slackapi"
	"agentsmith/rules"
)

// dispatcherOf returns the dispatcher as it posts (A3). Its token may appear later, so it is
// looked for at each ask until one is there.
func dispatcherOf(cfg *config.Config, logger *slog.Logger) func(context.Context) (*activities.Seat, error) {
	var mu sync.Mutex
	var self *activities.Seat
	return func(ctx context.Context) (*activities.Seat, error) {
		mu.Lock()
		defer mu.Unlock()
		if self != nil {
			return self, nil
		}
		token, _, err := cfg.Dispatcher.Tokens(os.Getenv)
		if err != nil {
			return nil, err
		}
		if token == "" {
			return nil, errors.New("this worker has no token of the dispatcher")
		}
		slack := slackapi.New(slackapi.Options{
			Token: token.Reveal(), APIURL: cfg.Slack.APIURL, Timeout: cfg.Slack.RequestTimeout, Log: logger,
		})
		who, err := slack.AuthTest(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask Slack who the dispatcher is: %w", err)
		}
		self = &activities.Seat{Name: rules.DispatcherName, BotUser: who.UserID, Slack: slack}
		return self, nil
	}
}
