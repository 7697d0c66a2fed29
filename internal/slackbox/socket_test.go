package slackbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
)

// dial opens a bare socket of an app and returns its first frame.
func dial(t *testing.T, s *slackbox.Server, app string) (*websocket.Conn, map[string]any) {
	t.Helper()
	_, url, err := client(s, "xoxb-local-"+app, slack.OptionAppLevelToken("xapp-local-"+app)).StartSocketModeContext(t.Context())
	require.NoError(t, err)
	conn, _, err := websocket.Dial(t.Context(), url, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return conn, frame(t, conn)
}

func frame(t *testing.T, conn *websocket.Conn) map[string]any {
	t.Helper()
	_, b, err := conn.Read(within(t))
	require.NoError(t, err)
	var f map[string]any
	require.NoError(t, json.Unmarshal(b, &f))
	return f
}

func TestSocket_HelloCountsTheConnectionsAndTheEleventhIsRefused(t *testing.T) {
	s := start(t, slackbox.Options{})
	for i := range 10 {
		_, hello := dial(t, s, "smith")
		require.Equal(t, "hello", hello["type"])
		require.InDelta(t, i+1, hello["num_connections"], 0)
		require.Equal(t, map[string]any{"app_id": "A0SMITH0001"}, hello["connection_info"])
	}
	_, refused := dial(t, s, "smith")
	require.Equal(t, "disconnect", refused["type"])
	require.Equal(t, "too_many_websockets", refused["reason"])
}

func TestSocket_TheTicketIsGoodOnce(t *testing.T) {
	s := start(t, slackbox.Options{})
	_, url, err := client(s, "", slack.OptionAppLevelToken("xapp-local-smith")).StartSocketModeContext(t.Context())
	require.NoError(t, err)
	conn, _, err := websocket.Dial(t.Context(), url, nil)
	require.NoError(t, err)
	_ = conn.CloseNow()
	_, _, err = websocket.Dial(t.Context(), url, nil)
	require.Error(t, err)
	_, _, err = client(s, "", slack.OptionAppLevelToken("xoxb-local-smith")).StartSocketModeContext(t.Context())
	require.EqualError(t, err, "not_allowed_token_type")
}

func TestSocket_IsPinged(t *testing.T) {
	s := start(t, slackbox.Options{PingEvery: 20 * time.Millisecond})
	_, url, err := client(s, "", slack.OptionAppLevelToken("xapp-local-smith")).StartSocketModeContext(t.Context())
	require.NoError(t, err)
	pings := make(chan struct{}, 10)
	conn, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{
		OnPingReceived: func(context.Context, []byte) bool {
			select {
			case pings <- struct{}{}:
			default:
			}
			return true
		}})
	require.NoError(t, err)
	defer func() { _ = conn.CloseNow() }()
	require.Equal(t, "hello", frame(t, conn)["type"])
	ctx := conn.CloseRead(t.Context())
	for range 3 {
		select {
		case <-pings:
		case <-ctx.Done():
			require.FailNow(t, "the socket ended")
		}
	}
}

func TestDelivery_ClimbsTheLadderAtOnceAfterOneAndAfterFiveMinutes(t *testing.T) {
	clock := frozen()
	s := start(t, slackbox.Options{Clock: clock})
	conn, _ := dial(t, s, "smith")
	_, err := s.Person("ana").Say("general", "hello")
	require.NoError(t, err)
	first := frame(t, conn)
	require.InDelta(t, 0, first["retry_attempt"], 0)
	for i, step := range []time.Duration{3 * time.Second, 3*time.Second + time.Minute, 3*time.Second + 5*time.Minute} {
		clock.Advance(step - time.Millisecond)
		require.Equal(t, i+1, deliveries(s, "smith")["sent message"], "not before its time")
		clock.Advance(time.Millisecond)
		f := frame(t, conn)
		require.InDelta(t, i+1, f["retry_attempt"], 0)
		require.Equal(t, "timeout", f["retry_reason"])
		require.Equal(t, first["payload"], f["payload"])
	}
	clock.Advance(time.Hour)
	require.Equal(t, 4, deliveries(s, "smith")["sent message"])
	require.Equal(t, 1, deliveries(s, "smith")["gave_up message"])
	require.True(t, s.Quiet("smith"))
}

func TestDelivery_AnAckEndsTheLadder(t *testing.T) {
	clock := frozen()
	s := start(t, slackbox.Options{Clock: clock})
	conn, _ := dial(t, s, "smith")
	_, err := s.Person("ana").Say("general", "hello")
	require.NoError(t, err)
	id := frame(t, conn)["envelope_id"].(string)
	require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte(`{"envelope_id":"`+id+`"}`)))
	require.NoError(t, s.Wait(within(t), func() bool { return s.Quiet("smith") }))
	clock.Advance(time.Hour)
	require.Equal(t, 1, deliveries(s, "smith")["sent message"])
}

