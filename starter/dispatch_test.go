package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/rules"
	"agentsmith/workflows"
)

func storeVerdict(state rules.State) func(store.Facts) store.Verdict {
	return func(store.Facts) store.Verdict { return store.Verdict{State: state} }
}

func TestDispatch_InTheOrderOfTheThread(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("D1", ana, ts3, ts1, "three"), say("D1", ana, ts1, "", "one"), say("D1", ana, ts2, ts1, "two"))
	w.dispatches(func() bool { return len(w.brains.all()) == 3 && w.row("D1", ts3).Dispatched }, "")
	require.Equal(t, []string{"line " + ts1, "line " + ts2, "line " + ts3}, w.brains.says())
}

func TestDispatch_WhatWasOwedAtBoot(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("D1", ana, ts1, "", "one"))
	w.entrance = w.open()
	w.dispatches(func() bool { return len(w.brains.all()) == 1 }, "nobody had to wake it")
}

func TestDispatch_AThreadThatFailsHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.brains.failing(func(s sentSignal) error {
		if s.thread.Root == ts1 {
			return errDown
		}
		return nil
	})
	w.arrives(say("D1", ana, ts1, "", "one"), say("D1", ana, ts2, ts1, "after it"), say("D1", ana, ts3, "", "another thread"))
	w.dispatches(func() bool { return w.row("D1", ts3).Dispatched }, "")
	require.Equal(t, []string{"line " + ts3}, w.brains.says())
	w.brains.failing(nil)
	w.dispatches(func() bool { return w.row("D1", ts2).Dispatched }, "it is tried again")
	require.Equal(t, []string{"line " + ts3, "line " + ts1, "line " + ts2}, w.brains.says())
}

func TestDispatch_TemporalThatIsDownIsSaidLoudlyAndThenNoMore(t *testing.T) {
	w := newWorld(t)
	var skew atomic.Int64
	w.now = func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
	w.brains.failing(func(sentSignal) error { skew.Add(int64(time.Minute)); return errDown })
	w.arrives(say("D1", ana, ts1, "", "one"))
	w.dispatches(func() bool { return w.loud.standing("dispatch smith") != "" }, "")
	w.brains.failing(nil)
	skew.Add(int64(time.Hour))
	w.dispatches(func() bool { return w.loud.standing("dispatch smith") == "" }, "")
	require.Equal(t, []string{"line " + ts1}, w.brains.says())
}

func TestDispatch_NothingIsDecidedTwice(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("D1", ana, ts1, "", "one"))
	_, err := w.store.SetRoute(t.Context(), seatName, rules.LineKey{Team: team, Channel: "D1", TS: ts1}, json.RawMessage(`{"kind":"decline","reason":"not_member"}`))
	require.NoError(t, err)
	w.dispatches(func() bool { return w.row("D1", ts1).Dispatched }, "")
	got := w.brains.all()[0].trigger
	require.Equal(t, workflows.KindDecline, got.Kind, "what stands on the row")
	require.Equal(t, rules.ReasonNotMember, got.Reason)
	require.Empty(t, w.slack.asked)
}

func TestDispatch_APoisonedLineIsFailedAloudAndBlocksNothing(t *testing.T) {
	w := newWorld(t)
	w.brains.failing(func(s sentSignal) error {
		if s.trigger.Line.TS == ts1 {
			return fmt.Errorf("%w: too large", errPoison)
		}
		return nil
	})
	w.arrives(say("D1", ana, ts1, "", "poison"), say("D1", ana, ts2, ts1, "after it"))
	w.dispatches(func() bool { return w.row("D1", ts2).Dispatched }, "")
	row := w.row("D1", ts1)
	require.Equal(t, rules.Failed, row.State)
	require.Equal(t, rules.ReasonInternal, row.Reason)
	require.Len(t, w.slack.posts, 1)
	require.Equal(t, ts1, w.slack.posts[0].ThreadTS)
	require.Equal(t, rules.TurnID(seatName, "D1", ts1), w.slack.posts[0].PostID)
	require.True(t, w.loud.wasRaised("poison smith"))
	require.Equal(t, []string{"line " + ts2}, w.brains.says())
}

func TestDispatch_AManWhomSlackDoesNotTellOfHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	var skew atomic.Int64
	w.now = func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
	w.people.now, w.people.again = w.now, time.Millisecond
	w.slack.userErr = slackapi.ErrAmbiguous
	w.people.keep(ben, slackapi.Person{ID: ben, Member: true})
	w.arrives(say("D1", ana, ts1, "", "who am I"), say("D2", ben, ts2, "", "known"))
	w.dispatches(func() bool { return w.row("D2", ts2).Dispatched }, "")
	require.Equal(t, []string{"line " + ts2}, w.brains.says())
	require.False(t, w.row("D1", ts1).Dispatched, "it waits")
	w.dispatches(func() bool {
		skew.Add(int64(time.Second))
		return w.row("D1", ts1).Dispatched
	}, "")
	got := w.brains.all()[1].trigger
	require.Equal(t, workflows.KindDecline, got.Kind)
	require.Equal(t, rules.ReasonUnknown, got.Reason)
}

