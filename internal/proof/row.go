package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// row tries one gate on one specimen.
func (p *Prover) row(ctx context.Context, g Gate, s Specimen, past *past, base *run, gated Outcome, commits Commits) (Row, error) {
	row := Row{Gate: g.ID, Specimen: s.Name, Gated: gated}
	newest := g.Max
	var asked []Consult
	for _, c := range base.consults {
		if c.ChangeID == g.ID {
			asked = append(asked, c)
			newest = max(newest, c.Max)
		}
	}
	row.Asked = len(asked)
	row.MarkerAbsent = !slices.ContainsFunc(past.commands(), func(c Command) bool {
		return c.Kind == Version && c.Name == g.ID && versionOf(c) >= newest
	})
	knows, err := commits.ask(ctx, s.Commit, g.ID, newest)
	if err != nil {
		return row, fmt.Errorf("ask what commit %s of %s knows: %w", s.Commit, s.Name, err)
	}
	row.Commit = knows
	if !row.MarkerAbsent && gated.Verdict == Green {
		r, o := p.once(s.History, setup{controls: []Control{GateRenamed(g.ID, g.ID+"-"+other)}}, own(s.History))
		row.Renamed = &o
		row.RenameSeen = o.Code == NonDeterminism || shows(s.Name, past, r, differences(s.Name, match(past, base.calls)), nil)
	}
	if row.Asked == 0 {
		row.BranchAbsent = row.MarkerAbsent
		row.Why = "the gate is never asked: vacuous"
		return row, nil
	}
	row.Answer = asked[0].Answer
	ungated, o := p.once(s.History, setup{controls: []Control{GateRemoved(g.ID)}}, own(s.History))
	row.Ungated = o
	if o.Verdict == Stranded {
		row.Parted = divergence(past, ungated.calls)
	}
	part := parting(past, base, ungated, asked[0])
	row.OldEvent, row.Branch = part.oldEvent(), part.branchName()
	old := !slices.ContainsFunc(asked, func(c Consult) bool { return c.Answer >= newest })
	row.BranchAbsent = row.MarkerAbsent && old && part.branchUnseen(past, base)
	row.Older = row.MarkerAbsent && row.BranchAbsent && knows != Knows
	row.Instrument = old && part.event != 0
	strands := o.Code == NonDeterminism && part.fits(o, row.Parted)
	row.Proved = row.Older && row.Instrument && gated.Verdict == Green && !gated.Sometimes() && strands
	row.Why = row.missing(part, old, strands)
	return row, nil
}

func (r Row) missing(part part, old, strands bool) string {
	switch {
	case r.Proved:
		return ""
	case !old:
		return "newer: it holds the gate already"
	case r.Gated.Verdict != Green || r.Gated.Sometimes():
		return "it does not replay"
	case !part.found:
		return "taking the gate away changes nothing: vacuous"
	case !r.Instrument:
		return "it ends before the branch: vacuous"
	case r.Commit == Knows:
		return "its commit knows the gate: not older"
	case !r.Older:
		return "it holds what the branch schedules: not older"
	case !strands && r.Ungated.Code == NonDeterminism:
		return "it strands elsewhere than where the branch begins"
	}
	return "it does not strand without the gate"
}

// Vacuous tells whether the specimen says nothing about the gate.
func (r Row) Vacuous() bool { return strings.HasSuffix(r.Why, "vacuous") }

// part is where the code with and without a gate go different ways.
type part struct {
	found bool
	// old is what the gated code gave there; branch what the ungated one did. Either may be nil.
	old, branch *call
	event       int64 // the history's event there
	kind        string
}

// parting compares the calls of two replays from the first question to a gate on.
func parting(past *past, gated, ungated *run, asked Consult) part {
	from := func(r *run) (out []*call) {
		for i := range r.calls {
			if c := &r.calls[i]; c.recorded && c.index >= asked.Calls {
				out = append(out, c)
			}
		}
		return out
	}
	a, b := from(gated), from(ungated)
	i := 0
	for i < len(a) && i < len(b) && sameCall(a[i], b[i]) {
		i++
	}
	if i == len(a) && i == len(b) {
		return part{}
	}
	out := part{found: true}
	if i < len(b) {
		out.branch = b[i]
	}
	if i < len(a) {
		out.old = a[i]
		for _, p := range match(past, gated.calls) {
			if p.call != nil && p.call.index == out.old.index {
				out.event, out.kind = p.event.Event, p.event.plain()
			}
		}
		return out
	}
	// The old code gives no command any more: what follows its task is the next event.
	if at, ok := past.byID[asked.Task]; ok && out.branch != nil {
		if later, ok := past.byID[out.branch.Task]; ok {
			at = later
		}
		out.event, out.kind = past.after(past.tasks[at]), "what follows the task"
	}
	return out
}

func sameCall(a, b *call) bool {
	return a.Kind == b.Kind && a.Name == b.Name && a.Task == b.Task && len(diffFields(a.fields, b.fields)) == 0
}

func (p part) oldEvent() string {
	if p.event == 0 {
		return ""
	}
	return fmt.Sprintf("%s at %d", p.kind, p.event)
}

func (p part) branchName() string {
	if p.branch == nil {
		return ""
	}
	return p.branch.plain()
}

// branchUnseen holds when every event of the kind that the branch schedules was made by
// the code outside of the branch: the gated replay made it, and its gate said no.
func (p part) branchUnseen(past *past, gated *run) bool {
	if p.branch == nil {
		return true
	}
	made := map[int64]bool{}
	for _, pair := range match(past, gated.calls) {
		made[pair.event.Event] = pair.call != nil
	}
	return !slices.ContainsFunc(past.commands(), func(c Command) bool {
		return c.Kind == p.branch.Kind && lastPart(c.Name) == lastPart(p.branch.Name) && !made[c.Event]
	})
}

// fits tells whether a strand is the one that the branch must make: at its event, or by
// its command. The SDK often names a later event: where a command of the same kind stood,
// it goes on with that one's result until its state machines meet an event that nothing
// leads to. Then the calls themselves must part from the history at the branch's event.
func (p part) fits(o Outcome, parted int64) bool {
	if !p.found {
		return false
	}
	if o.Event == p.event || parted == p.event && o.Event > p.event {
		return true
	}
	for _, c := range []*call{p.branch, p.old} {
		if c != nil && c.Name != "" && (strings.HasSuffix(o.Command, " "+c.Name) || strings.HasSuffix(o.Reason, " "+c.Name)) {
			return true
		}
	}
	return false
}
