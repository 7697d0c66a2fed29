package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// spoolLine is the largest line of a spool, in bytes. Slack's envelopes are far
// smaller; a larger one is not acked, and Slack keeps it.
const spoolLine = 4 << 20

// errSpoolLine is returned for an envelope that no spool takes.
var errSpoolLine = errors.New("the envelope is too large for the spool")

// spool keeps the envelopes of one seat while neither the store nor Temporal takes
// them (L2): one file of JSON lines, fsynced line by line, read back in order.
type spool struct {
	path string

	mu   sync.Mutex
	file *os.File
	size int64
}

// spooled is one line of the file.
type spooled struct {
	At       time.Time       `json:"at"`
	Envelope json.RawMessage `json:"envelope"`
}

// openSpool opens or creates the spool of a seat in dir. A last line that a crash cut
// short was never acked: it is closed off, so that the next one does not join it.
func openSpool(dir, seat string) (*spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the spool's directory: %w", err)
	}
	s := &spool{path: filepath.Join(dir, seat+".jsonl")}
	file, err := os.OpenFile(s.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the spool: %w", err)
	}
	s.file = file
	if err := errors.Join(s.closeOff(), syncDir(dir)); err != nil {
		return nil, errors.Join(fmt.Errorf("open the spool: %w", err), file.Close())
	}
	return s, nil
}

func (s *spool) closeOff() error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	s.size = info.Size()
	if s.size == 0 {
		return nil
	}
	last := make([]byte, 1)
	if _, err := s.file.ReadAt(last, s.size-1); err != nil {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	if _, err := s.file.Write([]byte{'\n'}); err != nil {
		return err
	}
	s.size++
	return s.file.Sync()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// keep writes one envelope and returns when it is on the disk. After an error the file
// is as it was.
func (s *spool) keep(envelope json.RawMessage) error {
	if !json.Valid(envelope) {
		envelope, _ = json.Marshal(string(envelope))
	}
	line, err := json.Marshal(spooled{At: time.Now().UTC(), Envelope: envelope})
	if err != nil {
		return fmt.Errorf("spool an envelope: %w", err)
	}
	if len(line) >= spoolLine {
		return fmt.Errorf("spool %d bytes: %w", len(line), errSpoolLine)
	}
	line = append(line, '\n')
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.file.Write(line)
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("spool an envelope: %w", err), s.takeBack(n))
	}
	s.size += int64(n)
	return nil
}

func (s *spool) takeBack(written int) error {
	if written == 0 {
		return nil
	}
	return s.file.Truncate(s.size)
}

// empty tells whether nothing is kept.
func (s *spool) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size == 0
}

// drain hands every kept envelope to take, in order, and then forgets them. It stops
// at the first error and forgets nothing then: what was taken already is taken again
// later, which the ledger makes harmless. A line that is none is handed over as it is.
func (s *spool) drain(take func(envelope json.RawMessage) error) error {
	in, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("read the spool: %w", err)
	}
	defer in.Close()
	var done int64
	for {
		s.mu.Lock()
		upTo := s.size
		if done == upTo {
			err := s.forget()
			s.mu.Unlock()
			return err
		}
		s.mu.Unlock()
		if err := each(io.NewSectionReader(in, done, upTo-done), take); err != nil {
			return err
		}
		done = upTo
	}
}

// forget empties the file; the lock is held.
func (s *spool) forget() error {
	if s.size == 0 {
		return nil
	}
	if err := errors.Join(s.file.Truncate(0), s.file.Sync()); err != nil {
		return fmt.Errorf("empty the spool: %w", err)
	}
	s.size = 0
	return nil
}

func each(r io.Reader, take func(json.RawMessage) error) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var kept spooled
			if json.Unmarshal(line, &kept) != nil || len(kept.Envelope) == 0 {
				kept.Envelope = line
			}
			if err := take(kept.Envelope); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the spool: %w", err)
		}
	}
}

// close closes the file; what is kept stays for the next start.
func (s *spool) close() error { return s.file.Close() }
