package slackbox_test

import (
	"testing"

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
