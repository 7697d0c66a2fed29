package activities_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/slackbox"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// settleInput asks about lines of one thread.
func settleInput(lines ...rules.Line) activities.SettleInput {
	in := activities.SettleInput{Seat: "smith", Thread: lines[0].Thread()}
	for _, l := range lines {
		in.Lines = append(in.Lines, l.TS)
	}
	return in
}

func (r *room) settle(lines ...rules.Line) activities.SettleResult {
	r.t.Helper()
	return repeat(r, r.poster.Settle, settleInput(lines...))
}

// A kept answer that never reached the thread is posted late rather than never.
func TestSettle_PostsAKeptAnswerLate(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	tt := turn(line)
	r.take(tt)
	text := paragraphs(2)
	require.NoError(t, r.store.KeepAnswer(t.Context(), tt.ID, store.Answer{Text: text, Model: "opus"}))
	require.Equal(t, activities.SettleResult{Posted: 1}, r.settle(line))
	r.requireStanding(line.Root, rules.SplitText(text, rules.PartLimit)...)
	r.requireOutcome(line, rules.Answered, "")

	require.Zero(t, r.settle(line), "asked again, there is nothing left to settle")
	r.requireStanding(line.Root, rules.SplitText(text, rules.PartLimit)...)
}

// Its files go with it, and an answer of files alone is no lost one.
func TestSettle_PostsKeptFiles(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	tt := turn(line)
	r.take(tt)
	dir, err := r.dirs.Prepare(t.Context(), tt)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir.Outbox, "a.txt"), []byte("A"), 0o600))
	require.NoError(t, r.store.KeepAnswer(t.Context(), tt.ID, store.Answer{Files: []string{"a.txt"}}))
	require.Equal(t, activities.SettleResult{Posted: 1}, r.settle(line))
	posted, _ := r.standing(line.Root)
	require.Len(t, posted, 2)
	require.Equal(t, rules.NoWordsText(1), posted[0].Text)
	require.Equal(t, "a.txt", posted[1].Message.Files[0].Name)
}

// An answer whose post was made, and whose confirmation was lost, is found (B5).
func TestSettle_FindsAPostThatWasMade(t *testing.T) {
	for name, keep := range map[string]bool{"its answer kept": true, "nothing kept": false} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			line := r.says("", "hello")
			in := r.answer(turn(line), "Hello")
			r.points.arm("after Post", 0)
			_, err := attempt(r, r.poster.Post, in)
			require.Error(t, err)
			if keep {
				require.NoError(t, r.store.KeepAnswer(t.Context(), in.Turn.ID, store.Answer{Text: "Hello"}))
			}
			require.Equal(t, activities.SettleResult{Posted: 1}, r.settle(line))
			r.requireStanding(line.Root, "Hello")
			r.requireOutcome(line, rules.Answered, "")
		})
	}
}

// A failure line that stands is no answer, and is not said again.
func TestSettle_DoesNotCountAFailureLineAsAnAnswer(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	in := activities.PostInput{Turn: turn(line), Say: activities.SayFailure, State: rules.Failed, Reason: rules.ReasonAgentExit}
	r.points.arm("after ConfirmPost", 0)
	_, err := attempt(r, r.poster.Post, in)
	require.Error(t, err)
	require.Equal(t, activities.SettleResult{Failed: 1}, r.settle(line))
	r.requireStanding(line.Root, rules.FailureText(rules.ReasonAgentExit))
	r.requireOutcome(line, rules.Failed, rules.ReasonLost)
}

// Nothing kept and nothing found: the thread is told once, wherever it crashes.
func TestSettle_TellsOnceThatALineIsLost(t *testing.T) {
	for _, point := range []string{"", "after BeginPost", "after Post", "after ConfirmPost", "after FinishTurn"} {
		for _, state := range []rules.State{rules.Owed, rules.Taken} {
			t.Run(point+" "+string(state), func(t *testing.T) {
				r := newRoom(t)
				line := r.says("", "hello")
				if state == rules.Taken {
					r.take(turn(line))
				}
				r.points.arm(point, 0)
				r.settle(line)
				require.True(t, r.points.fired())
				r.requireStanding(line.Root, rules.FailureText(rules.ReasonLost))
				r.requireOutcome(line, rules.Failed, rules.ReasonLost)
			})
		}
	}
}

