package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/slackbox"
	"agentsmith/rules"
)

// changed raises a message_changed of a person's line, as Slack does.
func (r *room) changed(app, who, ts, root, text, editedTS string) {
	r.t.Helper()
	var user string
	for _, u := range r.Slack.State().Users {
		if u.Name == who {
			user = u.ID
		}
	}
	message := map[string]any{
		"type": "message", "user": user, "text": text, "ts": ts, "thread_ts": root,
		"edited": map[string]any{"user": user, "ts": editedTS},
	}
	raw, err := json.Marshal(map[string]any{
		"type": "message", "subtype": "message_changed", "hidden": true, "channel": r.id, "channel_type": "channel",
		"ts": editedTS, "event_ts": editedTS, "message": message, "previous_message": message,
	})
	require.NoError(r.t, err)
	require.NoError(r.t, r.Slack.SendEvent(app, raw))
}

func TestL1_AnOlderEditNeverOverwritesANewer(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[sleep 6s]] [[say one]]")
	r.running(root)
	second := r.reply("ana", root, "@smith [[say first]]")
	r.recorded()
	r.edit("ana", second, "@smith [[say newest]]")
	r.recorded()
	r.changed("smith", "ana", second, root, "[[say stale]]", second)
	r.recorded()
	require.Contains(t, r.answer("smith", second).Text, "newest")
	require.NotContains(t, r.answer("smith", second).Text, "stale")
}

// L1, L2: a line that the store does not take is acked once its brain has it with its raw
// event; the brain writes the row later.
func TestL1_ALineThatTheStoreDoesNotTakeReachesItsBrain(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.room(t)
	first := r.say("ana", "@smith [[say warm]]")
	r.answer("smith", first)
	unlock := s.lockStore(t)
	ts := r.say("ana", "@smith [[say around]]")
	wait(t, "for the ack while the store is locked", func() (bool, string) { return r.acked(ts), "" })
	unlock()
	require.Contains(t, r.answer("smith", ts).Text, "around")
	require.Contains(t, s.log("starter"), "The store does not take lines")
}

func TestL2_AnEnvelopeIsAckedOnlyWhenItsLineIsDurable(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	s.arm(t, failpoint.StarterReceived)
	s.arm(t, failpoint.StarterRecorded)
	ts := r.say("ana", "@smith [[say durable]]")
	s.hit(t, failpoint.StarterReceived)
	require.False(t, r.acked(ts), "acked before the row was written")
	s.letGo(t, failpoint.StarterReceived)
	s.hit(t, failpoint.StarterRecorded)
	require.False(t, r.acked(ts))
	s.letGo(t, failpoint.StarterRecorded)
	wait(t, "for the ack", func() (bool, string) { return r.acked(ts), "" })
	require.Contains(t, r.answer("smith", ts).Text, "durable")
}

// L2: with the store locked and Temporal gone, lines wait in the spool, and survive the
// starter's death there.
func TestL2_TheSpoolKeepsLinesWhileStoreAndTemporalAreDown(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	warm := r.say("ana", "@smith [[say warm]]")
	r.answer("smith", warm)
	s.settle(t)
	unlock := s.lockStore(t)
	s.Stack.Temporal.Kill()
	var lines []string
	for i := range 3 {
		lines = append(lines, r.say("ana", fmt.Sprintf("@smith [[say spooled %d]]", i)))
	}
	for _, ts := range lines {
		wait(t, "for the ack from the spool", func() (bool, string) { return r.acked(ts), "" })
	}
	s.Starter.Kill()
	unlock()
	s.restartTemporal(t)
	s.restartStarter(t)
	for i, ts := range lines {
		require.Contains(t, r.answer("smith", ts).Text, fmt.Sprintf("spooled %d", i))
	}
}

func TestL2_LinesThatCameWhileTemporalWasDownAreAnswered(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	s.Stack.Temporal.Kill()
	one := r.say("ana", "@smith [[say one]]")
	two := r.say("ben", "@smith [[say two]]")
	r.recorded() // acked: the ledger has them
	s.restartTemporal(t)
	require.Contains(t, r.answer("smith", one).Text, "one")
	require.Contains(t, r.answer("smith", two).Text, "two")
}

func TestL2_DuplicatesAndRedeliveriesAreOneTurn(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	heal := r.fault(t, slackbox.Fault{Kind: slackbox.Duplicate, App: "smith", Channel: r.id})
	twice := r.say("ana", "@smith [[say once]]")
	require.Contains(t, r.answer("smith", twice).Text, "once")
	heal()
	r.fault(t, slackbox.Fault{Kind: slackbox.DropAck, App: "smith", Channel: r.id, Count: 2})
	again := r.reply("ana", twice, "@smith [[say again]]")
	require.Contains(t, r.answer("smith", again).Text, "again")
	wait(t, "for the redelivery", func() (bool, string) { return r.deliveries(again, "retry") > 0, "" })
	r.recorded()
	last := r.reply("ana", twice, "@smith [[say last]]")
	r.answer("smith", last)
	require.Len(t, r.posts(twice), 3)
	for _, ts := range []string{twice, again, last} {
		require.Len(t, r.runs(ts), 1)
	}
}

