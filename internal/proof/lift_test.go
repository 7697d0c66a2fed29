package proof_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The package could be lifted out: it imports nothing of the module that it stands in.
func TestPackage_KnowsNothingOfTheModuleThatItStandsIn(t *testing.T) {
	list := func(format string) string {
		out, err := exec.Command("go", "list", "-f", format, ".").CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	module := list("{{.Module.Path}}")
	require.NotEmpty(t, module)
	deps := strings.Fields(list(`{{join .Deps "\n"}}`))
	require.Contains(t, deps, "go.temporal.io/sdk/worker")
	for _, dep := range deps {
		require.False(t, dep == module || strings.HasPrefix(dep, module+"/"), "it imports %s", dep)
	}
}
