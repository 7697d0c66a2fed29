package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// debian installs what comes from the distribution's packages.
func (s *Setup) debian(ctx context.Context, wanted []string) error {
	packages := s.missingPackages(wanted)
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
	done, err := s.withoutCluster(ctx, root, packages)
	if err != nil {
		return s.outcome(ctx, names, err)
	}
	install := append(slices.Clone(apt), "install", "-y", "--no-install-recommends")
	err = s.do(ctx, "", nil, append(install, packages...)...)
	if err = errors.Join(err, done()); err != nil {
		return s.outcome(ctx, names, err)
	}
	if left := s.missingPackages(wanted); len(left) > 0 {
		return &missingError{fmt.Sprintf("installed, but not found: %s; install by hand, or name it by SMITH_CHROMIUM_BIN, SMITH_NODE_BIN, SMITH_TMUX_BIN or SMITH_POSTGRES_BIN, then run again: %s", strings.Join(left, " "), SetupCommand)}
	}
	return nil
}

// clusterPolicy is read by Debian's PostgreSQL packages when they are installed.
const (
	clusterPolicy     = "/etc/postgresql-common/createcluster.d/smith-setup.conf"
	clusterPolicyText = "# Smith's setup needs no server of the machine's own, and removes this file when it is done.\ncreate_main_cluster = false\n"
)

// withoutCluster keeps PostgreSQL's package from making and starting a server of the
// machine's own: only its programs are needed. What it puts there done takes away, so
// that whoever installs another version later gets what they are used to.
func (s *Setup) withoutCluster(ctx context.Context, root, packages []string) (done func() error, err error) {
	if !slices.Contains(packages, "postgresql") {
		return func() error { return nil }, nil
	}
	file := filepath.Join(os.TempDir(), fmt.Sprintf("smith-cluster-%d.conf", os.Getpid()))
	if err := os.WriteFile(file, []byte(clusterPolicyText), 0o644); err != nil {
		return nil, err
	}
	defer os.Remove(file)
	if err := s.do(ctx, "", nil, append(slices.Clone(root), "install", "-D", "-m", "644", file, clusterPolicy)...); err != nil {
		return nil, err
	}
	return func() error {
		// Also when the setup is stopped.
		return s.do(context.WithoutCancel(ctx), "", nil, append(slices.Clone(root), "rm", "-f", clusterPolicy)...)
	}, nil
}

// missingPackages names the Debian packages of what is wanted and is not there.
func (s *Setup) missingPackages(wanted []string) []string {
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
		case "postgresql":
			_, err := s.postgres()
			need(err == nil, "postgresql")
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
