package proof_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"agentsmith/internal/proof"
)

// load reads one committed history.
func load(t *testing.T, name string) proof.Specimen { return loadFor(t, name) }

func loadFor(t testing.TB, name string) proof.Specimen {
	t.Helper()
	f, err := os.Open(filepath.Join(folder, name+".json"))
	require.NoError(t, err)
	defer f.Close()
	h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return proof.Specimen{Name: name, History: h}
}
