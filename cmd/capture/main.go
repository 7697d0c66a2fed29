// Command capture records specimens: it runs scenarios on the real server with the code as
// it is, before a change, and writes their histories and a manifest row each.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"agentsmith/histories"
	"agentsmith/workflows/scenarios"
)

type flags struct {
	Generation int      `help:"Which generation of the code this is, counted from 1."`
	Workflow   string   `help:"Only scenarios of this workflow type, such as reply."`
	Dir        string   `help:"The folder of specimens." default:"histories" type:"path"`
	List       bool     `help:"Name the scenarios, and the generations that have a specimen of each."`
	Scenario   []string `arg:"" optional:"" help:"Scenarios to record; when left out, all that this generation has no specimen of."`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Name("capture"), kong.Description("Records histories of the code as it is: one specimen a scenario and generation, never overwritten."))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, f, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "capture:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags, out io.Writer) error {
	rows, err := histories.Manifest(f.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	chosen, err := scenarios.Choose(f.Workflow, f.Scenario...)
	if err != nil {
		return fmt.Errorf("%w; --list names them", err)
	}
	if f.List {
		return list(out, rows, chosen)
	}
	if f.Generation < 1 {
		return errors.New("say which generation of the code this is: --generation 1, or a later number that is not used yet")
	}
	// Those that this generation has are refused by name, and left out where none was named.
	if held := having(rows, f.Generation, chosen); len(f.Scenario) > 0 && len(held) > 0 {
		return fmt.Errorf("generation %d has a specimen of %s already; one is never recorded again", f.Generation, held[0].Name)
	} else if len(held) == len(chosen) {
		return fmt.Errorf("generation %d has a specimen of every scenario already", f.Generation)
	}
	chosen = slices.DeleteFunc(chosen, func(s scenarios.Scenario) bool { return len(having(rows, f.Generation, []scenarios.Scenario{s})) > 0 })
	commit, err := cleanCommit(ctx, ".")
	if err != nil {
		return err
	}
	return capture(ctx, f, commit, chosen, out)
}

// list names scenarios, with the generations that have a specimen of each.
func list(out io.Writer, rows []histories.Row, chosen []scenarios.Scenario) error {
	for _, s := range chosen {
		var generations []int
		for _, r := range rows {
			if r.Workflow == s.Workflow && r.Scenario == s.Name {
				generations = append(generations, r.Generation)
			}
		}
		slices.Sort(generations)
		if _, err := fmt.Fprintf(out, "%-12s %-24s %-8s %s\n", s.Workflow, s.Name, fmt.Sprint(generations), s.Purpose); err != nil {
			return fmt.Errorf("list the scenarios: %w", err)
		}
	}
	return nil
}

// having are those of which a generation has a specimen.
func having(rows []histories.Row, generation int, some []scenarios.Scenario) (out []scenarios.Scenario) {
	for _, s := range some {
		file := histories.FileOf(s.Workflow, generation, s.Name)
		if slices.ContainsFunc(rows, func(r histories.Row) bool { return r.File == file }) {
			out = append(out, s)
		}
	}
	return out
}

// capture builds the programs once and runs the scenarios of each kind on a system of theirs.
func capture(ctx context.Context, f flags, commit string, chosen []scenarios.Scenario, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "smith-capture-")
	if err != nil {
		return fmt.Errorf("make a place to run: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nWhat ran, and its logs, is left in %s", err, dir)
			return
		}
		_ = os.RemoveAll(dir)
	}()
	programs, err := build(ctx, filepath.Join(dir, "bin"), commit)
	if err != nil {
		return err
	}
	var errs []error
	for _, kind := range scenarios.Kinds() {
		some := slices.DeleteFunc(slices.Clone(chosen), func(s scenarios.Scenario) bool { return s.Kind != kind })
		if len(some) > 0 {
			r := recorder{flags: f, commit: commit, out: out}
			errs = append(errs, r.recordAll(ctx, filepath.Join(dir, fmt.Sprint(kind)), programs, kind, some))
		}
	}
	return errors.Join(errs...)
}
