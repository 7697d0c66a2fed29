package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// What docs/proof.md tells the reader to break is there to be broken: each of its edits
// changes the file that it names.
func TestProofDocs_BreakTheCodeThatIsThere(t *testing.T) {
	const top = "../.."
	text, err := os.ReadFile(filepath.Join(top, "docs", "proof.md"))
	require.NoError(t, err)
	edits := regexp.MustCompile(`(?m)^sed -i '([^']+)' ([a-z][\w/.]+)`).FindAllSubmatch(text, -1)
	require.Len(t, edits, 5)
	for _, e := range edits {
		before, err := os.ReadFile(filepath.Join(top, string(e[2])))
		require.NoError(t, err)
		cmd := exec.Command("sed", string(e[1]), filepath.Join(top, string(e[2])))
		after, err := cmd.Output()
		require.NoError(t, err)
		require.NotEqual(t, string(before), string(after), "%s changes nothing in %s: docs/proof.md is stale", e[1], e[2])
	}
}
