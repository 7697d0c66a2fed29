package stack

import (
	"context"
	"fmt"

	"agentsmith/internal/githubbox"
)

// The local GitHub's token and the secret of its webhook are no secrets: it is on
// loopback, and nothing of it is real.
const (
	githubToken  = "local-github-token"
	githubSecret = "local-github-webhook-secret"
)

// startGitHub starts the local GitHub, which sends webhooks to the starter.
func (s *Stack) startGitHub(ctx context.Context) error {
	var err error
	if s.githubDoor, err = freeAddr(); err != nil {
		return err
	}
	s.GitHub = githubbox.New(githubbox.Options{
		Token: githubToken, Log: s.Log, Hook: s.GitHubHook(),
	})
	if err := s.GitHub.Start(ctx, ""); err != nil {
		return fmt.Errorf("start the local GitHub: %w", err)
	}
	return nil
}

// GitHubHook is the webhook as the local GitHub has it, for tests that send their own.
func (s *Stack) GitHubHook() githubbox.Hook {
	return githubbox.Hook{URL: "http://" + s.githubDoor + "/github/webhook", Secret: githubSecret}
}
