package rules

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

const plainMessage = `{"type":"message","channel":"C1","channel_type":"channel","user":"U1","text":"a &lt; b <@U2>",
"ts":"1700000000.000100","team":"T1","client_msg_id":"x"}`

func TestParseMessage_ReadsALine(t *testing.T) {
	line, err := ParseMessage("T1", "", json.RawMessage(plainMessage))
	require.NoError(t, err)
	require.Equal(t, LineKey{"T1", "C1", "1700000000.000100"}, line.Key())
	require.Equal(t, "1700000000.000100", line.Root, "a line in no thread is its own root")
	require.Equal(t, "channel", line.ChannelType)
	require.Equal(t, "U1", line.User)
	require.Equal(t, "T1", line.UserTeam)
	require.Equal(t, "a &lt; b <@U2>", line.Text, "the text stays as Slack sent it")
	require.JSONEq(t, plainMessage, string(line.Raw))
}

func TestParseMessage_ReadsTheRest(t *testing.T) {
	raw := `{"subtype":"file_share","thread_ts":"1700000000.000100","ts":"1700000001.000200","text":"","user_team":"T2","team":"T1",
"bot_id":"B1","bot_profile":{"app_id":"A1"},"edited":{"user":"U1","ts":"1700000002.000000"},
"files":[{"id":"F1","name":"a.txt","mimetype":"text/plain","size":12,"url_private":"https://files.slack.com/p","url_private_download":"https://files.slack.com/d"},
{"id":"F2","mode":"tombstone"},7,{"id":"F3","title":"only a title","size":"odd"}]}`
	line, err := ParseMessage("T1", "D1", json.RawMessage(raw))
	require.NoError(t, err)
	require.Equal(t, "1700000000.000100", line.Root)
	require.Equal(t, "file_share", line.Subtype)
	require.Equal(t, "T2", line.UserTeam)
	require.Equal(t, "B1", line.BotID)
	require.Equal(t, "A1", line.AppID)
	require.Equal(t, "1700000002.000000", line.EditedTS)
	require.Equal(t, []File{
		{ID: "F1", Name: "a.txt", Mimetype: "text/plain", Size: 12, URLPrivate: "https://files.slack.com/d"},
		{ID: "F3", Name: "only a title"},
	}, line.Files)
}

func TestParseMessage_KeepsALineWithOddFields(t *testing.T) {
	line, err := ParseMessage("T1", "C1", json.RawMessage(`{"ts":"1.000000","text":["no"],"files":{},"edited":3,"bot_profile":null}`))
	require.NoError(t, err)
	require.Equal(t, "1.000000", line.TS)
	require.Empty(t, line.Text)
}

func TestParseMessage_RefusesWhatHasNoName(t *testing.T) {
	for name, raw := range map[string]string{
		"no json":          `{`,
		"null":             `null`,
		"a list":           `[]`,
		"no ts":            `{"channel":"C1"}`,
		"ts is a number":   `{"channel":"C1","ts":1700000000.0001}`,
		"ts too short":     `{"channel":"C1","ts":"1700000000.0001"}`,
		"ts with a path":   `{"channel":"C1","ts":"../../x.000000"}`,
		"thread_ts odd":    `{"channel":"C1","ts":"1700000000.000100","thread_ts":"x"}`,
		"no channel":       `{"ts":"1700000000.000100"}`,
		"channel is a way": `{"channel":"../C1","ts":"1700000000.000100"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseMessage("T1", "", json.RawMessage(raw))
			require.ErrorIs(t, err, ErrNotAMessage)
		})
	}
}

func TestParseMetadata_ReadsTypeAndPayload(t *testing.T) {
	m, ok := ParseMetadata(json.RawMessage(`{"metadata":{"event_type":"smith_post","event_payload":{"post_id":"p"}}}`))
	require.True(t, ok)
	require.Equal(t, "smith_post", m.EventType)
	require.JSONEq(t, `{"post_id":"p"}`, string(m.Payload))

	m, ok = ParseMetadata(json.RawMessage(`{"metadata":{"event_type":"smith_post"}}`))
	require.True(t, ok, "a stripped payload still has its type")
	require.Empty(t, m.Payload)

	for _, raw := range []string{`{}`, `{"metadata":7}`, `{"metadata":{}}`, `x`} {
		_, ok = ParseMetadata(json.RawMessage(raw))
		require.False(t, ok, raw)
	}
}

func TestParseBlockIDs_ReadsThemInOrder(t *testing.T) {
	require.Equal(t, []string{"a", "b"}, ParseBlockIDs(json.RawMessage(`{"blocks":[{"block_id":"a"},{},7,{"block_id":"b"}]}`)))
	require.Empty(t, ParseBlockIDs(json.RawMessage(`{"blocks":{}}`)))
}

func FuzzParseMessage(f *testing.F) {
	f.Add("C1", []byte(plainMessage))
	f.Add("", []byte(`{"channel":"D1","ts":"1.000000","thread_ts":"1.000000","files":[null,{"id":"F1","size":1e3}]}`))
	f.Add("C1", []byte(`{"ts":"1700000000.000100","metadata":{"event_type":"x","event_payload":{}},"blocks":[{"block_id":"b"}]}`))
	f.Add("C1", []byte(`{"ts":null,"text":{"a":[`))
	f.Fuzz(func(t *testing.T, channel string, raw []byte) {
		ParseMetadata(raw)
		ParseBlockIDs(raw)
		line, err := ParseMessage("T1", channel, raw)
		if err != nil {
			require.ErrorIs(t, err, ErrNotAMessage)
			return
		}
		require.True(t, ValidTS(line.TS))
		require.True(t, ValidTS(line.Root))
		require.NotEmpty(t, line.Channel)
		again, err := ParseMessage("T1", line.Channel, line.Raw)
		require.NoError(t, err)
		require.Equal(t, line, again, "what is stored reads as what arrived")
	})
}
