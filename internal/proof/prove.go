package proof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.temporal.io/sdk/workflow"
)

// Plan is what to prove.
type Plan struct {
	// Reading is what the code's source says of its gates; nil when there is no source to read.
	Reading *Reading
	// Allowed are the differences that are meant; nil allows none.
	Allowed *Allowed
	// Commits tells what a specimen's commit knew; nil leaves that unchecked.
	Commits Commits
	// Mutate: score the specimens by mutants.
	Mutate bool
}

// SpecimenResult is what is known of one specimen.
type SpecimenResult struct {
	Name, Workflow string
	Outcome        Outcome
	// Differences are what the strict comparison shows, with the reason of those allowed.
	Differences []Difference
	Consults    []Consult
	// Vacuous: the code has gates, and this specimen neither proves one nor holds one.
	Vacuous bool
}

// Row is one gate on one specimen.
type Row struct {
	Gate, Specimen string
	// MarkerAbsent and BranchAbsent: nothing of the gate, and nothing that its branch would
	// schedule, is in the history.
	MarkerAbsent, BranchAbsent bool
	// Commit is what the specimen's commit knows of the gate.
	Commit CommitKnows
	// Older: the specimen was made by code from before the gate.
	Older bool
	// Asked counts how often the gate was consulted; Answer is what it said first.
	Asked  int
	Answer workflow.Version
	// OldEvent is what the old code left where the branch would begin; Branch is what the
	// new code gives there.
	OldEvent, Branch string
	// Parted is the event at which the ungated replay's calls part from the history; the SDK
	// may notice at a later one.
	Parted int64
	// Instrument: the specimen can tell.
	Instrument bool
	// Gated is the replay as the code is, Ungated the one without the gate.
	Gated, Ungated Outcome
	// Renamed is the replay with the gate's name changed, of a specimen that holds its marker.
	// RenameSeen: that strands, or shows as a difference.
	Renamed    *Outcome
	RenameSeen bool
	Proved     bool
	// Why says what is missing of a proof.
	Why string
}

// GateResult is one gate, over all specimens.
type GateResult struct {
	ID     string
	Proved bool
	By     []string // the specimens that prove it
}

// Report is the whole proof.
type Report struct {
	Specimens []SpecimenResult
	Rows      []Row
	Gates     []GateResult
	// Scores has one entry a workflow type, when mutants were asked for.
	Scores []Score
	// Unreached are the calls in the source that no specimen reaches.
	Unreached []string
	// Problems are what no row tells: a gate that reading did not find, an entry that nothing needs.
	Problems []string
	// Replays counts how often a history was replayed for all this.
	Replays int
}

// evidence is what one specimen gave.
type evidence struct {
	result SpecimenResult
	rows   []Row
	score  Score
	sites  map[string]bool
}

// Prove replays every specimen, compares it strictly, tries each gate on it, and mutates its commands.
func (p *Prover) Prove(ctx context.Context, specimens []Specimen, plan Plan) (*Report, error) {
	if len(specimens) == 0 {
		return nil, errors.New("there is no specimen: a proof without one proves nothing")
	}
	before := p.replays.Load()
	found := make([]evidence, len(specimens))
	errs := make([]error, len(specimens))
	next := make(chan int)
	var wg sync.WaitGroup
	for range p.code.Parallel {
		wg.Go(func() {
			for i := range next {
				if ctx.Err() == nil {
					found[i], errs[i] = p.examine(ctx, specimens[i], plan)
				}
			}
		})
	}
	for i := range specimens {
		next <- i
	}
	close(next)
	wg.Wait()
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return nil, err
	}
	out := summarize(found, plan)
	out.Replays = int(p.replays.Load() - before)
	return out, nil
}

// Differences replays a specimen and compares it strictly; each run's differences are
// listed once. It fails when no replay was green enough to compare.
func (p *Prover) Differences(s Specimen, controls ...Control) ([]Difference, Outcome) {
	o, runs := p.replay(s, setup{controls: controls}, p.code.Repeat)
	return allDifferences(s.Name, readPast(s.History, p.code.DataConverter), runs), o
}

