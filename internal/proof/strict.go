package proof

import (
	"fmt"
	"slices"
)

// Difference is something that a replay did otherwise than the history records, where the
// SDK's own matching may see nothing.
type Difference struct {
	Specimen string
	// Event is the event that the code does not match.
	Event int64
	// Command is the event's command, as kind and name.
	Command string
	// Field is what of it differs, as input[0].lines[2].text; "command" when no call made it.
	Field string
	// History is what the history holds, Code what the code now gives.
	History, Code string
	// Allowed is the reason of the reviewed entry that allows it; "" when none does.
	Allowed string
}

// String says a difference in one line.
func (d Difference) String() string {
	return fmt.Sprintf("%s event %d, %s, %s: history %s, code %s", d.Specimen, d.Event, d.Command, d.Field, short(d.History), short(d.Code))
}

func short(s string) string {
	if len(s) > 120 {
		return s[:117] + "..."
	}
	return s
}

// pair is an event with the call that made it; nil where no call did. An extra pair is a
// call that must have left an event and did not: its event is 0.
type pair struct {
	event Command
	call  *call
}

func (p pair) extra() bool { return p.event.Event == 0 }

// match finds for each event of a history the call that made it, in order, within its
// workflow task.
func match(p *past, calls []call) []pair {
	byTask := make([][]*call, len(p.tasks))
	local := make([][]*call, len(p.tasks))
	for i := range calls {
		c := &calls[i]
		at, ok := p.byID[c.Task]
		if !ok || !c.recorded {
			continue
		}
		if c.Kind == LocalActivity {
			local[at] = append(local[at], c)
		} else {
			byTask[at] = append(byTask[at], c)
		}
	}
	var out []pair
	var waiting []*call // local activities that an earlier task called
	for i, t := range p.tasks {
		found := align(withoutCancels(t.commands), byTask[i])
		out = append(out, found...)
		for _, c := range byTask[i] {
			if c.must && !slices.ContainsFunc(found, func(p pair) bool { return p.call == c }) {
				out = append(out, pair{Command{Kind: c.Kind, Name: c.Name, Task: c.Task}, c})
			}
		}
		waiting = append(waiting, local[i]...)
		for _, e := range t.local {
			at := slices.IndexFunc(waiting, func(c *call) bool { return sameName(e.Name, c.Name) })
			if at < 0 {
				out = append(out, pair{event: e})
				continue
			}
			out = append(out, pair{e, waiting[at]})
			waiting = slices.Delete(waiting, at, at+1)
		}
	}
	return out
}

func withoutCancels(commands []Command) []Command {
	return slices.DeleteFunc(slices.Clone(commands), func(c Command) bool { return c.Kind.cancels() })
}

// sameName holds where one name may be the last part of the other: local activities are
// called by the function's short name or by its long one.
func sameName(a, b string) bool { return lastPart(a) == lastPart(b) }

// lastPart is what is behind the last dot: the SDK matches types by it alone.
func lastPart(name string) string {
	for i := len(name) - 2; i >= 0; i-- {
		if name[i] == '.' {
			return name[i+1:]
		}
	}
	return name
}

// The costs of an alignment. A call without an event is cheap: it was cancelled before it
// was sent, or is a mutable side effect that did not change; what else it might be strands.
const (
	costField   = 1
	costName    = 20
	costMissing = 100
	costUnsent  = 3
)

func pairCost(e Command, c *call) int {
	if e.Kind != c.Kind {
		return 2 * costMissing
	}
	cost := 0
	if e.Name != c.Name {
		cost += costName
	}
	if len(diffFields(e.fields, c.fields)) > 0 {
		cost += costField
	}
	return cost
}

// align finds the cheapest way in which calls made events, both in their order.
func align(events []Command, calls []*call) []pair {
	out := make([]pair, 0, len(events))
	i, j := 0, 0
	for i < len(events) && j < len(calls) && pairCost(events[i], calls[j]) == 0 {
		out = append(out, pair{events[i], calls[j]})
		i, j = i+1, j+1
	}
	events, calls = events[i:], calls[j:]
	if len(events) == 0 {
		return out
	}
	n, m := len(events), len(calls)
	best := make([][]int, n+1)
	for i := range best {
		best[i] = make([]int, m+1)
	}
	costs := make([][]int, n)
	for i := n; i >= 0; i-- {
		if i < n {
			costs[i] = make([]int, m)
		}
		for j := m; j >= 0; j-- {
			switch {
			case i == n:
				best[i][j] = (m - j) * costUnsent
			case j == m:
				best[i][j] = (n - i) * costMissing
			default:
				costs[i][j] = pairCost(events[i], calls[j])
				best[i][j] = min(costs[i][j]+best[i+1][j+1], costMissing+best[i+1][j], costUnsent+best[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < n; {
		switch {
		case j < m && best[i][j] == costs[i][j]+best[i+1][j+1] && costs[i][j] < costMissing:
			out = append(out, pair{events[i], calls[j]})
			i, j = i+1, j+1
		case j < m && best[i][j] == costUnsent+best[i][j+1]:
			j++
		default:
			out = append(out, pair{event: events[i]})
			i++
		}
	}
	return out
}

// differences compares each event with its call.
func differences(specimen string, pairs []pair) []Difference {
	var out []Difference
	for _, p := range pairs {
		what := Command{Kind: p.event.Kind, Name: p.event.Name}.String()
		add := func(field, history, code string) {
			out = append(out, Difference{Specimen: specimen, Event: p.event.Event, Command: what, Field: field, History: history, Code: code})
		}
		if p.call == nil {
			add("command", what, absent)
			continue
		}
		if p.extra() {
			add("command", absent, what)
			continue
		}
		if p.event.Name != p.call.Name && p.event.Kind != LocalActivity {
			add("name", p.event.Name, p.call.Name)
		}
		for _, d := range diffFields(p.event.fields, p.call.fields) {
			add(d.at, d.history, d.code)
		}
	}
	return out
}
