package activities_test

import (
	"os"
	"testing"

	"agentsmith/internal/agent"
)

func TestMain(m *testing.M) {
	agent.MaybeSupervise()
	maybeLaunch()
	os.Exit(m.Run())
}
