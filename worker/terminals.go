package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"agentsmith/internal/config"
	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
)

// terminals is the box's tmux as tasks and relays see it: the server of the operators, and
// those of the sessions that people registered.
type terminals struct {
	tmux            terminal.Tmux
	outbox, command string
	box             string
	registry        registry
	log             *slog.Logger

	mu sync.Mutex
	// others are the sockets of the people's sessions, as they were read at that time.
	others []string
	read   time.Time
	// found are sessions as they were found last, by their identities.
	found map[string]terminal.Live
}

// registry is where the sessions of people stand.
type registry interface {
	Sessions(ctx context.Context) ([]store.Session, error)
}

// socketsKept is how long the sockets of people's sessions are taken for known.
const socketsKept = 10 * time.Second

func newTerminals(cfg *config.Config, r registry, logger *slog.Logger) *terminals {
	return &terminals{
		tmux:   terminal.Tmux{Command: cfg.Operators.Tmux, Socket: cfg.Operators.Socket},
		outbox: outboxOf(cfg, logger).Dir, command: filepath.Base(cfg.Agent.Command),
		box: cfg.Box, registry: r, log: logger, found: map[string]terminal.Live{},
	}
}

// servers are the tmux servers of this box, the operators' first.
func (t *terminals) servers(ctx context.Context, fresh bool) []terminal.Tmux {
	t.mu.Lock()
	defer t.mu.Unlock()
	if fresh || time.Since(t.read) > socketsKept {
		all, err := t.registry.Sessions(ctx)
		if err != nil {
			t.log.Warn("the sessions of people could not be looked up", "error", err)
		} else {
			t.others, t.read = nil, time.Now()
			for _, s := range all {
				if s.Kind == terminal.KindPerson && s.Box == t.box && s.Socket != t.tmux.Socket && !slices.Contains(t.others, s.Socket) {
					t.others = append(t.others, s.Socket)
				}
			}
		}
	}
	out := []terminal.Tmux{t.tmux}
	for _, socket := range t.others {
		out = append(out, terminal.Tmux{Command: t.tmux.Command, Socket: socket})
	}
	return out
}

// of is the server that a session is on.
func (t *terminals) of(l terminal.Live) terminal.Tmux {
	return terminal.Tmux{Command: t.tmux.Command, Socket: l.Socket}
}

func (t *terminals) target(l terminal.Live) terminal.Target {
	return terminal.Target{Session: l.Name, ID: l.ID, Command: t.command, Outbox: t.outbox}
}

// Live finds a session by its identity: where it was found last, else everywhere.
func (t *terminals) Live(ctx context.Context, session string) (terminal.Live, bool, error) {
	t.mu.Lock()
	last, known := t.found[session]
	t.mu.Unlock()
	if known && t.of(last).Still(ctx, last) {
		return last, true, nil
	}
	l, found, err := t.find(ctx, session)
	t.mu.Lock()
	defer t.mu.Unlock()
	if found && err == nil {
		t.found[session] = l
	} else {
		delete(t.found, session)
	}
	return l, found, err
}

func (t *terminals) find(ctx context.Context, session string) (terminal.Live, bool, error) {
	known := t.servers(ctx, false)
	for _, server := range known {
		if l, found, err := server.ByID(ctx, session); found || err != nil {
			return l, found, err
		}
	}
	for _, server := range t.servers(ctx, true) { // one that was registered a moment ago
		if slices.Contains(known, server) {
			continue
		}
		if l, found, err := server.ByID(ctx, session); found || err != nil {
			return l, found, err
		}
	}
	return terminal.Live{}, false, nil
}

// Blocked tells whether a session waits for a person at a dialog.
func (t *terminals) Blocked(ctx context.Context, l terminal.Live) (bool, error) {
	return t.of(l).Blocked(ctx, t.target(l))
}

// Type types a text into a session once.
func (t *terminals) Type(ctx context.Context, l terminal.Live, text terminal.Text) (terminal.Arrival, error) {
	return t.of(l).Type(ctx, t.target(l), text)
}

// Progress is what the operator's branch holds.
func (t *terminals) Progress(ctx context.Context, worktree, branch string) (terminal.Progress, error) {
	return terminal.ReadProgress(ctx, worktree, branch)
}

// Kill ends an operator's session by its identity. A person's is on no list of ours to kill
// from, wherever it is (X5).
func (t *terminals) Kill(ctx context.Context, session string) error { return t.tmux.Kill(ctx, session) }

// RemoveWorktree removes a worktree that holds nothing that is not elsewhere.
func (t *terminals) RemoveWorktree(ctx context.Context, worktree, branch string) error {
	return terminal.RemoveWorktree(ctx, worktree, branch)
}

// living are the identities of our sessions, and of registered ones, that run. One that was
// registered in the last seconds may be left out.
func (t *terminals) living(ctx context.Context) ([]string, error) {
	return identities(ctx, t.servers(ctx, false))
}

// livingNow leaves none out.
func (t *terminals) livingNow(ctx context.Context) ([]string, error) {
	return identities(ctx, t.servers(ctx, true))
}

func identities(ctx context.Context, servers []terminal.Tmux) ([]string, error) {
	var out []string
	for _, server := range servers {
		all, err := server.Sessions(ctx)
		if err != nil {
			return nil, fmt.Errorf("look at the sessions of %s: %w", server.Socket, err)
		}
		for _, l := range all {
			if l.ID != "" {
				out = append(out, l.ID)
			}
		}
	}
	return out, nil
}
