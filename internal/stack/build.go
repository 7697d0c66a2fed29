package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds worker and starter into dir and returns their paths. Tags are build tags.
func Build(ctx context.Context, dir string, tags ...string) (worker, starter string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", fmt.Errorf("build: %w", err)
	}
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	for _, t := range tags {
		args = append(args, "-tags", t)
	}
	args = append(args, "agentsmith/worker", "agentsmith/starter")
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("build worker and starter: %w\n%s", err, out)
	}
	return filepath.Join(dir, "worker"), filepath.Join(dir, "starter"), nil
}
