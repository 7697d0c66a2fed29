package tools

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// debian installs what comes from the distribution's packages.
func (s *Setup) debian(ctx context.Context, wanted []string) error {
	packages := missingPackages(wanted)
	if len(packages) == 0 {
		return nil
	}
	names := strings.Join(packages, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return &missingError{fmt.Sprintf("this system has no apt-get; install by its own means: %s; then run again: %s", names, SetupCommand)}
	}
	by, ok := s.asRoot(ctx)
	if !ok {
		return &missingError{fmt.Sprintf("root is needed once; run: sudo apt-get update && sudo apt-get install -y --no-install-recommends %s; then run again: %s", names, SetupCommand)}
	}
	s.say("installing %s from the distribution's packages", names)
	defer s.working("installing " + names)()
	root := append(by, "env", "DEBIAN_FRONTEND=noninteractive")
	apt := append(slices.Clone(root), "apt-get", "-q", "-o", "DPkg::Lock::Timeout=600")
	// A setup that was ended in the middle may have left packages half configured.
	if err := s.do(ctx, "", nil, append(slices.Clone(root), "dpkg", "--configure", "-a")...); err != nil {
		return s.outcome(ctx, names, err)
	}
	// One source of several may be down while the packages are still to be had.
	if err := s.do(ctx, "", nil, append(slices.Clone(apt), "update")...); err != nil && ctx.Err() == nil {
		s.say("apt-get update failed; trying with what is known")
	}
	install := append(slices.Clone(apt), "install", "-y", "--no-install-recommends")
	if err := s.do(ctx, "", nil, append(install, packages...)...); err != nil {
		return s.outcome(ctx, names, err)
	}
	if left := missingPackages(wanted); len(left) > 0 {
		return &missingError{fmt.Sprintf("installed, but not on the PATH: %s; install by hand, or name it by SMITH_CHROMIUM_BIN, SMITH_NODE_BIN or SMITH_TMUX_BIN, then run again: %s", strings.Join(left, " "), SetupCommand)}
	}
	return nil
}

// missingPackages names the Debian packages of what is wanted and is not there.
func missingPackages(wanted []string) []string {
	var packages []string
	need := func(found bool, name string) {
		if !found && !slices.Contains(packages, name) {
			packages = append(packages, name)
		}
	}
	for _, name := range wanted {
		switch name {
		case "node":
			_, err := Node()
			need(err == nil, "nodejs")
		case "tmux":
			_, err := Tmux()
			need(err == nil, "tmux")
		case "chromium":
			_, err := Chromium()
			need(err == nil, "chromium")
		case "claude", "bolt":
			if _, err := map[string]func() (string, error){"claude": Claude, "bolt": BoltDir}[name](); err != nil {
				_, err := exec.LookPath("npm")
				need(err == nil, "npm")
			}
		}
	}
	return packages
}

// asRoot returns what to put before a command that needs root.
func (s *Setup) asRoot(ctx context.Context) (before []string, ok bool) {
	if s.euid() == 0 {
		return nil, true
	}
	if _, err := exec.LookPath("sudo"); err != nil {
		return nil, false
	}
	if s.run(ctx, command{args: []string{"sudo", "-n", "true"}}) != nil {
		return nil, false
	}
	return []string{"sudo", "-n"}, true
}
