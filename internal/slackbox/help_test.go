package slackbox_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
)

func textOption(s string) slack.MsgOption { return slack.MsgOptionText(s, false) }

func buttonOption(actionID, value string) slack.MsgOption {
	b := slack.NewButtonBlockElement(actionID, value, slack.NewTextBlockObject("plain_text", "Go", false, false))
	return slack.MsgOptionBlocks(slack.NewActionBlock("b", b))
}

// message returns a stored message, deleted or not, from the oracle.
func message(t *testing.T, s *slackbox.Server, ts string) slackbox.LoggedMessage {
	t.Helper()
	for _, m := range s.Log(0).Messages {
		if m.TS == ts {
			return m
		}
	}
	require.FailNow(t, "no message", ts)
	return slackbox.LoggedMessage{}
}

// raw calls a Web API method and returns the answer as it came.
func raw(t *testing.T, s *slackbox.Server, method string, form url.Values) map[string]any {
	t.Helper()
	answer, err := http.PostForm(s.URL()+method, form)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	var body map[string]any
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&body))
	return body
}

// frozen is a clock that only the test moves.
func frozen() *slackbox.MovableClock {
	return slackbox.NewFrozenClock(time.Unix(1_750_000_000, 0))
}

// deliveries counts what happened to the envelopes of an app: "sent message".
func deliveries(s *slackbox.Server, app string) map[string]int {
	n := map[string]int{}
	for _, d := range s.Log(0).Deliveries {
		if d.App == app {
			n[d.What+" "+d.Event]++
		}
	}
	return n
}

func fault(t *testing.T, s *slackbox.Server, f slackbox.Fault) {
	t.Helper()
	_, err := s.AddFault(f)
	require.NoError(t, err)
}

func uintText(n uint64) string { return strconv.FormatUint(n, 10) }