func TestDispatch_SlackThatTellsLaterIsEnough(t *testing.T) {
	w := newWorld(t)
	w.slack.userErr = slackapi.ErrAmbiguous
	w.arrives(say("D1", ana, ts1, "", "who am I"))
	w.dispatches(func() bool {
		w.slack.mu.Lock()
		defer w.slack.mu.Unlock()
		asked := len(w.slack.asked) > 0
		if asked {
			w.slack.userErr = nil
		}
		return asked
	}, "")
	w.dispatches(func() bool { return w.row("D1", ts1).Dispatched }, "")
	require.Equal(t, []string{"line " + ts1}, w.brains.says())
}

func handOffEvent(meta string) string {
	return `{"type":"message","channel":"C1","user":"UTRIN","bot_id":"BTRIN","ts":"` + ts1 + `","text":"over to you <@USMITH>"` + meta + `}`
}

func handOffLine(t *testing.T, user, meta string) rules.Line {
	line, err := rules.ParseMessage(team, "C1", json.RawMessage(`{"user":"`+user+`","ts":"`+ts1+`","text":"over to you","metadata":`+meta+`}`))
	require.NoError(t, err)
	return line
}

func TestDispatch_AHandOffCountsOnlyWhenReadBack(t *testing.T) {
	mark := func(hop int) string {
		return fmt.Sprintf(`{"event_type":"smith_handoff","event_payload":{"to":"smith","sibling_hop":%d}}`, hop)
	}
	for name, c := range map[string]struct {
		event string
		back  rules.Line
		want  string
		hop   int
	}{
		"payload stripped from the event": {`,"metadata":{"event_type":"smith_handoff"}`, handOffLine(t, "UTRIN", mark(0)), "line", 1},
		"no metadata in the event":        {``, handOffLine(t, "UTRIN", mark(1)), "line", 2},
		"over the limit":                  {``, handOffLine(t, "UTRIN", mark(2)), "decline", 3},
		"the event forged it":             {`,"metadata":` + mark(0), handOffLine(t, "UTRIN", `{}`), "", 0},
		"another wrote what is there":     {`,"metadata":` + mark(0), handOffLine(t, "UCI", mark(0)), "", 0},
		"deleted since":                   {`,"metadata":` + mark(0), rules.Line{}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.back.TS != "" {
				w.slack.replies["C1"+ts1] = []rules.Line{c.back}
			}
			w.arrives(handOffEvent(c.event))
			w.dispatches(func() bool { r := w.row("C1", ts1); return r.Dispatched || r.State.Ended() }, "")
			if c.want == "" {
				require.Empty(t, w.brains.all(), "nothing is said: two seats would talk for ever")
				require.Equal(t, rules.ReasonNoHandOff, w.row("C1", ts1).Reason)
				return
			}
			got := w.brains.all()[0].trigger
			require.Equal(t, c.want, string(got.Kind))
			require.Equal(t, c.hop, got.SiblingHop)
			require.Equal(t, rules.Sibling, got.Author)
			if c.want == "decline" {
				require.Equal(t, rules.ReasonHops, got.Reason)
			}
		})
	}
}

func TestDispatch_ASeatsOrdinaryAnswerIsNoted(t *testing.T) {
	w := newWorld(t)
	w.arrives(handOffEvent(`,"metadata":{"event_type":"smith_post","event_payload":{}}`))
	require.Equal(t, rules.Noted, w.row("C1", ts1).State)
}

func TestAround_TheStoreIsDownAndALineGoesOn(t *testing.T) {
	w := newWorld(t)
	w.store.breakWith(errDown)
	w.arrives(say("D1", ana, ts1, "", "hi"), say("C1", ana, ts2, "", "<@USMITH> hi"), say("D1", ana, ts3, ts1, "stop"))
	require.Equal(t, []string{"line " + ts1, "line " + ts2, "stop " + ts3}, w.brains.says())
	got := w.brains.all()[0]
	require.NotEmpty(t, got.trigger.Raw, "the brain writes the row later")
	require.JSONEq(t, say("D1", ana, ts1, "", "hi"), string(got.trigger.Raw))
	require.True(t, w.spool.empty())
	require.NotEmpty(t, w.loud.standing("store smith"))

	w.store.breakWith(nil)
	require.True(t, w.inbox.mended(t.Context()))
	require.Empty(t, w.loud.standing("store smith"))
	w.arrives(say("D1", ana, ts4, "", "again"))
	require.Equal(t, rules.Owed, w.row("D1", ts4).State)
}

