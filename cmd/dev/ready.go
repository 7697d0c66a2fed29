package main

import (
	"encoding/json"
	"fmt"
	"os"

	"agentsmith/internal/stack"
)

const readyFile = "ready.json"

// ready is what .dev/ready.json tells scripts: where everything is, and the tokens of the
// local Slack, which are no secrets.
type ready struct {
	SlackAPIURL     string               `json:"slack_api_url"`
	PageURL         string               `json:"page_url"`
	TemporalAddress string               `json:"temporal_address"`
	Namespace       string               `json:"namespace"`
	Team            string               `json:"team"`
	Channels        map[string]string    `json:"channels"`
	Users           map[string]readyUser `json:"users"`
	Apps            map[string]readyApp  `json:"apps"`
	// GitHubURL is the local GitHub, TmuxSocket the tmux server of the operators, Checkout
	// the repository that they work in.
	GitHubURL  string `json:"github_url"`
	TmuxSocket string `json:"tmux_socket"`
	Checkout   string `json:"checkout"`
}

type readyUser struct {
	ID    string `json:"id"`
	Token string `json:"token"`
}

type readyApp struct {
	BotUser  string `json:"bot_user"`
	BotToken string `json:"bot_token"`
	AppToken string `json:"app_token"`
}

// writeReady writes the file in one step: who sees it sees all of it.
func writeReady(path string, s *stack.Stack) error {
	state := s.Slack.State()
	r := ready{
		SlackAPIURL: s.Slack.URL(), PageURL: s.Slack.PageURL(),
		TemporalAddress: s.Temporal.Address, Namespace: stack.Namespace, Team: state.Team.ID,
		Channels: map[string]string{}, Users: map[string]readyUser{}, Apps: map[string]readyApp{},
		GitHubURL: s.GitHub.URL(), TmuxSocket: s.Tmux.Socket, Checkout: s.Operators.Checkouts[0],
	}
	for _, c := range state.Channels {
		r.Channels[c.Name] = c.ID
	}
	for _, u := range state.Users {
		r.Users[u.Name] = readyUser{ID: u.ID, Token: u.Token}
	}
	for _, a := range state.Apps {
		r.Apps[a.Name] = readyApp{BotUser: a.BotUser, BotToken: a.BotToken, AppToken: a.AppToken}
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func readReady(path string) (ready, error) {
	var r ready
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}
