package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"agentsmith/activities"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// thread drives one brain in the test environment and keeps what its activities were asked.
type thread struct {
	*testsuite.TestWorkflowEnvironment
	t     *testing.T
	runs  []activities.RunAgentInput
	posts []activities.PostInput
	kills []activities.KillAgentInput
	// run answers a run of the agent; nil answers "done".
	run func(ctx context.Context, in activities.RunAgentInput) (activities.RunAgentResult, error)
	// takes is how long each run lasts.
	takes map[int]time.Duration
	begun int
	// lost: a run that failed had not begun.
	lost    bool
	settles []activities.SettleInput
	binds   []activities.BindInput
	stops   []activities.StopOperatorInput
	// bind answers a Bind, nil answers that the line is a question; bindTakes is how long it lasts.
	bind      func(activities.BindInput) (activities.Binding, error)
	bindTakes time.Duration
}

const root = "1700000000.000100"

func newThread(t *testing.T) *thread {
	var suite testsuite.WorkflowTestSuite
	th := &thread{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, takes: map[int]time.Duration{}}
	workflows.Register(th)
	th.SetStartWorkflowOptions(startOptions())
	th.SetTestTimeout(20 * time.Second)
	var a *activities.Agent
	var p *activities.Poster
	th.RegisterActivity(&activities.Agent{})
	th.RegisterActivity(&activities.Poster{})
	th.answerBinds()
	th.OnActivity(a.RunAgent, mock.Anything, mock.Anything).Return(
		func(ctx context.Context, in activities.RunAgentInput) (activities.RunAgentResult, error) {
			th.runs = append(th.runs, in)
			if th.run != nil {
				return th.run(ctx, in)
			}
			return activities.RunAgentResult{Answer: activities.Answer{Text: "done"}}, nil
		}).AfterFn(func() time.Duration {
		th.begun++
		return th.takes[th.begun-1]
	})
	th.OnActivity(a.KillAgent, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.KillAgentInput) (activities.KillAgentResult, error) {
			th.kills = append(th.kills, in)
			return activities.KillAgentResult{Stopped: 1}, nil
		})
	th.OnActivity(p.Post, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.PostInput) (activities.PostResult, error) {
			th.posts = append(th.posts, in)
			return activities.PostResult{TS: "1700000009.000100", NotBegun: in.IfBegun && th.lost}, nil
		})
	th.OnActivity(p.Settle, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.SettleInput) (activities.SettleResult, error) {
			th.settles = append(th.settles, in)
			return activities.SettleResult{Failed: len(in.Lines)}, nil
		})
	return th
}

func (th *thread) answerBinds() {
	var o *activities.Operator
	th.RegisterActivity(&activities.Operator{})
	th.OnActivity(o.Bind, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.BindInput) (activities.Binding, error) {
			th.binds = append(th.binds, in)
			if th.bind != nil {
				return th.bind(in)
			}
			return activities.Binding{Disposition: rules.DispQuestion}, nil
		}).AfterFn(func() time.Duration { return th.bindTakes })
	th.OnActivity(o.StopOperator, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.StopOperatorInput) (activities.StopOperatorResult, error) {
			th.stops = append(th.stops, in)
			return activities.StopOperatorResult{Operator: operator()}, nil
		})
}

func ts(n int) string { return fmt.Sprintf("17000000%02d.000100", n) }

func lineAt(n int, text string) workflows.Trigger {
	return workflows.Trigger{Kind: workflows.KindLine, Author: rules.Person, Line: rules.Line{
		LineKey: rules.LineKey{Team: "T1", Channel: "C1", TS: ts(n)}, Root: root, User: "U1", Text: text,
	}}
}

func (th *thread) start(first workflows.Trigger) {
	th.ExecuteWorkflow(workflows.Reply, input(first))
	require.True(th.t, th.IsWorkflowCompleted())
}

func input(first workflows.Trigger) workflows.ReplyInput {
	return workflows.ReplyInput{
		Seat: "smith", Thread: rules.Thread{Team: "T1", Channel: "C1", Root: root}, Trigger: first,
		Settings: workflows.Settings{Box: "main", IdleAfter: 30 * time.Minute, TurnTimeout: time.Hour, SelfDriveHops: 2},
	}
}

