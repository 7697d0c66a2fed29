// Package histories reads and adds specimens: histories of real runs, captured from a
// real server by code older than the change that they prove. They are never recorded
// again and never edited.
package histories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
)

// ManifestFile is the manifest's name below the folder of specimens.
const ManifestFile = "manifest.json"

// Row is what the manifest says of one specimen.
type Row struct {
	// File is the specimen, below the folder: <workflow>/<generation>-<scenario>.json.
	File       string `json:"file"`
	Workflow   string `json:"workflow"`
	Generation int    `json:"generation"`
	Scenario   string `json:"scenario"`
	// Commit is the code that produced it.
	Commit string `json:"commit"`
	SDK    string `json:"sdk"`
	Server string `json:"server"`
	// For says what it is for, in a line.
	For string `json:"for"`
}

// Specimen is a row with its history.
type Specimen struct {
	Row
	History *historypb.History
}

var (
	scenarioShape = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	commitShape   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// FileOf is where a specimen of that workflow type belongs.
func FileOf(workflow string, generation int, scenario string) string {
	return fmt.Sprintf("%s/%d-%s.json", strings.ToLower(workflow), generation, scenario)
}

func (r Row) check() error {
	switch {
	case r.File != FileOf(r.Workflow, r.Generation, r.Scenario):
		return fmt.Errorf("%s: the file's name does not say workflow, generation and scenario", r.File)
	case r.Generation < 1, !scenarioShape.MatchString(r.Scenario):
		return fmt.Errorf("%s: a generation from 1 and a scenario of small letters, digits and dashes", r.File)
	case !commitShape.MatchString(r.Commit):
		return fmt.Errorf("%s: %q is no commit", r.File, r.Commit)
	case r.SDK == "" || r.Server == "" || r.For == "":
		return fmt.Errorf("%s: the row lacks the SDK's or the server's version, or what it is for", r.File)
	}
	return nil
}

// Manifest reads the rows of a folder of specimens.
func Manifest(dir string) ([]Row, error) {
	text, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	var rows []Row
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&rows); err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	return rows, nil
}

// Load reads every specimen of a folder. It is an error when there is none, when a row has
// no file, a file no row, or when the two do not agree.
func Load(dir string) ([]Specimen, error) {
	rows, err := Manifest(dir)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, errors.New("there is no specimen: a proof without one proves nothing")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list the specimens: %w", err)
	}
	var out []Specimen
	known := map[string]bool{}
	for _, row := range rows {
		if err := row.check(); err != nil {
			return nil, err
		}
		if known[row.File] {
			return nil, fmt.Errorf("%s: two rows", row.File)
		}
		known[row.File] = true
		h, err := read(filepath.Join(dir, row.File))
		if err != nil {
			return nil, err
		}
		if got := started(h).GetWorkflowType().GetName(); got != row.Workflow {
			return nil, fmt.Errorf("%s: a history of %q, the row says %q", row.File, got, row.Workflow)
		}
		out = append(out, Specimen{Row: row, History: h})
	}
	for _, f := range files {
		rel, err := filepath.Rel(dir, f)
		if err != nil {
			return nil, fmt.Errorf("list the specimens: %w", err)
		}
		if !known[filepath.ToSlash(rel)] {
			return nil, fmt.Errorf("%s: no row in the manifest", rel)
		}
	}
	return out, nil
}

func read(path string) (*historypb.History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read a specimen: %w", err)
	}
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the specimen %s: %w", path, err)
	}
	return h, nil
}

func started(h *historypb.History) *historypb.WorkflowExecutionStartedEventAttributes {
	if len(h.GetEvents()) == 0 {
		return nil
	}
	return h.Events[0].GetWorkflowExecutionStartedEventAttributes()
}

// Execution is the workflow and run that a history is of: ids that the code derives from
// them must come out the same in a replay.
func (s Specimen) Execution() (workflowID, runID string) {
	a := started(s.History)
	return a.GetWorkflowId(), a.GetOriginalExecutionRunId()
}

// Add writes a specimen and its row. One that is there is never overwritten: history can't
// be made up afterwards.
func Add(dir string, row Row, h *historypb.History) error {
	row.File = FileOf(row.Workflow, row.Generation, row.Scenario)
	if err := row.check(); err != nil {
		return err
	}
	rows, err := Manifest(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if slices.ContainsFunc(rows, func(r Row) bool { return r.File == row.File }) {
		return fmt.Errorf("%s: the manifest has it already", row.File)
	}
	text, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
	if err != nil {
		return fmt.Errorf("write the specimen %s: %w", row.File, err)
	}
	path := filepath.Join(dir, row.File)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the specimen %s: %w", row.File, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write the specimen %s: %w", row.File, err)
	}
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the specimen %s: %w", row.File, err)
	}
	rows = append(rows, row)
	slices.SortFunc(rows, func(a, b Row) int { return strings.Compare(a.File, b.File) })
	text, err = json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, ManifestFile), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	return nil
}
