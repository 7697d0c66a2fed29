package terminal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agentsmith/internal/outbox"
)

// typingState is how far the typing of a text has come.
type typingState string

const (
	stateLoaded  typingState = "loaded"  // in a buffer of tmux; pasted when that is gone
	statePasted  typingState = "pasted"  // in the input box, no Enter pressed
	stateEntered typingState = "entered" // Enter pressed, or about to be
	stateArrived typingState = "arrived"
	stateUnsure  typingState = "unsure"
)

// entry is what is known of the typing of one text.
type entry struct {
	ID    string      `json:"id"`
	Sum   string      `json:"sum"`
	State typingState `json:"state"`
	// Enters counts the Enters pressed for it.
	Enters int    `json:"enters,omitempty"`
	Buffer string `json:"buffer"`
	// Glyphs and Rows tell how the input box shows it; Above is how often it stood on the
	// screen before.
	Glyphs string `json:"glyphs"`
	Rows   string `json:"rows,omitempty"`
	Above  int    `json:"above,omitempty"`
	// Mark is the newest prompt from before it was typed; Transcript and Offset are where
	// the CLI's own record of the conversation ended then.
	Mark       string `json:"mark,omitempty"`
	Transcript string `json:"transcript,omitempty"`
	Offset     int64  `json:"offset,omitempty"`
	// Queued: the transcript told of its arrival, so the hook may still tell of it later.
	Queued bool      `json:"queued,omitempty"`
	At     time.Time `json:"at"`
}

// journal is what was typed into one session lately, on disk before it is done. Whoever
// has the session's lock may use it.
type journal struct {
	dir     string
	Entries []*entry `json:"entries"`
	// Entered is when an Enter was pressed last.
	Entered time.Time `json:"entered,omitzero"`
}

const (
	journalFile  = "typing.json"
	maxJournal   = 4 << 20 // bytes
	journalTexts = 200
)

// errJournal says that the journal cannot be read. It is then set aside.
var errJournal = errors.New("the journal of what was typed cannot be read")

func openJournal(dir string) (*journal, error) {
	j := &journal{dir: dir}
	path := filepath.Join(dir, journalFile)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal of what was typed: %w", err)
	}
	var raw []byte
	if info.Mode().IsRegular() && info.Size() <= maxJournal {
		if raw, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("read the journal of what was typed: %w", err)
		}
	}
	if err := json.Unmarshal(raw, j); err != nil || slices.Contains(j.Entries, nil) {
		j.Entries = nil
		return j, errors.Join(errJournal, os.Rename(path, path+".bad"))
	}
	return j, nil
}

func (j *journal) find(id string) *entry {
	i := slices.IndexFunc(j.Entries, func(e *entry) bool { return e.ID == id })
	if i < 0 {
		return nil
	}
	return j.Entries[i]
}

func (j *journal) put(e *entry) {
	if j.find(e.ID) == nil {
		j.Entries = append(j.Entries, e)
	}
	j.Entries = j.Entries[max(len(j.Entries)-journalTexts, 0):]
}

func (j *journal) drop(id string) {
	j.Entries = slices.DeleteFunc(j.Entries, func(e *entry) bool { return e.ID == id })
}

// queuedBefore tells whether an equal text was seen queued before this one, so that a
// prompt may be that one's.
func (j *journal) queuedBefore(e *entry) bool {
	return slices.ContainsFunc(j.Entries, func(o *entry) bool { return o.ID != e.ID && o.Queued && o.Sum == e.Sum })
}

// arrived tells whether the input box shows a text that has arrived.
func (j *journal) arrived(v view) bool {
	return slices.ContainsFunc(j.Entries, func(e *entry) bool { return e.State == stateArrived && e.shows(v) })
}

// waits tells whether the input box shows a text that was pasted and not entered.
func (j *journal) waits(v view) bool {
	return slices.ContainsFunc(j.Entries, func(e *entry) bool { return e.State != stateArrived && e.shows(v) })
}

// save writes the journal whole: it is the old one or the new one after a crash.
func (j *journal) save() error {
	raw, err := json.Marshal(j)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(j.dir, journalFile+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(j.dir, journalFile))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	d, err := os.Open(j.dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}

func (y *typer) newEntry() *entry {
	id := sha256.Sum256([]byte(y.target.ID + "\n" + y.text.ID))
	return &entry{ID: y.text.ID, Sum: outbox.Sum(y.text.Body), Buffer: "smith-" + hex.EncodeToString(id[:12]),
		Glyphs: glyphSum(y.text.Body), Rows: rowsMore(y.text.Body), At: time.Now().UTC()}
}

func glyphSum(text string) string {
	sum := sha256.Sum256([]byte(glyphs(text)))
	return hex.EncodeToString(sum[:])
}
