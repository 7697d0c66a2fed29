// Package classifier holds what the classifier is told and what it is measured by: the
// prompt, the schema of its answer, and a labelled set of lines (O2). Prompt and schema
// carry a version, which stands in the logs; whoever changes one raises it.
package classifier

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

//go:embed prompt.md
var prompt string

//go:embed schema.json
var schema []byte

//go:embed lines.json
var lines []byte

// Words are what the classifier is told, and the form of its answer.
type Words struct {
	// Prompt is the system prompt.
	Prompt        string
	PromptVersion int
	// Schema is a JSON schema.
	Schema        string
	SchemaVersion int
}

// Load reads the words that stand in this package.
func Load() (Words, error) {
	head, text, ok := strings.Cut(prompt, "\n---\n")
	number, found := strings.CutPrefix(head, "version: ")
	promptVersion, err := strconv.Atoi(number)
	if !ok || !found || err != nil {
		return Words{}, fmt.Errorf("read the classifier's prompt: it begins with no version")
	}
	var s struct {
		Version int             `json:"version"`
		Schema  json.RawMessage `json:"schema"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return Words{}, fmt.Errorf("read the classifier's schema: %w", err)
	}
	if s.Version == 0 || len(s.Schema) == 0 {
		return Words{}, fmt.Errorf("read the classifier's schema: it has no version, or is empty")
	}
	return Words{Prompt: text, PromptVersion: promptVersion, Schema: string(s.Schema), SchemaVersion: s.Version}, nil
}

// Label says what a labelled line is.
type Label string

// The labels. Ambiguous lines are to be taken for work, and chatter for a question (O2).
const (
	Work      Label = "work"
	Question  Label = "question"
	Ambiguous Label = "ambiguous"
	Chatter   Label = "chatter"
)

// Line is a labelled line.
type Line struct {
	Label Label `json:"label"`
	// Lang is the language's code.
	Lang string `json:"lang"`
	Text string `json:"text"`
	// Earlier is what was asked in the thread before.
	Earlier string `json:"earlier,omitempty"`
	// Repo is the repository that is to be named, "" for none.
	Repo string `json:"repo,omitempty"`
}

// Kind is what the classifier is to answer.
func (l Line) Kind() string {
	if l.Label == Work || l.Label == Ambiguous {
		return "work"
	}
	return "question"
}

// Lines reads the labelled set, and the repositories that its lines may name.
func Lines() (set []Line, repos []string, err error) {
	var file struct {
		Repos []string `json:"repos"`
		Lines []Line   `json:"lines"`
	}
	if err := json.Unmarshal(lines, &file); err != nil {
		return nil, nil, fmt.Errorf("read the labelled lines: %w", err)
	}
	return file.Lines, file.Repos, nil
}
