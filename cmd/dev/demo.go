package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// demoName is the checkout that operators of the local stack work in, as people name it.
const demoName = "demo"

const demoReadme = `# Demo

A small repository for the operators of the local stack. Ask for something here by its
name, for instance: @smith please fix the README in demo
`

// demo makes the git checkout that operators work in, with one commit and no remote, and
// returns its path. One that is there stays as it is: their branches are in it.
func demo(ctx context.Context, dir string) (string, error) {
	path, err := filepath.Abs(filepath.Join(dir, "checkouts", demoName))
	if err != nil {
		return "", fmt.Errorf("make the demo checkout: %w", err)
	}
	switch _, err := os.Stat(path); {
	case err == nil:
		return path, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("make the demo checkout: %w", err)
	}
	// Made beside its place and moved there whole: a start that is killed leaves no half of one.
	half := path + ".new"
	if err := os.RemoveAll(half); err != nil {
		return "", fmt.Errorf("make the demo checkout: %w", err)
	}
	if err := os.MkdirAll(half, 0o700); err != nil {
		return "", fmt.Errorf("make the demo checkout: %w", err)
	}
	if err := os.WriteFile(filepath.Join(half, "README.md"), []byte(demoReadme), 0o600); err != nil {
		return "", fmt.Errorf("make the demo checkout: %w", err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch", "main"},
		{"config", "user.name", "Smith demo"}, {"config", "user.email", "demo@example.com"}, {"config", "commit.gpgsign", "false"},
		{"add", "README.md"},
		{"commit", "--quiet", "--message", "A README"},
	} {
		if err := git(ctx, half, args...); err != nil {
			return "", fmt.Errorf("make the demo checkout: %w", err)
		}
	}
	if err := os.Rename(half, path); err != nil {
		return "", fmt.Errorf("make the demo checkout: %w", err)
	}
	return path, nil
}

// git runs git without the user's own settings, which may hold hooks and signing keys.
func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(out))
	}
	return nil
}