func TestDelivery_AnAckOfTwentyKilobytesIsNotHeard(t *testing.T) {
	clock := frozen()
	s := start(t, slackbox.Options{Clock: clock})
	conn, _ := dial(t, s, "smith")
	var ids []string
	for range 2 {
		_, err := s.Person("ana").Say("general", "hello")
		require.NoError(t, err)
		ids = append(ids, frame(t, conn)["envelope_id"].(string))
	}
	long := `{"envelope_id":"` + ids[0] + `","payload":{"text":"` + strings.Repeat("x", 20480) + `"}}`
	for _, answer := range []string{long, "no json", `{"envelope_id":"unknown"}`, `{"envelope_id":"` + ids[1] + `"}`} {
		require.NoError(t, conn.Write(t.Context(), websocket.MessageText, []byte(answer)))
	}
	require.NoError(t, s.Wait(within(t), func() bool { return deliveries(s, "smith")["acked message"] == 1 }))
	clock.Advance(3 * time.Second)
	again := frame(t, conn)
	require.Equal(t, ids[0], again["envelope_id"])
	require.InDelta(t, 1, again["retry_attempt"], 0)
}

func TestDelivery_WhatWasRaisedWithNoSocketWaitsForOneInOrder(t *testing.T) {
	s := start(t, slackbox.Options{})
	for _, text := range []string{"1", "2", "3"} {
		_, err := s.Person("ana").Say("general", text)
		require.NoError(t, err)
	}
	events := listen(t, s, "smith", true)
	for _, text := range []string{"1", "2", "3"} {
		m, req := inner[*slackevents.MessageEvent](t, events)
		require.Equal(t, text, m.Text)
		require.Zero(t, req.RetryAttempt)
	}
}

func TestDelivery_EachEnvelopeTakesOneSocketOfChance(t *testing.T) {
	s := start(t, slackbox.Options{})
	a, b := listen(t, s, "smith", true), listen(t, s, "smith", true)
	for range 40 {
		_, err := s.Person("ana").Say("general", "x")
		require.NoError(t, err)
	}
	require.NoError(t, s.Wait(within(t), func() bool { return s.Quiet("smith") }))
	bySocket := map[int]int{}
	for _, d := range s.Log(0).Deliveries {
		if d.App == "smith" && d.What == "sent" {
			bySocket[d.Socket]++
		}
	}
	require.Len(t, bySocket, 2)
	require.Equal(t, 40, bySocket[1]+bySocket[2])
	_, _ = a, b
}

func TestMention_ComesInBothOrders(t *testing.T) {
	s := start(t, slackbox.Options{})
	for range 20 {
		_, err := s.Person("ana").Say("general", "@smith x")
		require.NoError(t, err)
	}
	first := map[string]int{}
	seen := map[string]bool{}
	for _, d := range s.Log(0).Deliveries {
		if d.App == "smith" && !seen[d.TS] {
			first[d.Event]++
			seen[d.TS] = true
		}
	}
	require.Len(t, first, 2)
}

func TestMention_OnlyInBlocksOrByABotCountsToo(t *testing.T) {
	s := start(t, slackbox.Options{})
	text := slack.NewTextBlockObject("mrkdwn", "ask <@U0TRINITY01>", false, false)
	_, _, err := bot(s, "smith").PostMessage(general, slack.MsgOptionBlocks(slack.NewSectionBlock(text, nil, nil)))
	require.NoError(t, err)
	require.Equal(t, 1, deliveries(s, "trinity")["queued app_mention"])
	require.Zero(t, deliveries(s, "smith")["queued app_mention"])
	dm, err := s.Person("ana").DM("smith")
	require.NoError(t, err)
	_, err = s.Person("ana").Say(dm, "@smith hello")
	require.NoError(t, err)
	require.Zero(t, deliveries(s, "smith")["queued app_mention"], "no app_mention in a direct message")
}

func TestEdit_RaisesMessageChangedAndTheMentionAgain(t *testing.T) {
	s := start(t, slackbox.Options{})
	events := listen(t, s, "smith", true)
	ts, err := s.Person("ana").Say("general", "hello")
	require.NoError(t, err)
	require.NoError(t, s.Person("ana").Edit("general", ts, "hello @smith"))
	m, _ := inner[*slackevents.MessageEvent](t, events)
	require.Empty(t, m.SubType)
	changed, _ := inner[*slackevents.MessageEvent](t, events)
	require.Equal(t, []string{"message_changed", "hello", "hello <@U0SMITH0001>", ts},
		[]string{changed.SubType, changed.PreviousMessage.Text, changed.Message.Text, changed.Message.Timestamp})
	mention, _ := inner[*slackevents.AppMentionEvent](t, events)
	require.NotNil(t, mention.Edited)
	require.Equal(t, ts, mention.TimeStamp)
	require.NoError(t, s.Unfurl("general", ts, nil))
	changed, _ = inner[*slackevents.MessageEvent](t, events)
	require.Equal(t, changed.PreviousMessage.Text, changed.Message.Text)
	require.NotEmpty(t, changed.Message.Attachments)
}

