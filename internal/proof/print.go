package proof

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print writes the matrix, the differences, the score and the last line.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 1, 2, ' ', 0)
	if len(r.Rows) > 0 {
		fmt.Fprintln(t, "gate\tspecimen\tolder\tinstrument\tgated\tungated\tproof")
	}
	for _, row := range r.Rows {
		fmt.Fprintln(t, strings.Join([]string{row.Gate, row.Specimen, row.older(), row.instrument(), row.Gated.String(), row.ungated(), row.verdict()}, "\t"))
	}
	_ = t.Flush() // into memory
	for _, s := range r.Specimens {
		if s.Outcome.Verdict != Green || s.Outcome.Sometimes() {
			fmt.Fprintf(&b, "does not replay: %s: %s\n", s.Name, s.Outcome)
		}
		for _, d := range s.Differences {
			if d.Allowed == "" {
				fmt.Fprintf(&b, "difference: %s\n", d)
			}
		}
	}
	for _, s := range r.Scores {
		fmt.Fprintf(&b, "%s: %d commands, %d mutants: %d stranded, %d seen by strict comparison only, %d survived (allowed: %d), %d not tried\n",
			s.Workflow, s.Commands, s.Mutants, s.Stranded, s.Strict, len(s.Survivors), len(s.Allowed), len(s.Untried))
		for _, m := range s.Survivors {
			fmt.Fprintf(&b, "  survived: %s\n", m)
		}
		for _, line := range grouped(s.Untried) {
			fmt.Fprintf(&b, "  not tried: %s\n", line)
		}
	}
	for _, u := range r.Unreached {
		fmt.Fprintf(&b, "no specimen reaches: %s\n", u)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "problem: %s\n", p)
	}
	fmt.Fprintln(&b, r.LastLine())
	_, err := io.WriteString(w, b.String())
	return err
}

// grouped counts what was not tried by its reason.
func grouped(untried []Mutant) (out []string) {
	counts := map[string]int{}
	var order []string
	for _, m := range untried {
		key := m.Change + ": " + m.Why
		if counts[key] == 0 {
			order = append(order, key)
		}
		counts[key]++
	}
	for _, key := range order {
		out = append(out, fmt.Sprintf("%d × %s", counts[key], key))
	}
	return out
}

// LastLine sums the proof up.
func (r *Report) LastLine() string {
	var proved, unproved, vacuous, different, allowed int
	for _, g := range r.Gates {
		if g.Proved {
			proved++
		} else {
			unproved++
		}
	}
	for _, s := range r.Specimens {
		if s.Vacuous {
			vacuous++
		}
		for _, d := range s.Differences {
			if d.Allowed == "" {
				different++
			} else {
				allowed++
			}
		}
	}
	return fmt.Sprintf("gates: %d proved, %d unproved; specimens: %d, vacuous: %d, strict differences: %d (allowed: %d)",
		proved, unproved, len(r.Specimens), vacuous, different, allowed)
}

// Err is nil when everything holds, else it says everything that does not.
func (r *Report) Err() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, g := range r.Gates {
		if !g.Proved {
			add("the gate %q has no specimen that proves it", g.ID)
		}
	}
	for _, s := range r.Specimens {
		if s.Outcome.Verdict != Green || s.Outcome.Sometimes() {
			add("%s does not replay: %s", s.Name, s.Outcome)
		}
		for _, d := range s.Differences {
			if d.Allowed == "" {
				add("a difference that nobody has reviewed: %s", d)
			}
		}
	}
	for _, row := range r.Rows {
		if row.Renamed != nil && !row.RenameSeen {
			add("%s holds the gate %q, and nothing shows when the gate is renamed", row.Specimen, row.Gate)
		}
	}
	for _, s := range r.Scores {
		for _, m := range s.Survivors {
			add("a mutant survived: %s", m)
		}
	}
	for _, p := range r.Problems {
		add("%s", p)
	}
	return errors.Join(errs...)
}

func (r Row) older() string {
	switch {
	case !r.MarkerAbsent:
		return "no: holds the marker"
	case r.Asked == 0:
		return "-"
	case r.Older:
		return "yes (commit " + string(r.Commit) + ")"
	case r.Commit == Knows:
		return "no: its commit knows the gate"
	}
	return "no: holds the branch"
}

func (r Row) instrument() string {
	if r.Asked == 0 {
		return "no: never asked"
	}
	s := fmt.Sprintf("asked %d, answer %d", r.Asked, r.Answer)
	if r.OldEvent != "" {
		s += ", " + r.OldEvent
	}
	return s
}

func (r Row) ungated() string {
	if r.Asked == 0 {
		return "-"
	}
	s := r.Ungated.String()
	if r.Branch != "" {
		s += ", branch: " + r.Branch
	}
	if r.Parted != 0 && r.Parted != r.Ungated.Event {
		s += fmt.Sprintf(", parted at event %d", r.Parted)
	}
	return s
}

func (r Row) verdict() string {
	if r.Proved {
		return "proved"
	}
	return r.Why
}
