package house

import (
	"fmt"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// root is the module's folder, seen from this test.
const root = ".."

// module is the import path of everything that is ours.
const module = "agentsmith"

// breach is one place where a rule of the house is broken.
type breach struct {
	where string // file:line, or an import path
	what  string
}

func (b breach) String() string { return b.where + ": " + b.what }

// requireNone fails with every breach, one a line.
func requireNone(t *testing.T, breaches []breach) {
	t.Helper()
	for _, b := range breaches {
		t.Error(b)
	}
}

// requireFound fails unless the checker found each planted breach, and nothing else.
func requireFound(t *testing.T, breaches []breach, want ...string) {
	t.Helper()
	var got []string
	for _, b := range breaches {
		got = append(got, b.String())
	}
	for _, w := range want {
		found := -1
		for i, g := range got {
			if strings.Contains(g, w) {
				found = i
				break
			}
		}
		require.GreaterOrEqual(t, found, 0, "the planted breach %q was not found in:\n%s", w, strings.Join(got, "\n"))
		got = append(got[:found], got[found+1:]...)
	}
	require.Empty(t, got, "found what was not planted")
}

// loadTyped returns the packages with their syntax and types, without tests.
// Overlay adds or replaces files, by path from the module's folder.
func loadTyped(t *testing.T, overlay map[string]string, patterns ...string) []*packages.Package {
	t.Helper()
	dir, err := filepath.Abs(root)
	require.NoError(t, err)
	cfg := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax |
			packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile,
		Dir: dir, Fset: token.NewFileSet(), Overlay: map[string][]byte{},
	}
	for path, text := range overlay {
		cfg.Overlay[filepath.Join(dir, path)] = []byte(text)
	}
	pkgs, err := packages.Load(cfg, patterns...)
	require.NoError(t, err)
	require.NotEmpty(t, pkgs)
	for _, p := range pkgs {
		require.Empty(t, p.Errors, "%s does not compile", p.PkgPath)
	}
	return pkgs
}

// at writes a position as file:line from the module's folder.
func at(p *packages.Package, pos token.Pos) string {
	where := p.Fset.Position(pos)
	dir, err := filepath.Abs(root)
	if err != nil {
		return where.String()
	}
	name, err := filepath.Rel(dir, where.Filename)
	if err != nil {
		return where.String()
	}
	return fmt.Sprintf("%s:%d", name, where.Line)
}

// command returns a program's output, run in the module's folder.
func command(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	require.NoError(t, err)
	return out
}
