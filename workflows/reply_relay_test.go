package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/rules"
	"agentsmith/workflows"
)

func standingDown(n int, text string) workflows.Trigger {
	t := lineAt(n, text)
	t.RelayStandsDown = true
	return t
}

// R5: the run of a line that a relay carries starts, binds and answers nothing, posts
// nothing of its own, idles, and is there to speak the session's words.
func TestReply_StandsDownAndSpeaksTheSessionsWords(t *testing.T) {
	th := newThread(t)
	began := th.Now()
	th.at(0, standingDown(1, "continue")) // the signal that came with the start
	th.at(29*time.Minute, standingDown(2, "go on"))
	th.at(50*time.Minute, workflows.Trigger{Kind: workflows.KindDeposit, Deposit: &activities.DepositInput{ID: "d1", Kind: "say", Text: "done"}})
	th.start(standingDown(1, "continue"))
	require.NoError(t, th.GetWorkflowError())
	require.Empty(t, th.runs, "no agent run")
	require.Empty(t, th.binds, "no classifier, no bind (O1)")
	require.Equal(t, []activities.Say{activities.SayDeposit}, said(th.posts))
	require.Equal(t, "d1", th.posts[0].PostID)
	require.GreaterOrEqual(t, th.Now().Sub(began), 59*time.Minute, "each line restarts the idle time (B6)")
}

// R9: a line that is handed back is answered once, also when both of its triggers came
// twice, and in the same run.
func TestReply_AnswersALineThatIsHandedBack(t *testing.T) {
	th := newThread(t)
	back := lineAt(1, "continue")
	back.HandedBack = true
	th.at(time.Minute, back)
	th.at(2*time.Minute, back)
	th.at(3*time.Minute, standingDown(1, "continue"))
	th.start(standingDown(1, "continue"))
	require.Len(t, th.runs, 1)
	require.Equal(t, []string{ts(1)}, keys(th.runs[0].Turn.Lines))
	require.Len(t, th.binds, 1, "it is a human turn after all (O1)")
	require.Equal(t, []activities.Say{activities.SayAnswer}, said(th.posts))
}

func (th *thread) answerDoors(answer func(activities.DoorInput) (activities.DoorAnswer, error)) *[]activities.DoorInput {
	var asked []activities.DoorInput
	var r *activities.Relay
	th.RegisterActivity(&activities.Relay{})
	th.OnActivity(r.AnswerDoor, mock.Anything, mock.Anything).Return(
		func(_ context.Context, in activities.DoorInput) (activities.DoorAnswer, error) {
			asked = append(asked, in)
			return answer(in)
		})
	return &asked
}

func doorAt(n int, what rules.RelayWhat) workflows.Trigger {
	t := lineAt(n, "work on 1")
	t.Kind = workflows.KindRelayDoor
	t.Door = &activities.DoorInput{
		Seat: "smith", Thread: t.Line.Thread(), User: "U1",
		Act: rules.RelayAct{Key: t.Line.Key(), What: what, Session: rules.SessionFact{Number: 1, Box: "main"}},
	}
	return t
}

// R1: a door is answered beside the turns, with one line under its own line's name, and no
// agent runs.
func TestReply_AnswersADoor(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(activities.DoorInput) (activities.DoorAnswer, error)
		say    activities.Say
		state  rules.State
		reason rules.Reason
		text   string
	}{
		"opened": {func(activities.DoorInput) (activities.DoorAnswer, error) {
			return activities.DoorAnswer{Text: "open"}, nil
		},
			activities.SayRelay, rules.Answered, "", "open"},
		"refused": {func(activities.DoorInput) (activities.DoorAnswer, error) {
			return activities.DoorAnswer{Text: "no", Refused: true}, nil
		}, activities.SayRelay, rules.Declined, rules.ReasonRefused, "no"},
		"not to be reached": {func(activities.DoorInput) (activities.DoorAnswer, error) {
			return activities.DoorAnswer{}, errors.New("away")
		}, activities.SayFailure, rules.Failed, rules.ReasonInternal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			th := newThread(t)
			asked := th.answerDoors(c.answer)
			th.at(time.Second, doorAt(1, rules.RelayOpen)) // redelivered
			th.start(doorAt(1, rules.RelayOpen))
			require.NoError(t, th.GetWorkflowError())
			require.NotEmpty(t, *asked)
			require.Empty(t, th.runs)
			require.Len(t, th.posts, 1)
			p := th.posts[0]
			require.Equal(t, "smith/C1/"+ts(1), p.Turn.ID)
			require.Equal(t, []string{ts(1)}, keys(p.Turn.Lines))
			require.Equal(t, []any{c.say, c.state, c.reason, c.text}, []any{p.Say, p.State, p.Reason, p.Text})
		})
	}
}
