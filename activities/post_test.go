package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/mock/gomock"
	"pgregory.net/rapid"

	"agentsmith/activities"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/slackbox"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

func TestPost_SaysTheAnswerThenWritesTheOutcomeThenClearsTheStatus(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	require.NoError(t, r.slack.SetStatus(t.Context(), r.channel, line.Root, rules.ThinkingStatus))
	got := r.post(r.answer(turn(line), "**Hello** <!here>"))

	r.requireStanding(line.Root, "**Hello**")
	in, _ := r.standing(line.Root)
	require.Equal(t, got.TS, in[0].TS)
	require.True(t, rules.IsPost(mustJSON(t, in[0].Message), turn(line).ID, 1), "the post carries its name (B5)")
	require.NotContains(t, in[0].Text, "<!here>", "no post of ours mentions a channel (X2)")
	require.Contains(t, string(in[0].Message.Blocks), "opus · 3s", "the small line about the run (B7)")
	r.requireOutcome(line, rules.Answered, "")
	require.Empty(t, r.waits, "a first send waits for nothing")
	order := []string{"after Post", "after ConfirmPost", "after FinishTurn", "after ClearStatus"}
	require.Subset(t, r.points.seen, order)
	require.IsIncreasing(t, indexes(r.points.seen, order), "outcomes before the status: it is cleared last (B7)")
}

// Whatever Slack does with a post, the reader sees it once (B5).
func TestPost_StandsOnceWhateverSlackDoes(t *testing.T) {
	cases := map[string][]slackbox.Fault{
		"no answer":               {{Kind: slackbox.Timeout, Method: "chat.postMessage", Count: 1}},
		"the request lost":        {{Kind: slackbox.DropRequest, Method: "chat.postMessage", Count: 1}},
		"500, nothing stored":     {{Kind: slackbox.ServerError, Method: "chat.postMessage", Count: 1}},
		"500 after the store":     {{Kind: slackbox.ResponseLost, Method: "chat.postMessage", Count: 1, Status: 500}},
		"the answer lost, twice":  {{Kind: slackbox.ResponseLost, Method: "chat.postMessage", Count: 2}},
		"committed late":          {{Kind: slackbox.CommitLate, Method: "chat.postMessage", Count: 1, DelayMS: 12_500}},
		"committed late, as 503":  {{Kind: slackbox.CommitLate, Method: "chat.postMessage", Count: 1, DelayMS: 5_000, Status: 503}},
		"ok:false with no error":  {{Kind: slackbox.APIError, Method: "chat.postMessage", Count: 1}},
		"the read-back fails too": {{Kind: slackbox.ResponseLost, Method: "chat.postMessage", Count: 1}, {Kind: slackbox.ServerError, Method: "conversations.replies", Count: 2}},
		"the read-back lags":      {{Kind: slackbox.ResponseLost, Method: "chat.postMessage", Count: 1}, {Kind: slackbox.LagReads, DelayMS: 13_000, Count: 1}},
		"429, long":               {{Kind: slackbox.RateLimited, Method: "chat.postMessage", RetryAfter: 90, Count: 2}},
		"the status stuck":        {{Kind: slackbox.ServerError, Method: "assistant.*"}},
	}
	for _, name := range sortedKeys(cases) {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			line := r.says("", "hello")
			in := r.answer(turn(line), "Hello")
			for _, f := range cases[name] {
				r.fault(f)
			}
			got := r.post(in)
			r.requireStanding(line.Root, "Hello")
			r.requireOutcome(line, rules.Answered, "")
			posted, _ := r.standing(line.Root)
			require.Equal(t, posted[0].TS, got.TS)
		})
	}
}

