package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"agentsmith/internal/outbox"
)

// RegisterRequest makes a person's own tmux session one that a relay can reach (R1).
type RegisterRequest struct {
	// Tmux is the server that it is on, Session its exact name.
	Tmux    Tmux
	Session string
	// Outbox is the folder of all outboxes, Dir where the settings of people's sessions go.
	Outbox, Dir string
	// Say is the absolute path of the say program.
	Say string
}

// Registered is a person's session with its identity.
type Registered struct {
	Live
	// Settings is a file for the agent CLI's --settings: with it the session's words and
	// prompts are told of.
	Settings string `json:"settings"`
}

// Register gives a person's session its identity, or finds the one that it has, and writes
// how its agent CLI speaks. Nothing that runs in it is touched, and nothing of ours ever
// ends it (X5). The errors are *UsageError, *ExistsError for an operator's session, and tmux's.
func Register(ctx context.Context, r RegisterRequest) (Registered, error) {
	live, found, err := r.Tmux.Find(ctx, r.Session)
	switch {
	case err != nil:
		return Registered{}, fmt.Errorf("look for the session: %w", err)
	case !found:
		return Registered{}, &UsageError{Reason: fmt.Sprintf("tmux has no session %q", clip(r.Session, 60))}
	case live.Kind == KindOperator:
		return Registered{}, &ExistsError{Live: live}
	}
	if live.ID == "" {
		live.ID, live.Kind, live.Outbox = uuid.NewString(), KindPerson, r.Outbox
		for name, value := range map[string]string{EnvSession: live.ID, EnvOutbox: r.Outbox} {
			if _, err := r.Tmux.Run(ctx, nil, "set-environment", "-t", live.target, name, value); err != nil {
				return Registered{}, fmt.Errorf("mark the session: %w", err)
			}
		}
	}
	if uuid.Validate(live.ID) != nil {
		return Registered{}, &UsageError{Reason: "the session has something else in " + EnvSession}
	}
	if _, err := (outbox.Box{Dir: r.Outbox}).SessionDir(live.ID); err != nil {
		return Registered{}, fmt.Errorf("make the session's outbox: %w", err)
	}
	settings, err := writeSettings(r, live.ID)
	return Registered{Live: live, Settings: settings}, err
}

// writeSettings writes the hooks of a person's session: they name it themselves, since a
// program that runs already has not got its environment.
func writeSettings(r RegisterRequest, id string) (string, error) {
	say := "env " + shellQuote(EnvSession+"="+id) + " " + shellQuote(EnvOutbox+"="+r.Outbox) + " " + shellQuote(r.Say)
	text, err := json.MarshalIndent(map[string]any{"hooks": sayHooks(say), "env": map[string]string{EnvSession: id, EnvOutbox: r.Outbox}}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write the session's settings: %w", err)
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return "", fmt.Errorf("write the session's settings: %w", err)
	}
	path := filepath.Join(r.Dir, id+".json")
	temp := path + ".new"
	err = os.WriteFile(temp, append(text, '\n'), 0o600)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return "", fmt.Errorf("write the session's settings: %w", err)
	}
	return path, nil
}
