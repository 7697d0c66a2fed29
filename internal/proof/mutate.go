package proof

import (
	"fmt"
	"slices"
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/workflow"
)

// Mutant is one change to one command of a replay.
type Mutant struct {
	Specimen string
	// Event is the command's event, Command its kind and name.
	Event   int64
	Command string
	// Change is "drop", "retype", "requalify" (only what is before the last dot of a type)
	// or "swap" (with the next command of its workflow task).
	Change string
	// Why says what survived means, or why it was not tried, or that it is allowed.
	Why string
}

// String names a mutant for a person.
func (m Mutant) String() string {
	s := fmt.Sprintf("%s event %d, %s %s", m.Specimen, m.Event, m.Change, m.Command)
	if m.Why != "" {
		s += ": " + m.Why
	}
	return s
}

// Score is how the mutants of one workflow fared.
type Score struct {
	Workflow string
	// Commands counts the commands that were mutated, Mutants the changes that took place.
	Commands, Mutants int
	// Stranded were found by the SDK, Strict by the strict comparison alone.
	Stranded, Strict int
	// Survivors were found by nothing. Allowed are those that the reviewed list explains.
	Survivors, Allowed []Mutant
	// Untried could not be made, each with its reason.
	Untried []Mutant
}

func (s *Score) add(o Score) {
	s.Commands += o.Commands
	s.Mutants += o.Mutants
	s.Stranded += o.Stranded
	s.Strict += o.Strict
	s.Survivors = append(s.Survivors, o.Survivors...)
	s.Allowed = append(s.Allowed, o.Allowed...)
	s.Untried = append(s.Untried, o.Untried...)
}

// trial is a mutant with what makes it.
type trial struct {
	Mutant
	mutation
}

// mutants plans every change to a green replay's commands.
func mutants(specimen string, past *past, pairs []pair) (trials []trial, untried []Mutant, commands int) {
	byEvent := map[int64]*call{}
	order := map[int64][]pair{} // by task, without local activities
	for _, p := range pairs {
		if p.call == nil || p.extra() {
			continue
		}
		byEvent[p.event.Event] = p.call
		if p.event.Kind != LocalActivity {
			order[p.event.Task] = append(order[p.event.Task], p)
		}
	}
	add := func(c Command, change string, m mutation) {
		trials = append(trials, trial{Mutant{Specimen: specimen, Event: c.Event, Command: c.plain(), Change: change}, m})
	}
	skip := func(c Command, change, why string) {
		untried = append(untried, Mutant{Specimen: specimen, Event: c.Event, Command: c.plain(), Change: change, Why: why})
	}
	for _, p := range pairs {
		if p.call == nil || p.extra() {
			continue
		}
		commands++
		if p.event.Kind == Nexus {
			skip(p.event, "change", "a Nexus operation has no future that an interceptor could make")
			continue
		}
		m := mutation{at: p.call.index, peer: -1, version: versionOf(p.event), data: dataOf(p.event)}
		m.how = dropped
		add(p.event, "drop", m)
		m.how = retyped
		add(p.event, "retype", m)
		if p.event.Kind == Activity || p.event.Kind == Child {
			m.qualified = true
			add(p.event, "requalify", m)
		}
	}
	for _, t := range past.tasks {
		in := order[t.started]
		for i := 0; i+1 < len(in); i++ {
			next := in[i+1]
			switch {
			case next.event.Kind.closes():
				skip(in[i].event, "swap", "the end of a run has no place before its last command: what follows is never given")
			case next.call.again == nil:
				skip(in[i].event, "swap", "a "+string(next.event.Kind)+" cannot be given from another place")
			default:
				add(in[i].event, "swap", mutation{how: swapped, at: in[i].call.index, peer: next.call.index, again: next.call.again})
			}
		}
		for i, c := range t.commands {
			if !c.Kind.cancels() {
				continue
			}
			commands++
			of := byEvent[c.target()]
			if of == nil {
				skip(c, "change", "what it cancels has no call")
				continue
			}
			add(c, "drop", mutation{how: cancelDropped, at: of.index, peer: -1})
			add(c, "retype", mutation{how: cancelRetyped, at: of.index, peer: -1})
			if m, ok := cancelSwap(t, i, of, byEvent); ok {
				add(c, "swap", m)
			} else {
				skip(c, "swap", "a cancellation passes no interceptor, and no call stands beside it in its task to move it by")
			}
		}
	}
	return trials, untried, commands
}