func (th *thread) at(d time.Duration, t workflows.Trigger) {
	th.RegisterDelayedCallback(func() { th.SignalWorkflow(workflows.SignalAddContext, t) }, d)
}

// slowFirst makes the first run of the agent last d of workflow time, slowSecond the second.
func (th *thread) slowFirst(d time.Duration)  { th.takes[0] = d }
func (th *thread) slowSecond(d time.Duration) { th.takes[1] = d }

func said(posts []activities.PostInput) []activities.Say {
	var out []activities.Say
	for _, p := range posts {
		out = append(out, p.Say)
	}
	return out
}

func keys(lines []activities.TurnLine) []string {
	var out []string
	for _, l := range lines {
		out = append(out, l.Line.TS)
	}
	return out
}

func startOptions() (o client.StartWorkflowOptions) {
	o.ID = workflows.ReplyID("smith", rules.Thread{Team: "T1", Channel: "C1", Root: root})
	o.TaskQueue = workflows.TaskQueue
	return o
}

func TestReply_AnswersTheLineThenIdlesThenCompletes(t *testing.T) {
	th := newThread(t)
	began := th.Now()
	th.start(lineAt(1, "hello"))
	require.NoError(t, th.GetWorkflowError())
	require.Equal(t, []string{ts(1)}, keys(th.runs[0].Turn.Lines))
	require.Equal(t, "smith/C1/"+ts(1), th.runs[0].Turn.ID)
	require.Equal(t, []activities.Say{activities.SayAnswer}, said(th.posts))
	require.Equal(t, rules.Answered, th.posts[0].State)
	require.Equal(t, "done", th.posts[0].Answer.Text)
	require.GreaterOrEqual(t, th.Now().Sub(began), 30*time.Minute, "it waits for follow-ups (B6)")
}

// B6: a line restarts the idle time although the timer is left running.
func TestReply_EveryLineRestartsTheIdleTime(t *testing.T) {
	th := newThread(t)
	began := th.Now()
	th.at(20*time.Minute, lineAt(2, "again"))
	th.start(lineAt(1, "hello"))
	require.Len(t, th.runs, 2)
	require.GreaterOrEqual(t, th.Now().Sub(began), 50*time.Minute)
}

// B2: lines that arrive during a turn wait, and the next turn answers them together, in ts order.
func TestReply_AnswersWaitingLinesTogether(t *testing.T) {
	th := newThread(t)
	th.slowFirst(time.Minute)
	th.at(10*time.Second, lineAt(4, "c"))
	th.at(11*time.Second, lineAt(3, "b"))
	th.at(12*time.Second, lineAt(4, "c")) // redelivered
	th.start(lineAt(1, "a"))
	require.Len(t, th.runs, 2)
	require.Equal(t, []string{ts(3), ts(4)}, keys(th.runs[1].Turn.Lines))
	require.Len(t, th.posts, 2)
}

// L3: a line that comes twice is answered once, whether by input and signal or by two signals.
func TestReply_DropsARedeliveredLine(t *testing.T) {
	th := newThread(t)
	th.at(0, lineAt(1, "hello"))
	th.at(time.Minute, lineAt(1, "hello"))
	th.start(lineAt(1, "hello"))
	require.Len(t, th.runs, 1)
	require.Len(t, th.posts, 1)
}

// L3: a run that found every line taken or ended has nothing to post.
func TestReply_PostsNothingForLinesThatWereTaken(t *testing.T) {
	th := newThread(t)
	th.run = func(context.Context, activities.RunAgentInput) (activities.RunAgentResult, error) {
		return activities.RunAgentResult{Nothing: true}, nil
	}
	th.start(lineAt(1, "hello"))
	require.Empty(t, th.posts)
}

