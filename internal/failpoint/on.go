//go:build failpoints

package failpoint

import (
	"os"
	"path/filepath"
	"time"
)

// At holds the process at p when a test has armed it: the file <dir>/<p>.arm is
// renamed to <p>.hit, and the process waits for <p>.go or for its end. <dir> is
// SMITH_FAILPOINTS. One arming holds one arrival.
func At(p Point) {
	dir := os.Getenv("SMITH_FAILPOINTS")
	if dir == "" {
		return
	}
	base := filepath.Join(dir, string(p))
	if os.Rename(base+".arm", base+".hit") != nil {
		return
	}
	for {
		if _, err := os.Stat(base + ".go"); err == nil {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}