// A post that is committed after the first look is seen by the second, 5 s later.
func TestPost_LooksTwiceBeforeItSendsAgain(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	in := r.answer(turn(line), "Hello")
	r.fault(slackbox.Fault{Kind: slackbox.CommitLate, Method: "chat.postMessage", Count: 1, DelayMS: 13_000})
	_, err := attempt(r, r.poster.Post, in)
	require.ErrorIs(t, err, slackapi.ErrAmbiguous)
	require.Empty(t, r.waits)
	r.requireOutcome(line, rules.Taken, "")

	r.post(in)
	require.Equal(t, []time.Duration{requestTimeout, 5 * time.Second}, r.waits, "the request's timeout, then between two looks")
	require.Equal(t, 2, r.calls("conversations.replies"))
	require.Equal(t, 2, r.calls("chat.postMessage"), "asked once, committed once: the log has both")
	r.requireStanding(line.Root, "Hello")
}

// The process dies at each point of a post; the next attempt, with the same ledger, ends it.
func TestPost_StandsOnceWhereverItCrashes(t *testing.T) {
	points := []string{
		"before BeginPost", "after BeginPost", "before Post", "after Post", "before ConfirmPost", "after ConfirmPost",
		"before FinishTurn", "after FinishTurn", "before ClearStatus", "after ClearStatus",
	}
	for _, point := range points {
		for part, text := range map[int]string{0: "Hello", 1: paragraphs(3)} {
			r := newRoom(t)
			line := r.says("", "hello")
			in := r.answer(turn(line), text)
			want := rules.SplitText(text, rules.PartLimit)
			skip := part
			if point == "before FinishTurn" || point == "after FinishTurn" || point == "before ClearStatus" || point == "after ClearStatus" {
				skip = 0
			}
			r.points.arm(point, skip)
			r.post(in)
			require.True(t, r.points.fired(), "%s, part %d", point, part)
			r.requireStanding(line.Root, want...)
			r.requireOutcome(line, rules.Answered, "")
		}
	}
}

// A long answer whose second part failed goes on there: what stands is not sent again.
func TestPost_GoesOnInTheMiddleOfALongAnswer(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	text := paragraphs(3)
	in := r.answer(turn(line), text)
	r.fault(slackbox.Fault{Kind: slackbox.ServerError, Method: "chat.postMessage", Skip: 1, Count: 1})
	_, err := attempt(r, r.poster.Post, in)
	require.ErrorIs(t, err, slackapi.ErrAmbiguous)
	before := r.calls("chat.postMessage")
	require.Equal(t, 2, before)
	r.post(in)
	require.Equal(t, 2, r.calls("chat.postMessage")-before, "only the second and the third part")
	require.Equal(t, []time.Duration{requestTimeout, 5 * time.Second}, r.waits, "what is confirmed is not looked for")
	parts := rules.SplitText(text, rules.PartLimit)
	r.requireStanding(line.Root, parts...)
	posted, _ := r.standing(line.Root)
	for i, m := range posted {
		require.Equal(t, i == len(posted)-1, json.Valid(m.Message.Blocks) && containsText(m, "opus"), "the footer is on the last part")
	}
}

// No send starts after a deadline below the activity's timeout (B5).
func TestPost_DoesNotSendWhenItsTimeIsNearlyOver(t *testing.T) {
	ctrl := gomock.NewController(t)
	slack, ledger := NewMockSlackClient(ctrl), NewMockPostLedger(ctrl)
	now := time.Now()
	p := &activities.Poster{
		Seats:  activities.Seats{ByName: map[string]*activities.Seat{"smith": {Name: "smith", Slack: slack}}},
		Ledger: ledger, RequestTimeout: requestTimeout, Log: discard(), Now: func() time.Time { return now },
	}
	ledger.EXPECT().PostsOf(gomock.Any(), "id").Return(nil, nil).AnyTimes()
	ledger.EXPECT().BeginPost(gomock.Any(), gomock.Any()).Return(store.Post{Attempts: 1}, nil).AnyTimes()
	in := activities.PostInput{
		Turn: activities.Turn{Seat: "smith", Thread: rules.Thread{Team: "T", Channel: "C", Root: "1.000000"}},
		Say:  activities.SayStop, PostID: "id",
	}
	ctx, cancel := context.WithDeadline(t.Context(), now.Add(requestTimeout+20*time.Second))
	defer cancel()
	_, err := p.Post(ctx, in)
	require.ErrorContains(t, err, "too late to send")

	// With a moment more it is sent, and the request ends before the activity does.
	slack.EXPECT().Post(gomock.Any(), gomock.Any()).DoAndReturn(func(sending context.Context, _ slackapi.PostRequest) (string, error) {
		at, ok := sending.Deadline()
		require.True(t, ok)
		require.LessOrEqual(t, at, now.Add(requestTimeout+time.Second))
		return "2.000000", nil
	})
	slack.EXPECT().ClearStatus(gomock.Any(), "C", "1.000000")
	ledger.EXPECT().ConfirmPost(gomock.Any(), "id", 1, "2.000000")
	ctx, cancel = context.WithDeadline(t.Context(), now.Add(requestTimeout+21*time.Second))
	defer cancel()
	_, err = p.Post(ctx, in)
	require.NoError(t, err)
}