// Two lines of one turn get one line, in whatever order they are asked about, and however
// many other lines stand between them.
func TestSettle_SaysOneLineForOneTurn(t *testing.T) {
	r := newRoom(t)
	a := r.says("", "one")
	alone := r.says(a.Root, "of no turn")
	b := r.says(a.Root, "two")
	r.take(turn(a, b))
	require.Equal(t, activities.SettleResult{Failed: 3}, r.settle(b, alone, a))
	r.requireStanding(a.Root, rules.FailureText(rules.ReasonLost), rules.FailureText(rules.ReasonLost))
	for _, l := range []rules.Line{a, alone, b} {
		r.requireOutcome(l, rules.Failed, rules.ReasonLost)
	}
}

// A turn is known by its first line, also when only a later one is asked about: its
// answer is not posted again under another name.
func TestSettle_FindsTheAnswerOfATurnByALaterLine(t *testing.T) {
	r := newRoom(t)
	a := r.says("", "one")
	b := r.says(a.Root, "two")
	in := r.answer(turn(a, b), "Hello both")
	require.NoError(t, r.store.KeepAnswer(t.Context(), in.Turn.ID, store.Answer{Text: "Hello both"}))
	r.points.arm("before FinishTurn", 0)
	_, err := attempt(r, r.poster.Post, in)
	require.Error(t, err)
	require.Equal(t, activities.SettleResult{Posted: 1}, r.settle(b))
	r.requireStanding(a.Root, "Hello both")

	// A turn whose first line was another's is named by the first that it took.
	c := r.says("", "three")
	d := r.says(c.Root, "four")
	other := turn(c)
	other.ID = "smith/other"
	r.take(other)
	second := turn(c, d)
	r.take(second)
	post := activities.PostInput{
		Turn: second, Say: activities.SayAnswer, State: rules.Answered, PostID: rules.TurnID("smith", r.channel, d.TS),
		Answer: activities.Answer{Text: "Hello you"},
	}
	r.points.arm("before FinishTurn", 0)
	_, err = attempt(r, r.poster.Post, post)
	require.Error(t, err)
	require.Equal(t, activities.SettleResult{Posted: 1}, r.settle(d))
	r.requireStanding(c.Root, "Hello you")
	r.requireOutcome(c, rules.Taken, "")
}

func TestSettle_LeavesAloneWhatHasEnded(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	_, err := r.store.EndLine(t.Context(), "smith", line.LineKey, rules.Declined, rules.ReasonStopped)
	require.NoError(t, err)
	unknown := rules.Line{LineKey: rules.LineKey{Team: r.team, Channel: r.channel, TS: "1600000000.000001"}, Root: line.Root}
	require.Zero(t, r.settle(line, unknown))
	r.requireStanding(line.Root)
}

// A thread that is gone cannot be told; that is an outcome, not a reason to try for ever.
func TestSettle_EndsWhereTheThreadIsGone(t *testing.T) {
	for name, leak := range map[string]bool{"clean": false, "with a leak of an earlier attempt": true} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			line := r.says("", "hello")
			r.take(turn(line))
			if leak {
				r.fault(slackbox.Fault{Kind: slackbox.ParentDeleted, Count: 1})
				r.fault(slackbox.Fault{Kind: slackbox.ResponseLost, Method: "chat.postMessage", Count: 1})
				_, err := attempt(r, r.poster.Post, r.answer(turn(line), "Hello"))
				require.Error(t, err)
			} else {
				require.NoError(t, r.box.DeleteHard("random", line.TS))
			}
			require.Equal(t, activities.SettleResult{Failed: 1}, r.settle(line))
			r.requireStanding(line.Root)
			r.requireOutcome(line, rules.Failed, rules.ReasonParentGone)
		})
	}
}

// Slack does not take the words of a kept answer: that is said, once.
func TestSettle_TellsThatSlackRefusedAKeptAnswer(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	tt := turn(line)
	r.take(tt)
	require.NoError(t, r.store.KeepAnswer(t.Context(), tt.ID, store.Answer{Text: "Hello"}))
	r.fault(slackbox.Fault{Kind: slackbox.APIError, Method: "chat.postMessage", Error: "restricted_action", Count: 1})
	require.Equal(t, activities.SettleResult{Failed: 1}, r.settle(line))
	r.requireStanding(line.Root, rules.FailureText(rules.ReasonPostRejected))
	r.requireOutcome(line, rules.Failed, rules.ReasonPostRejected)
}

// Slack asks to wait: Temporal does.
func TestSettle_LetsTemporalWaitAsLongAsSlackAsks(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	r.take(turn(line))
	r.fault(slackbox.Fault{Kind: slackbox.RateLimited, Method: "chat.postMessage", RetryAfter: 600, Count: 1})
	began := r.box.Now()
	r.settle(line)
	require.GreaterOrEqual(t, r.box.Now().Sub(began), 600*time.Second)
	r.requireStanding(line.Root, rules.FailureText(rules.ReasonLost))
}