func TestOutsider_IsMarkedInItsEvents(t *testing.T) {
	s := start(t, slackbox.Options{})
	events := listen(t, s, "smith", true)
	_, err := s.Person("olga").Say("general", "@smith hello")
	require.NoError(t, err)
	m, _ := inner[*slackevents.MessageEvent](t, events)
	require.Equal(t, "T0OTHER0001", m.UserTeam)
}

func TestSocket_ReconnectsOnEachReason(t *testing.T) {
	s := start(t, slackbox.Options{})
	events := listen(t, s, "smith", true)
	for _, reason := range []string{"warning", "refresh_requested", "link_disabled"} {
		n, err := s.Disconnect("smith", reason)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		waitFor(t, events, socketmode.EventTypeHello)
		require.NoError(t, s.Wait(within(t), func() bool { return len(s.State().Apps[0].Sockets) == 1 }))
	}
	n, err := s.Cut("smith")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	waitFor(t, events, socketmode.EventTypeHello)
	require.Equal(t, 3, s.FaultCounts()["disconnect"])
}

func TestSocket_EndsByItselfWhenItsTimeIsUp(t *testing.T) {
	clock := frozen()
	s := start(t, slackbox.Options{Clock: clock})
	conn, _ := dial(t, s, "smith")
	clock.Advance(18050 * time.Second)
	require.Equal(t, "warning", frame(t, conn)["reason"])
	clock.Advance(10 * time.Second)
	require.Equal(t, "refresh_requested", frame(t, conn)["reason"])
	clock.Advance(10 * time.Second)
	_, _, err := conn.Read(within(t))
	require.Error(t, err)
}

func TestRaw_MalformedAndUnknownFramesReachTheClient(t *testing.T) {
	s := start(t, slackbox.Options{})
	var quiet bytes.Buffer
	api := client(s, "xoxb-local-smith", slack.OptionAppLevelToken("xapp-local-smith"))
	sm := socketmode.New(api, socketmode.OptionLog(log.New(&quiet, "", 0)))
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { defer close(done); _ = sm.RunContext(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	waitFor(t, sm.Events, socketmode.EventTypeHello)
	require.NoError(t, s.SendRaw("smith", []byte(`{"type":"events_api","envelope_id":"e1","payload":{"type":"event_callback","event":{"type":"brand_new"}}}`)))
	bad := waitFor(t, sm.Events, socketmode.EventTypeErrorBadMessage)
	require.Contains(t, string(bad.Data.(*socketmode.ErrorBadMessage).Message), "e1")
	require.NoError(t, s.SendRaw("smith", []byte("not json")))
	waitFor(t, sm.Events, socketmode.EventTypeIncomingError)
	require.NoError(t, s.SendEvent("smith", json.RawMessage(`{"type":"message","channel":"C0GENERAL01","ts":"1.000001","text":7}`)))
	waitFor(t, sm.Events, socketmode.EventTypeErrorBadMessage)
	require.Error(t, s.SendRaw("trinity", nil))
}

func TestHomeAndCommand_ReachTheApp(t *testing.T) {
	s := start(t, slackbox.Options{Clock: frozen()})
	events := listen(t, s, "smith", true)
	require.NoError(t, s.OpenHome("smith", "ana"))
	home, _ := inner[*slackevents.AppHomeOpenedEvent](t, events)
	require.Equal(t, anaID, home.User)
	v := slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewDividerBlock()}}}
	_, err := bot(s, "smith").PublishView(anaID, v, "")
	require.NoError(t, err)
	require.NoError(t, s.Person("ana").Command("general", "/agents", "x"))
	e := waitFor(t, events, socketmode.EventTypeSlashCommand)
	require.Equal(t, []string{"/agents", "x", "ana"}, []string{e.Data.(slack.SlashCommand).Command, e.Data.(slack.SlashCommand).Text, e.Data.(slack.SlashCommand).UserName})
	require.EqualError(t, s.Person("ana").Command("general", "/nobody", ""), "slackbox: chat.command as ana: unknown_command")
}

func TestCommand_ThatNobodyAcksFailsAloud(t *testing.T) {
	clock := frozen()
	s := start(t, slackbox.Options{Clock: clock})
	_, _ = dial(t, s, "smith")
	require.NoError(t, s.Person("ana").Command("general", "/agents", "x"))
	clock.Advance(3 * time.Second)
	require.Equal(t, "slackbot", s.Log(0).Ephemerals[0].From)
	require.Contains(t, s.Log(0).Ephemerals[0].Text, "operation_timeout")
}
