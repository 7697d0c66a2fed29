package slackbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
)

const (
	general = "C0GENERAL01"
	smithID = "U0SMITH0001"
	anaID   = "U0ANA000001"
)

// start runs a local Slack for one test.
func start(t *testing.T, opt slackbox.Options) *slackbox.Server {
	t.Helper()
	s := slackbox.New(opt)
	require.NoError(t, s.Start(t.Context(), ""))
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func client(s *slackbox.Server, token string, opts ...slack.Option) *slack.Client {
	return slack.New(token, append([]slack.Option{slack.OptionAPIURL(s.URL())}, opts...)...)
}

func bot(s *slackbox.Server, name string) *slack.Client { return client(s, "xoxb-local-"+name) }
func person(s *slackbox.Server, name string) *slack.Client {
	return client(s, "xoxp-local-"+name)
}

// within is a context that ends a test that waits in vain.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// listen runs slack-go's Socket Mode client for an app; what arrives comes on the
// channel, acked when ack is true.
func listen(t *testing.T, s *slackbox.Server, app string, ack bool) <-chan socketmode.Event {
	t.Helper()
	api := client(s, "xoxb-local-"+app, slack.OptionAppLevelToken("xapp-local-"+app))
	sm := socketmode.New(api)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	out := make(chan socketmode.Event, 1000)
	go func() {
		defer close(done)
		_ = sm.RunContext(ctx)
	}()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-sm.Events:
				if ack && e.Request != nil && e.Request.EnvelopeID != "" {
					_ = sm.Ack(*e.Request)
				}
				out <- e
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	waitFor(t, out, socketmode.EventTypeHello)
	return out
}

func waitFor(t *testing.T, events <-chan socketmode.Event, typ socketmode.EventType) socketmode.Event {
	t.Helper()
	ctx := within(t)
	for {
		select {
		case <-ctx.Done():
			require.FailNow(t, "no event", "of type %s", typ)
		case e := <-events:
			if e.Type == typ {
				return e
			}
		}
	}
}

// inner waits for an Events API event of a type.
func inner[T any](t *testing.T, events <-chan socketmode.Event) (T, *socketmode.Request) {
	t.Helper()
	for {
		e := waitFor(t, events, socketmode.EventTypeEventsAPI)
		if x, ok := e.Data.(slackevents.EventsAPIEvent).InnerEvent.Data.(T); ok {
			return x, e.Request
		}
	}
}

func TestServer_AMentionComesAsBothCopiesAndTheAnswerReachesTheThread(t *testing.T) {
	s := start(t, slackbox.Options{})
	events := listen(t, s, "smith", true)
	_, ts, err := person(s, "ana").PostMessage(general, slack.MsgOptionText("<@"+smithID+"> hello & <b>", false))
	require.NoError(t, err)
	seen := map[string]bool{}
	for len(seen) < 2 {
		e := waitFor(t, events, socketmode.EventTypeEventsAPI).Data.(slackevents.EventsAPIEvent)
		switch x := e.InnerEvent.Data.(type) {
		case *slackevents.MessageEvent:
			require.Equal(t, "<@"+smithID+"> hello &amp; &lt;b&gt;", x.Text)
			require.Equal(t, "channel", x.ChannelType)
			require.NotEmpty(t, x.ClientMsgID)
			seen["message"] = true
		case *slackevents.AppMentionEvent:
			require.Equal(t, ts, x.TimeStamp)
			require.Equal(t, anaID, x.User)
			seen["mention"] = true
		}
	}
	_, reply, err := bot(s, "smith").PostMessage(general, slack.MsgOptionText("here", false), slack.MsgOptionTS(ts),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "smith_post", EventPayload: map[string]any{"post_id": "x"}}))
	require.NoError(t, err)
	own, _ := inner[*slackevents.MessageEvent](t, events)
	require.Equal(t, "B0SMITH0001", own.BotID)
	msgs, _, _, err := bot(s, "smith").GetConversationReplies(&slack.GetConversationRepliesParameters{
		ChannelID: general, Timestamp: ts, IncludeAllMetadata: true})
	require.NoError(t, err)
	require.Len(t, msgs, 2)
	require.Equal(t, 1, msgs[0].ReplyCount)
	require.Equal(t, reply, msgs[0].LatestReply)
	require.Equal(t, "x", msgs[1].Metadata.EventPayload["post_id"])
	require.NoError(t, s.Wait(within(t), func() bool { return s.Quiet("smith") }))
	log := s.Log(0)
	require.Len(t, log.Messages, 2)
	require.Equal(t, "smith", log.Messages[1].App)
}
