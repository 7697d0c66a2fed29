package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock waits for the file's lock. The kernel frees it when its holder ends, however
// it ends.
func (s *Setup) lock(ctx context.Context, path, name string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock of %s: %w; set SMITH_CACHE to a folder of yours", name, err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for said := false; ; said = true {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return func() { _ = f.Close() }, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w; set SMITH_CACHE to a folder on a local disk", path, err)
		}
		if !said {
			s.say("%s: another setup installs it; waiting for that one", name)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("stopped while waiting for another setup; go on with: %s", SetupCommand)
		case <-tick.C:
		}
	}
}
