package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackapi"
	"agentsmith/rules"
	"agentsmith/workflows"
)

func TestInbox_AMentionIsOwedOneSignal(t *testing.T) {
	for name, copies := range map[string][]string{
		"message first":                      {say("C1", ana, ts1, "", "<@USMITH> hi"), mention("C1", ana, ts1, "", "<@USMITH> hi")},
		"app_mention first":                  {mention("C1", ana, ts1, "", "<@USMITH> hi"), say("C1", ana, ts1, "", "<@USMITH> hi")},
		"delivered again":                    {say("C1", ana, ts1, "", "<@USMITH> hi"), say("C1", ana, ts1, "", "<@USMITH> hi")},
		"only app_mention shows the mention": {say("C1", ana, ts1, "", "hi"), mention("C1", ana, ts1, "", "hi"), mention("C1", ana, ts1, "", "hi")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, c := range copies {
				w.arrives(c)
				w.dispatches(func() bool { return true }, "")
			}
			w.dispatches(func() bool { return len(w.brains.all()) > 0 && w.row("C1", ts1).Dispatched }, "it is dispatched")
			w.arrives(copies...)
			w.settled()
			require.Equal(t, []string{"line " + ts1}, w.brains.says())
			got := w.brains.all()[0]
			require.True(t, got.wake)
			require.Equal(t, rules.Thread{Team: team, Channel: "C1", Root: ts1}, got.thread)
			require.Equal(t, rules.Person, got.trigger.Author)
			require.JSONEq(t, `{"kind":"line"}`, string(w.row("C1", ts1).Route))
		})
	}
}

func TestInbox_WhatEngagesNobodyIsNoted(t *testing.T) {
	w := newWorld(t)
	w.arrives(
		say("C1", ana, ts1, "", "hello all"),
		say("C1", self, ts2, "", "<@USMITH> my own words"),
		say("C1", "UFORCE", ts3, "", "<@USMITH> drives"), // a running brain is told to look, and none is started
		`{"type":"message","subtype":"bot_message","bot_id":"BCI","channel":"C1","ts":"`+ts4+`","text":"<@USMITH> built"}`,
	)
	w.settled()
	require.Equal(t, []string{"pick " + ts3}, w.brains.says())
	require.False(t, w.brains.all()[0].wake)
	for _, ts := range []string{ts1, ts2, ts3, ts4} {
		require.Equal(t, rules.Noted, w.row("C1", ts).State, ts)
	}
}

func TestInbox_AThreadOfTwoNeedsNoMention(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("C1", ana, ts1, "", "<@USMITH> hi"), say("C1", ana, ts2, ts1, "and this?"))
	require.Equal(t, rules.Owed, w.row("C1", ts2).State)
	w.arrives(say("C1", ben, ts3, ts1, "me too"), say("C1", ana, ts4, ts1, "ben is here now"))
	require.Equal(t, rules.Noted, w.row("C1", ts3).State)
	require.Equal(t, rules.Noted, w.row("C1", ts4).State)
}

// A noted line does not become owed because its thread has changed: not by an unfurl,
// a redelivery, or a stop word read again.
func TestInbox_ANotedLineStaysNoted(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("C1", ana, ts1, "", "stop"), say("C1", ana, ts2, ts1, "hello"), say("C1", ana, ts3, ts1, "<@USMITH> hi"))
	w.arrives(say("C1", ana, ts1, "", "stop"), say("C1", ana, ts2, ts1, "hello"), unfurl("C1", ana, ts1, "stop", ts4))
	w.settled()
	require.Equal(t, rules.Noted, w.row("C1", ts1).State)
	require.Equal(t, rules.Noted, w.row("C1", ts2).State)
	w.dispatches(func() bool { return w.row("C1", ts3).Dispatched }, "")
	require.Equal(t, []string{"line " + ts3}, w.brains.says())
}

func TestInbox_AnEditThatAddsAMentionIsOneNewTurn(t *testing.T) {
	w := newWorld(t)
	w.arrives(
		say("C1", ana, ts1, "", "look at this"),
		edit("C1", ana, ts1, "", "look at this <@USMITH>", ts2),
		strings.Replace(mention("C1", ana, ts1, "", "look at this <@USMITH>"), `"type"`, `"edited":{"ts":"`+ts2+`"},"type"`, 1),
		edit("C1", ana, ts1, "", "look at this <@USMITH>", ts2),
	)
	w.dispatches(func() bool { return w.row("C1", ts1).Dispatched }, "")
	w.settled()
	require.Equal(t, []string{"line " + ts1}, w.brains.says())
	require.Equal(t, "look at this <@USMITH>", w.brains.all()[0].trigger.Line.Text)
}

