package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"agentsmith/activities"
	"agentsmith/workflows"
)

// ticking drives one tick in the test environment.
type ticking struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T
	// see answers each look, by its number.
	see   func(n int, in activities.TickInput) (activities.TickResult, error)
	looks []look
	began time.Time
}

type look struct {
	box string
	at  time.Duration
}

func newTicking(t *testing.T) *ticking {
	var suite testsuite.WorkflowTestSuite
	k := &ticking{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	workflows.Register(k)
	k.SetTestTimeout(20 * time.Second)
	var r *activities.Relay
	k.RegisterActivity(&activities.Relay{})
	k.OnActivity(r.Tick, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.TickInput) (activities.TickResult, error) {
			k.looks = append(k.looks, look{in.Box, k.Now().Sub(k.began)})
			return k.see(len(k.looks), in)
		})
	k.began = k.Now()
	return k
}

func (k *ticking) follow(boxes ...string) {
	k.ExecuteWorkflow(workflows.RelayTick, workflows.TickStart{
		Seat: "smith", Team: "T1", Channel: "D1", Boxes: boxes,
		Settings: workflows.TickSettings{Fast: 20 * time.Second, Slow: 5 * time.Minute},
	})
	require.True(k.t, k.IsWorkflowCompleted())
}

func (k *ticking) wake(d time.Duration, box string) {
	k.RegisterDelayedCallback(func() { k.SignalWorkflow(workflows.SignalRelayTick, workflows.TickTrigger{Box: box}) }, d)
}

func open() (activities.TickResult, error)   { return activities.TickResult{Open: true}, nil }
func closed() (activities.TickResult, error) { return activities.TickResult{}, nil }
func busy() (activities.TickResult, error) {
	return activities.TickResult{Open: true, Outstanding: true}, nil
}

// R8: it looks at once on a wake, every 20 s while something is under way, every 5 minutes
// while a relay is only open, and ends when none is.
func TestRelayTick_LooksOnAWakeAndSlowerWhenNothingIsOutstanding(t *testing.T) {
	k := newTicking(t)
	k.see = func(n int, _ activities.TickInput) (activities.TickResult, error) {
		switch n {
		case 1, 2:
			return busy()
		case 3, 4, 5:
			return open()
		}
		return closed()
	}
	k.wake(40*time.Second+7*time.Minute, "main")
	k.follow("main")
	require.NoError(t, k.GetWorkflowError())
	var at []time.Duration
	for _, l := range k.looks {
		at = append(at, l.at)
	}
	require.Equal(t, []time.Duration{
		0, 20 * time.Second, 40 * time.Second, // the safety net of what is outstanding
		40*time.Second + 5*time.Minute, // slow
		40*time.Second + 7*time.Minute, // the wake, at once
		40*time.Second + 10*time.Minute,
	}, at)
}

// R8: a wake that comes while a look runs is looked at when that one ends, and a tick that
// nobody woke ends at once.
func TestRelayTick_LosesNoWake(t *testing.T) {
	k := newTicking(t)
	k.see = func(n int, _ activities.TickInput) (activities.TickResult, error) {
		if n == 1 {
			k.SignalWorkflow(workflows.SignalRelayTick, workflows.TickTrigger{Box: "main"})
		}
		return closed()
	}
	k.follow("main")
	require.NoError(t, k.GetWorkflowError())
	require.Len(t, k.looks, 2)

	k = newTicking(t)
	k.follow()
	require.NoError(t, k.GetWorkflowError())
	require.Empty(t, k.looks)
}

// A box that cannot be looked at is looked at again, slowly, and ends nothing.
func TestRelayTick_GoesOnWhenALookFails(t *testing.T) {
	k := newTicking(t)
	k.see = func(n int, _ activities.TickInput) (activities.TickResult, error) {
		if n == 1 {
			return activities.TickResult{}, temporal.NewNonRetryableApplicationError("broken", "", errors.New("x"))
		}
		return closed()
	}
	k.follow("main")
	require.NoError(t, k.GetWorkflowError())
	require.Len(t, k.looks, 2)
	require.Equal(t, 5*time.Minute, k.looks[1].at)
}

// Sessions of one conversation may be on several boxes: one that is done with is left, and
// the others go on.
func TestRelayTick_LooksAtEachBoxForItself(t *testing.T) {
	k := newTicking(t)
	seen := map[string]int{}
	k.see = func(_ int, in activities.TickInput) (activities.TickResult, error) {
		seen[in.Box]++
		if seen[in.Box] < map[string]int{"main": 2, "far": 3}[in.Box] {
			return open()
		}
		return closed()
	}
	k.wake(time.Second, "far")
	k.follow("main")
	require.NoError(t, k.GetWorkflowError())
	require.Equal(t, map[string]int{"main": 2, "far": 3}, seen)
}

// B6: it continues as new with its boxes, and with every wake that has come.
func TestRelayTick_ContinuesAsNewWithItsBoxes(t *testing.T) {
	k := newTicking(t)
	k.see = func(int, activities.TickInput) (activities.TickResult, error) {
		k.SetContinueAsNewSuggested(true)
		k.SignalWorkflow(workflows.SignalRelayTick, workflows.TickTrigger{Box: "far"})
		return open()
	}
	k.follow("main")
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, k.GetWorkflowError(), &again)
	require.Equal(t, workflows.RelayTickType, again.WorkflowType.Name)
	var next workflows.TickStart
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &next))
	require.Equal(t, []string{"main", "far"}, next.Boxes)
	require.Len(t, k.looks, 1, "what is due is the next run's")
}
