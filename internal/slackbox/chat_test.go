package slackbox_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
)

func TestPostMessage_RefusesAsSlackDoes(t *testing.T) {
	s := start(t, slackbox.Options{})
	require.NoError(t, s.Add(slackbox.Seed{
		Channels: []slackbox.Channel{{Name: "elsewhere", Members: []string{"ana"}}, {Name: "closed", Private: true, Members: []string{"ana"}}}}))
	section := func(n int) slack.MsgOption {
		return slack.MsgOptionBlocks(slack.NewSectionBlock(slack.NewTextBlockObject("mrkdwn", strings.Repeat("x", n), false, false), nil, nil))
	}
	many := make([]slack.Block, 51)
	for i := range many {
		many[i] = slack.NewDividerBlock()
	}
	for name, c := range map[string]struct {
		token, channel string
		opts           []slack.MsgOption
		want           string
	}{
		"no token":           {"", general, []slack.MsgOption{textOption("x")}, "not_authed"},
		"wrong token":        {"xoxb-no", general, []slack.MsgOption{textOption("x")}, "invalid_auth"},
		"app-level token":    {"xapp-local-smith", general, []slack.MsgOption{textOption("x")}, "not_allowed_token_type"},
		"left the company":   {"xoxp-local-dora", general, []slack.MsgOption{textOption("x")}, "account_inactive"},
		"no channel":         {"xoxb-local-smith", "C0NOWHERE01", []slack.MsgOption{textOption("x")}, "channel_not_found"},
		"not a member":       {"xoxb-local-smith", "C0ELSEWHER1", []slack.MsgOption{textOption("x")}, "not_in_channel"},
		"private unseen":     {"xoxb-local-smith", "C0CLOSED001", []slack.MsgOption{textOption("x")}, "channel_not_found"},
		"no text":            {"xoxb-local-smith", general, []slack.MsgOption{textOption("")}, "no_text"},
		"text too long":      {"xoxb-local-smith", general, []slack.MsgOption{textOption(strings.Repeat("é", 40001))}, "msg_too_long"},
		"text just fits":     {"xoxb-local-smith", general, []slack.MsgOption{textOption(strings.Repeat("é", 40000))}, ""},
		"51 blocks":          {"xoxb-local-smith", general, []slack.MsgOption{slack.MsgOptionBlocks(many...)}, "invalid_blocks"},
		"50 blocks":          {"xoxb-local-smith", general, []slack.MsgOption{slack.MsgOptionBlocks(many[:50]...)}, ""},
		"section too long":   {"xoxb-local-smith", general, []slack.MsgOption{section(3001)}, "invalid_blocks"},
		"section just fits":  {"xoxb-local-smith", general, []slack.MsgOption{section(3000)}, ""},
		"markdown too long":  {"xoxb-local-smith", general, []slack.MsgOption{slack.MsgOptionBlocks(slack.NewMarkdownBlock("", strings.Repeat("x", 12001)))}, "invalid_blocks"},
		"markdown just fits": {"xoxb-local-smith", general, []slack.MsgOption{slack.MsgOptionBlocks(slack.NewMarkdownBlock("", strings.Repeat("x", 12000)))}, ""},
		"metadata of person": {"xoxp-local-ana", general, []slack.MsgOption{textOption("x"), slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "a"})}, "metadata_must_be_sent_from_app"},
		"odd thread":         {"xoxb-local-smith", general, []slack.MsgOption{textOption("x"), slack.MsgOptionTS("1")}, "invalid_thread_ts"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := client(s, c.token).PostMessage(c.channel, c.opts...)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.want)
		})
	}
}

func TestPostMessage_ADotInTheMetadataTypeDropsItWithAWarning(t *testing.T) {
	s := start(t, slackbox.Options{})
	answer := raw(t, s, "chat.postMessage", url.Values{"token": {"xoxb-local-smith"}, "channel": {general}, "text": {"x"},
		"metadata": {`{"event_type":"smith.post","event_payload":{"a":1}}`}})
	require.Equal(t, true, answer["ok"])
	require.Equal(t, "invalid_metadata_schema", answer["warning"])
	require.Nil(t, message(t, s, answer["ts"].(string)).Message.Metadata)
}

