package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/rules"
)

func TestReadEnvelope_ReadsEveryKind(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		want kind
	}{
		"a message":                    {string(envelopeOf(say("C1", ana, ts1, "", "hi"))), isLine},
		"a file":                       {string(envelopeOf(`{"type":"message","subtype":"file_share","channel":"C1","user":"UANA","ts":"` + ts1 + `","text":""}`)), isLine},
		"a broadcast reply":            {string(envelopeOf(`{"type":"message","subtype":"thread_broadcast","channel":"C1","user":"UANA","ts":"` + ts2 + `","thread_ts":"` + ts1 + `","text":"x"}`)), isLine},
		"a subtype nobody knows":       {string(envelopeOf(`{"type":"message","subtype":"hologram","channel":"C1","user":"UANA","ts":"` + ts1 + `","text":"x"}`)), isLine},
		"fields of odd shapes":         {string(envelopeOf(`{"type":"message","channel":"C1","user":"UANA","ts":"` + ts1 + `","text":"x","hidden":"no","reaction":7}`)), isLine},
		"a mention":                    {string(envelopeOf(mention("C1", ana, ts1, "", "hi"))), isLine},
		"a mention of an edited line":  {string(envelopeOf(`{"type":"app_mention","channel":"C1","user":"UANA","ts":"` + ts1 + `","text":"x","edited":{"ts":"` + ts2 + `"}}`)), isEdit},
		"an edit":                      {string(envelopeOf(edit("C1", ana, ts1, "", "hi", ts2))), isEdit},
		"an unfurl":                    {string(envelopeOf(unfurl("C1", ana, ts1, "hi", ts2))), isLine},
		"a deletion":                   {string(envelopeOf(deletionOf("C1", ts1, ts2))), isDeletion},
		"a reaction":                   {string(envelopeOf(reaction(ana, "x", "C1", ts1, ts2))), isReaction},
		"a command":                    {`{"type":"slash_commands","envelope_id":"e","payload":{"team_id":"T1","command":"/agents"}}`, isCommand},
		"another team's command":       {`{"type":"slash_commands","envelope_id":"e","payload":{"team_id":"T2","command":"/agents"}}`, isStrange},
		"a command that is a list":     {`{"type":"slash_commands","envelope_id":"e","payload":[]}`, isStrange},
		"nothing at all":               {``, isStrange},
		"a topic":                      {string(envelopeOf(`{"type":"message","subtype":"channel_topic","channel":"C1","user":"UANA","ts":"` + ts1 + `"}`)), isNothing},
		"an edit of a join":            {string(envelopeOf(`{"type":"message","subtype":"message_changed","channel":"C1","event_ts":"` + ts2 + `","message":{"subtype":"channel_join","ts":"` + ts1 + `"}}`)), isNothing},
		"an edit that has no message":  {string(envelopeOf(`{"type":"message","subtype":"message_changed","channel":"C1","event_ts":"` + ts2 + `"}`)), isStrange},
		"a channel that is a path":     {string(envelopeOf(say("../C1", ana, ts1, "", "hi"))), isStrange},
		"an app's home":                {string(envelopeOf(`{"type":"app_home_opened","user":"UANA"}`)), isNothing},
		"a user joins (user is a map)": {string(envelopeOf(`{"type":"team_join","user":{"id":"U1"}}`)), isStrange},
	} {
		in := readEnvelope(team, []byte(c.raw))
		require.Equal(t, c.want, in.kind, "%s: %s", name, in.why)
		require.Equal(t, c.raw, string(in.raw), name)
	}
}

func TestReadEnvelope_AnEditIsNamedByItsMessage(t *testing.T) {
	in := readEnvelope(team, envelopeOf(edit("C1", ana, ts2, ts1, "hi", ts3)))
	require.Equal(t, rules.LineKey{Team: team, Channel: "C1", TS: ts2}, in.line.LineKey, "not by the event's own ts")
	require.Equal(t, ts1, in.line.Root)
	require.Equal(t, ts3, in.line.EditedTS)
	require.Equal(t, "hi", in.line.Text)
}

func FuzzReadEnvelope(f *testing.F) {
	for _, e := range []string{
		say("C1", ana, ts1, "", "<@USMITH> hi"), mention("C1", ana, ts1, "", "hi"), edit("C1", ana, ts1, "", "hi", ts2),
		unfurl("C1", ana, ts1, "hi", ts2), deletionOf("C1", ts1, ts2), reaction(ana, "x", "C1", ts1, ts2), `{}`, `[]`, `null`,
	} {
		f.Add([]byte(envelopeOf(e)))
	}
	f.Add([]byte(`{"type":"slash_commands","envelope_id":"e","payload":{"team_id":"T1","command":"/x"}}`))
	f.Add([]byte(`{"type":"hello","num_connections":1}`))
	f.Add([]byte("{\"envelope_id\":\"e\",\"type\":\x00}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		in := readEnvelope(team, raw)
		switch in.kind {
		case isLine, isEdit, isDeletion, isReaction:
			if in.line.Team != team || !rules.ValidTS(in.line.TS) || in.line.Channel == "" {
				t.Fatalf("a line without a name: %+v", in.line)
			}
			if in.kind == isEdit && !rules.ValidTS(in.line.EditedTS) || (in.kind == isDeletion || in.kind == isReaction) && !rules.ValidTS(in.eventTS) {
				t.Fatalf("an event without its ts: %+v", in)
			}
		case isStrange:
			if in.why == "" || in.name == "" {
				t.Fatalf("strange, and it does not say why: %q", raw)
			}
		case isCommand, isNothing:
		default:
			t.Fatalf("kind %q", in.kind)
		}
		if again := readEnvelope(team, in.raw); again.kind != in.kind {
			t.Fatalf("read again it is %s, not %s", again.kind, in.kind)
		}
		// What the spool gives back reads the same.
		if json.Valid(raw) {
			kept, err := json.Marshal(spooled{Envelope: raw})
			var back spooled
			if err != nil || json.Unmarshal(kept, &back) != nil || readEnvelope(team, back.Envelope).kind != in.kind {
				t.Fatalf("the spool changed %q", raw)
			}
		}
	})
}
