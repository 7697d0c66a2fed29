package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"agentsmith/internal/agent"
	"agentsmith/internal/config"
	"agentsmith/internal/terminal"
)

// load reads the config without any secret (X3). A config that is wrong is a
// *terminal.UsageError.
func load(path string) (*config.Config, error) {
	cfg, err := config.Load(path, os.Getenv, config.ForLauncher())
	if err != nil {
		return nil, &terminal.UsageError{Reason: err.Error()}
	}
	return cfg, nil
}

func tmux(cfg *config.Config) terminal.Tmux {
	return terminal.Tmux{Command: cfg.Operators.Tmux, Socket: cfg.Operators.Socket}
}

// request is what the config and the flags ask for.
func request(cfg *config.Config, f flags, brief string) (terminal.StartRequest, error) {
	seat, ok := cfg.Seat(f.Seat)
	if !ok || seat.Remote {
		return terminal.StartRequest{}, &terminal.UsageError{Reason: fmt.Sprintf("%q is no seat of this config whose agents run here", f.Seat)}
	}
	self, err := os.Executable()
	if err != nil {
		return terminal.StartRequest{}, fmt.Errorf("find this program: %w", err)
	}
	env := agent.SessionEnv(os.Environ(), cfg.Agent.PassEnv, cfg.Operators.Home)
	command, err := exec.LookPath(cfg.Agent.Command)
	if err == nil {
		command, err = filepath.Abs(command)
	}
	if err != nil {
		return terminal.StartRequest{}, fmt.Errorf("find the agent CLI: %w", err)
	}
	model := cfg.Operators.Model
	if model == "" {
		model = seat.Model
	}
	return terminal.StartRequest{
		Tmux: tmux(cfg), Seat: f.Seat, Slug: f.Slug, Thread: f.thread(), Repo: f.Repo, Checkouts: cfg.Checkouts(), Brief: brief, Asked: f.Asked,
		Dir: filepath.Join(cfg.DataDir, "operators"), Outbox: filepath.Join(cfg.DataDir, "outbox"),
		Limit: cfg.Operators.Limit, Self: self,
		Agent: terminal.Agent{
			Command: command, Env: env, Home: cfg.Operators.Home, Model: model,
			AllowedTools: seat.AllowedTools, DisallowedTools: seat.DisallowedTools, PermissionMode: seat.PermissionMode,
			SkipPermissions: cfg.Operators.SkipPermissions, Say: filepath.Join(filepath.Dir(self), "say"),
		},
	}, nil
}
