package outbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
	"golang.org/x/text/unicode/norm"

	"agentsmith/rules"
)

// The folders of a session.
const (
	words   = "words"
	prompts = "prompts"
	bad     = "bad"
)

// maxRead bounds how many words one call returns.
const maxRead = 200

// Words returns the oldest waiting words of a session, in order; none is an empty list.
// A file that is no word is set aside, logged and left out. The error is ErrSession or
// the file system's.
func (b Box) Words(session string) ([]Word, error) {
	var found []Word
	err := b.each(session, words, func(id string, raw []byte) error {
		w, err := decodeWord(raw)
		if err != nil {
			return err
		}
		w.ID, w.Session = id, session
		found = append(found, w)
		return nil
	}, func() bool { return len(found) < maxRead })
	return found, err
}

// Prompts returns the prompts that a session's CLI took after the one with that id, in
// order; after "" is all that are kept.
func (b Box) Prompts(session, after string) ([]Prompt, error) {
	var found []Prompt
	err := b.each(session, prompts, func(id string, raw []byte) error {
		if id <= after {
			return nil
		}
		var p Prompt
		if err := json.Unmarshal(raw, &p); err != nil {
			return err
		}
		p.ID, p.Session = id, session
		found = append(found, p)
		return nil
	}, func() bool { return true })
	return found, err
}

// LastPrompt returns the id of the newest prompt, "" when there is none.
func (b Box) LastPrompt(session string) (string, error) {
	ids, err := b.names(session, prompts)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	return ids[len(ids)-1], nil
}

// Remove deletes a word, once it is kept elsewhere. A word that is gone is no error.
func (b Box) Remove(session, id string) error {
	if !validID.MatchString(id) {
		return fmt.Errorf("remove a word: %.60q is no id of a word", id)
	}
	root, err := b.root(session)
	if err != nil {
		return absent(err)
	}
	defer func() { _ = root.Close() }()
	if err := absent(root.Remove(words + "/" + id + ".json")); err != nil {
		return fmt.Errorf("remove a word: %w", err)
	}
	return nil
}

// Sum tells texts apart as an agent CLI keeps them: white space and the composition of
// letters do not count.
func Sum(text string) string {
	sum := sha256.Sum256([]byte(Squash(text)))
	return hex.EncodeToString(sum[:])
}

// Squash is a text without its white space, its letters composed (NFC).
func Squash(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, norm.NFC.String(strings.ToValidUTF8(text, "\uFFFD")))
}

// each reads the files of a folder in order, while more says so. What take refuses, or
// cannot be read, is set aside.
func (b Box) each(session, folder string, take func(id string, raw []byte) error, more func() bool) error {
	ids, err := b.names(session, folder)
	if err != nil || len(ids) == 0 {
		return err
	}
	root, err := b.root(session)
	if err != nil {
		return fmt.Errorf("open the outbox of a session: %w", absent(err))
	}
	defer func() { _ = root.Close() }()
	for _, id := range ids {
		if !more() {
			break
		}
		name := folder + "/" + id + ".json"
		raw, err := readFile(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another reader was faster
		}
		if err == nil {
			err = take(id, raw)
		}
		if err != nil {
			b.setAside(root, session, folder, id+".json", err)
		}
	}
	return nil
}

// names returns the ids of a folder, oldest first. A file whose name is none of ours is
// set aside.
func (b Box) names(session, folder string) ([]string, error) {
	root, err := b.root(session)
	if err != nil {
		return nil, absent(err)
	}
	defer func() { _ = root.Close() }()
	d, err := root.Open(folder)
	if err != nil {
		return nil, absent(err)
	}
	defer func() { _ = d.Close() }()
	all, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list the outbox of a session: %w", err)
	}
	var ids []string
	for _, name := range all {
		id, ok := strings.CutSuffix(name, ".json")
		if !ok || !validID.MatchString(id) {
			b.setAside(root, session, folder, name, errors.New("the name is none of ours"))
			continue
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

// setAside moves a file out of the way. Its content may be anything: it is not logged.
func (b Box) setAside(root *os.Root, session, folder, name string, why error) {
	err := root.Mkdir(bad, 0o700)
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = root.Rename(folder+"/"+name, bad+"/"+folder+"-"+name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	b.log().Warn("outbox: a file that cannot be read is set aside", "session", session,
		"file", rules.Visible(folder+"/"+name), "why", rules.Visible(why.Error()), "error", err)
}

// prune forgets all but the newest prompts.
func (b Box) prune(session string) error {
	ids, err := b.names(session, prompts)
	if err != nil || len(ids) <= keptPrompts {
		return err
	}
	root, err := b.root(session)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, id := range ids[:len(ids)-keptPrompts] {
		if err := absent(root.Remove(prompts + "/" + id + ".json")); err != nil {
			return err
		}
	}
	return nil
}

// readFile reads a regular file of at most maxFile bytes, and waits for no pipe.
func readFile(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, errors.New("not a regular file of a fair size")
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// decodeWord reads what may have been written by anyone.
func decodeWord(raw []byte) (Word, error) {
	var w Word
	dec := json.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(&w); err != nil {
		return Word{}, fmt.Errorf("read a word: %w", err)
	}
	w.Text = strings.TrimSpace(rules.StripControls(w.Text))
	if !knownKind(w.Kind) || w.Text == "" || len(w.Text) > maxFile {
		return Word{}, errors.New("read a word: it has no known kind, or no text")
	}
	if !detail.MatchString(w.Detail) {
		w.Detail = ""
	}
	return w, nil
}

// absent makes a missing file no error.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

var (
	validID = regexp.MustCompile(`^[0-9]{19}-[0-9a-f]{16}$`)
	detail  = regexp.MustCompile(`^[a-z0-9_]{1,60}$`)
)
