package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDemo_IsACheckoutWithOneCommitAndNoRemote(t *testing.T) {
	path, err := demo(t.Context(), t.TempDir())
	require.NoError(t, err)
	require.Equal(t, "demo", filepath.Base(path), "people name it so")
	require.True(t, filepath.IsAbs(path))
	require.Equal(t, "1", read(t, path, "rev-list", "--count", "HEAD"))
	require.Empty(t, read(t, path, "status", "--porcelain"))
	require.Empty(t, read(t, path, "remote"))
}

func TestDemo_StaysAsItIsAtTheNextStart(t *testing.T) {
	dir := t.TempDir()
	path, err := demo(t.Context(), dir)
	require.NoError(t, err)
	require.NoError(t, git(t.Context(), path, "branch", "smith/fix"))
	before := read(t, path, "rev-parse", "HEAD")
	again, err := demo(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, path, again)
	require.Equal(t, before, read(t, path, "rev-parse", "smith/fix"))
}

func TestDemo_AHalfOneIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	half := filepath.Join(dir, "checkouts", "demo.new", ".git")
	require.NoError(t, os.MkdirAll(half, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(half, "index.lock"), nil, 0o600))
	path, err := demo(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, "1", read(t, path, "rev-list", "--count", "HEAD"))
}

func read(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}
