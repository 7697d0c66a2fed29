package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What is relied on: the CLI keeps a session as
// <home>/.claude/projects/<directory, mangled>/<session id>.jsonl, or beneath
// CLAUDE_CONFIG_DIR. A file of that name, whatever is in it, makes --session-id an
// error ("is already in use"); --resume needs at least one message in it, else it is
// an error ("No conversation found"). A run that is killed before its first message
// is written may leave a file with none: neither flag works then, so such a file is
// set aside. Both refusals come before the prompt is read.
const (
	refusedResume = "No conversation found with session ID"
	refusedNew    = "is already in use"
)

// transcripts finds the sessions of a home directory.
type transcripts struct{ home, config string }

// find returns the files of a session: more than one if it was begun in several
// directories, which no caller of ours does.
func (t transcripts) find(session string) ([]string, error) {
	root := t.config
	if root == "" {
		root = filepath.Join(t.home, ".claude")
	}
	dirs, err := os.ReadDir(filepath.Join(root, "projects"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, d := range dirs {
		p := filepath.Join(root, "projects", d.Name(), session+".jsonl")
		if _, err := os.Stat(p); err == nil {
			found = append(found, p)
		}
	}
	return found, nil
}

// resumable tells whether the session exists with a conversation in it. A transcript
// without one is set aside.
func (t transcripts) resumable(session string) (bool, error) {
	files, err := t.find(session)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		has, err := hasMessage(f)
		if err != nil {
			return false, err
		}
		if has {
			return true, nil
		}
	}
	if len(files) > 0 {
		return false, t.setAside(session)
	}
	return false, nil
}

// setAside renames a session's files, so that its id may be used anew; nothing is
// removed.
func (t transcripts) setAside(session string) error {
	files, err := t.find(session)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Rename(f, fmt.Sprintf("%s.aside-%d", f, time.Now().UnixNano())); err != nil {
			return err
		}
	}
	return nil
}

// hasMessage looks for a line of a user or assistant. The file may be long and
// its lines longer, so it is read piecemeal and only until the first.
func hasMessage(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := r.ReadSlice('\n')
		if err == nil && (bytes.Contains(line, []byte(`"type":"user"`)) || bytes.Contains(line, []byte(`"type":"assistant"`))) {
			return true, nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return true, nil // only a message is that long
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		}
	}
}

// asWrongSession reads a refusal of the session out of what the CLI wrote, given
// that it ended with an error and began no turn.
func asWrongSession(stderr string, resume bool) *wrongSession {
	want := refusedNew
	if resume {
		want = refusedResume
	}
	if strings.Contains(stderr, want) {
		return &wrongSession{message: stderr}
	}
	return nil
}