func TestReply_SaysWhatAFailedRunWas(t *testing.T) {
	for name, tt := range map[string]struct {
		err    error
		say    activities.Say
		state  rules.State
		reason rules.Reason
	}{
		"the agent failed": {temporal.NewNonRetryableApplicationError("x", activities.ErrTypeAgent, nil, activities.FailureDetails{Reason: rules.ReasonAgentExit}),
			activities.SayFailure, rules.Failed, rules.ReasonAgentExit},
		"over budget (X6)": {temporal.NewNonRetryableApplicationError("x", activities.ErrTypeDeclined, nil, activities.FailureDetails{Reason: rules.ReasonBudget}),
			activities.SayDecline, rules.Declined, rules.ReasonBudget},
		"the worker died (B3)": {temporal.NewNonRetryableApplicationError("x", activities.ErrTypeWorkerDied, nil),
			activities.SayFailure, rules.Failed, rules.ReasonWorkerDied},
		"stopped elsewhere (D4)": {temporal.NewNonRetryableApplicationError("x", activities.ErrTypeStopped, nil),
			activities.SayNothing, rules.Declined, rules.ReasonStopped},
		"heartbeats stopped (B3)": {temporal.NewHeartbeatTimeoutError(), activities.SayFailure, rules.Failed, rules.ReasonWorkerDied},
		"a fault of ours":         {fmt.Errorf("disk full"), activities.SayFailure, rules.Failed, rules.ReasonInternal},
	} {
		t.Run(name, func(t *testing.T) {
			th := newThread(t)
			th.run = func(context.Context, activities.RunAgentInput) (activities.RunAgentResult, error) {
				return activities.RunAgentResult{}, tt.err
			}
			th.start(lineAt(1, "hello"))
			require.NoError(t, th.GetWorkflowError(), "a failed turn does not fail the thread")
			require.Len(t, th.runs, 1, "an agent is never run again blindly (B3)")
			require.Equal(t, []activities.Say{tt.say}, said(th.posts))
			require.Equal(t, tt.state, th.posts[0].State)
			require.Equal(t, tt.reason, th.posts[0].Reason)
			require.Equal(t, []string{ts(1)}, keys(th.posts[0].Turn.Lines))
		})
	}
}

// B3: a run that was lost before it took a line has done nothing, and is made again; but
// not for ever.
func TestReply_BeginsAnewARunThatNeverBegan(t *testing.T) {
	died := temporal.NewNonRetryableApplicationError("x", activities.ErrTypeWorkerDied, nil)
	t.Run("once", func(t *testing.T) {
		th := newThread(t)
		th.lost = true
		th.run = func(context.Context, activities.RunAgentInput) (activities.RunAgentResult, error) {
			if len(th.runs) == 1 {
				return activities.RunAgentResult{}, died
			}
			return activities.RunAgentResult{Answer: activities.Answer{Text: "done"}}, nil
		}
		th.start(lineAt(1, "hello"))
		require.Len(t, th.runs, 2)
		require.Equal(t, th.runs[0].Turn, th.runs[1].Turn)
		require.Equal(t, activities.SayAnswer, th.posts[1].Say)
	})
	t.Run("always", func(t *testing.T) {
		th := newThread(t)
		th.lost = true
		th.run = func(context.Context, activities.RunAgentInput) (activities.RunAgentResult, error) {
			return activities.RunAgentResult{}, died
		}
		th.start(lineAt(1, "hello"))
		require.Len(t, th.runs, 4)
		last := th.posts[len(th.posts)-1]
		require.False(t, last.IfBegun)
		require.Equal(t, rules.ReasonWorkerDied, last.Reason)
	})
}

// B4: an agent with nothing to add posts nothing, and the line has its outcome.
func TestReply_AbstainsInSilence(t *testing.T) {
	th := newThread(t)
	th.run = func(context.Context, activities.RunAgentInput) (activities.RunAgentResult, error) {
		return activities.RunAgentResult{Abstained: true}, nil
	}
	th.start(lineAt(1, "fyi"))
	require.Equal(t, []activities.Say{activities.SayNothing}, said(th.posts))
	require.Equal(t, rules.ReasonAbstained, th.posts[0].Reason)
}

func stopAt(n int) workflows.Trigger {
	t := lineAt(n, "stop")
	t.Kind, t.EventTS = workflows.KindStop, ts(n)
	return t
}

