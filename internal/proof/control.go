package proof

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// Control changes how one gate answers in a replay. It is an interceptor's work: the code
// under proof is the code that ships.
type Control struct {
	what     string
	changeID string
	answer   func(ask gateAsk) workflow.Version
}

// gateAsk is a question to a gate on its way to the SDK.
type gateAsk struct {
	id         string
	minV, maxV workflow.Version
	next       func(id string, minV, maxV workflow.Version) workflow.Version
}

// String names a control for a person.
func (c Control) String() string { return fmt.Sprintf("%s %s", c.what, c.changeID) }

// GateRemoved answers with the newest version and asks nobody: the code as if the branch
// had been written without a gate.
func GateRemoved(changeID string) Control {
	return Control{"gate removed:", changeID, func(a gateAsk) workflow.Version { return a.maxV }}
}

// BranchForced asks the gate and takes the new branch all the same.
func BranchForced(changeID string) Control {
	return Control{"branch forced:", changeID, func(a gateAsk) workflow.Version {
		a.next(a.id, workflow.DefaultVersion, a.maxV)
		return a.maxV
	}}
}

// GateRenamed asks under another change ID: runs that hold the old one lose their branch.
func GateRenamed(changeID, to string) Control {
	return Control{"gate renamed:", changeID, func(a gateAsk) workflow.Version { return a.next(to, a.minV, a.maxV) }}
}

// MinimumRaised asks with a higher minimum, as code does that has dropped an old branch.
func MinimumRaised(changeID string, minimum workflow.Version) Control {
	return Control{"minimum raised:", changeID, func(a gateAsk) workflow.Version {
		return a.next(a.id, minimum, max(minimum, a.maxV))
	}}
}

func (r *run) ask(a gateAsk) workflow.Version {
	for _, c := range r.controls {
		if c.changeID == a.id {
			return c.answer(a)
		}
	}
	return a.next(a.id, a.minV, a.maxV)
}
