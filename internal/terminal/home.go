package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// keyTail is how much of an API key the CLI remembers as approved.
const keyTail = 20

// home is the operators' HOME. What the agent CLI would ask at its first start there, or in
// a folder that is new to it, is answered beforehand in its own file, .claude.json: nobody
// sits at an operator's terminal.
type home struct {
	dir   string
	locks locks
}

// welcome is what has to be known of a session before its CLI starts without a dialog.
type welcome struct {
	worktree string
	apiKey   string
	// skip: permissions are skipped, which the CLI would else have a person confirm.
	skip bool
	// person is the home of the user that all this runs as.
	person string
}

// prepare merges the answers into .claude.json: what else stands there is kept, and a
// reader finds the old file or the new one. The CLI writes the same file, under a lock of
// its own, which is taken too.
func (h home) prepare(ctx context.Context, w welcome) error {
	held, err := h.locks.take(ctx, lockHome, h.dir)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := os.MkdirAll(filepath.Join(h.dir, ".claude"), 0o700); err != nil {
		return fmt.Errorf("make the operators' home: %w", err)
	}
	if err := h.gitConfig(w.person); err != nil {
		return fmt.Errorf("write the operators' git config: %w", err)
	}
	path := filepath.Join(h.dir, ".claude.json")
	unlock, err := lockAsCLI(ctx, path)
	if err != nil {
		return fmt.Errorf("wait for the agent CLI's lock on %s: %w", path, err)
	}
	defer unlock()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the agent CLI's state: %w", err)
	}
	merged, err := mergeState(text, w)
	if err != nil {
		return fmt.Errorf("read the agent CLI's state %s: %w", path, err)
	}
	if bytes.Equal(merged, text) {
		return nil
	}
	if err := replaceFile(path, merged, 0o600); err != nil {
		return fmt.Errorf("write the agent CLI's state: %w", err)
	}
	return nil
}

// mergeState puts the answers into the text of a .claude.json, "" for none yet.
func mergeState(text []byte, w welcome) ([]byte, error) {
	state := map[string]any{}
	if len(bytes.TrimSpace(text)) > 0 {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.UseNumber()
		err := dec.Decode(&state)
		if err == nil && dec.Decode(new(any)) != io.EOF {
			err = errors.New("something stands after it")
		}
		if err != nil || state == nil {
			return nil, fmt.Errorf("it is no JSON object: %v", err)
		}
	}
	was, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	state["hasCompletedOnboarding"] = true
	if state["theme"] == nil {
		state["theme"] = "dark"
	}
	if w.skip {
		state["bypassPermissionsModeAccepted"] = true
	}
	if w.apiKey != "" {
		keys := object(state, "customApiKeyResponses")
		tail := w.apiKey[max(len(w.apiKey)-keyTail, 0):]
		if approved, _ := keys["approved"].([]any); !slices.Contains(approved, any(tail)) {
			keys["approved"] = append(approved, tail)
		}
	}
	project := object(object(state, "projects"), w.worktree)
	project["hasTrustDialogAccepted"] = true
	project["hasCompletedProjectOnboarding"] = true
	now, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(was, now) {
		return text, nil
	}
	return json.MarshalIndent(state, "", "  ")
}

// object returns the object under a key, and makes it where there is none.
func object(in map[string]any, key string) map[string]any {
	if o, ok := in[key].(map[string]any); ok {
		return o
	}
	o := map[string]any{}
	in[key] = o
	return o
}

// gitConfig gives operators a git that can commit: the user's own config is read after
// it, and never written, since what an agent sets with --global lands here.
func (h home) gitConfig(person string) error {
	f, err := os.OpenFile(filepath.Join(h.dir, ".gitconfig"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString("[user]\n\tname = Smith\n\temail = smith@localhost\n")
	if person != "" && filepath.Clean(person) != h.dir {
		path, _ := json.Marshal(filepath.Join(person, ".gitconfig"))
		_, more := fmt.Fprintf(f, "[include]\n\tpath = %s\n", path)
		err = errors.Join(err, more)
	}
	return errors.Join(err, f.Close())
}

// cliStale is the age at which the CLI takes another's lock for one whose holder died.
const cliStale = 10 * time.Second

// lockAsCLI takes the lock that the CLI takes to write a file: a folder beside it.
func lockAsCLI(ctx context.Context, path string) (unlock func(), err error) {
	lock := path + ".lock"
	for {
		err := os.Mkdir(lock, 0o700)
		if err == nil {
			return func() { _ = os.Remove(lock) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if st, err := os.Stat(lock); err == nil && time.Since(st.ModTime()) > cliStale {
			_ = os.Remove(lock)
			continue
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}
