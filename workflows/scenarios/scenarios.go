// Package scenarios says what can happen to a workflow, as functions that act on a whole
// running system: people type, workers die, time passes. `task capture` runs them on the
// code as it is and keeps the histories that they leave.
//
// Each workflow type has its files and its list here. To add a scenario, write its function
// and name it in the list; to add a workflow type, write its list and name that in All.
// Nothing in this folder is a workflow: it uses clocks, channels and the network as it
// likes, and no program that ships may import it.
package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Scenario is something that happens to a run of a workflow.
type Scenario struct {
	// Workflow is the type, as it is registered.
	Workflow string
	// Name is the scenario's part of the specimen's name: small letters, digits and dashes.
	Name string
	// Purpose says what a specimen of it is for, in a line.
	Purpose string
	// Kind is the system that it needs.
	Kind Kind
	// Open: the run is kept while it is still open, cut at the last task that has started.
	Open bool
	// Run makes it happen and returns which run to keep.
	Run func(ctx context.Context, w *World) (Execution, error)
}

// Execution names a run; an empty Run is the latest.
type Execution struct{ ID, Run string }

// All are the scenarios of every workflow type.
func All() []Scenario {
	return slices.Concat(reply(), replyOperator(), operatorTask(), replyRelay(), relayTick(), replyAsk(), replyForce(), forcePick())
}

// of names the workflow type of a list of scenarios.
func of(workflow string, list []Scenario) []Scenario {
	for i := range list {
		list[i].Workflow = workflow
	}
	return list
}

// Choose returns the scenarios of a workflow type, in any case ("" is every type), that
// have one of the names (none is all). A name that no scenario has is an error.
func Choose(workflow string, names ...string) ([]Scenario, error) {
	var out []Scenario
	found := map[string]bool{}
	known := false
	for _, s := range All() {
		if workflow != "" && !strings.EqualFold(workflow, s.Workflow) {
			continue
		}
		known = true
		if len(names) == 0 || slices.Contains(names, s.Name) {
			out = append(out, s)
			found[s.Name] = true
		}
	}
	if !known {
		return nil, fmt.Errorf("there is no scenario of a workflow %q", workflow)
	}
	for _, name := range names {
		if !found[name] {
			return nil, fmt.Errorf("there is no scenario %q", name)
		}
	}
	return out, nil
}
