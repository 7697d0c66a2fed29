package tools

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// buildTemporal builds the Temporal CLI from its source, by version: the module
// proxy's checksums say that it is the one.
func (s *Setup) buildTemporal(ctx context.Context, into string) error {
	if _, err := exec.LookPath("go"); err != nil {
		return &missingError{"go is not on the PATH; put it there and run again: " + SetupCommand}
	}
	s.say("building the Temporal CLI %s (about 3 minutes the first time)", temporalVersion)
	defer s.working("building the Temporal CLI")()
	// GOBIN takes no cross-compiled program, and flags meant for this module do not fit that one.
	env := environ("GOBIN="+into, "GOFLAGS=-buildvcs=false", "GOWORK=off", "CGO_ENABLED=0", "GOOS", "GOARCH")
	return s.do(ctx, into, env, "go", "install", temporalPackage+"@"+temporalVersion)
}

// npm installs one of the npm projects that are embedded here, from its lock file.
func (s *Setup) npm(name string) func(ctx context.Context, into string) error {
	return func(ctx context.Context, into string) error {
		for _, file := range []string{"package.json", "package-lock.json"} {
			text, err := fs.ReadFile(npmFiles, "npm/"+name+"/"+file)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(into, file), text, 0o644); err != nil {
				return err
			}
		}
		s.say("installing %s from npm", name)
		defer s.working("installing " + name)()
		// Scripts of packages do not run: npm's versions differ in what they allow, and
		// only the one below is needed.
		if err := s.do(ctx, into, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
			return err
		}
		if name != "claude" {
			return nil
		}
		// It puts the platform's program in the place of a stub.
		return s.do(ctx, filepath.Join(into, "node_modules/@anthropic-ai/claude-code"), nil, "node", "install.cjs")
	}
}
