package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds the programs into dir and returns the paths of worker and starter; those
// that a worker runs, start-operator and say, stand beside it. Tags are build tags.
func Build(ctx context.Context, dir string, tags ...string) (worker, starter string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", fmt.Errorf("build: %w", err)
	}
	args := []string{"build", "-o", dir + string(filepath.Separator)}
	for _, t := range tags {
		args = append(args, "-tags", t)
	}
	args = append(args, "agentsmith/worker", "agentsmith/starter", "agentsmith/cmd/start-operator", "agentsmith/cmd/say")
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return filepath.Join(dir, "worker"), filepath.Join(dir, "starter"), nil
}