func TestPost_NeverLeaksWhenTheParentIsGone(t *testing.T) {
	cases := map[string][]slackbox.Fault{
		"just before the post":        {{Kind: slackbox.ParentDeleted, Count: 1}},
		"and the answer is lost too":  {{Kind: slackbox.ParentDeleted, Count: 1}, {Kind: slackbox.ResponseLost, Method: "chat.postMessage", Count: 1}},
		"and it is committed late":    {{Kind: slackbox.ParentDeleted, Count: 1}, {Kind: slackbox.CommitLate, Method: "chat.postMessage", Count: 1, DelayMS: 3000}},
		"and the leak stays at first": {{Kind: slackbox.ParentDeleted, Count: 1}, {Kind: slackbox.ServerError, Method: "chat.delete", Count: 1}},
	}
	for _, name := range sortedKeys(cases) {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			line := r.says("", "hello")
			in := r.answer(turn(line), "Hello")
			for _, f := range cases[name] {
				r.fault(f)
			}
			r.post(in)
			r.requireStanding(line.Root)
			r.requireOutcome(line, rules.Failed, rules.ReasonParentGone)
		})
	}
}

// Slack's plain no is told in one honest line, once, and never taken for the answer.
func TestPost_TellsOnceThatSlackRefusedTheAnswer(t *testing.T) {
	for _, point := range []string{"", "after BeginPost", "after Post", "after ConfirmPost", "before FinishTurn", "after FinishTurn"} {
		t.Run(point, func(t *testing.T) {
			r := newRoom(t)
			line := r.says("", "hello")
			in := r.answer(turn(line), paragraphs(2))
			r.fault(slackbox.Fault{Kind: slackbox.APIError, Method: "chat.postMessage", Error: "restricted_action", Count: 1})
			if point == "after BeginPost" || point == "after Post" {
				r.points.arm(point, 1)
			} else if point != "" {
				r.points.arm(point, 0)
			}
			r.post(in)
			require.True(t, r.points.fired())
			r.requireStanding(line.Root, rules.FailureText(rules.ReasonPostRejected))
			r.requireOutcome(line, rules.Failed, rules.ReasonPostRejected)
		})
	}
}

// The refusal's own line may be of unknown fate: what is found then is not the answer.
func TestPost_DoesNotTakeTheRefusalForTheAnswer(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	in := r.answer(turn(line), "Hello")
	r.fault(slackbox.Fault{Kind: slackbox.APIError, Method: "chat.postMessage", Error: "restricted_action", Count: 1})
	r.fault(slackbox.Fault{Kind: slackbox.ResponseLost, Method: "chat.postMessage", Count: 1})
	r.post(in)
	r.requireStanding(line.Root, rules.FailureText(rules.ReasonPostRejected))
	r.requireOutcome(line, rules.Failed, rules.ReasonPostRejected)
}