// cancelSwap moves a cancellation over the call beside it: behind the next one, or before the last.
func cancelSwap(t task, i int, of *call, byEvent map[int64]*call) (mutation, bool) {
	if i+1 < len(t.commands) {
		if next := byEvent[t.commands[i+1].Event]; next != nil && !t.commands[i+1].Kind.closes() {
			return mutation{how: cancelSwapped, at: of.index, peer: next.index}, true
		}
	}
	if i > 0 {
		if before := byEvent[t.commands[i-1].Event]; before != nil && before.index != of.index {
			return mutation{how: cancelSwapped, at: of.index, peer: before.index, first: true}, true
		}
	}
	return mutation{}, false
}

// plain is a command without its event.
func (c Command) plain() string { return Command{Kind: c.Kind, Name: c.Name}.String() }

func versionOf(c Command) workflow.Version {
	s, _ := find(c.fields, "version").(string)
	n, _ := strconv.Atoi(s)
	return workflow.Version(n)
}

func dataOf(c Command) *commonpb.Payloads {
	data, _ := find(c.fields, "data").(*commonpb.Payloads)
	return data
}

// score tries every mutant of one specimen.
func (p *Prover) score(s Specimen, past *past, base *run, allowed *Allowed) Score {
	pairs := match(past, base.calls)
	known := differences(s.Name, pairs)
	trials, untried, commands := mutants(s.Name, past, pairs)
	out := Score{Workflow: s.Workflow(), Commands: commands, Untried: untried}
	for i := range trials {
		t := &trials[i]
		r, o := p.once(s.History, setup{mutation: &t.mutation}, own(s.History))
		if !r.applied {
			t.Why = "it never took place: the replay went another way before"
			out.Untried = append(out.Untried, t.Mutant)
			continue
		}
		out.Mutants++
		switch {
		case o.Code == NonDeterminism || o.Verdict == Hung:
			out.Stranded++
		case shows(s.Name, past, r, known, allowed):
			out.Strict++
		default:
			t.Why = "replayed " + o.String() + ", and nothing compared differs"
			if reason := allowed.mutant(t.Mutant); reason != "" {
				t.Why = reason
				out.Allowed = append(out.Allowed, t.Mutant)
				continue
			}
			out.Survivors = append(out.Survivors, t.Mutant)
		}
	}
	return out
}

// shows tells whether the strict comparison sees a mutant: by a difference that is neither
// there without it nor allowed.
func shows(specimen string, past *past, r *run, known []Difference, allowed *Allowed) bool {
	return slices.ContainsFunc(differences(specimen, match(past, r.calls)), func(d Difference) bool {
		return !slices.Contains(known, d) && allowed.reason(d, false) == ""
	})
}

// mutation is one change to one command of a replay.
type mutation struct {
	how  how
	at   int // the call that is changed, or whose cancellation is
	peer int // the call that it changes places with; -1 for none
	// first: the cancellation goes before the peer, not behind it.
	first   bool
	again   func(workflow.Context) any
	version workflow.Version
	data    *commonpb.Payloads
	// qualified: only what is before the last dot of the type changes.
	qualified bool
}

func (m *mutation) name(name string) string {
	if m.qualified {
		return other + "." + name
	}
	return other
}

type how int

const (
	dropped how = iota
	retyped
	swapped
	cancelDropped
	cancelRetyped
	cancelSwapped
)
