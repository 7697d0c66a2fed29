package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// rollbackOptions say what goes back to what.
type rollbackOptions struct {
	// Tree has today's specimens and prover, as they stand.
	Tree string
	// Clone is where git knows Rev.
	Clone, Rev string
}

// result is what cmd/replay/inside prints of a specimen.
type result struct {
	Specimen, Verdict, Unknown string
	Event                      int64
	Command, Reason, Has       string
	Differences                []string
}

// rollback replays today's specimens on the workflow code of an older revision, in a tree
// of its own that is removed again, and prints what would strand. It returns errNo when one
// does, so that it can gate a release.
func rollback(ctx context.Context, o rollbackOptions, out io.Writer) error {
	name, err := describe(ctx, o)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "smith-rollback-")
	if err != nil {
		return fmt.Errorf("make a place for the older code: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := unpack(ctx, o, dir); err != nil {
		return fmt.Errorf("unpack %s: %w", o.Rev, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "workflows")); err != nil {
		fmt.Fprintf(out, "back to %s: it has no workflows; every run under way would be stuck\n", name)
		return errNo
	}
	if err := lay(o.Tree, dir); err != nil {
		return err
	}
	bin, note, err := build(ctx, o.Tree, dir)
	if err != nil {
		return fmt.Errorf("today's prover does not build beside the workflows of %s: %w", name, err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, bin, filepath.Join(dir, "histories"))
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("replay on %s: %w\n%s", name, err, stderr.Bytes())
	}
	results, err := readResults(text)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "back to %s\n%s", name, note)
	return report(results, out)
}

// describe resolves the revision: its short commit, date and subject.
func describe(ctx context.Context, o rollbackOptions) (string, error) {
	out, err := git(ctx, o.Clone, "log", "-1", "--format=%h of %cs, %s", o.Rev+"^{commit}", "--").Output()
	if err != nil {
		return "", fmt.Errorf("git knows no revision %q here (a shallow clone knows few): %w", o.Rev, err)
	}
	return strings.TrimSpace(string(out)), nil
}

func git(ctx context.Context, dir string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*", "-C", dir}, args...)...)
}

// lay puts today's prover and specimens over the older tree.
func lay(tree, dir string) error {
	for _, folder := range []string{"internal/proof", "histories", "cmd/replay/inside"} {
		to := filepath.Join(dir, folder)
		if err := os.RemoveAll(to); err != nil {
			return fmt.Errorf("make place for today's %s: %w", folder, err)
		}
		if err := os.CopyFS(to, withoutTests{os.DirFS(filepath.Join(tree, folder))}); err != nil {
			return fmt.Errorf("copy today's %s: %w", folder, err)
		}
	}
	return nil
}

// build builds the replayer with the modules that the older code was built with; where
// those are too old for the prover, with today's, which the note says.
func build(ctx context.Context, tree, dir string) (bin, note string, err error) {
	bin = filepath.Join(dir, "replay-inside")
	first := compile(ctx, dir, bin)
	if first == nil || ctx.Err() != nil {
		return bin, "", first
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(tree, file))
		if err != nil {
			return "", "", fmt.Errorf("read today's modules: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
			return "", "", fmt.Errorf("lay today's modules over the older: %w", err)
		}
	}
	if compile(ctx, dir, bin) != nil {
		return "", "", first
	}
	return bin, "note: built with today's modules, since the older ones do not fit the prover\n", nil
}

func compile(ctx context.Context, dir, bin string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", bin, "./cmd/replay/inside")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, bytes.TrimSpace(text))
	}
	return nil
}

func readResults(text []byte) (out []result, err error) {
	for dec := json.NewDecoder(bytes.NewReader(text)); dec.More(); {
		var r result
		if err := dec.Decode(&r); err != nil {
			return nil, fmt.Errorf("read what was replayed: %w", err)
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, errors.New("nothing was replayed")
	}
	return out, nil
}

// mostDifferences is how many differences of one specimen are printed.
const mostDifferences = 2

// report prints a line a specimen, and sums up.
func report(results []result, out io.Writer) error {
	var green, strands, unknown, other int
	for _, r := range results {
		switch {
		case r.Verdict == "green":
			green++
		case r.Unknown != "":
			unknown++
		case r.Verdict == "stranded":
			strands++
		default:
			other++
		}
		fmt.Fprintf(out, "%-36s %s\n", r.Specimen, r)
		for i, d := range r.Differences {
			if i == mostDifferences {
				fmt.Fprintf(out, "  and %d more\n", len(r.Differences)-i)
				break
			}
			fmt.Fprintf(out, "  %s\n", d)
		}
	}
	fmt.Fprintf(out, "rollback: %d green, %d would strand, %d of an unknown workflow, %d not told\n", green, strands, unknown, other)
	if green < len(results) {
		return errNo
	}
	return nil
}

// String says how a specimen went.
func (r result) String() string {
	switch {
	case r.Verdict == "green" && len(r.Differences) > 0:
		return fmt.Sprintf("green; strict differences, which strand nothing: %d", len(r.Differences))
	case r.Verdict == "green":
		return "green"
	case r.Unknown != "":
		return "does not know workflow " + r.Unknown
	}
	said := r.Verdict
	if r.Event != 0 {
		said += fmt.Sprintf(" at event %d (%s)", r.Event, r.Has)
	}
	if r.Command != "" {
		return said + ": " + strings.TrimSuffix(r.Command+", "+r.Reason, ", ")
	}
	return strings.TrimSuffix(said+": "+r.Reason, ": ")
}