func TestPost_GivesUpWhereSlackRefusesEveryWord(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	in := r.answer(turn(line), "Hello")
	r.fault(slackbox.Fault{Kind: slackbox.APIError, Method: "chat.postMessage", Error: "is_archived"})
	r.post(in)
	r.requireStanding(line.Root)
	r.requireOutcome(line, rules.Failed, rules.ReasonPostRejected)
}

// Temporal waits as long as Slack asks for.
func TestPost_LetsTemporalWaitAsLongAsSlackAsks(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	in := r.answer(turn(line), "Hello")
	r.fault(slackbox.Fault{Kind: slackbox.RateLimited, Method: "chat.postMessage", RetryAfter: 600, Count: 1})
	_, err := attempt(r, r.poster.Post, in)
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.Equal(t, 600*time.Second, app.NextRetryDelay())
	require.False(t, app.NonRetryable())
}

// A schedule's answer opens a thread of its own, and its later parts stand in it.
func TestPost_OpensAThreadOfItsOwnOnce(t *testing.T) {
	for _, point := range []string{"", "after Post", "after ConfirmPost"} {
		t.Run(point, func(t *testing.T) {
			r := newRoom(t)
			text := paragraphs(2)
			in := activities.PostInput{
				Turn: activities.Turn{ID: "smith/cron-1", Seat: "smith", Thread: rules.Thread{Team: r.team, Channel: r.channel}},
				Say:  activities.SayAnswer, State: rules.Answered, PostID: "smith/cron-1", NewThread: true,
				Answer: activities.Answer{Text: text},
			}
			if point != "" {
				r.points.arm(point, 0)
			}
			got := r.post(in)
			require.True(t, r.points.fired())
			inThread, top := r.standing(got.TS)
			require.Len(t, top, 1)
			require.Equal(t, got.TS, top[0].TS)
			require.Len(t, inThread, 1)
			require.Zero(t, r.calls("assistant.threads.setStatus"), "what has no thread has no status")
		})
	}
}

// A post that lost its root is a fault of ours: nothing is sent.
func TestPost_RefusesToPostWithoutAThread(t *testing.T) {
	r := newRoom(t)
	r.post(activities.PostInput{
		Turn: activities.Turn{ID: "smith/x", Seat: "smith", Thread: rules.Thread{Team: r.team, Channel: r.channel}},
		Say:  activities.SayStop, PostID: "smith/x/stop",
	})
	r.requireStanding("")
	require.Zero(t, r.calls("chat.postMessage"))
}

func TestPost_IfBegun_SaysNothingOfATurnThatNeverBegan(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	in := activities.PostInput{
		Turn: turn(line), Say: activities.SayFailure, State: rules.Failed, Reason: rules.ReasonWorkerDied, IfBegun: true,
	}
	require.True(t, r.post(in).NotBegun)
	r.requireStanding(line.Root)
	r.requireOutcome(line, rules.Owed, "")

	r.take(in.Turn)
	require.False(t, r.post(in).NotBegun)
	r.requireStanding(line.Root, rules.FailureText(rules.ReasonWorkerDied))
	r.requireOutcome(line, rules.Failed, rules.ReasonWorkerDied)

	// Repeated, as after a crash before its report: nothing more is said, and the status
	// is cleared all the same.
	cleared := r.calls("assistant.threads.setStatus")
	require.False(t, r.post(in).NotBegun)
	r.requireStanding(line.Root, rules.FailureText(rules.ReasonWorkerDied))
	require.Equal(t, cleared+1, r.calls("assistant.threads.setStatus"))
}

// A worker that died after it had kept the agent's answer, and before it reported it, has
// done the work: the answer is posted, not that it was interrupted (B3).
func TestPost_IfBegun_PostsAKeptAnswer(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	in := activities.PostInput{
		Turn: turn(line), Say: activities.SayFailure, State: rules.Failed, Reason: rules.ReasonWorkerDied, IfBegun: true,
	}
	r.take(in.Turn)
	require.NoError(t, r.store.KeepAnswer(t.Context(), in.Turn.ID, store.Answer{Text: "Four."}))
	r.post(in)
	r.requireStanding(line.Root, "Four.")
	r.requireOutcome(line, rules.Answered, "")
}