func TestInbox_AnEditBeforeTheTurnReplacesTheText(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("D1", ana, ts1, "", "frist"), edit("D1", ana, ts1, "", "first", ts3), edit("D1", ana, ts1, "", "late", ts2), unfurl("D1", ana, ts1, "first", ts4))
	w.dispatches(func() bool { return len(w.brains.all()) > 0 }, "")
	w.settled()
	require.Equal(t, []string{"line " + ts1}, w.brains.says())
	require.Equal(t, "first", w.brains.all()[0].trigger.Line.Text)
}

func TestInbox_AnEditOfABegunLineIsToldAndStartsNothing(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("D1", ana, ts1, "", "first"))
	w.dispatches(func() bool { return w.row("D1", ts1).Dispatched }, "")
	w.take("D1", ts1, ts1)
	w.arrives(edit("D1", ana, ts1, "", "first", ts2), unfurl("D1", ana, ts1, "first", ts2))
	w.settled()
	require.Len(t, w.brains.all(), 1, "no text changed")
	w.arrives(edit("D1", ana, ts1, "", "second", ts3))
	w.settled()
	require.Equal(t, []string{"line " + ts1, "edit " + ts1}, w.brains.says())
	got := w.brains.all()[1]
	require.False(t, got.wake, "a brain is not started for an edit")
	require.Equal(t, "second", got.trigger.Line.Text)
	require.Equal(t, ts3, got.trigger.EventTS)
}

func TestInbox_AnEditIntoStopStopsNothing(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("D1", ana, ts1, "", "first"), edit("D1", ana, ts1, "", "stop", ts2))
	w.dispatches(func() bool { return w.row("D1", ts1).Dispatched }, "")
	require.Equal(t, []string{"line " + ts1}, w.brains.says())
}

func TestInbox_AnEditOfALineNeverSeenIsThatLine(t *testing.T) {
	w := newWorld(t)
	w.arrives(edit("D1", ana, ts1, "", "hello", ts2))
	require.Equal(t, rules.Owed, w.row("D1", ts1).State)
	w.arrives(say("D1", ana, ts1, "", "helo"))
	w.dispatches(func() bool { return w.row("D1", ts1).Dispatched }, "")
	require.Equal(t, "hello", w.brains.all()[0].trigger.Line.Text, "the older copy does not win")
}

func TestInbox_ADeletedLineThatWaitsIsDeclined(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("D1", ana, ts1, "", "never mind"), deletionOf("D1", ts1, ts2))
	w.settled()
	require.Empty(t, w.brains.all())
	row := w.row("D1", ts1)
	require.Equal(t, rules.Declined, row.State)
	require.Equal(t, rules.ReasonDeleted, row.Reason)

	w.arrives(deletionOf("D1", ts3, ts4), say("D1", ana, ts3, "", "deleted before it came"))
	w.settled()
	require.Equal(t, rules.ReasonDeleted, w.row("D1", ts3).Reason)
	require.Empty(t, w.brains.all())
}

func TestInbox_ADeletionOfABegunLineIsTold(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("C1", ana, ts1, "", "<@USMITH> go"), say("C1", ana, ts2, ts1, "more"))
	w.dispatches(func() bool { return w.row("C1", ts2).Dispatched }, "")
	w.take("C1", ts1, ts2)
	w.arrives(fmt.Sprintf(`{"type":"message","subtype":"message_changed","channel":"C1","ts":%q,"event_ts":%q,"message":{"subtype":"tombstone","ts":%q,"thread_ts":%q}}`, ts3, ts3, ts2, ts1))
	w.settled()
	got := w.brains.all()[2]
	require.Equal(t, workflows.KindDelete, got.trigger.Kind)
	require.Equal(t, ts2, got.trigger.Line.TS)
	require.Equal(t, ts1, got.thread.Root, "the thread of the line")
	require.False(t, got.wake)
}

