package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"agentsmith/internal/terminal"
)

// Operators says what the operators of a stack work with.
type Operators struct {
	// Checkouts are the git checkouts that they may write in.
	Checkouts []string
	// Config is laid over the operators' part of the config.
	Config map[string]any
}

// placeTmux chooses where the tmux server is, which start-operator starts. A socket's
// path must be short.
func (s *Stack) placeTmux() error {
	if s.Options.Operators == nil {
		return nil
	}
	var err error
	if s.tmuxDir, err = os.MkdirTemp("", "smith-tmux-"); err != nil {
		return fmt.Errorf("make a folder for the tmux server: %w", err)
	}
	s.Tmux = terminal.Tmux{Command: "tmux", Socket: filepath.Join(s.tmuxDir, "s")}
	return nil
}

// layOperators puts what operators need into the config.
func (s *Stack) layOperators(cfg map[string]any) {
	if s.Options.Operators == nil {
		return
	}
	cfg["writable_roots"] = s.Options.Operators.Checkouts
	lay(cfg, map[string]any{"operators": map[string]any{"socket": s.Tmux.Socket}})
	lay(cfg, map[string]any{"operators": s.Options.Operators.Config})
}

// stopOperators ends the stack's own tmux server with all that runs in it.
func (s *Stack) stopOperators() error {
	if s.tmuxDir == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	all, err := s.Tmux.Sessions(ctx)
	errs := []error{err}
	for _, l := range all {
		if l.ID != "" {
			errs = append(errs, s.Tmux.Kill(ctx, l.ID))
		}
	}
	// Without a session tmux ends by itself; a server that is stuck is told to.
	_, _ = s.Tmux.Run(ctx, nil, "kill-server")
	return errors.Join(append(errs, os.RemoveAll(s.tmuxDir))...)
}
