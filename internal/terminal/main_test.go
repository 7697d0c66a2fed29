package terminal

import (
	"os"
	"testing"
)

// A session that a test starts first runs this test binary.
func TestMain(m *testing.M) {
	MaybeSession()
	os.Exit(m.Run())
}
