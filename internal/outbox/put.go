package outbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"agentsmith/rules"
)

// lockPatience is how long a word waits for another writer of its session. Then it is
// written without the lock: whoever holds that may be stopped, and an agent CLI waits
// for its hooks.
const lockPatience = 2 * time.Second

// Put makes a word durable: when it returns nil, the word outlives a crash. Words put
// one after the other are read in that order; a text over MaxText is put as several.
// The errors are ErrSession, ErrEmpty, ErrFull and the file system's.
func (b Box) Put(ctx context.Context, w Word) error {
	w.Text = strings.TrimSpace(rules.StripControls(w.Text))
	if w.Text == "" {
		return ErrEmpty
	}
	if !knownKind(w.Kind) {
		return fmt.Errorf("put a word: unknown kind %.30q", w.Kind)
	}
	if w.At.IsZero() {
		w.At = time.Now().UTC()
	}
	return b.put(ctx, w.Session, words, func(write func(any) error) error {
		waiting, err := b.names(w.Session, words)
		if err != nil {
			return err
		}
		if len(waiting) >= maxWaiting {
			return ErrFull
		}
		part := w
		for rest := w.Text; rest != ""; {
			part.Text, rest = split(rest)
			if err := write(part); err != nil {
				return err
			}
		}
		return nil
	})
}

// PutPrompt records a prompt that the session's CLI took, and forgets all but the newest.
func (b Box) PutPrompt(ctx context.Context, p Prompt) error {
	p.Sum = Sum(p.Text)
	p.Text, _ = split(strings.ToValidUTF8(p.Text, "\uFFFD"))
	if p.At.IsZero() {
		p.At = time.Now().UTC()
	}
	return b.put(ctx, p.Session, prompts, func(write func(any) error) error {
		if err := write(p); err != nil {
			return err
		}
		return b.prune(p.Session)
	})
}

// put runs do under the session's lock, with a function that writes one value.
func (b Box) put(ctx context.Context, session, folder string, do func(write func(any) error) error) error {
	dir, err := b.SessionDir(session)
	if err != nil {
		return err
	}
	root, err := b.root(session)
	if err != nil {
		return fmt.Errorf("open the outbox of a session: %w", err)
	}
	defer func() { _ = root.Close() }()
	made := false
	for _, sub := range []string{"tmp", folder} {
		switch err := root.Mkdir(sub, 0o700); {
		case err == nil:
			made = true
		case !errors.Is(err, os.ErrExist):
			return fmt.Errorf("make the outbox of a session: %w", err)
		}
	}
	unlock := lock(ctx, filepath.Join(dir, "lock"))
	defer unlock()
	err = do(func(v any) error { return write(root, folder, v) })
	if err != nil && !errors.Is(err, ErrFull) {
		return fmt.Errorf("put into the outbox: %w", err)
	}
	for _, above := range []string{b.Dir, dir} {
		if !made || err != nil {
			break
		}
		if err = syncDir(above); err != nil {
			err = fmt.Errorf("put into the outbox: %w", err)
		}
	}
	return err
}

// lock takes a file's lock for a while only, and returns how to let it go.
func lock(ctx context.Context, path string) func() {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return func() {}
	}
	until := time.Now().Add(lockPatience)
	for unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		if time.Now().After(until) || ctx.Err() != nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return func() { _ = f.Close() }
}

// write makes one file, whole or not at all.
func write(root *os.Root, folder string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	name, err := nextID(root)
	if err != nil {
		return err
	}
	name += ".json"
	temp := "tmp/" + name
	f, err := root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = root.Rename(temp, folder+"/"+name)
	}
	if err != nil {
		_ = root.Remove(temp)
		return err
	}
	d, err := root.Open(folder)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}

// nextID is the time in nanoseconds, or one more than the last where the clock was put
// back, and a random part that makes it unique among all sessions.
func nextID(root *os.Root) (string, error) {
	at := time.Now().UnixNano()
	if raw, err := readFile(root, "last"); err == nil {
		if last, err := strconv.ParseInt(string(raw), 10, 64); err == nil && last >= at && last < at+maxAhead {
			at = last + 1
		}
	}
	_ = root.Remove("last") // whatever it is; a crash here leaves the clock
	if err := root.WriteFile("last", []byte(strconv.FormatInt(at, 10)), 0o600); err != nil {
		return "", err
	}
	var r [8]byte
	_, _ = rand.Read(r[:]) // it never fails
	return fmt.Sprintf("%019d-%s", at, hex.EncodeToString(r[:])), nil
}

// maxAhead bounds how far the last id may lie in the future, in nanoseconds: what says
// more was not written by this program.
const maxAhead = int64(10 * 365 * 24 * time.Hour)

// split cuts a text that is too long, at the end of a row where there is one.
func split(text string) (head, rest string) {
	if len(text) <= MaxText {
		return text, ""
	}
	cut := MaxText
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	if i := strings.LastIndexByte(text[:cut], '\n'); i > MaxText/2 {
		cut = i + 1
	}
	return text[:cut], text[cut:]
}

func knownKind(kind string) bool { return kind == Say || kind == Stop || kind == Notification }

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}
