package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackapi"
	"agentsmith/rules"
	"agentsmith/workflows"
)

func TestStop_GoesStraightToTheThreadsBrain(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("C1", ana, ts1, "", "<@USMITH> go"))
	w.dispatches(func() bool { return w.row("C1", ts1).Dispatched }, "")
	w.arrives(say("C1", ben, ts3, ts1, "Stop!"))
	w.inbox.tasks.Wait()
	require.Equal(t, []string{"line " + ts1, "stop " + ts3}, w.brains.says(), "no dispatcher was needed")
	got := w.brains.all()[1]
	require.True(t, got.wake)
	require.Equal(t, ts1, got.thread.Root)
	require.Equal(t, ts3, got.trigger.EventTS)
	require.False(t, got.trigger.WholeChannel)
	require.True(t, w.row("C1", ts3).Dispatched)

	w.arrives(say("C1", ben, ts3, ts1, "Stop!"), say("C1", ana, ts2, ts1, "<@USMITH> an older line that is late"))
	w.settled()
	require.Len(t, w.brains.all(), 2, "a redelivery stops nothing again")
	late := w.row("C1", ts2)
	require.Equal(t, rules.Declined, late.State)
	require.Equal(t, rules.ReasonStopped, late.Reason)
	w.arrives(say("C1", ana, ts4, ts1, "<@USMITH> a newer one"))
	require.Equal(t, rules.Owed, w.row("C1", ts4).State)
}

func TestStop_AtTheTopOfADMReachesAllOfIt(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("D1", ana, ts3, "", "stop"), say("D1", ana, ts1, "", "an older line that is late"))
	w.settled()
	require.Equal(t, []string{"stop " + ts3}, w.brains.says())
	got := w.brains.all()[0]
	require.True(t, got.trigger.WholeChannel)
	require.Equal(t, ts3, got.thread.Root, "the brain of the stop's own line")
	require.Equal(t, rules.ReasonStopped, w.row("D1", ts1).Reason)
}

func TestStop_AmongPeopleIsAWord(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("C1", ana, ts1, "", "stop"), say("C1", "UTRIN", ts2, "", "<@USMITH> stop"))
	w.settled()
	require.Empty(t, w.brains.all())
}

func TestStop_ThatCannotBeToldIsDispatchedLikeALine(t *testing.T) {
	w := newWorld(t)
	w.brains.failing(func(sentSignal) error { return errDown })
	w.arrives(say("D1", ana, ts1, "", "stop"))
	w.inbox.tasks.Wait()
	require.False(t, w.row("D1", ts1).Dispatched)
	w.brains.failing(nil)
	w.dispatches(func() bool { return w.row("D1", ts1).Dispatched }, "")
	require.Equal(t, []string{"stop " + ts1}, w.brains.says())
	require.True(t, w.brains.all()[0].trigger.WholeChannel)
}

func TestStop_SurvivesACrashBeforeItWasRecorded(t *testing.T) {
	w := newWorld(t)
	line := readEnvelope(team, envelopeOf(say("D1", ana, ts2, "", "stop"))).line
	_, err := w.store.Record(t.Context(), seatName, line, rules.Person, storeVerdict(rules.Owed))
	require.NoError(t, err)
	w.dispatches(func() bool { return w.row("D1", ts2).Dispatched }, "")
	require.Equal(t, []string{"stop " + ts2}, w.brains.says())
	newest, err := w.store.NewestStop(t.Context(), seatName, rules.Thread{Team: team, Channel: "D1", Root: ts1})
	require.NoError(t, err)
	require.Equal(t, ts2, newest)
}

