package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"agentsmith/activities"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// followed drives one operator task in the test environment.
type followed struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T
	// see answers each look; the last answer stands.
	see     func(n int, in activities.ObserveInput) activities.Observation
	looks   []activities.ObserveInput
	notices []activities.NoticeInput
	shown   []activities.PublishInput
	ended   []activities.FinishInput
	offers  int
	// offersLeft is how many offers still find a word.
	offersLeft int
}

func newFollowed(t *testing.T) *followed {
	var suite testsuite.WorkflowTestSuite
	f := &followed{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	workflows.Register(f)
	f.SetTestTimeout(20 * time.Second)
	var a *activities.Task
	var p *activities.Phases
	f.RegisterActivity(&activities.Task{})
	f.RegisterActivity(&activities.Phases{})
	f.OnActivity(a.ObserveTask, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.ObserveInput) (activities.Observation, error) {
			f.looks = append(f.looks, in)
			return f.see(len(f.looks), in), nil
		})
	f.OnActivity(a.SayNotice, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.NoticeInput) error {
			f.notices = append(f.notices, in)
			return nil
		})
	f.OnActivity(a.FinishTask, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.FinishInput) error {
			f.ended = append(f.ended, in)
			return nil
		})
	f.OnActivity(a.OfferWords, mock.Anything, mock.Anything).Return(
		func(context.Context, activities.OfferInput) (activities.Offered, error) {
			f.offers++
			return activities.Offered{Outstanding: f.offers <= f.offersLeft}, nil
		})
	f.OnActivity(p.PublishPhases, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.PublishInput) (activities.Published, error) {
			f.shown = append(f.shown, in)
			return activities.Published{}, nil
		})
	return f
}

func (f *followed) follow() {
	f.ExecuteWorkflow(workflows.OperatorTask, workflows.TaskInput{
		Operator: *operator(),
		Settings: workflows.TaskSettings{Box: "main", Poll: 5 * time.Minute, Tick: 5 * time.Minute, GiveUp: 7 * 24 * time.Hour},
	})
	require.True(f.t, f.IsWorkflowCompleted())
}

func (f *followed) at(d time.Duration, t workflows.TaskTrigger) {
	f.RegisterDelayedCallback(func() { f.SignalWorkflow(workflows.SignalOperatorTask, t) }, d)
}

func works() activities.Observation {
	return activities.Observation{Alive: true, Facts: rules.PhaseFacts{Bound: true, Slug: "fix-login", Alive: true}}
}

func merged() activities.Observation {
	return activities.Observation{Over: "merged", Alive: true, Facts: rules.PhaseFacts{Bound: true, Slug: "fix-login", Pull: 7, State: "merged"}}
}

// The happy end: it is looked at, its phases are shown when they change, and it ends with
// the merge (O10, P3).
func TestOperatorTask_FollowsUntilTheMerge(t *testing.T) {
	f := newFollowed(t)
	f.see = func(n int, _ activities.ObserveInput) activities.Observation {
		if n < 4 {
			return works()
		}
		return merged()
	}
	began := f.Now()
	f.follow()
	require.NoError(t, f.GetWorkflowError())
	require.Len(t, f.looks, 4)
	require.Len(t, f.shown, 2, "what has not changed is not shown again")
	require.Equal(t, "merged", f.ended[0].Why)
	require.Empty(t, f.notices)
	require.Less(t, f.Now().Sub(began), 20*time.Minute)
}

// A wake has it look at once; only a webhook has it read GitHub before its time (O10).
func TestOperatorTask_LooksOnAWake(t *testing.T) {
	f := newFollowed(t)
	f.see = func(n int, _ activities.ObserveInput) activities.Observation {
		if n < 3 {
			return works()
		}
		return merged()
	}
	began := f.Now()
	f.at(time.Second, workflows.TaskTrigger{Kind: workflows.TaskWake})
	f.at(2*time.Second, workflows.TaskTrigger{Kind: workflows.TaskGitHub})
	f.follow()
	require.Len(t, f.looks, 3)
	require.True(t, f.looks[0].Pull)
	require.False(t, f.looks[1].Pull)
	require.True(t, f.looks[2].Pull)
	require.Less(t, f.Now().Sub(began), 10*time.Second)
}

