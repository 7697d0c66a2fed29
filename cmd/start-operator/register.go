package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"agentsmith/internal/config"
	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// registration is what --register prints.
type registration struct {
	Outcome  string        `json:"outcome"`
	Number   int           `json:"number"`
	Settings string        `json:"settings"`
	Session  terminal.Live `json:"session"`
}

// registered carries --register out, and says how to go on.
func (f flags) registered(ctx context.Context, out, errs io.Writer) int {
	r, err := f.register(ctx)
	if err == nil {
		err = json.NewEncoder(out).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(errs, "start-operator:", rules.Visible(err.Error()))
		return terminal.ExitCode(err)
	}
	fmt.Fprintf(errs, `This session is #%[1]d now. Start your agent CLI in it with

    claude --settings %[2]s

(--continue or --resume goes on with a conversation), so that its words come back. Then write
"work on %[1]d" to Smith in a direct message. Nothing here ever ends this session.
`, r.Number, r.Settings)
	return terminal.ExitStarted
}

// register gives the session its identity, and its number for good (R1).
func (f flags) register(ctx context.Context) (registration, error) {
	cfg, err := load(f.Config)
	if err != nil {
		return registration{}, err
	}
	server, name, err := f.whose(ctx, cfg)
	if err != nil {
		return registration{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return registration{}, fmt.Errorf("find this program: %w", err)
	}
	got, err := terminal.Register(ctx, terminal.RegisterRequest{
		Tmux: server, Session: name, Outbox: filepath.Join(cfg.DataDir, "outbox"), Dir: filepath.Join(cfg.DataDir, "sessions"),
		Say: filepath.Join(filepath.Dir(self), "say"),
	})
	var exists *terminal.ExistsError
	if errors.As(err, &exists) {
		return registration{}, fmt.Errorf("%s is an operator's session, and has its number: %w", exists.Live.Name, err)
	}
	if err != nil {
		return registration{}, err
	}
	ledger, err := store.Open(ctx, cfg.DatabaseURL.Reveal())
	if err != nil {
		return registration{}, fmt.Errorf("open the store: %w", err)
	}
	defer func() { _ = ledger.Close() }()
	number, err := ledger.RegisterSession(ctx, store.Session{
		ID: got.ID, Name: got.Name, Kind: terminal.KindPerson, Socket: server.Socket, Box: cfg.Box,
	})
	if err != nil {
		return registration{}, fmt.Errorf("register the session: %w", err)
	}
	return registration{Outcome: "registered", Number: number, Settings: got.Settings, Session: got.Live}, nil
}

// whose is the session that is meant: the one of --session, or that this runs in.
func (f flags) whose(ctx context.Context, cfg *config.Config) (terminal.Tmux, string, error) {
	server := terminal.Tmux{Command: cfg.Operators.Tmux, Socket: f.Socket}
	inside, _, _ := strings.Cut(os.Getenv("TMUX"), ",")
	if server.Socket == "" {
		server.Socket = inside
	}
	switch {
	case server.Socket == "":
		return server, "", &terminal.UsageError{Reason: "this does not run in tmux: name the server and the session with --socket and --session"}
	case f.Session != "":
		return server, f.Session, nil
	case server.Socket != inside || inside == "":
		return server, "", &terminal.UsageError{Reason: "--session is missing"}
	}
	name, err := server.Run(ctx, nil, "display-message", "-p", "-t", os.Getenv("TMUX_PANE"), "#{session_name}")
	if err != nil {
		return server, "", fmt.Errorf("ask tmux for the name of this session: %w", err)
	}
	return server, strings.TrimSpace(name), nil
}
