package proof

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
)

// AllowedEntry is one difference, or one surviving mutant, that somebody has looked at and
// means. An empty History or Code matches any.
type AllowedEntry struct {
	// Specimen is a name or a pattern as of path.Match: reply/1-*.json.
	Specimen string `json:"specimen"`
	// Command is kind and name, as a difference prints them: "activity Post".
	Command string `json:"command"`
	// Field is the place, "input[0].drives"; one that ends in * allows what begins so.
	Field   string `json:"field,omitempty"`
	History string `json:"history,omitempty"`
	Code    string `json:"code,omitempty"`
	// Mutant is "drop", "retype", "requalify" or "swap" for a surviving mutant; then Field is empty.
	Mutant string `json:"mutant,omitempty"`
	// Reason says why it is meant. It is what the review is about.
	Reason string `json:"reason"`
}

// Allowed is the list of what is meant. The same list must not be used by two proofs at a time.
type Allowed struct {
	entries []AllowedEntry
	mu      sync.Mutex
	used    []bool
}

// LoadAllowed reads the reviewed file: a JSON list of entries. A missing file is an empty list.
func LoadAllowed(file string) (*Allowed, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return NewAllowed(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("read the allowed differences: %w", err)
	}
	var entries []AllowedEntry
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&entries); err != nil {
		return nil, fmt.Errorf("read the allowed differences %s: %w", file, err)
	}
	return NewAllowed(entries)
}

// NewAllowed checks the entries: each needs a specimen, a command, one of a field and a
// mutant, and a reason.
func NewAllowed(entries []AllowedEntry) (*Allowed, error) {
	for i, e := range entries {
		if _, err := path.Match(e.Specimen, ""); err != nil || e.Specimen == "" || e.Command == "" ||
			(e.Field == "") == (e.Mutant == "") || e.Field == "*" || strings.TrimSpace(e.Reason) == "" {
			return nil, fmt.Errorf("allowed difference %d: it needs a specimen, a command, either a field or a mutant, and a reason", i+1)
		}
	}
	return &Allowed{entries: entries, used: make([]bool, len(entries))}, nil
}

// reason returns why a difference is allowed, "" when it is not. Using marks the entry as
// one that is still needed.
func (a *Allowed) reason(d Difference, using bool) string {
	return a.find(using, d.Specimen, d.Command, func(e AllowedEntry) bool {
		field := e.Field == d.Field
		if begin, any := strings.CutSuffix(e.Field, "*"); any {
			field = strings.HasPrefix(d.Field, begin)
		}
		return e.Mutant == "" && field && (e.History == "" || e.History == d.History) && (e.Code == "" || e.Code == d.Code)
	})
}

func (a *Allowed) mutant(m Mutant) string {
	return a.find(true, m.Specimen, m.Command, func(e AllowedEntry) bool { return e.Mutant == m.Change })
}

func (a *Allowed) find(using bool, specimen, command string, fits func(AllowedEntry) bool) string {
	if a == nil {
		return ""
	}
	for i, e := range a.entries {
		if ok, _ := path.Match(e.Specimen, specimen); !ok || e.Command != command || !fits(e) {
			continue
		}
		if using {
			a.mu.Lock()
			a.used[i] = true
			a.mu.Unlock()
		}
		return e.Reason
	}
	return ""
}

// unused are the entries that nothing needed: the difference is gone, so its excuse must go.
func (a *Allowed) unused(mutants bool) (out []string) {
	if a == nil {
		return nil
	}
	for i, e := range a.entries {
		if !a.used[i] && (mutants || e.Mutant == "") {
			out = append(out, fmt.Sprintf("allowed difference %d is not needed: %s, %s, %s%s", i+1, e.Specimen, e.Command, e.Field, e.Mutant))
		}
	}
	return out
}
