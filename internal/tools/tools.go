// Package tools finds the pinned programs that Smith and its tests run, and
// installs those that are missing. A program that is not there is an error that
// says how to go on; nobody falls back to another version.
package tools

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// SetupCommand is what a person runs to install what is missing.
const SetupCommand = "go tool -modfile=tools/go.mod task setup"

//go:embed npm/*/package.json npm/*/package-lock.json
var npmFiles embed.FS

// Temporal returns the path of the Temporal CLI, which has the server in it:
// SMITH_TEMPORAL_BIN, else the pinned one in the cache.
func Temporal() (string, error) {
	return fromCache("SMITH_TEMPORAL_BIN", "the Temporal CLI "+temporalVersion, temporalDir, "temporal")
}

// Claude returns the path of the agent CLI: SMITH_CLAUDE_BIN, else the pinned one
// in the cache.
func Claude() (string, error) {
	return fromCache("SMITH_CLAUDE_BIN", "the agent CLI", npmDir("claude"), "node_modules/.bin/claude")
}

// BoltDir returns a folder whose node_modules holds @slack/bolt, Slack's own
// JavaScript client: SMITH_BOLT_DIR, else the pinned one in the cache. Run node with
// NODE_PATH set to its node_modules.
func BoltDir() (string, error) {
	at, err := fromCache("SMITH_BOLT_DIR", "Slack's JavaScript client", npmDir("bolt"), ".")
	return filepath.Clean(at), err
}

// Node returns the path of node: SMITH_NODE_BIN, else the one on the PATH.
func Node() (string, error) { return fromPath("SMITH_NODE_BIN", "node", "node", "nodejs") }

// Tmux returns the path of tmux: SMITH_TMUX_BIN, else the one on the PATH.
func Tmux() (string, error) { return fromPath("SMITH_TMUX_BIN", "tmux", "tmux") }

// Chromium returns the path of a Chromium: SMITH_CHROMIUM_BIN, else the one on the PATH.
func Chromium() (string, error) {
	return fromPath("SMITH_CHROMIUM_BIN", "Chromium", "chromium", "chromium-browser", "google-chrome")
}

// Postgres returns the folder of a PostgreSQL server's programs: SMITH_POSTGRES_BIN, else
// that of the one on the PATH, else the newest of Debian's packages, which puts them on
// no PATH.
func Postgres() (string, error) { return postgresIn("/usr/lib/postgresql") }

func postgresIn(debian string) (string, error) {
	const env = "SMITH_POSTGRES_BIN"
	if dir := os.Getenv(env); dir != "" {
		return given(env, dir)
	}
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(initdb); err == nil && isServer(filepath.Dir(real)) {
			return filepath.Abs(filepath.Dir(real))
		}
	}
	dirs, err := filepath.Glob(filepath.Join(debian, "*", "bin"))
	if err != nil {
		return "", err
	}
	newest, best := "", -1
	for _, dir := range dirs {
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		if err == nil && version > best && isServer(dir) {
			newest, best = dir, version
		}
	}
	if newest == "" {
		return "", fmt.Errorf("PostgreSQL is not installed; run: %s (or set %s to the folder of its programs)", SetupCommand, env)
	}
	return newest, nil
}

// isServer tells whether a folder holds a server, and not a client alone.
func isServer(dir string) bool {
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
			return false
		}
	}
	return true
}

// Cache returns the folder where pinned programs are kept, each in a folder named
// after its version: SMITH_CACHE, else smith/ in the user's cache folder.
func Cache() (string, error) {
	if dir := os.Getenv("SMITH_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w; set SMITH_CACHE to a folder of yours", err)
	}
	return filepath.Join(dir, "smith"), nil
}

const temporalDir = "temporal-" + temporalVersion

// npmDir is the folder of an npm project in the cache. It is named after the lock
// file's content: another version of anything in it is another folder.
func npmDir(name string) string {
	lock, err := fs.ReadFile(npmFiles, "npm/"+name+"/package-lock.json")
	if err != nil {
		panic("tools: no npm project " + name) // embedded beside this code
	}
	sum := sha256.Sum256(lock)
	return name + "-" + hex.EncodeToString(sum[:6])
}

func fromCache(env, what, dir, file string) (string, error) {
	if path := os.Getenv(env); path != "" {
		return given(env, path)
	}
	cache, err := Cache()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, dir, file)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not installed; run: %s (or set %s)", what, SetupCommand, env)
	}
	return path, nil
}

func fromPath(env, what string, names ...string) (string, error) {
	if path := os.Getenv(env); path != "" {
		return given(env, path)
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("%s is not installed; run: %s (or set %s)", what, SetupCommand, env)
}

// given takes a path from the environment: it was meant, so nothing else will do.
func given(env, path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s names %s, which is not there; correct it, or unset it and run: %s", env, path, SetupCommand)
	}
	return filepath.Abs(path)
}
