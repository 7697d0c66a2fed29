package workflows_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/rules"
	"agentsmith/workflows"
)

func operator() *rules.Operator {
	return &rules.Operator{Number: 3, Slug: "fix-login", Repo: "web", Session: "11111111-1111-4111-8111-111111111111"}
}

func spawned(activities.BindInput) (activities.Binding, error) {
	return activities.Binding{Disposition: rules.DispSpawned, Operator: operator()}, nil
}

// A human turn binds once; the run remembers, and no later turn asks again (O1, O2).
func TestReply_BindsOnce(t *testing.T) {
	th := newThread(t)
	th.bind = spawned
	first := lineAt(1, "fix the login")
	first.MaySpawn = true
	th.at(time.Minute, lineAt(2, "and the logout"))
	th.start(first)
	require.Len(t, th.binds, 1)
	require.True(t, th.binds[0].MaySpawn)
	require.Len(t, th.runs, 2)
	for _, run := range th.runs {
		require.Equal(t, operator(), run.Operator, "the agent knows (O11)")
	}
	require.Equal(t, rules.DispSpawned, th.posts[0].Binding.Disposition, "the answer that binds it says so")
	require.Nil(t, th.posts[1].Binding)
}

// A question is asked about anew with every human turn, and nothing is said of it (O3).
func TestReply_AsksAnewAfterAQuestion(t *testing.T) {
	th := newThread(t)
	th.at(time.Minute, lineAt(2, "and now fix it"))
	th.start(lineAt(1, "why is it so?"))
	require.Len(t, th.binds, 2)
	require.False(t, th.binds[0].MaySpawn)
}

// A Bind that was lost is said, and the line is answered all the same (O8, O3).
func TestReply_SaysThatABindWasLost(t *testing.T) {
	th := newThread(t)
	th.bind = func(activities.BindInput) (activities.Binding, error) {
		return activities.Binding{}, errors.New("the worker died")
	}
	th.start(lineAt(1, "fix the login"))
	require.Len(t, th.binds, 1, "one attempt (O8)")
	require.Equal(t, activities.SayAnswer, th.posts[0].Say)
	require.Equal(t, &activities.Binding{Disposition: rules.DispUnbound, Why: rules.GapLost}, th.posts[0].Binding)
}

// What is no human turn never binds; each in its own case (O1).
func TestReply_BindsOnHumanTurnsOnly(t *testing.T) {
	for name, change := range map[string]func(*workflows.Trigger){
		"webhook":      func(l *workflows.Trigger) { l.Author = rules.Webhook },
		"hand-off":     func(l *workflows.Trigger) { l.Author, l.SiblingHop = rules.Sibling, 1 },
		"sibling hop":  func(l *workflows.Trigger) { l.SiblingHop = 1 },
		"drive hop":    func(l *workflows.Trigger) { l.SelfDriveHop = 1 },
		"the schedule": func(l *workflows.Trigger) { l.IsCron = true },
	} {
		t.Run(name, func(t *testing.T) {
			th := newThread(t)
			l := lineAt(1, "fix the login")
			change(&l)
			th.start(l)
			require.Empty(t, th.binds)
			require.Len(t, th.runs, 1)
		})
	}
}

// A task whose operator is gone tells the brain: the next human turn binds again (O9).
func TestReply_BindsAgainWhenTheOperatorIsGone(t *testing.T) {
	th := newThread(t)
	th.bind = spawned
	th.at(time.Minute, workflows.Trigger{Kind: workflows.KindOperator})
	th.at(2*time.Minute, lineAt(2, "go on"))
	th.start(lineAt(1, "fix the login"))
	require.Len(t, th.binds, 2)
}

// Words are posted in the order of their offers, each once however often it is offered (R11).
func TestReply_PostsDepositsOnceAndInOrder(t *testing.T) {
	th := newThread(t)
	word := func(id string) workflows.Trigger {
		return workflows.Trigger{Kind: workflows.KindDeposit, Deposit: &activities.DepositInput{ID: id, Slug: "fix-login", Text: id}}
	}
	th.RegisterDelayedCallback(func() {
		for _, id := range []string{"a", "b", "a", "b", "c"} {
			th.SignalWorkflow(workflows.SignalAddContext, word(id))
		}
	}, time.Minute)
	th.start(lineAt(1, "hello"))
	var said []string
	for _, p := range th.posts {
		if p.Say == activities.SayDeposit {
			said = append(said, p.PostID)
			require.Empty(t, p.Turn.Lines, "a word ends no line")
		}
	}
	require.Equal(t, []string{"a", "b", "c"}, said)
	require.Len(t, th.runs, 1, "a word is no turn (B1)")
}

// A run that a word started has no first turn, and is over when the word is said (B1).
func TestReply_ThatADepositStartedHasNoTurn(t *testing.T) {
	th := newThread(t)
	th.start(workflows.Trigger{Kind: workflows.KindDeposit, Deposit: &activities.DepositInput{ID: "a", Text: "done"}})
	require.Empty(t, th.runs)
	require.Empty(t, th.binds)
	require.Len(t, th.posts, 1)
}

func TestReply_StopsItsOperator(t *testing.T) {
	th := newThread(t)
	th.bind = spawned
	stop := lineAt(2, "stop operator")
	stop.Kind, stop.EventTS = workflows.KindStopOperator, ts(2)
	th.at(time.Minute, stop)
	th.at(2*time.Minute, lineAt(3, "start over"))
	th.start(lineAt(1, "fix the login"))
	require.Len(t, th.stops, 1)
	require.Len(t, th.binds, 2, "the thread is free for another one")
	var stopped []activities.PostInput
	for _, p := range th.posts {
		if p.Say == activities.SayOperatorStopped {
			stopped = append(stopped, p)
		}
	}
	require.Len(t, stopped, 1)
	require.Equal(t, operator(), stopped[0].OperatorStopped.Operator)
	require.Equal(t, rules.Answered, stopped[0].Others[0].State)
}

// A stop while the bind runs leaves the agent alone: nothing has to be begun.
func TestReply_RunsNoAgentAfterAStopDuringTheBind(t *testing.T) {
	th := newThread(t)
	th.bind = func(activities.BindInput) (activities.Binding, error) {
		return activities.Binding{Disposition: rules.DispQuestion}, nil
	}
	th.bindTakes = time.Minute
	th.at(30*time.Second, workflows.Trigger{Kind: workflows.KindStop, EventTS: ts(2), Line: rules.Line{Root: root}})
	th.start(lineAt(1, "fix the login"))
	require.Empty(t, th.runs)
	require.Len(t, th.posts, 1)
	require.Equal(t, activities.SayStop, th.posts[0].Say)
}