// Blocked and dead are said once each (O10).
func TestOperatorTask_SaysOnceThatItIsBlockedOrDead(t *testing.T) {
	f := newFollowed(t)
	f.see = func(n int, _ activities.ObserveInput) activities.Observation {
		o := works()
		switch {
		case n <= 3:
			o.Blocked = true
		case n == 4:
		case n == 5:
			o.Blocked = true
		case n <= 8:
			o.Alive = false
		default:
			return merged()
		}
		return o
	}
	f.follow()
	var said []string
	for _, n := range f.notices {
		said = append(said, n.Name)
	}
	require.Equal(t, []string{"blocked-1", "blocked-2", "dead-1"}, said)
}

// A dead operator that was started again is followed in its new session, and its death is
// told again (O9).
func TestOperatorTask_AdoptsTheNewSession(t *testing.T) {
	f := newFollowed(t)
	again := *operator()
	again.Session = "22222222-2222-4222-8222-222222222222"
	f.see = func(_ int, in activities.ObserveInput) activities.Observation {
		o := works()
		o.Alive = false
		if in.Operator.Session == again.Session && len(f.notices) == 2 {
			return merged()
		}
		return o
	}
	f.at(time.Minute, workflows.TaskTrigger{Kind: workflows.TaskAdopt, Operator: again})
	f.follow()
	require.Equal(t, []string{"dead-1", "dead-2"}, []string{f.notices[0].Name, f.notices[1].Name})
	require.Equal(t, again.Session, f.ended[0].Operator.Session)
}

func TestOperatorTask_GivesUpOnADeadOne(t *testing.T) {
	f := newFollowed(t)
	f.see = func(int, activities.ObserveInput) activities.Observation {
		o := works()
		o.Alive = false
		return o
	}
	began := f.Now()
	f.follow()
	require.Equal(t, "gave_up", f.ended[0].Why)
	require.GreaterOrEqual(t, f.Now().Sub(began), 7*24*time.Hour)
}

// A stop of this session ends the task; one of an earlier session does not (X5).
func TestOperatorTask_EndsWithItsStop(t *testing.T) {
	f := newFollowed(t)
	f.see = func(int, activities.ObserveInput) activities.Observation { return works() }
	f.at(time.Minute, workflows.TaskTrigger{Kind: workflows.TaskStop, Operator: rules.Operator{Session: "another"}})
	f.at(time.Hour, workflows.TaskTrigger{Kind: workflows.TaskStop, Operator: *operator()})
	began := f.Now()
	f.follow()
	require.Equal(t, "stopped", f.ended[0].Why)
	require.GreaterOrEqual(t, f.Now().Sub(began), time.Hour)
}

// The last words are offered until they stand in the thread (R11).
func TestOperatorTask_WaitsForItsLastWords(t *testing.T) {
	f := newFollowed(t)
	f.offersLeft = 3
	f.see = func(int, activities.ObserveInput) activities.Observation { return merged() }
	f.follow()
	require.Equal(t, 4, f.offers)
}

// While lines or words are under way the safety net is a short one; GitHub is left alone.
func TestOperatorTask_TicksSoonWhileSomethingIsOutstanding(t *testing.T) {
	f := newFollowed(t)
	f.see = func(n int, _ activities.ObserveInput) activities.Observation {
		o := works()
		o.Outstanding = n < 5
		if n == 6 {
			return merged()
		}
		return o
	}
	began := f.Now()
	f.follow()
	require.Len(t, f.looks, 6)
	require.Less(t, f.Now().Sub(began), 8*time.Minute)
	require.False(t, f.looks[1].Pull)
}

// A task that was another's when it looked says and ends nothing of that one.
func TestOperatorTask_EndsWhereTheThreadIsAnothers(t *testing.T) {
	f := newFollowed(t)
	f.see = func(int, activities.ObserveInput) activities.Observation { return activities.Observation{Gone: true} }
	f.follow()
	require.Equal(t, "gone", f.ended[0].Why)
	require.Empty(t, f.notices)
}

// An operator that is started while its predecessor's task ends is followed by a run of
// its own: its adoption is not lost (B6 for tasks).
func TestOperatorTask_KeepsAnAdoptionThatComesLast(t *testing.T) {
	f := newFollowed(t)
	f.offersLeft = 2
	f.see = func(int, activities.ObserveInput) activities.Observation { return merged() }
	next := *operator()
	next.Session = "33333333-3333-4333-8333-333333333333"
	f.at(10*time.Second, workflows.TaskTrigger{Kind: workflows.TaskAdopt, Operator: next})
	f.follow()
	require.ErrorContains(t, f.GetWorkflowError(), "continue as new")
}
