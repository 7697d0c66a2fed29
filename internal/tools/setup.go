package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Setup installs what is missing.
type Setup struct {
	Out io.Writer // where it says what it does
	// Every is how often it says that it is still at it; 15 s where zero.
	Every time.Duration

	run  func(ctx context.Context, c command) error // a test's, else runCommand
	euid func() int                                 // a test's, else os.Geteuid

	postgres func() (string, error) // a test's, else Postgres
}

// Groups names what can be asked for: dev is what the system needs on one machine,
// all is what the tests need besides.
func Groups() map[string][]string {
	return map[string][]string{
		"dev": {"node", "tmux", "temporal", "claude"},
		"all": {"node", "tmux", "chromium", "postgresql", "temporal", "claude", "bolt"},
	}
}

// Install installs those of the named programs or groups that are missing, and all
// where none is named. It may be run twice at once, and again after it was ended at
// any point. Its error is one line that says how to go on.
func (s *Setup) Install(ctx context.Context, names ...string) error {
	wanted, err := expand(names)
	if err != nil {
		return err
	}
	if s.Every == 0 {
		s.Every = 15 * time.Second
	}
	if s.run == nil {
		s.run = runCommand
	}
	if s.euid == nil {
		s.euid = os.Geteuid
	}
	if s.postgres == nil {
		s.postgres = Postgres
	}
	if err := s.debian(ctx, wanted); err != nil {
		return err
	}
	for _, name := range wanted {
		var err error
		switch name {
		case "temporal":
			err = s.cached(ctx, temporalDir, name, Temporal, s.buildTemporal)
		case "claude":
			err = s.cached(ctx, npmDir(name), name, Claude, s.npm(name))
		case "bolt":
			err = s.cached(ctx, npmDir(name), name, BoltDir, s.npm(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func expand(names []string) ([]string, error) {
	groups := Groups()
	if len(names) == 0 {
		return groups["all"], nil
	}
	var out []string
	for _, name := range names {
		switch members, group := groups[name]; {
		case group:
			out = append(out, members...)
		case slices.Contains(groups["all"], name):
			out = append(out, name)
		default:
			return nil, fmt.Errorf("nothing named %q can be installed; name some of %s, or dev, or all", name, strings.Join(groups["all"], ", "))
		}
	}
	return out, nil
}

// cached puts a program into its folder of the cache, once: it is made in a folder
// beside it and renamed when it is whole, under a lock that dies with its holder.
func (s *Setup) cached(ctx context.Context, dir, name string, find func() (string, error), fill func(ctx context.Context, into string) error) error {
	if _, err := find(); err == nil {
		return nil
	}
	cache, err := Cache()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("make the cache folder: %w; set SMITH_CACHE to a folder of yours", err)
	}
	unlock, err := s.lock(ctx, filepath.Join(cache, "."+dir+".lock"), name)
	if err != nil {
		return err
	}
	defer unlock()
	final := filepath.Join(cache, dir)
	if _, err := find(); err == nil {
		return nil // another setup was first
	}
	temporary := filepath.Join(cache, ".making-"+dir)
	// What an ended setup left, or somebody damaged: under the lock it is nobody's.
	for _, old := range []string{temporary, final} {
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("remove a broken install of %s: %w; remove %s by hand and run again: %s", name, err, old, SetupCommand)
		}
	}
	defer os.RemoveAll(temporary)
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return fmt.Errorf("make room for %s: %w; set SMITH_CACHE to a folder with room", name, err)
	}
	if err := fill(ctx, temporary); err != nil {
		return s.outcome(ctx, name, err)
	}
	if err := os.Rename(temporary, final); err != nil {
		return fmt.Errorf("put %s in place: %w; run again: %s", name, err, SetupCommand)
	}
	if _, err := find(); err != nil {
		return fmt.Errorf("%s was installed into %s, but is not whole; remove that folder and run again: %s", name, final, SetupCommand)
	}
	s.say("%s: ready", name)
	return nil
}

// outcome turns the error of an installer into the line that ends the setup.
func (s *Setup) outcome(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("stopped while installing %s; nothing is broken, go on with: %s", name, SetupCommand)
	}
	var missing *missingError
	if errors.As(err, &missing) {
		return err
	}
	return fmt.Errorf("%s could not be installed: %w; its output is above; when the cause is gone, run again: %s", name, err, SetupCommand)
}

// missingError is an error that says itself how to go on.
type missingError struct{ text string }

func (e *missingError) Error() string { return e.text }

func (s *Setup) say(format string, args ...any) {
	fmt.Fprintf(s.Out, "setup: "+format+"\n", args...)
}

// working says every while that what is done is still being done, until the
// function that it returns is called.
func (s *Setup) working(what string) (done func()) {
	begun := time.Now()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(s.Every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				s.say("%s, %s so far", what, time.Since(begun).Round(time.Second))
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
