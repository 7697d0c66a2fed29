package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// safetyNet is the timer of a workflow that is woken when something happens, and looks now
// and then all the same. One that runs is left to run, unless a shorter one is needed: a
// timer costs an action.
type safetyNet struct {
	timer  workflow.Future
	cancel workflow.CancelFunc
	// soon: it is the short one.
	soon bool
}

// set has a look due after slow, or sooner, after fast, where lines or words are under way.
func (n *safetyNet) set(ctx workflow.Context, outstanding bool, slow, fast time.Duration) {
	running := n.timer != nil && !n.timer.IsReady()
	if running && (n.soon || !outstanding) {
		return
	}
	if running {
		n.cancel()
	}
	after := slow
	if outstanding {
		after = min(slow, fast)
	}
	timer, cancel := workflow.WithCancel(ctx)
	n.timer = workflow.NewTimerWithOptions(timer, after, workflow.TimerOptions{Summary: "tick"})
	n.cancel, n.soon = cancel, outstanding
}

// isSet tells whether a timer runs, or has fired and was not taken.
func (n *safetyNet) isSet() bool { return n.timer != nil }

func (n *safetyNet) fired() bool { return n.timer != nil && n.timer.IsReady() }

// take forgets a timer that has fired, and tells whether one had.
func (n *safetyNet) take() bool {
	fired := n.fired()
	if fired {
		n.timer = nil
	}
	return fired
}