// D4: a stop ends the running turn and what waits, and says so once.
func TestReply_StopEndsTheTurnAndWhatWaits(t *testing.T) {
	th := newThread(t)
	th.slowFirst(time.Minute)
	th.at(10*time.Second, lineAt(2, "and this"))
	th.at(20*time.Second, stopAt(3))
	th.start(lineAt(1, "hello"))
	require.Len(t, th.runs, 1)
	require.Equal(t, []activities.KillAgentInput{{Seat: "smith", Thread: rules.Thread{Team: "T1", Channel: "C1", Root: root}, StopTS: ts(3)}}, th.kills)
	require.Equal(t, []activities.Say{activities.SayStop}, said(th.posts))
	p := th.posts[0]
	require.Equal(t, activities.StopSaid{Stopped: 1, Waiting: 1}, p.Stop)
	require.Equal(t, "smith/C1/"+ts(3)+"/stop", p.PostID)
	require.Equal(t, rules.ReasonStopped, p.Reason)
	require.Len(t, p.Others, 2)
	require.Equal(t, ts(2), p.Others[0].Line.Line.TS)
	require.Equal(t, rules.ReasonStopped, p.Others[0].Reason)
	require.Equal(t, ts(3), p.Others[1].Line.Line.TS)
	require.Equal(t, rules.Answered, p.Others[1].State)
}

// D4: a stop that comes with its line drops the line before its turn begins, and says so.
func TestReply_StopRightBehindALine(t *testing.T) {
	th := newThread(t)
	th.at(0, stopAt(3))
	th.start(lineAt(1, "hello"))
	require.Empty(t, th.runs)
	require.Equal(t, []activities.Say{activities.SayStop}, said(th.posts))
	require.Equal(t, activities.StopSaid{Waiting: 1}, th.posts[0].Stop)
	require.Equal(t, ts(1), th.posts[0].Others[0].Line.Line.TS)
	require.Equal(t, rules.ReasonStopped, th.posts[0].Others[0].Reason)
}

// D4: an impatient second stop gets no word of its own while the first is carried out.
func TestReply_SecondStopWhileStopping(t *testing.T) {
	th := newThread(t)
	th.slowFirst(time.Minute)
	th.at(20*time.Second, stopAt(3))
	th.at(21*time.Second, stopAt(4))
	th.start(lineAt(1, "hello"))
	require.Equal(t, []activities.Say{activities.SayStop}, said(th.posts))
	others := th.posts[0].Others
	require.Equal(t, ts(4), others[len(others)-1].Line.Line.TS)
	require.Equal(t, rules.Answered, others[len(others)-1].State)
}

// D4: a line that was typed after the stop is answered.
func TestReply_StopLeavesYoungerLines(t *testing.T) {
	th := newThread(t)
	th.slowFirst(time.Minute)
	th.at(10*time.Second, lineAt(4, "younger"))
	th.at(20*time.Second, stopAt(3))
	th.start(lineAt(1, "hello"))
	require.Len(t, th.runs, 2)
	require.Equal(t, []string{ts(4)}, keys(th.runs[1].Turn.Lines))
}

// D4: a stop that arrives after a younger line's turn began does not end that turn.
func TestReply_LateStopLeavesAYoungerTurn(t *testing.T) {
	th := newThread(t)
	th.slowFirst(time.Minute)
	th.at(20*time.Second, stopAt(3))
	th.start(lineAt(4, "hello"))
	require.Empty(t, th.kills)
	require.ElementsMatch(t, []activities.Say{activities.SayStop, activities.SayAnswer}, said(th.posts))
}

func TestReply_StopWithNothingRunningSaysSo(t *testing.T) {
	th := newThread(t)
	th.start(stopAt(3))
	require.Empty(t, th.runs)
	require.Equal(t, activities.StopSaid{}, th.posts[0].Stop)
}

// D4: at a DM's top level a stop ends every running turn of the DM, and is said once.
func TestReply_StopOfAWholeDM(t *testing.T) {
	th := newThread(t)
	stop := stopAt(3)
	stop.WholeChannel = true
	th.start(stop)
	require.True(t, th.kills[0].WholeChannel)
	require.Equal(t, activities.StopSaid{Stopped: 1}, th.posts[0].Stop)
}

func deleteOf(n int) workflows.Trigger {
	t := lineAt(n, "")
	t.Kind, t.EventTS = workflows.KindDelete, ts(90)
	return t
}

