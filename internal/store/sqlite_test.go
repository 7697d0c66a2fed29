package store_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

func TestSQLite(t *testing.T) {
	t.Parallel()
	storetest.Run(t, newFile, integrity)
}

func newFile(t *testing.T) string { return filepath.Join(t.TempDir(), "smith.db") }

func integrity(t *testing.T, path string) {
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	var result string
	require.NoError(t, db.QueryRow(`PRAGMA integrity_check`).Scan(&result))
	require.Equal(t, "ok", result)
}