func TestReaction_OnALineBeingAnsweredStopsItsTurn(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("C1", ana, ts1, "", "<@USMITH> go"), say("C1", ana, ts2, ts1, "and more"))
	w.dispatches(func() bool { return w.row("C1", ts2).Dispatched }, "")
	w.take("C1", ts1, ts1)
	for _, e := range []string{
		reaction(ben, "eyes", "C1", ts1, ts3),
		reaction(self, "x", "C1", ts1, ts3),
		reaction("UTRIN", "x", "C1", ts1, ts3),
		reaction("UCI", "x", "C1", ts1, ts3),
		reaction("UOLGA", "x", "C1", ts1, ts3),
		reaction(ben, "x", "C1", ts4, ts3),
		reaction(ben, "x", "C9", ts1, ts3),
	} {
		w.arrives(e)
	}
	require.Len(t, w.brains.all(), 2, "none of these stops anything")
	w.arrives(reaction(ben, "x", "C1", ts2, ts3))
	require.Equal(t, "stop "+ts3, w.brains.says()[2])
	got := w.brains.all()[2]
	require.Equal(t, ts1, got.thread.Root, "the thread's brain")
	require.Empty(t, got.trigger.Line.TS, "a reaction is no line that wants an outcome")
	require.True(t, got.wake)
}

func TestReaction_OnAnAnsweredLineIsNothing(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("D1", ana, ts1, "", "go"), say("C1", ana, ts2, "", "hello all"))
	done, err := w.store.EndLine(t.Context(), seatName, rules.LineKey{Team: team, Channel: "D1", TS: ts1}, rules.Answered, "")
	require.NoError(t, err)
	require.True(t, done)
	w.arrives(reaction(ana, "x", "D1", ts1, ts3), reaction(ana, "x", "C1", ts2, ts3))
	w.settled()
	require.Empty(t, w.brains.all())
}

func TestReaction_ByOneWhomSlackDoesNotTellOfStops(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("C1", ana, ts1, "", "<@USMITH> go"))
	w.slack.userErr = slackapi.ErrAmbiguous
	w.arrives(reaction(ben, "x", "C1", ts1, ts3))
	require.Equal(t, []string{"stop " + ts3}, w.brains.says())
}

func TestReaction_ThatCannotBeToldWaitsInTheSpool(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("C1", ana, ts1, "", "<@USMITH> go"))
	w.brains.failing(func(sentSignal) error { return errDown })
	w.arrives(reaction(ana, "x", "C1", ts1, ts3))
	require.False(t, w.spool.empty())
	require.False(t, w.inbox.isDown(), "the store is not to blame")
	w.brains.failing(nil)
	require.True(t, w.inbox.mended(t.Context()))
	require.Equal(t, []string{"stop " + ts3}, w.brains.says())
	require.True(t, w.spool.empty())
}

func TestReaction_TakenAwayStopsNothing(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("C1", ana, ts1, "", "<@USMITH> go"))
	removed := `{"type":"reaction_removed","user":"UANA","reaction":"x","item":{"type":"message","channel":"C1","ts":"` + ts1 + `"},"event_ts":"` + ts4 + `"}`
	w.arrives(removed, reaction(ana, "x", "C1", ts1, ts3))
	require.Empty(t, w.brains.all(), "the older event, which came late, is over")
}

func TestSweep_AsksOneQuestionAThreadAndNoneWhenNothingIsOwed(t *testing.T) {
	w := newWorld(t)
	w.owedTooLong = time.Hour
	w.arrives(say("C1", ana, ts1, "", "<@USMITH> a"), say("C1", ana, ts2, ts1, "b"), say("D1", ana, ts3, "", "c"))
	w.dispatches(func() bool {
		return w.row("C1", ts1).Dispatched && w.row("C1", ts2).Dispatched && w.row("D1", ts3).Dispatched
	}, "")
	sent := len(w.brains.all())
	w.sweepOnce(t.Context())
	require.Len(t, w.brains.all(), sent, "nothing is owed for too long")

	w.owedTooLong = 0
	w.sweepOnce(t.Context())
	asked := w.brains.all()[sent:]
	require.Len(t, asked, 2)
	byRoot := map[string]workflows.Trigger{}
	for _, s := range asked {
		require.True(t, s.wake)
		require.Equal(t, workflows.KindCheck, s.trigger.Kind)
		byRoot[s.thread.Root] = s.trigger
	}
	require.ElementsMatch(t, []string{ts1, ts2}, byRoot[ts1].Lines)
	require.Equal(t, []string{ts3}, byRoot[ts3].Lines)

	w.owedTooLong = time.Hour
	w.sweepOnce(t.Context())
	require.Len(t, w.brains.all(), sent+2, "what was asked about is left alone for a while")
}