// L4: a deleted line that waits is declined; a turn ends only when all of its lines are deleted.
func TestReply_DeletedLines(t *testing.T) {
	t.Run("one that waits", func(t *testing.T) {
		th := newThread(t)
		th.slowFirst(time.Minute)
		th.at(10*time.Second, lineAt(2, "oops"))
		th.at(20*time.Second, deleteOf(2))
		th.start(lineAt(1, "hello"))
		require.Len(t, th.runs, 1)
		require.Equal(t, ts(2), th.posts[0].Others[0].Line.Line.TS)
		require.Equal(t, rules.ReasonDeleted, th.posts[0].Others[0].Reason)
		require.Equal(t, rules.Answered, th.posts[0].State)
	})
	t.Run("the only line of a turn", func(t *testing.T) {
		th := newThread(t)
		th.slowFirst(time.Minute)
		th.at(10*time.Second, deleteOf(1))
		th.start(lineAt(1, "hello"))
		require.Len(t, th.kills, 1)
		require.Empty(t, th.kills[0].StopTS)
		require.Equal(t, []activities.Say{activities.SayNothing}, said(th.posts))
		require.Equal(t, rules.ReasonDeleted, th.posts[0].Reason)
	})
	t.Run("one of two", func(t *testing.T) {
		th := newThread(t)
		th.slowFirst(time.Minute)
		th.at(time.Second, lineAt(2, "b"))
		th.at(2*time.Second, lineAt(3, "c"))
		th.slowSecond(time.Minute)
		th.at(70*time.Second, deleteOf(3))
		th.start(lineAt(1, "a"))
		require.Empty(t, th.kills)
		require.Equal(t, []activities.Say{activities.SayAnswer, activities.SayAnswer}, said(th.posts))
	})
}

func editOf(n int, text string) workflows.Trigger {
	t := lineAt(n, text)
	t.Kind, t.Line.EditedTS, t.EventTS = workflows.KindEdit, ts(80), ts(80)
	return t
}

// L4: an edit of a line that waits replaces its text; a later one is context and no turn.
func TestReply_EditedLines(t *testing.T) {
	th := newThread(t)
	th.slowFirst(time.Minute)
	th.at(10*time.Second, lineAt(2, "tpyo"))
	th.at(20*time.Second, editOf(2, "typo"))
	th.at(5*time.Minute, editOf(1, "hello, all"))
	th.at(6*time.Minute, lineAt(3, "next"))
	th.start(lineAt(1, "hello"))
	require.Len(t, th.runs, 3)
	require.Equal(t, "typo", th.runs[1].Turn.Lines[0].Line.Text)
	require.Equal(t, []activities.Edit{{TS: ts(1), Text: "hello, all"}}, th.runs[2].Edits)
}

// X1, D2: a refused line costs one post and no agent.
func TestReply_RefusesWithoutAnAgent(t *testing.T) {
	th := newThread(t)
	refused := lineAt(1, "hello")
	refused.Kind, refused.Reason = workflows.KindDecline, rules.ReasonOutsider
	th.start(refused)
	require.Empty(t, th.runs)
	require.Equal(t, activities.SayDecline, th.posts[0].Say)
	require.Equal(t, rules.ReasonOutsider, th.posts[0].Reason)
}

// L3: of the lines that the sweep asks about, only those that the brain does not hold are settled.
func TestReply_SettlesOnlyWhatItDoesNotHold(t *testing.T) {
	th := newThread(t)
	th.slowFirst(time.Minute)
	th.at(5*time.Second, lineAt(2, "waits"))
	check := workflows.Trigger{Kind: workflows.KindCheck, Lines: []string{ts(1), ts(2), ts(7)}}
	th.at(10*time.Second, check)
	th.at(10*time.Minute, check)
	th.start(lineAt(1, "hello"))
	require.Equal(t, []string{ts(7)}, th.settles[0].Lines)
	require.Equal(t, []string{ts(1), ts(2), ts(7)}, th.settles[1].Lines, "it held them while they ran")
}