func allDifferences(name string, past *past, runs []*run) (out []Difference) {
	for _, r := range runs {
		for _, d := range differences(name, match(past, r.calls)) {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}

func (p *Prover) examine(ctx context.Context, s Specimen, plan Plan) (evidence, error) {
	past := readPast(s.History, p.code.DataConverter)
	o, runs := p.replay(s, setup{sites: plan.Reading != nil}, p.code.Repeat)
	base := runs[0]
	e := evidence{
		result: SpecimenResult{Name: s.Name, Workflow: s.Workflow(), Outcome: o, Consults: base.consults},
		sites:  map[string]bool{},
	}
	for _, c := range base.calls {
		e.sites[c.site] = true
	}
	if o.Verdict == Green {
		e.result.Differences = allDifferences(s.Name, past, runs)
		for i, d := range e.result.Differences {
			e.result.Differences[i].Allowed = plan.Allowed.reason(d, true)
		}
		if plan.Mutate {
			e.score = p.score(s, past, base, plan.Allowed)
		}
	}
	for _, g := range gates(plan.Reading) {
		row, err := p.row(ctx, g, s, past, base, o, plan.Commits)
		if err != nil {
			return e, err
		}
		e.rows = append(e.rows, row)
	}
	return e, nil
}

func gates(r *Reading) []Gate {
	if r == nil {
		return nil
	}
	return r.Gates
}

func summarize(found []evidence, plan Plan) *Report {
	out := &Report{}
	known := map[string]*GateResult{}
	for _, g := range gates(plan.Reading) {
		known[g.ID] = &GateResult{ID: g.ID}
	}
	reached := map[string]bool{}
	scores := map[string]*Score{}
	for _, e := range found {
		e.result.Vacuous = len(known) > 0
		for _, row := range e.rows {
			if row.Proved {
				known[row.Gate].Proved = true
				known[row.Gate].By = append(known[row.Gate].By, row.Specimen)
			}
			if row.Proved || !row.MarkerAbsent {
				e.result.Vacuous = false
			}
		}
		out.Rows = append(out.Rows, e.rows...)
		out.Specimens = append(out.Specimens, e.result)
		for site := range e.sites {
			reached[site] = true
		}
		if plan.Mutate {
			if scores[e.result.Workflow] == nil {
				scores[e.result.Workflow] = &Score{Workflow: e.result.Workflow}
			}
			scores[e.result.Workflow].add(e.score)
		}
		out.Problems = append(out.Problems, strangers(e.result, known, plan)...)
	}
	for _, g := range gates(plan.Reading) {
		out.Gates = append(out.Gates, *known[g.ID])
	}
	slices.SortStableFunc(out.Rows, func(a, b Row) int { return strings.Compare(a.Gate, b.Gate) })
	for _, s := range scores {
		out.Scores = append(out.Scores, *s)
	}
	slices.SortFunc(out.Scores, func(a, b Score) int { return strings.Compare(a.Workflow, b.Workflow) })
	if plan.Reading != nil {
		out.Problems = append(out.Problems, plan.Reading.Problems...)
		out.Unreached = plan.Reading.unreached(reached)
	}
	out.Problems = append(out.Problems, plan.Allowed.unused(plan.Mutate)...)
	slices.Sort(out.Problems)
	out.Problems = slices.Compact(out.Problems)
	return out
}

// strangers are gates that a replay asked and reading did not find.
func strangers(s SpecimenResult, known map[string]*GateResult, plan Plan) (out []string) {
	if plan.Reading == nil {
		return nil
	}
	for _, c := range s.Consults {
		if known[c.ChangeID] == nil {
			out = append(out, fmt.Sprintf("the gate %q is asked in %s, and reading the code did not find it", c.ChangeID, s.Workflow))
		}
	}
	return out
}