// A failure's post takes the lines itself, is named by the first that is its own to
// answer, and says nothing of lines that have all ended (L3).
func TestPost_NamesAFailureByTheLinesItMayStillTake(t *testing.T) {
	r := newRoom(t)
	a := r.says("", "one")
	b := r.says(a.Root, "two")
	other := turn(a)
	other.ID = "smith/other"
	r.take(other)
	_, err := r.store.FinishTurn(t.Context(), other.ID, "smith", []rules.LineKey{a.LineKey}, rules.Answered, "")
	require.NoError(t, err)
	in := activities.PostInput{Turn: turn(a, b), Say: activities.SayFailure, State: rules.Failed, Reason: rules.ReasonAgentExit}
	r.points.arm("before FinishTurn", 0)
	r.post(in)
	r.requireStanding(a.Root, rules.FailureText(rules.ReasonAgentExit))
	posted, _ := r.standing(a.Root)
	require.True(t, rules.IsPost(mustJSON(t, posted[0].Message), rules.TurnID("smith", r.channel, b.TS), 1))
	r.requireOutcome(a, rules.Answered, "")
	r.requireOutcome(b, rules.Failed, rules.ReasonAgentExit)

	r.post(in)
	r.requireStanding(a.Root, rules.FailureText(rules.ReasonAgentExit))
}

// Further lines end with a post, also one whose row could not be written at the door (L1).
func TestPost_WritesTheOutcomesOfOtherLines(t *testing.T) {
	r := newRoom(t)
	stop := r.says("", "stop")
	waiting := r.says(stop.Root, "and then")
	rowless := rules.Line{LineKey: rules.LineKey{Team: r.team, Channel: r.channel, TS: "1700000000.000100"}, Root: stop.Root, User: "U0ANA000001", Text: "lost row"}
	raw := json.RawMessage(`{"text":"lost row"}`)
	in := activities.PostInput{
		Turn: activities.Turn{Seat: "smith", Thread: stop.Thread()}, Say: activities.SayStop, PostID: rules.StopID("smith", r.channel, stop.TS),
		Stop: activities.StopSaid{Stopped: 1, Waiting: 2},
		Others: []activities.Outcome{
			{Line: activities.TurnLine{Line: waiting}, State: rules.Declined, Reason: rules.ReasonStopped},
			{Line: activities.TurnLine{Line: rowless, Author: rules.Person, Raw: raw}, State: rules.Declined, Reason: rules.ReasonStopped},
			{Line: activities.TurnLine{Line: stop}, State: rules.Answered},
		},
	}
	r.points.arm("after FinishTurn", 1)
	r.post(in)
	require.True(t, r.points.fired())
	r.requireStanding(stop.Root, rules.StopText(1, 2, false, false))
	r.requireOutcome(stop, rules.Answered, "")
	r.requireOutcome(waiting, rules.Declined, rules.ReasonStopped)
	r.requireOutcome(rowless, rules.Declined, rules.ReasonStopped)
	kept, err := r.store.Line(t.Context(), rowless.LineKey)
	require.NoError(t, err)
	require.JSONEq(t, string(raw), string(kept.Raw), "the raw event is stored (L1)")
}

// An outcome is written once: a line that ended otherwise stays as it is (L3).
func TestPost_NeverRewritesAnOutcome(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	in := r.answer(turn(line), "Hello")
	_, err := r.store.FinishTurn(t.Context(), in.Turn.ID, "smith", []rules.LineKey{line.LineKey}, rules.Declined, rules.ReasonStopped)
	require.NoError(t, err)
	r.post(in)
	r.requireOutcome(line, rules.Declined, rules.ReasonStopped)
}