// D2: an agent may go on by itself, but not for ever.
func TestReply_SelfDriveIsBounded(t *testing.T) {
	th := newThread(t)
	th.run = func(_ context.Context, in activities.RunAgentInput) (activities.RunAgentResult, error) {
		return activities.RunAgentResult{Answer: activities.Answer{Text: "part"}, Continue: "more"}, nil
	}
	th.start(lineAt(1, "hello"))
	require.Len(t, th.runs, 3, "the line's own turn and two more")
	require.Equal(t, []int{2, 1, 0}, []int{th.runs[0].Drives, th.runs[1].Drives, th.runs[2].Drives})
	require.Equal(t, "more", th.runs[1].Prompt)
	require.Equal(t, "smith/C1/"+ts(1)+"/drive2", th.posts[2].PostID)
	require.False(t, th.posts[1].DrivesUsedUp)
	require.True(t, th.posts[2].DrivesUsedUp)
}

// D2: a driven turn keeps the hop of the hand-off that it goes on with.
func TestReply_ADrivenTurnKeepsTheHop(t *testing.T) {
	th := newThread(t)
	th.run = func(_ context.Context, in activities.RunAgentInput) (activities.RunAgentResult, error) {
		return activities.RunAgentResult{Answer: activities.Answer{Text: "part"}, Continue: "more"}, nil
	}
	first := lineAt(1, "handed on")
	first.SiblingHop = 2
	th.start(first)
	require.Equal(t, []int{2, 2, 2}, []int{th.runs[0].SiblingHop, th.runs[1].SiblingHop, th.runs[2].SiblingHop})
}

// D1: a scheduled run has one turn, opens a thread of its own, and does not wait for follow-ups.
func TestReply_Schedule(t *testing.T) {
	th := newThread(t)
	in := input(workflows.Trigger{Kind: workflows.KindLine, Author: rules.Schedule, IsCron: true, Prompt: "stand up"})
	in.Thread.Root = ""
	th.ExecuteWorkflow(workflows.Reply, in)
	require.NoError(t, th.GetWorkflowError())
	require.Equal(t, "stand up", th.runs[0].Prompt)
	require.Empty(t, th.runs[0].Turn.Lines)
	require.True(t, th.posts[0].NewThread)
	require.NotEmpty(t, th.posts[0].PostID)
}

// B2: a renewed run knows what the one before it had seen, and answers what waited.
func TestReply_CarriesOverContinueAsNew(t *testing.T) {
	th := newThread(t)
	th.SetContinueAsNewSuggested(true)
	th.start(lineAt(1, "hello"))
	var renewed *workflow.ContinueAsNewError
	require.ErrorAs(t, th.GetWorkflowError(), &renewed)
	require.Empty(t, th.runs, "the lines wait for the new run")

	var next workflows.ReplyInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(renewed.Input, &next))
	require.Len(t, next.Carried.Waiting, 1)

	after := newThread(t)
	after.at(time.Minute, lineAt(1, "hello"))
	after.ExecuteWorkflow(workflows.Reply, next)
	require.NoError(t, after.GetWorkflowError())
	require.Len(t, after.runs, 1, "a redelivery after the renewal is no new turn")
}

// A brain that is cancelled from outside tells the thread before it goes.
func TestReply_CancelledSaysSo(t *testing.T) {
	th := newThread(t)
	th.slowFirst(time.Minute)
	th.at(5*time.Second, lineAt(2, "waits"))
	th.RegisterDelayedCallback(th.CancelWorkflow, 10*time.Second)
	th.start(lineAt(1, "hello"))
	require.True(t, temporal.IsCanceledError(th.GetWorkflowError()))
	var ended []string
	for _, p := range th.posts {
		require.Equal(t, rules.ReasonCancelled, p.Reason)
		ended = append(ended, keys(p.Turn.Lines)...)
	}
	require.Equal(t, []string{ts(1), ts(2)}, ended)
}

func TestReply_TellsWhatItIsDoing(t *testing.T) {
	th := newThread(t)
	th.slowFirst(time.Minute)
	var view workflows.ThreadView
	th.at(5*time.Second, lineAt(2, "waits"))
	th.RegisterDelayedCallback(func() {
		v, err := th.QueryWorkflow(workflows.QueryThread)
		require.NoError(t, err)
		require.NoError(t, v.Get(&view))
	}, 10*time.Second)
	th.start(lineAt(1, "hello"))
	require.Equal(t, "running the agent", view.Doing)
	require.Equal(t, []string{ts(1)}, view.Lines)
	require.Equal(t, []string{ts(2)}, view.Waiting)
}
