package main

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/sdk/workflow"

	"agentsmith/internal/proof"
)

// group counts runs, and keeps the one that began first.
type group struct {
	runs   int
	oldest openRun
}

func (g *group) add(r openRun) {
	if g.runs++; g.runs == 1 || r.Start.Before(g.oldest.Start) {
		g.oldest = r
	}
}

// gateTally is what the open runs hold of one gate.
type gateTally struct {
	proof.Gate
	held map[workflow.Version]*group
	// none are the runs of the gate's workflow types that hold no version of it.
	none group
}

// retirable holds when every open run that could ask the gate holds its newest version.
func (g *gateTally) retirable() bool {
	for v, held := range g.held {
		if v != g.Max && held.runs > 0 {
			return false
		}
	}
	return g.none.runs == 0
}

// versions are those to show, the newest first: every one that the code can answer with,
// and what else is held.
func (g *gateTally) versions() []workflow.Version {
	shown := map[workflow.Version]bool{g.Max: true}
	for v := max(g.Min, 1); v < g.Max; v++ {
		shown[v] = true
	}
	for v := range g.held {
		shown[v] = true
	}
	return slices.SortedFunc(maps.Keys(shown), func(a, b workflow.Version) int { return cmp.Compare(b, a) })
}

// tally is what the open runs hold of all gates.
type tally struct {
	gates []*gateTally
	types []string // that the code registers; empty when that cannot be told
	// unknown are runs that hold what the code cannot answer with, by that value.
	unknown map[string][]openRun
	// strangers counts the runs of other types that hold versions: they are of other code.
	strangers int
}

func newTally(r *proof.Reading) *tally {
	t := &tally{types: r.Workflows, unknown: map[string][]openRun{}}
	for _, g := range r.Gates {
		t.gates = append(t.gates, &gateTally{Gate: g, held: map[workflow.Version]*group{}})
	}
	return t
}

func (t *tally) add(r openRun) {
	if len(t.types) > 0 && !slices.Contains(t.types, r.Type) {
		if len(r.Holds) > 0 {
			t.strangers++
		}
		return
	}
	holds := map[*gateTally]bool{}
	for _, value := range r.Holds {
		g, v := t.gateOf(value)
		if g == nil || !g.answers(v) {
			t.unknown[value] = append(t.unknown[value], r)
		}
		if g == nil {
			continue
		}
		holds[g] = true
		if g.held[v] == nil {
			g.held[v] = &group{}
		}
		g.held[v].add(r)
	}
	for _, g := range t.gates {
		if !holds[g] && (len(g.Workflows) == 0 || slices.Contains(g.Workflows, r.Type)) {
			g.none.add(r)
		}
	}
}

// answers tells whether the code goes on with a run that holds a version.
func (g *gateTally) answers(v workflow.Version) bool { return v >= g.Min && v <= g.Max }

// gateOf reads <change ID>-<version>. An ID may hold dashes and numbers, so it is compared
// with those that the code knows; of two that fit, a- and a for a--1, the shorter one is
// taken: by it the run is older.
func (t *tally) gateOf(value string) (found *gateTally, v workflow.Version) {
	for _, g := range t.gates {
		rest, ok := strings.CutPrefix(value, g.ID+"-")
		if !ok || found != nil && len(found.ID) < len(g.ID) {
			continue
		}
		if n, err := strconv.Atoi(rest); err == nil && strconv.Itoa(n) == rest {
			found, v = g, workflow.Version(n)
		}
	}
	return found, v
}
