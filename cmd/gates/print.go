package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"
)

// notReached is said below the table when there are runs that hold nothing of a gate.
const notReached = `"old or not reached": the run has no version of the gate. Either it passed the place before the gate was there, and keeps the old path; or it
has not come there yet, and will take the newest version. The server cannot tell the two apart. A run that began when every worker had the gate
is one of the second kind, unless it was reset.`

// report counts the open runs, writes the table and what the code does not know, and last
// the sum. The error says what is wrong with the runs, or that the server failed.
func report(ctx context.Context, c client.Client, own code, w io.Writer) error {
	t := newTally(own.reading)
	if err := listOpen(ctx, c, t.types, t.add); err != nil {
		return err
	}
	var b strings.Builder
	if len(t.gates) == 0 {
		fmt.Fprintf(&b, "There is no gate in %s/.\n", source)
	} else {
		table(&b, t.gates)
	}
	for _, p := range own.reading.Problems {
		fmt.Fprintf(&b, "problem: %s\n", p)
	}
	if t.strangers > 0 {
		fmt.Fprintf(&b, "of other code: %s of workflow types that this code does not register hold versions, and were not looked at\n", runs(t.strangers))
	}
	bad := 0
	for _, value := range slices.Sorted(maps.Keys(t.unknown)) {
		line, fine, err := tryUnknown(ctx, c, own, value, t.unknown[value])
		if err != nil {
			return err
		}
		if !fine {
			bad++
		}
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintln(&b, lastLine(t.gates))
	if _, err := io.WriteString(w, b.String()); err != nil {
		return &ownError{"write the answer: " + err.Error()}
	}
	switch {
	case bad > 0:
		return &ownError{"open runs hold what this code does not know, and do not go on with it"}
	case len(own.reading.Problems) > 0:
		return &ownError{"not every gate could be read from the code"}
	}
	return nil
}

func table(w io.Writer, gates []*gateTally) {
	t := tabwriter.NewWriter(w, 0, 1, 2, ' ', 0)
	fmt.Fprintln(t, "gate\tworkflows\tversion\topen runs\toldest start\toldest run\tretirable")
	reached := true
	for _, g := range gates {
		types := strings.Join(g.Workflows, ", ")
		if types == "" {
			types = "any"
		}
		verdict := "no"
		if g.retirable() {
			verdict = "yes"
		}
		row := func(version string, of group) {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", plain(g.ID), plain(types), version, of.runs, since(of), plain(run1(of)), verdict)
			verdict = "" // said once, in the gate's first row
		}
		for _, v := range g.versions() {
			held := g.held[v]
			if held == nil {
				held = &group{}
			}
			row(g.version(v), *held)
		}
		row("old or not reached", g.none)
		reached = reached && g.none.runs == 0
	}
	_ = t.Flush() // into memory
	if !reached {
		fmt.Fprintln(w, notReached)
	}
}

func (g *gateTally) version(v workflow.Version) string {
	switch {
	case v == workflow.DefaultVersion:
		return "old, for sure"
	case v == g.Max:
		return fmt.Sprintf("%d, newest", v)
	case !g.answers(v):
		return fmt.Sprintf("%d, not known here", v)
	}
	return fmt.Sprint(v)
}

func since(of group) string {
	if of.runs == 0 {
		return "-"
	}
	return of.oldest.Start.UTC().Format(time.RFC3339)
}

func run1(of group) string {
	if of.runs == 0 {
		return "-"
	}
	return of.oldest.ID
}

// plain writes a name that other code chose so that it stays in its place.
func plain(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

func runs(n int) string {
	if n == 1 {
		return "1 open run"
	}
	return fmt.Sprintf("%d open runs", n)
}

func lastLine(gates []*gateTally) string {
	retirable := 0
	for _, g := range gates {
		if g.retirable() {
			retirable++
		}
	}
	return fmt.Sprintf("gates: %d, retirable: %d", len(gates), retirable)
}