func TestInbox_KeepsRawWhatItCannotRead(t *testing.T) {
	for name, raw := range map[string]string{
		"an unknown event":           string(envelopeOf(`{"type":"rocket_launched","channel":"C1"}`)),
		"an event that is no object": string(envelopeOf(`[1,2]`)),
		"no event":                   `{"type":"events_api","envelope_id":"e","payload":{"team_id":"T1"}}`,
		"a payload that is a list":   `{"type":"events_api","envelope_id":"e","payload":[]}`,
		"an unknown envelope":        `{"type":"telegram","envelope_id":"e"}`,
		"an envelope of odd shape":   `{"type":7,"envelope_id":"e"}`,
		"another team's event":       `{"type":"events_api","envelope_id":"e","payload":{"team_id":"T2","event":` + say("D1", ana, ts1, "", "hi") + `}}`,
		"a thread ts that is none":   string(envelopeOf(`{"type":"message","channel":"D1","user":"UANA","ts":"` + ts1 + `","thread_ts":"soon","text":"hi"}`)),
		"a ts that is a path":        string(envelopeOf(`{"type":"message","channel":"D1","user":"UANA","ts":"../../etc","text":"hi"}`)),
		"a deletion of nothing":      string(envelopeOf(`{"type":"message","subtype":"message_deleted","channel":"D1","ts":"` + ts1 + `"}`)),
		"a reaction on nothing":      string(envelopeOf(`{"type":"reaction_added","reaction":"x","item":{"type":"message"}}`)),
		"an unknown hidden message":  string(envelopeOf(`{"type":"message","subtype":"whisper","hidden":true,"channel":"D1","user":"UANA","ts":"` + ts1 + `","text":"hi"}`)),
		"an interaction":             `{"type":"interactive","envelope_id":"e","payload":{"type":"block_actions"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			in := readEnvelope(team, []byte(raw))
			require.Equal(t, isStrange, in.kind)
			require.NotEmpty(t, in.envelope, "or it could not be acked")
			require.NoError(t, w.inbox.receive(t.Context(), in))
			require.NoError(t, w.inbox.receive(t.Context(), in))
			require.Len(t, w.raws(), 1)
			require.Equal(t, raw, string(w.raws()[0].Raw))
			require.Len(t, w.inbox.warned, 1)
			w.settled()
			require.Empty(t, w.brains.all())
		})
	}
}

func TestInbox_KnownEventsAboutNoLineAreNothing(t *testing.T) {
	w := newWorld(t)
	w.arrives(
		`{"type":"app_home_opened","user":"UANA","channel":"D1"}`,
		`{"type":"message","subtype":"channel_join","channel":"C1","user":"UANA","ts":"`+ts1+`","text":"<@USMITH> joined"}`,
		`{"type":"reaction_added","user":"UANA","reaction":"x","item":{"type":"file"},"event_ts":"`+ts1+`"}`,
	)
	require.Empty(t, w.raws())
}

func TestInbox_HostileTextIsALineLikeAnother(t *testing.T) {
	for name, text := range map[string]string{
		"NULs":                `a\u0000b <@USMITH>`,
		"right-to-left marks": `\u202ehello\u202c \u200f<@USMITH>`,
		"invalid UTF-8":       "\xff\xfe <@USMITH>",
		"lone surrogate":      `\ud800 <@USMITH>`,
		"5,000 mentions":      strings.Repeat("<@UOTHER> ", 5000) + "<@USMITH>",
		"a megabyte":          strings.Repeat("x", 1<<20) + " <@USMITH>",
		"SQL":                 `'); DROP TABLE ledger; -- <@USMITH>`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.arrives(`{"type":"message","channel":"C1","user":"UANA","ts":"` + ts1 + `","text":"` + text + `"}`)
			w.dispatches(func() bool { return w.row("C1", ts1).Dispatched }, "it reaches its brain")
			require.Equal(t, []string{"line " + ts1}, w.brains.says())
		})
	}
}

func TestInbox_OutsidersGuestsAndStrangersGetAnHonestNo(t *testing.T) {
	for user, want := range map[string]rules.Reason{"UGIL": rules.ReasonNotMember, "UOLGA": rules.ReasonOutsider, "UNOBODY": rules.ReasonUnknown, "UCI": rules.ReasonNotMember} {
		w := newWorld(t)
		w.arrives(say("D1", user, ts1, "", "hi"))
		w.dispatches(func() bool { return len(w.brains.all()) == 1 }, user)
		got := w.brains.all()[0].trigger
		require.Equal(t, workflows.KindDecline, got.Kind, user)
		require.Equal(t, want, got.Reason, user)
	}
	w := newWorld(t)
	w.slack.userErr = slackapi.ErrAmbiguous
	w.arrives(strings.Replace(say("D1", "UOLGA", ts1, "", "hi"), `"team":"T1"`, `"user_team":"T2"`, 1), strings.Replace(say("C1", "UOLGA", ts2, "", "hi all"), `"team":"T1"`, `"user_team":"T2"`, 1))
	w.dispatches(func() bool { return len(w.brains.all()) == 1 }, "")
	require.Equal(t, rules.ReasonOutsider, w.brains.all()[0].trigger.Reason)
	require.Empty(t, w.slack.asked, "an outsider is declined before any work")
	require.Equal(t, rules.Noted, w.row("C1", ts2).State, "what would not engage gets no line")
}