func TestPostMessage_TextIsEscapedAndLinked(t *testing.T) {
	s := start(t, slackbox.Options{})
	for in, want := range map[string]string{
		"a & b < c > d":                          "a &amp; b &lt; c &gt; d",
		"&amp; &lt; stays":                       "&amp; &lt; stays",
		"<@U0ANA000001> <@U0ANA000001|ana>":      "<@U0ANA000001> <@U0ANA000001|ana>",
		"<!here> <#C0GENERAL01|general> <b>":     "<!here> <#C0GENERAL01|general> &lt;b&gt;",
		"see https://example.com/a?b=1&c=2, ok":  "see <https://example.com/a?b=1&amp;c=2>, ok",
		"<https://example.com|here>":             "<https://example.com|here>",
		"<!subteam^S01234567|@devs> <! bad> <@>": "<!subteam^S01234567|@devs> &lt;! bad&gt; &lt;@&gt;",
		"nul\x00 gone":                           "nul gone",
		"\xff":                                   "\uFFFD",
	} {
		_, ts, err := bot(s, "smith").PostMessage(general, textOption(in))
		require.NoError(t, err)
		require.Equal(t, want, message(t, s, ts).Text, in)
	}
	ts, err := s.Person("ana").Say("general", "@smith and @agent-force, see #random or ask @nobody.")
	require.NoError(t, err)
	require.Equal(t, "<@U0SMITH0001> and <@U0AGENTFOR1>, see <#C0RANDOM001> or ask @nobody.", message(t, s, ts).Text)
}

func TestPostMessage_AReplyToADeletedParentGoesToTheChannelWithoutAnError(t *testing.T) {
	s := start(t, slackbox.Options{})
	ana := s.Person("ana")
	root, err := ana.Say("general", "root")
	require.NoError(t, err)
	require.NoError(t, ana.Delete("general", root))
	_, ts, resp, err := bot(s, "smith").PostMessageWithResponse(general, textOption("late"), slack.MsgOptionTS(root))
	require.NoError(t, err)
	require.Empty(t, resp.ThreadTimestamp)
	m := message(t, s, ts)
	require.Empty(t, m.ThreadTS)
	require.Equal(t, root, m.AskedThread)
}

func TestDelete_ARootWithRepliesLeavesATombstoneThatCanStillBeRepliedTo(t *testing.T) {
	s := start(t, slackbox.Options{})
	events := listen(t, s, "smith", true)
	ana := s.Person("ana")
	root, err := ana.Say("general", "root")
	require.NoError(t, err)
	reply, err := ana.Reply("general", root, "reply")
	require.NoError(t, err)
	require.NoError(t, ana.Delete("general", root))
	for {
		e, _ := inner[*slackevents.MessageEvent](t, events)
		if e.SubType == "message_changed" {
			require.Equal(t, "tombstone", e.Message.SubType)
			require.Equal(t, "root", e.PreviousMessage.Text)
			break
		}
	}
	msgs, _, _, err := bot(s, "smith").GetConversationReplies(&slack.GetConversationRepliesParameters{ChannelID: general, Timestamp: root})
	require.NoError(t, err)
	require.Equal(t, []string{"tombstone", ""}, []string{msgs[0].SubType, msgs[1].SubType})
	require.NoError(t, ana.Delete("general", reply))
	e, _ := inner[*slackevents.MessageEvent](t, events)
	require.Equal(t, "message_deleted", e.SubType)
	require.Equal(t, reply, e.DeletedTimeStamp)
	_, _, _, err = bot(s, "smith").GetConversationReplies(&slack.GetConversationRepliesParameters{ChannelID: general, Timestamp: root})
	require.EqualError(t, err, "thread_not_found")
	require.True(t, message(t, s, root).Deleted())
	require.Equal(t, "root", message(t, s, root).Text)
}

