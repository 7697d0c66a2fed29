package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/failpoint"
)

// arm makes the next process that comes to p wait there.
func (s *system) arm(t testing.TB, p failpoint.Point) {
	t.Helper()
	base := filepath.Join(s.Failpoints, string(p))
	for _, old := range []string{".hit", ".go"} {
		if err := os.Remove(base + old); !os.IsNotExist(err) {
			require.NoError(t, err)
		}
	}
	require.NoError(t, os.WriteFile(base+".arm", nil, 0o600))
}

// hit waits until a process is at p.
func (s *system) hit(t testing.TB, p failpoint.Point) {
	t.Helper()
	wait(t, "for a process at "+string(p), func() (bool, string) {
		_, err := os.Stat(filepath.Join(s.Failpoints, string(p)+".hit"))
		return err == nil, "it is armed"
	})
}

// letGo lets the process at p go on.
func (s *system) letGo(t testing.TB, p failpoint.Point) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(s.Failpoints, string(p)+".go"), nil, 0o600))
}