// L2: never drop by the retry header: a redelivered line that was never seen is processed.
func TestL2_ARedeliveredLineThatWasNeverSeenIsProcessed(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	r.fault(t, slackbox.Fault{Kind: slackbox.DropFrame, App: "smith", Channel: r.id, Count: 2})
	ts := r.say("ana", "@smith [[say late]]")
	require.Contains(t, r.answer("smith", ts).Text, "late")
	require.Positive(t, r.deliveries(ts, "retry"))
}

func TestL2_ReorderedLinesAreAllAnswered(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[sleep 4s]] [[say root]]")
	r.running(root)
	r.fault(t, slackbox.Fault{Kind: slackbox.Reorder, App: "smith", Channel: r.id, Count: 4})
	var lines []string
	for i := range 3 {
		lines = append(lines, r.reply("ana", root, fmt.Sprintf("@smith [[say nr%d]]", i)))
	}
	r.recorded()
	require.Contains(t, r.answer("smith", lines[0]).Text, "nr0 nr1 nr2", "in the order in which they were typed")
	require.Equal(t, lines, lead(r.runs(lines[0])[0]))
}

// L3: a line that engages nobody is noted; an edit that adds a mention raises it to one turn (L4).
func TestL3_ANotedLineIsRaisedByAnEditThatAddsAMention(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	ts := r.say("ana", "nobody is asked [[say now you are]]")
	r.recorded()
	require.Empty(t, r.posts(ts))
	r.edit("ana", ts, "@smith is asked [[say now you are]]")
	require.Contains(t, r.answer("smith", ts).Text, "now you are")
	require.Len(t, r.runs(ts), 1)
}

// L3: an agent that fails ends its line as failed, and the thread is told why.
func TestL3_AFailureIsSaidInTheThread(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	ts := r.say("ana", "@smith [[error 400]]")
	require.Contains(t, r.answer("smith", ts).Text, told(rules.ReasonAgentAPI))
	require.Len(t, r.posts(ts), 1)
}

// L3: the sweep fails, aloud and once, a line that no brain holds, and only one that was
// not posted after all.
func TestL3_TheSweepSettlesWhatNoBrainHolds(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"), withConfig(map[string]any{"owed_too_long": "10s"}))
	r := s.room(t)
	s.arm(t, failpoint.PostSent)
	posted := r.say("ana", "@smith [[say posted]]")
	s.hit(t, failpoint.PostSent)
	require.NoError(t, s.temporalClient.TerminateWorkflow(t.Context(), r.brain("smith", posted), "", "test"))
	s.Worker.Kill()
	s.restartWorker(t)
	lost := r.say("ana", "@smith [[hang]]")
	r.running(lost)
	require.NoError(t, s.temporalClient.TerminateWorkflow(t.Context(), r.brain("smith", lost), "", "test"))
	waitFor(t, 3*time.Minute, "for the sweep", func() (bool, string) {
		return len(r.posts(lost)) > 0 && strings.Contains(s.log("starter"), posted), fmt.Sprint(r.texts())
	})
	require.Contains(t, r.posts(lost)[0].Text, told(rules.ReasonLost))
	s.settle(t)
	require.Len(t, r.posts(lost), 1)
	require.Len(t, r.posts(posted), 1, "it had been answered")
	require.Contains(t, r.posts(posted)[0].Text, "posted")
}

func TestL4_AnEditThatChangesNoTextIsNothing(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	ts := r.say("ana", "@smith see https://example.com/ [[say seen]]")
	r.answer("smith", ts)
	require.NoError(t, r.Slack.Unfurl(r.id, ts, nil))
	r.recorded()
	// What an edit would start would come before the answer to a later line.
	next := r.reply("ana", ts, "@smith [[say next]]")
	r.answer("smith", next)
	require.Len(t, r.posts(ts), 2)
	require.NotContains(t, r.runs(next)[0].User, "edited after")
}

func TestL4_AnEditOfAWaitingLineReplacesItsText(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[sleep 5s]] [[say one]]")
	r.running(root)
	second := r.reply("ana", root, "@smith [[say before]]")
	r.recorded()
	r.edit("ana", second, "@smith [[say after]]")
	require.Contains(t, r.answer("smith", second).Text, "after")
	require.NotContains(t, r.answer("smith", second).Text, "before")
	require.Len(t, r.posts(root), 2)
}

func TestL4_ALaterEditIsContextAndNoSecondAnswer(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[say one]]")
	r.answer("smith", root)
	r.edit("ana", root, "@smith I meant eleven")
	r.recorded()
	next := r.reply("ana", root, "@smith [[say two]]")
	require.Contains(t, r.answer("smith", next).Text, "two")
	require.Contains(t, r.runs(next)[0].User, "I meant eleven")
	require.Len(t, r.posts(root), 2)
}

