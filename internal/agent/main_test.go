package agent

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	MaybeSupervise()
	os.Exit(m.Run())
}
