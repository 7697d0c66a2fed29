package histories

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
)

// Load reads every specimen of a folder. It is an error when there is none, when a row has
// no file, a file no row, or when the two do not agree; when a file is not the one that was
// captured, names who ran it, or is cut where a replay cannot tell.
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
		h, err := read(dir, row)
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

func read(dir string, row Row) (*historypb.History, error) {
	text, err := os.ReadFile(filepath.Join(dir, row.File))
	if err != nil {
		return nil, fmt.Errorf("read a specimen: %w", err)
	}
	if sum(text) != row.SHA256 {
		return nil, fmt.Errorf("%s: changed since it was captured: its sha256 is not the manifest's; a specimen is never edited", row.File)
	}
	h, err := client.HistoryFromJSON(bytes.NewReader(text), client.HistoryJSONOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the specimen %s: %w", row.File, err)
	}
	if cut, err := CutOpen(h); err != nil || len(cut.Events) != len(h.Events) {
		return nil, fmt.Errorf("%s: it ends behind the last task that has started, where a replay cannot tell", row.File)
	}
	clean := proto.Clone(h).(*historypb.History)
	if Scrub(clean); !proto.Equal(clean, h) {
		return nil, fmt.Errorf("%s: it names who ran it", row.File)
	}
	return h, nil
}

func sum(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

func started(h *historypb.History) *historypb.WorkflowExecutionStartedEventAttributes {
	if len(h.GetEvents()) == 0 {
		return nil
	}
	return h.Events[0].GetWorkflowExecutionStartedEventAttributes()
}