func TestUpdate_KeepsMetadataAndBlocksUnlessTheyAreSent(t *testing.T) {
	s := start(t, slackbox.Options{})
	api := bot(s, "smith")
	_, ts, err := api.PostMessage(general, textOption("one"), buttonOption("go", "1"),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "smith_post", EventPayload: map[string]any{"a": "b"}}))
	require.NoError(t, err)
	_, _, text, err := api.UpdateMessage(general, ts, textOption("two"))
	require.NoError(t, err)
	require.Equal(t, "two", text)
	m := message(t, s, ts)
	require.Equal(t, "smith_post", m.Message.Metadata.EventType)
	require.Contains(t, string(m.Message.Blocks), "button")
	require.NotEmpty(t, m.Message.Edited.TS)
	require.Equal(t, []string{"one"}, []string{m.Edits[0].Text})
	_, _, _, err = api.UpdateMessage(general, ts, textOption("three"), slack.MsgOptionBlocks(),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "other", EventPayload: map[string]any{}}))
	require.NoError(t, err)
	m = message(t, s, ts)
	require.Equal(t, "other", m.Message.Metadata.EventType)
	require.NotContains(t, string(m.Message.Blocks), "button")

	for want, try := range map[string]func() error{
		"msg_too_long": func() error {
			_, _, _, e := api.UpdateMessage(general, ts, textOption(strings.Repeat("x", 4001)))
			return e
		},
		"message_not_found":   func() error { _, _, _, e := api.UpdateMessage(general, "1.000000", textOption("x")); return e },
		"cant_update_message": func() error { _, _, _, e := bot(s, "trinity").UpdateMessage(general, ts, textOption("x")); return e },
		"cant_delete_message": func() error { _, _, e := bot(s, "trinity").DeleteMessage(general, ts); return e },
		"channel_not_found":   func() error { _, _, e := api.DeleteMessage("C0", ts); return e },
	} {
		require.EqualError(t, try(), want)
	}
	_, _, err = api.DeleteMessage(general, ts)
	require.NoError(t, err)
	_, _, err = api.DeleteMessage(general, ts)
	require.EqualError(t, err, "message_not_found")
}

func TestPostMessage_SubtypesOfThreadBroadcastMeAndBotMessage(t *testing.T) {
	s := start(t, slackbox.Options{})
	events := listen(t, s, "trinity", true)
	root, err := s.Person("ana").Say("general", "root")
	require.NoError(t, err)
	api := bot(s, "smith")
	_, _, err = api.PostMessage(general, textOption("loud"), slack.MsgOptionTS(root), slack.MsgOptionBroadcast())
	require.NoError(t, err)
	_, _, err = api.PostMessage(general, textOption("as other"), slack.MsgOptionUsername("Other"))
	require.NoError(t, err)
	_, _, _, err = api.SendMessage(general, textOption("waves"), slack.MsgOptionMeMessage())
	require.NoError(t, err)
	var got []string
	for len(got) < 4 {
		e, _ := inner[*slackevents.MessageEvent](t, events)
		got = append(got, e.SubType)
		if e.SubType == "thread_broadcast" {
			require.Equal(t, "root", e.Root.Text)
		}
	}
	require.Equal(t, []string{"", "thread_broadcast", "bot_message", "me_message"}, got)
	h, err := api.GetConversationHistory(&slack.GetConversationHistoryParameters{ChannelID: general})
	require.NoError(t, err)
	require.Len(t, h.Messages, 4, "a broadcast reply stands in the channel too")
}

func TestEphemeralAndPermalink(t *testing.T) {
	s := start(t, slackbox.Options{})
	api := bot(s, "smith")
	ts, err := api.PostEphemeral(general, anaID, textOption("only you"))
	require.NoError(t, err)
	require.NotEmpty(t, ts)
	_, err = api.PostEphemeral("C0RANDOM001", "U0OLGA00001", textOption("x"))
	require.EqualError(t, err, "user_not_in_channel")
	h, err := api.GetConversationHistory(&slack.GetConversationHistoryParameters{ChannelID: general})
	require.NoError(t, err)
	require.Empty(t, h.Messages)
	require.Equal(t, "only you", s.Log(0).Ephemerals[0].Text)

	root, err := s.Person("ana").Say("general", "root")
	require.NoError(t, err)
	link, err := api.GetPermalink(&slack.PermalinkParameters{Channel: general, Ts: root})
	require.NoError(t, err)
	require.Contains(t, link, "/archives/"+general+"/p"+strings.ReplaceAll(root, ".", ""))
}

func TestPostMessage_ToAUserOpensTheDirectMessage(t *testing.T) {
	s := start(t, slackbox.Options{})
	channel, _, err := bot(s, "agent-force").PostMessage(anaID, textOption("psst"))
	require.NoError(t, err)
	require.Equal(t, "D", channel[:1])
}