// A hand-off mentions the seat it names, and no one else, whatever the agent wrote (D2, X2).
func TestPost_HandOffMentionsOnlyItsSeat(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	in := r.answer(turn(line), "Over to you")
	in.Answer.HandOff = &activities.HandOff{Seat: "trinity", Text: "look, <@U0ANA000001> and <!channel>", Hop: 1}
	r.post(in)
	posted, _ := r.standing(line.Root)
	require.Len(t, posted, 2)
	require.Equal(t, []string{"U0TRINITY01"}, rules.Mentions(posted[1].Text))
	require.NotContains(t, posted[1].Text, "<!channel>")
	require.Equal(t, rules.EventHandOff, posted[1].Message.Metadata.EventType)
	require.Contains(t, string(mustJSON(t, posted[1].Message.Metadata)), `"sibling_hop":1,"to":"trinity"`)
}

func TestPost_SaysTheKeptTextOfALargeAnswer(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	in := r.answer(turn(line), "")
	in.Answer.Ref = true
	require.NoError(t, r.store.KeepAnswer(t.Context(), in.Turn.ID, store.Answer{Text: "from the store"}))
	in.DrivesUsedUp = true
	r.post(in)
	r.requireStanding(line.Root, "from the store\n\n"+rules.DrivesUsedUpText)
}

// An unknown seat is not retried: this worker's config will not change while it runs.
func TestPost_RefusesAnUnknownSeat(t *testing.T) {
	r := newRoom(t)
	_, err := r.poster.Post(t.Context(), activities.PostInput{Turn: activities.Turn{Seat: "nobody"}})
	var app *temporal.ApplicationError
	require.ErrorAs(t, err, &app)
	require.True(t, app.NonRetryable())
}

// Any mixture of faults, crashes and repeats: every part stands once, in order, nothing
// leaks, and the outcome is written once (B5, L3).
func TestPost_StandsOnceInAnyStorm(t *testing.T) {
	r := newRoom(t)
	kinds := []slackbox.FaultKind{slackbox.Timeout, slackbox.DropRequest, slackbox.ServerError, slackbox.ResponseLost, slackbox.CommitLate, slackbox.RateLimited}
	points := []string{"after BeginPost", "before Post", "after Post", "after ConfirmPost", "before FinishTurn", "after FinishTurn", "after ClearStatus"}
	rapid.Check(t, func(rt *rapid.T) {
		r.box.RemoveFault("")
		line := r.says("", "hello")
		text := paragraphs(rapid.IntRange(1, 3).Draw(rt, "parts"))
		in := r.answer(turn(line), text)
		for range rapid.IntRange(0, 3).Draw(rt, "faults") {
			f := slackbox.Fault{
				Kind: rapid.SampledFrom(kinds).Draw(rt, "kind"), Method: "chat.postMessage",
				Skip: rapid.IntRange(0, 3).Draw(rt, "skip"), Count: 1, RetryAfter: 2,
				DelayMS: rapid.IntRange(1, 14_500).Draw(rt, "delay"),
			}
			if f.Kind != slackbox.CommitLate {
				f.DelayMS = 1
			}
			r.fault(f)
		}
		if rapid.Bool().Draw(rt, "read-back fails") {
			r.fault(slackbox.Fault{Kind: slackbox.ServerError, Method: "conversations.replies", Count: 1})
		}
		for range 14 {
			r.points.arm(rapid.SampledFrom(append(points, "never")).Draw(rt, "crash"), rapid.IntRange(0, 2).Draw(rt, "crash skip"))
			_, err := attempt(r, r.poster.Post, in)
			if err == nil {
				break
			}
			require.NoError(rt, r.box.Advance(time.Second))
			var crash crashed
			if errors.As(err, &crash) && rapid.Bool().Draw(rt, "quiet from now") {
				r.points.arm("", 0)
			}
		}
		r.points.arm("never", 0)
		r.post(in)
		require.NoError(rt, r.box.Advance(20*time.Second))
		r.requireStanding(line.Root, rules.SplitText(text, rules.PartLimit)...)
		r.requireOutcome(line, rules.Answered, "")
	})
}
