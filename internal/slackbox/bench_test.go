package slackbox_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
)

func BenchmarkPost(b *testing.B) {
	s := slackbox.New(slackbox.Options{})
	require.NoError(b, s.Start(b.Context(), ""))
	defer func() { _ = s.Close() }()
	api := slack.New("xoxb-local-smith", slack.OptionAPIURL(s.URL()))
	root, err := s.Person("ana").Say("general", "root")
	require.NoError(b, err)
	for b.Loop() {
		_, _, err := api.PostMessage(general, textOption("an answer"), slack.MsgOptionTS(root))
		require.NoError(b, err)
	}
}

func BenchmarkSayInProcess(b *testing.B) {
	s := slackbox.New(slackbox.Options{})
	defer func() { _ = s.Close() }()
	for b.Loop() {
		_, err := s.Person("ana").Say("general", "@smith hello")
		require.NoError(b, err)
	}
}

// BenchmarkSayToSocket is the time from a line to its frame on an open socket, acked.
func BenchmarkSayToSocket(b *testing.B) {
	s := slackbox.New(slackbox.Options{})
	require.NoError(b, s.Start(b.Context(), ""))
	defer func() { _ = s.Close() }()
	api := slack.New("", slack.OptionAPIURL(s.URL()), slack.OptionAppLevelToken("xapp-local-smith"))
	_, url, err := api.StartSocketModeContext(b.Context())
	require.NoError(b, err)
	conn, _, err := websocket.Dial(b.Context(), url, nil)
	require.NoError(b, err)
	defer func() { _ = conn.CloseNow() }()
	_, _, err = conn.Read(b.Context())
	require.NoError(b, err)
	for b.Loop() {
		_, err := s.Person("ana").Say("general", "hello")
		require.NoError(b, err)
		_, frame, err := conn.Read(b.Context())
		require.NoError(b, err)
		var e struct {
			ID string `json:"envelope_id"`
		}
		require.NoError(b, json.Unmarshal(frame, &e))
		require.NoError(b, conn.Write(b.Context(), websocket.MessageText, []byte(`{"envelope_id":"`+e.ID+`"}`)))
	}
}

// TestPost_FiveThousandMentionsTakeNoTime holds off anything quadratic in the text.
func TestPost_FiveThousandMentionsTakeNoTime(t *testing.T) {
	s := start(t, slackbox.Options{})
	began := time.Now()
	for _, text := range []string{strings.Repeat("<@U1> ", 6000), strings.Repeat("<", 39000), strings.Repeat("http://", 5500), strings.Repeat("&", 39000)} {
		_, err := s.Person("ana").Say("general", text)
		require.NoError(t, err)
	}
	require.Less(t, time.Since(began), 30*time.Second)
}
