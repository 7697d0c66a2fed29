package histories

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
)

// Add writes a specimen and its row. One that is there is never overwritten: history can't
// be made up afterwards.
func Add(dir string, row Row, h *historypb.History) error {
	row.File = FileOf(row.Workflow, row.Generation, row.Scenario)
	text, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
	if err != nil {
		return fmt.Errorf("write the specimen %s: %w", row.File, err)
	}
	text = append(text, '\n')
	row.SHA256 = sum(text)
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
	path := filepath.Join(dir, row.File)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the specimen %s: %w", row.File, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write the specimen %s: %w", row.File, err)
	}
	_, err = f.Write(text)
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