func TestAround_WhatNeedsTheLedgerWaitsInTheSpool(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("C1", ana, ts1, "", "<@USMITH> hi"))
	w.store.breakWith(errDown)
	w.arrives(
		say("C1", ana, ts2, ts1, "the thread of two"),
		say("D1", "UGIL", ts3, "", "a guest"),
		say("C1", ben, ts4, "", "hello all"),
		`{"type":"rocket_launched"}`,
	)
	require.Empty(t, w.brains.all())
	require.False(t, w.spool.empty())
	w.store.breakWith(nil)
	require.True(t, w.inbox.mended(t.Context()))
	require.True(t, w.spool.empty())
	require.Equal(t, rules.Owed, w.row("C1", ts2).State)
	require.Equal(t, rules.Owed, w.row("D1", ts3).State)
	require.Equal(t, rules.Noted, w.row("C1", ts4).State)
	require.Len(t, w.raws(), 1)
}

func TestAround_BothDownIsTheSpoolAndItOutlivesTheProcess(t *testing.T) {
	w := newWorld(t)
	w.store.breakWith(errDown)
	w.brains.failing(func(sentSignal) error { return errDown })
	w.arrives(say("D1", ana, ts1, "", "one"), say("D1", ana, ts2, "", "two"))
	require.False(t, w.spool.empty())

	w.entrance = w.open()
	w.store.breakWith(nil)
	w.brains.failing(nil)
	require.True(t, w.inbox.mended(t.Context()), "at boot")
	w.dispatches(func() bool { return len(w.brains.all()) == 2 }, "")
	require.ElementsMatch(t, []string{"line " + ts1, "line " + ts2}, w.brains.says())
}

func TestAround_NoneOfTheThreeIsNoAck(t *testing.T) {
	w := newWorld(t)
	w.store.breakWith(errDown)
	w.brains.failing(func(sentSignal) error { return errDown })
	require.NoError(t, w.spool.close())
	err := w.inbox.receive(t.Context(), readEnvelope(team, envelopeOf(say("D1", ana, ts1, "", "one"))))
	require.ErrorIs(t, err, errDown)
	require.NotEmpty(t, w.loud.standing("spool smith"))
}

func TestAround_AStoreThatHangsHoldsUpOneEnvelopeOnly(t *testing.T) {
	w := newWorld(t)
	w.store.mu.Lock()
	w.store.hang = true
	w.store.mu.Unlock()
	began := time.Now()
	for i := range 60 {
		w.arrives(say("D1", ana, fmt.Sprintf("17000001%02d.000000", i), "", "hi"))
	}
	require.Less(t, time.Since(began), 3*time.Second, "Slack waits 3 s for each ack")
	require.Len(t, w.brains.all(), 60)
}

func TestMend_APoisonedEnvelopeOfTheSpoolDoesNotHoldUpTheRest(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.spool.keep(envelopeOf(say("D1", ana, ts1, "", "poison"))))
	require.NoError(t, w.spool.keep(envelopeOf(say("D1", ana, ts2, "", "after it"))))
	broken := &brokenLine{flaky: w.store, ts: ts1}
	w.seat.ledger = broken
	for range stuckTries + 1 {
		w.inbox.mended(t.Context())
	}
	require.True(t, w.spool.empty())
	require.Equal(t, rules.Owed, w.row("D1", ts2).State)
	require.Len(t, w.raws(), 1)
	require.True(t, w.loud.wasRaised("stuck smith"))
}

func TestBrains_LongTextGoesByReference(t *testing.T) {
	line := rules.Line{LineKey: rules.LineKey{Team: team, Channel: "D1", TS: ts1}, Raw: json.RawMessage(`{}`), Text: strings.Repeat("x", rules.InlineText)}
	got, err := lighten(workflows.Trigger{Kind: workflows.KindLine, Line: line})
	require.NoError(t, err)
	require.False(t, got.TextRef)
	require.Empty(t, got.Line.Raw, "the raw event stays in the store")
	line.Text += "x"
	got, err = lighten(workflows.Trigger{Kind: workflows.KindLine, Line: line})
	require.NoError(t, err)
	require.True(t, got.TextRef)
	require.Empty(t, got.Line.Text)

	line.Text = "files"
	line.Files = []rules.File{{Name: strings.Repeat("n", triggerBytes)}}
	got, err = lighten(workflows.Trigger{Kind: workflows.KindLine, Line: line})
	require.NoError(t, err)
	require.True(t, got.TextRef)
	_, err = lighten(workflows.Trigger{Kind: workflows.KindLine, Raw: json.RawMessage(`"` + strings.Repeat("x", triggerBytes) + `"`)})
	require.ErrorIs(t, err, errPoison)
}

// brokenLine is a ledger that fails for one line, while it is well otherwise.
type brokenLine struct {
	*flaky
	ts string
}

var errBrokenLine = errors.New("this line cannot be written")

func (b *brokenLine) Record(ctx context.Context, seat string, line rules.Line, a rules.Author, decide func(store.Facts) store.Verdict) (store.Row, error) {
	if line.TS == b.ts {
		return store.Row{}, errBrokenLine
	}
	return b.flaky.Record(ctx, seat, line, a, decide)
}
