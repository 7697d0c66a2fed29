package terminal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"agentsmith/internal/outbox"
)

// proofs look for a text's arrival (R10) in the two places that the agent CLI writes:
// by its UserPromptSubmit hook into the outbox, and into its transcript. The hook tells
// of a prompt when its turn begins, late if it waited; and never, if it was taken in the
// middle of a turn. The transcript tells of it when it is queued.
type proofs struct {
	box     outbox.Box
	session string
	j       *journal
	e       *entry
	read    int64 // how far the transcript was read
}

func (y *typer) newProofs() *proofs {
	return &proofs{box: y.box, session: y.target.ID, j: y.j, e: y.e, read: y.e.Offset}
}

// mark notes what was there before the text.
func (p *proofs) mark() error {
	all, err := p.box.Prompts(p.session, "")
	if err != nil {
		return err
	}
	for _, prompt := range all {
		p.e.Mark = prompt.ID
		if prompt.Transcript != "" {
			p.e.Transcript = prompt.Transcript
		}
	}
	f, err := openRegular(p.e.Transcript)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is made at the first answer: all of it is new
	}
	if err != nil {
		p.e.Transcript = ""
		return nil
	}
	defer func() { _ = f.Close() }()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		p.e.Transcript = ""
		return nil
	}
	p.e.Offset, p.read = end, end
	return nil
}

// found tells whether the text has arrived, and marks the entry if the hook may tell of
// it again.
func (p *proofs) found(e *entry) bool {
	if p.inTranscript() {
		e.Queued = true
		return true
	}
	// An equal text that was queued before has its own hook still to come.
	if p.j.queuedBefore(e) {
		return false
	}
	prompts, err := p.box.Prompts(p.session, e.Mark)
	if err != nil {
		return false // what cannot be read proves nothing
	}
	for _, prompt := range prompts {
		if prompt.Sum == e.Sum {
			return true
		}
	}
	return false
}

// inTranscript reads on in the transcript, whole rows only.
func (p *proofs) inTranscript() bool {
	if p.e.Transcript == "" {
		return false
	}
	f, err := openRegular(p.e.Transcript)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(p.read, io.SeekStart); err != nil {
		return false
	}
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		row, err := r.ReadBytes('\n')
		if err != nil {
			return false
		}
		p.read += int64(len(row))
		if text, ok := transcribed(row); ok && outbox.Sum(text) == p.e.Sum {
			return true
		}
	}
}

// transcribed returns the prompt that a row of a transcript says was taken or queued. A
// prompt that comes out of the queue has been told of before.
func transcribed(row []byte) (string, bool) {
	if !bytes.Contains(row, []byte(`"user"`)) && !bytes.Contains(row, []byte(`"enqueue"`)) {
		return "", false
	}
	var r struct {
		Type      string `json:"type"`
		Operation string `json:"operation"`
		Content   string `json:"content"`
		Source    string `json:"promptSource"`
		Message   struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(row, &r) != nil {
		return "", false
	}
	switch {
	case r.Type == "queue-operation" && r.Operation == "enqueue":
		return r.Content, true
	case r.Type == "user" && r.Source == "typed":
		var text string
		if json.Unmarshal(r.Message.Content, &text) == nil {
			return text, true
		}
	}
	return "", false
}

// openRegular opens a file whose path came from a session: nothing but a regular file is
// read, and no pipe is waited for.
func openRegular(path string) (*os.File, error) {
	if path == "" {
		return nil, os.ErrNotExist
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
