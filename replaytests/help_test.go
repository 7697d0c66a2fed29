package replaytests

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/histories"
)

// forget takes a specimen and its row out of a folder.
func forget(t *testing.T, dir, file string) {
	t.Helper()
	rows, err := histories.Manifest(dir)
	require.NoError(t, err)
	text, err := json.Marshal(slices.DeleteFunc(rows, func(r histories.Row) bool { return r.File == file }))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, histories.ManifestFile), text, 0o644))
	require.NoError(t, os.Remove(filepath.Join(dir, file)))
}
