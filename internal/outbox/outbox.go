// Package outbox is the folder that a session speaks through (R11): each word is one
// file, written by the say program in the session and read by the worker, so that
// neither waits for the other and a kill of either loses nothing. The prompts that
// reached the agent CLI are written there as well, which is how a typed line is known
// to have arrived (R10).
//
//	<dir>/<session>/words/<id>.json     what the session said, until it is removed
//	<dir>/<session>/prompts/<id>.json   the newest prompts that its CLI took
//	<dir>/<session>/bad/                what could not be read
//
// Whoever runs in a session may write anything here. Nothing read is taken for more
// than text, no name read leads out of the folder, and what is no word is set aside.
package outbox

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
)

// The kinds of a word.
const (
	Say          = "say"          // said on purpose, with the say program
	Stop         = "stop"         // the agent's last message when its turn ended
	Notification = "notification" // the CLI waits for a person
)

// MaxText bounds one word's text, in bytes. A longer one is put as several words.
const MaxText = 100 << 10

// maxWaiting bounds how many words of a session may wait, keptPrompts how many prompts
// are kept, and maxFile a file's size in bytes.
const (
	maxWaiting  = 2000
	keptPrompts = 500
	maxFile     = 2 << 20
)

// ErrFull says that so many words of the session wait that no more are taken.
var ErrFull = errors.New("too many words wait in the outbox")

// ErrEmpty says that there is no text to put.
var ErrEmpty = errors.New("there is no text to say")

// ErrSession says that a session's id is no UUID in its usual form.
var ErrSession = errors.New("the session is no UUID")

// Box is an outbox of all sessions of a machine. It is safe for concurrent use, by
// many processes.
type Box struct {
	// Dir is the folder. It need not exist.
	Dir string
	// Log hears of what could not be read; nil is slog.Default().
	Log *slog.Logger
}

// Word is something that a session said.
type Word struct {
	// ID is unique among all sessions, and grows with time within one. It is set by Put.
	ID string `json:"-"`
	// Session is the session's UUID. What stands in a file does not count.
	Session string `json:"-"`
	Kind    string `json:"kind"`
	Text    string `json:"text"`
	// Detail is what a notification is about, in the CLI's words: "permission_prompt".
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"at"`
}

// Prompt is a prompt that a session's CLI took.
type Prompt struct {
	// ID grows with time within a session. It is set by PutPrompt.
	ID      string `json:"-"`
	Session string `json:"-"`
	// Text is the prompt, cut at MaxText; Sum is Sum of all of it.
	Text string `json:"text"`
	Sum  string `json:"sum"`
	// Transcript is the path of the file that the CLI keeps the conversation in.
	Transcript string    `json:"transcript,omitempty"`
	At         time.Time `json:"at"`
}

// Sessions returns the sessions that have words waiting, in no particular order.
func (b Box) Sessions() ([]string, error) {
	entries, err := os.ReadDir(b.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the outbox: %w", err)
	}
	var sessions []string
	for _, e := range entries {
		if !e.IsDir() || checkSession(e.Name()) != nil {
			continue
		}
		names, err := b.names(e.Name(), words)
		if err != nil {
			b.log().Warn("outbox: a session's folder cannot be read", "session", e.Name(), "error", err)
			continue
		}
		if len(names) > 0 {
			sessions = append(sessions, e.Name())
		}
	}
	return sessions, nil
}

// SessionDir returns the folder of a session and makes it where it is missing. The
// error is ErrSession, or the file system's.
func (b Box) SessionDir(session string) (string, error) {
	if err := checkSession(session); err != nil {
		return "", err
	}
	dir := filepath.Join(b.Dir, session)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the outbox of a session: %w", err)
	}
	return dir, nil
}

// root opens the folder of a session: no path below it leads out of the outbox.
func (b Box) root(session string) (*os.Root, error) {
	if err := checkSession(session); err != nil {
		return nil, err
	}
	all, err := os.OpenRoot(b.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = all.Close() }()
	return all.OpenRoot(session)
}

// checkSession takes a UUID in the one form that names a folder.
func checkSession(session string) error {
	id, err := uuid.Parse(session)
	if err != nil || id.String() != session {
		return fmt.Errorf("outbox: %w: %.60q", ErrSession, session)
	}
	return nil
}

func (b Box) log() *slog.Logger {
	if b.Log == nil {
		return slog.Default()
	}
	return b.Log
}
