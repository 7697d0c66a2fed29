package house

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var namedTest = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+_?[A-Za-z0-9]*)`")

// missingTests are those that a document names and no test file has.
func missingTests(doc []byte, sources ...[]byte) []string {
	var missing []string
	all := bytes.Join(sources, []byte("\n"))
	for _, m := range namedTest.FindAllSubmatch(doc, -1) {
		if !bytes.Contains(all, append(append([]byte("func "), m[1]...), '(')) {
			missing = append(missing, string(m[1]))
		}
	}
	return missing
}

// The table of docs/rules.md says which test proves a rule: each of them exists.
func TestRules_NameTestsThatExist(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "docs", "rules.md"))
	require.NoError(t, err)
	require.Regexp(t, namedTest, string(doc))
	cmd := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*_test.go")
	cmd.Dir = ".."
	list, err := cmd.Output()
	require.NoError(t, err)
	var sources [][]byte
	for _, name := range bytes.Split(list, []byte{0}) {
		text, err := os.ReadFile(filepath.Join("..", string(name)))
		if err == nil { // listed, and removed since
			sources = append(sources, text)
		}
	}
	require.Empty(t, missingTests(doc, sources...), "docs/rules.md names tests that do not exist: name those that prove the rule now")
}

func TestMissingTests_FindsWhatIsPlanted(t *testing.T) {
	source := []byte("func TestA_B(t *testing.T) {\nfunc FuzzC(f *testing.F) {\n// TestGone_Away\n")
	require.Equal(t, []string{"TestGone_Away", "TestA"}, missingTests([]byte("`TestA_B` `FuzzC` `TestGone_Away` `TestA`"), source))
}
