// Package histories reads and adds specimens: histories of real runs, captured from a
// real server by code older than the change that they prove. They are never recorded
// again and never edited.
package histories

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	historypb "go.temporal.io/api/history/v1"
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
	// SHA256 is the file's own, in small hex: where a clone has no history to ask, it tells
	// that the file is as it was captured.
	SHA256 string `json:"sha256"`
}

// Specimen is a row with its history.
type Specimen struct {
	Row
	History *historypb.History
}

var (
	scenarioShape = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	commitShape   = regexp.MustCompile(`^[0-9a-f]{40}$`)
	sumShape      = regexp.MustCompile(`^[0-9a-f]{64}$`)
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
	case !sumShape.MatchString(r.SHA256):
		return fmt.Errorf("%s: %q is no sha256", r.File, r.SHA256)
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

// Execution is the workflow and run that a history is of: ids that the code derives from
// them must come out the same in a replay.
func (s Specimen) Execution() (workflowID, runID string) {
	a := started(s.History)
	return a.GetWorkflowId(), a.GetOriginalExecutionRunId()
}
