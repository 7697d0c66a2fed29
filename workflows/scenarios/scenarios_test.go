package scenarios_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/workflows/scenarios"
)

func TestAll_EachScenarioHasANameOfItsOwnAndAPurpose(t *testing.T) {
	shape := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	for _, s := range scenarios.All() {
		require.NotEmpty(t, s.Workflow, s.Name)
		require.Regexp(t, shape, s.Name)
		require.NotEmpty(t, s.Purpose, s.Name)
		require.NotNil(t, s.Run, s.Name)
		require.True(t, slices.Contains(scenarios.Kinds(), s.Kind), s.Name)
		require.False(t, seen[s.Workflow+s.Name], "two scenarios %s", s.Name)
		seen[s.Workflow+s.Name] = true
	}
}

func TestChoose_ByWorkflowInAnyCaseAndByName(t *testing.T) {
	all, err := scenarios.Choose("")
	require.NoError(t, err)
	require.Len(t, all, len(scenarios.All()))
	some, err := scenarios.Choose("reply", "stop", "dm")
	require.NoError(t, err)
	require.Len(t, some, 2)
	_, err = scenarios.Choose("operator", "stop")
	require.ErrorContains(t, err, `no scenario of a workflow "operator"`)
	_, err = scenarios.Choose("Reply", "stop", "nope")
	require.ErrorContains(t, err, `no scenario "nope"`)
}
