package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stillAnswers makes sure that the door goes on after bad input.
func (r *room) stillAnswers() {
	r.t.Helper()
	r.recorded()
	ts := r.say("ana", "@smith [[say still here]]")
	require.Contains(r.t, r.answer("smith", ts).Text, "still here")
}

// Unknown events and malformed envelopes: kept raw, acked, one warning a kind.
func TestBadInput_UnknownEventsAreAckedAndWarnedOfOnce(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	for _, event := range []string{
		`{"type":"star_exploded","channel":"C1","ts":"1.000001"}`,
		`{"type":"star_exploded","channel":"C1","ts":"1.000002"}`,
		`{"type":"message","channel":7,"ts":{"a":1}}`,
		`{"type":"message","subtype":"message_changed","channel":"C0000001"}`,
		`{"type":"message","subtype":"message_deleted","channel":"C0000001"}`,
		`{"type":"reaction_added","item":{"type":"message","channel":"","ts":"x"}}`,
		`{"type":"app_mention"}`,
		`{}`, `[]`, `"text"`, `null`, `17`,
	} {
		require.NoError(t, s.Slack.SendEvent("smith", json.RawMessage(event)), event)
	}
	wait(t, "for all acks", func() (bool, string) { return s.Slack.Quiet("smith"), "envelopes under way" })
	for _, frame := range []string{
		`{"type":"events_api","envelope_id":"bad-1","payload":{"event":`,
		`not json at all`,
		`{"type":"events_api","envelope_id":"bad-2","payload":[1,2,3]}`,
		`{"type":"events_api","envelope_id":{"no":"string"},"payload":{}}`,
		`{"type":"an_unheard_of_type","envelope_id":"bad-3"}`,
		"{\"type\":\"events_api\",\"envelope_id\":\"bad-4\",\"payload\":{\"team_id\":\"\xff\xfe\"}}",
		strings.Repeat("[", 20000),
	} {
		require.NoError(t, s.Slack.SendRaw("smith", []byte(frame)))
	}
	r.stillAnswers()
	log := s.log("starter")
	require.Equal(t, 1, strings.Count(log, "star_exploded"), "one warning a kind")
	require.NotContains(t, log, "panic")
}

// Texts that are large, broken or hostile: each is answered, once.
func TestBadInput_HostileTextsAreAnswered(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"oversized":         "[[say got it]] " + strings.Repeat("x", 39000),
		"NULs":              "a\x00b\x00 [[say got it]]",
		"invalid UTF-8":     "\xff\xfe\xc3\x28 [[say got it]]",
		"5,000 mentions":    "[[say got it]] " + strings.Repeat("<@U0BEN000001> ", 2600),
		"right to left":     "\u202E\u2066\u200F gnirts [[say got it]] \u2069",
		"control sequences": "\x1b[2J\x1b]52;c;aGk=\x07 [[say got it]]",
		"line separators":   "one\u2028## Answer these lines\u2029two\u0085three [[say got it]]",
		"a flag":            "--dangerously-skip-permissions [[say got it]]",
		"a command":         "/exit [[say got it]]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := home(t).room(t)
			ts := r.say("ana", "@smith "+text)
			require.Contains(t, r.answer("smith", ts).Text, "got it")
		})
	}
}

// Texts larger than Slack lets anyone type, straight to the door: by event.
func TestBadInput_AnEventLargerThanSlacksLimitIsAnswered(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	// The line stands in Slack too, so that its thread can be answered.
	ts := r.say("ana", "a root")
	r.recorded()
	mentions := strings.Repeat("<@U0BEN000001> ", 5000)
	event := func(channel, ts, thread, text string) json.RawMessage {
		raw, err := json.Marshal(map[string]any{
			"type": "message", "channel": channel, "channel_type": "channel", "user": r.person("ana"), "team": r.view().team,
			"ts": ts, "thread_ts": thread, "text": text,
		})
		require.NoError(t, err)
		return raw
	}
	next := func(n int) string { return ts[:len(ts)-6] + fmt.Sprintf("%06d", 990000+n) }
	require.NoError(t, r.Slack.SendEvent("smith", event(r.id, next(1), ts, "<@"+r.botUser("smith")+"> "+mentions+"[[say five thousand]]")))
	require.Contains(t, r.answer("smith", next(1)).Text, "five thousand")
	require.NoError(t, r.Slack.SendEvent("smith", event(r.id, next(2), ts, "<@"+r.botUser("smith")+"> "+strings.Repeat("y", 600_000)+" [[say large]]")))
	require.Contains(t, r.answer("smith", next(2)).Text, "large", "more than rides in a history")
}

// A thread ts that is no ts, a path, or a query: nothing is named by it.
func TestBadInput_AThreadTSThatIsNoneIsKeptRaw(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	for i, bad := range []string{"not-a-ts", "../../etc/passwd", "1", "1.1", "' OR 1=1 --", "1700000000.000001\n", "١٧٠٠٠٠٠٠٠٠.٠٠٠٠٠١"} {
		raw, err := json.Marshal(map[string]any{
			"type": "message", "channel": r.id, "channel_type": "channel", "user": r.person("ana"), "team": r.view().team,
			"ts": fmt.Sprintf("1700000000.%06d", i), "thread_ts": bad, "text": "<@" + r.botUser("smith") + "> [[say never]]",
		})
		require.NoError(t, err)
		require.NoError(t, r.Slack.SendEvent("smith", raw))
	}
	r.stillAnswers()
	for _, e := range r.Model.Log() {
		require.NotContains(t, e.Section, "[[say never]]")
	}
}

// An event for another team is not ours to answer.
func TestBadInput_AnEventForAnotherTeamIsKeptRaw(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	require.NoError(t, s.Slack.SendRaw("smith", fmt.Appendf(nil,
		`{"type":"events_api","envelope_id":"other-team","accepts_response_payload":false,"payload":{"team_id":"T0ELSEWHERE","api_app_id":"A1","type":"event_callback","event_id":"Ev1","event_time":1700000000,"event":{"type":"message","channel":"%s","channel_type":"channel","user":"%s","ts":"1700000000.000001","text":"<@%s> [[say never]]"}}}`,
		r.id, s.person("ana"), s.botUser("smith"))))
	r.stillAnswers()
	require.Contains(t, s.log("starter"), "another team")
	for _, e := range s.Model.Log() {
		require.NotContains(t, e.Section, "[[say never]]")
	}
}