func TestL4_ADeletedLineThatWaitsIsNotAnswered(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[sleep 5s]] [[say one]]")
	r.running(root)
	gone := r.reply("ana", root, "@smith [[say never]]")
	kept := r.reply("ana", root, "@smith [[say kept]]")
	r.recorded()
	r.remove("ana", gone)
	require.Contains(t, r.answer("smith", kept).Text, "kept")
	require.Empty(t, r.runs(gone))
	require.Len(t, r.posts(root), 2)
}

func TestL4_ARunningTurnIsCancelledOnlyWhenAllItsLinesAreDeleted(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[sleep 3s]] [[say one]]")
	r.running(root)
	a := r.reply("ana", root, "@smith [[sleep 8s]] [[say both]]")
	b := r.reply("ben", root, "@smith and this")
	r.running(a)
	require.Equal(t, []string{a, b}, lead(r.runs(a)[0]))
	r.remove("ana", a)
	r.recorded()
	require.Contains(t, r.answer("smith", a).Text, "both", "the other line still wants its answer")
	c := r.reply("ana", root, "@smith [[hang]]")
	r.running(c)
	r.remove("ana", c)
	wait(t, "until the agent of a deleted line is gone", func() (bool, string) {
		return len(r.agentsOf(r.id, root)) == 0, fmt.Sprint(r.agentsOf(r.id, root))
	})
}

// L5: the same mention arrives as app_mention and as message: one turn, whichever comes,
// in either order.
func TestL5_EitherCopyOfAMentionIsEnoughAndBothAreOneTurn(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"", "message", "app_mention"} {
		r := home(t).room(t)
		if lost != "" {
			r.fault(t, slackbox.Fault{Kind: slackbox.Forget, App: "smith", Channel: r.id, Event: lost})
		}
		ts := r.say("ana", "@smith [[say copy]]")
		require.Contains(t, r.answer("smith", ts).Text, "copy", "without the event %q", lost)
		require.Len(t, r.runs(ts), 1)
	}
}

// L6: what a socket gap swallowed is read from the history.
func TestL6_AGapOfTheSocketIsReadFromTheHistory(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	root := r.say("ana", "@smith [[say one]]")
	r.answer("smith", root)
	heal := s.fault(t, slackbox.Fault{Kind: slackbox.Forget, App: "smith"})
	missed := r.say("ana", "@smith [[say missed]]")
	inThread := r.reply("ana", root, "@smith [[say missed too]]")
	heal()
	_, err := s.Slack.Cut("smith")
	require.NoError(t, err)
	require.Contains(t, r.answer("smith", missed).Text, "missed")
	require.Contains(t, r.answer("smith", inThread).Text, "missed too")
}

// L6: so is what came while no starter ran, in a DM too.
func TestL6_WhatCameWhileNoStarterRanIsReadAtBoot(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	d, who := s.dm(t, "smith")
	d.answer("smith", d.say(who, "[[say one]]"))
	r := s.room(t)
	r.answer("smith", r.say("ana", "@smith [[say one]]"))
	s.settle(t)
	require.NoError(t, s.Starter.Stop(20*time.Second))
	heal := s.fault(t, slackbox.Fault{Kind: slackbox.Forget, App: "smith"})
	inChannel, inDM := r.say("ana", "@smith [[say missed]]"), d.say(who, "[[say private]]")
	heal()
	s.restartStarter(t)
	require.Contains(t, r.answer("smith", inChannel).Text, "missed")
	require.Contains(t, d.answer("smith", inDM).Text, "private")
}

// L2, L3: a line that is delivered again after its brain completed is no second turn: the
// ledger is the last word.
func TestL3_ARedeliveryAfterTheBrainCompletedIsNoSecondTurn(t *testing.T) {
	t.Parallel()
	s := shared(t, "restless", withConfig(map[string]any{"idle_after": "2s"}))
	r := s.room(t)
	ts := r.say("ana", "@smith [[say once]]")
	r.answer("smith", ts)
	wait(t, "until the brain completes", func() (bool, string) {
		d, err := s.temporalClient.DescribeWorkflow(t.Context(), r.brain("smith", ts), "")
		return err == nil && d.RawResponse.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, ""
	})
	for _, kind := range []string{"message", "app_mention"} {
		raw, err := json.Marshal(map[string]any{
			"type": kind, "channel": r.id, "channel_type": "channel", "user": s.person("ana"), "team": s.view().team,
			"ts": ts, "text": "<@" + s.botUser("smith") + "> [[say once]]",
		})
		require.NoError(t, err)
		require.NoError(t, s.Slack.SendEvent("smith", raw))
	}
	r.noneSince("", ts)
	require.Len(t, r.runs(ts), 1)
	require.Len(t, r.posts(ts), 2)
}
