package slackbox_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
)

func lastCall(s *slackbox.Server) slackbox.LoggedCall {
	calls := s.Log(0).Calls
	return calls[len(calls)-1]
}

func TestFault_RateLimitedErrorAndServerError(t *testing.T) {
	s := start(t, slackbox.Options{})
	api := bot(s, "smith")
	fault(t, s, slackbox.Fault{Kind: slackbox.RateLimited, Method: "chat.*", App: "smith", RetryAfter: 7, Count: 1})
	_, _, err := api.PostMessage(general, textOption("x"))
	var limited *slack.RateLimitedError
	require.ErrorAs(t, err, &limited)
	require.Equal(t, 7*time.Second, limited.RetryAfter)
	require.Equal(t, "rate_limited", lastCall(s).Fault)

	fault(t, s, slackbox.Fault{Kind: slackbox.ServerError, Method: "chat.postMessage", Status: 503, Count: 1})
	_, _, err = api.PostMessage(general, textOption("x"))
	var status slack.StatusCodeError
	require.ErrorAs(t, err, &status)
	require.Equal(t, 503, status.Code)

	fault(t, s, slackbox.Fault{Kind: slackbox.APIError, Error: "fatal_error", Count: 1})
	_, _, err = api.PostMessage(general, textOption("x"))
	require.EqualError(t, err, "fatal_error")

	fault(t, s, slackbox.Fault{Kind: slackbox.APIError, Count: 1})
	_, ts, err := api.PostMessage(general, textOption("x"))
	require.NoError(t, err, "slack-go takes an answer without an error for success")
	require.Empty(t, ts)

	require.Empty(t, s.Log(0).Messages)
	_, _, err = api.PostMessage(general, textOption("x"))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"rate_limited": 1, "server_error": 1, "api_error": 2}, s.FaultCounts())
}

func TestFault_TimeoutAndDropDoNothing(t *testing.T) {
	s := start(t, slackbox.Options{})
	api := client(s, "xoxb-local-smith", slack.OptionHTTPClient(&http.Client{Timeout: 100 * time.Millisecond}))
	fault(t, s, slackbox.Fault{Kind: slackbox.Timeout, Count: 1})
	_, _, err := api.PostMessage(general, textOption("x"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	fault(t, s, slackbox.Fault{Kind: slackbox.DropRequest, Count: 1})
	_, _, err = api.PostMessage(general, textOption("x"))
	require.Error(t, err)
	require.Empty(t, s.Log(0).Messages)
}

func TestFault_AResponseIsLostAfterTheMessageWasStored(t *testing.T) {
	s := start(t, slackbox.Options{})
	api := bot(s, "smith")
	fault(t, s, slackbox.Fault{Kind: slackbox.ResponseLost, Method: "chat.postMessage", Count: 1})
	_, _, err := api.PostMessage(general, textOption("x"))
	require.Error(t, err)
	fault(t, s, slackbox.Fault{Kind: slackbox.ResponseLost, Method: "chat.postMessage", Status: 502, Count: 1})
	_, _, err = api.PostMessage(general, textOption("y"))
	var status slack.StatusCodeError
	require.ErrorAs(t, err, &status)
	require.Len(t, s.Log(0).Messages, 2)
	h, err := api.GetConversationHistory(&slack.GetConversationHistoryParameters{ChannelID: general})
	require.NoError(t, err)
	require.Len(t, h.Messages, 2)
}

func TestFault_APostIsCommittedLateAfterAReadBack(t *testing.T) {
	clock := frozen()
	s := start(t, slackbox.Options{Clock: clock})
	api := bot(s, "smith")
	fault(t, s, slackbox.Fault{Kind: slackbox.CommitLate, DelayMS: 2000, Count: 1})
	_, _, err := api.PostMessage(general, textOption("x"))
	require.Error(t, err)
	read := func() int {
		h, err := api.GetConversationHistory(&slack.GetConversationHistoryParameters{ChannelID: general})
		require.NoError(t, err)
		return len(h.Messages)
	}
	require.Zero(t, read())
	clock.Advance(2 * time.Second)
	require.Equal(t, 1, read())
	require.Equal(t, 1, s.FaultCounts()["commit_late"])
}

func TestFault_ReadsLagBehind(t *testing.T) {
	clock := frozen()
	s := start(t, slackbox.Options{Clock: clock})
	api := bot(s, "smith")
	root, err := s.Person("ana").Say("general", "old")
	require.NoError(t, err)
	clock.Advance(time.Second)
	require.NoError(t, s.Person("ana").Edit("general", root, "new"))
	_, err = s.Person("ana").Reply("general", root, "reply")
	require.NoError(t, err)
	read := func() []slack.Message {
		msgs, _, _, err := api.GetConversationReplies(&slack.GetConversationRepliesParameters{ChannelID: general, Timestamp: root})
		require.NoError(t, err)
		return msgs
	}
	fault(t, s, slackbox.Fault{Kind: slackbox.LagReads, DelayMS: 500, Count: 1})
	late := read()
	require.Len(t, late, 1)
	require.Equal(t, "old", late[0].Text)
	require.Zero(t, late[0].ReplyCount)
	require.Len(t, read(), 2)
}

func TestFault_TheParentIsDeletedUnderAReply(t *testing.T) {
	s := start(t, slackbox.Options{})
	root, err := s.Person("ana").Say("general", "root")
	require.NoError(t, err)
	_, err = s.Person("ben").Reply("general", root, "reply")
	require.NoError(t, err)
	fault(t, s, slackbox.Fault{Kind: slackbox.ParentDeleted, Count: 1})
	_, _, resp, err := bot(s, "smith").PostMessageWithResponse(general, textOption("x"), slack.MsgOptionTS(root))
	require.NoError(t, err)
	require.Empty(t, resp.ThreadTimestamp)
}

func TestFault_ATokenIsRevokedForGood(t *testing.T) {
	s := start(t, slackbox.Options{})
	fault(t, s, slackbox.Fault{Kind: slackbox.TokenRevoked, App: "smith", Count: 1})
	for range 2 {
		_, _, err := bot(s, "smith").PostMessage(general, textOption("x"))
		require.EqualError(t, err, "token_revoked")
	}
	_, _, err := bot(s, "trinity").PostMessage(general, textOption("x"))
	require.NoError(t, err)
}

func TestFault_SkipCountProbabilityAndSeed(t *testing.T) {
	fired := func(seed uint64) (out []bool) {
		s := start(t, slackbox.Options{})
		fault(t, s, slackbox.Fault{Kind: slackbox.APIError, Error: "x", Method: "auth.test", Skip: 2, Count: 3, Probability: 0.5, Seed: seed})
		for range 20 {
			_, err := bot(s, "smith").AuthTest()
			out = append(out, err != nil)
		}
		require.Equal(t, 3, s.Faults()[0].Fired)
		return out
	}
	a := fired(1)
	require.Equal(t, []bool{false, false}, a[:2])
	require.Equal(t, a, fired(1))
	require.NotEqual(t, a, fired(2))
	s := start(t, slackbox.Options{})
	for _, f := range []slackbox.Fault{{Kind: "no"}, {Kind: slackbox.Slow, Probability: 2}, {Kind: slackbox.Slow, Method: "["}, {Kind: slackbox.ServerError, Status: 7}} {
		_, err := s.AddFault(f)
		require.Error(t, err, f)
	}
}

func TestFault_SocketKinds(t *testing.T) {
	for kind, check := range map[slackbox.FaultKind]func(t *testing.T, s *slackbox.Server, clock *slackbox.MovableClock, events <-chan socketmode.Event){
		slackbox.Duplicate: func(t *testing.T, _ *slackbox.Server, _ *slackbox.MovableClock, events <-chan socketmode.Event) {
			_, a := inner[*slackevents.MessageEvent](t, events)
			_, b := inner[*slackevents.MessageEvent](t, events)
			require.Equal(t, a.EnvelopeID, b.EnvelopeID)
		},
		slackbox.DropAck: func(t *testing.T, s *slackbox.Server, clock *slackbox.MovableClock, events <-chan socketmode.Event) {
			inner[*slackevents.MessageEvent](t, events)
			require.NoError(t, s.Wait(within(t), func() bool { return deliveries(s, "smith")["ack_dropped message"] == 1 }))
			clock.Advance(3 * time.Second)
			_, again := inner[*slackevents.MessageEvent](t, events)
			require.Equal(t, 1, again.RetryAttempt)
		},
		slackbox.DropFrame: func(t *testing.T, _ *slackbox.Server, clock *slackbox.MovableClock, events <-chan socketmode.Event) {
			clock.Advance(3 * time.Second)
			_, late := inner[*slackevents.MessageEvent](t, events)
			require.Equal(t, 1, late.RetryAttempt)
		},
		slackbox.Disconnect: func(t *testing.T, s *slackbox.Server, clock *slackbox.MovableClock, events <-chan socketmode.Event) {
			waitFor(t, events, socketmode.EventTypeHello)
			clock.Advance(3 * time.Second) // the client may have lost the frame on its way out
			require.NoError(t, s.Wait(within(t), func() bool { return deliveries(s, "smith")["acked message"] == 1 }))
		},
		slackbox.CutSocket: func(t *testing.T, s *slackbox.Server, clock *slackbox.MovableClock, events <-chan socketmode.Event) {
			waitFor(t, events, socketmode.EventTypeHello)
			clock.Advance(3 * time.Second) // the client may have lost the frame on its way out
			require.NoError(t, s.Wait(within(t), func() bool { return deliveries(s, "smith")["acked message"] == 1 }))
		},
		slackbox.Stall: func(t *testing.T, s *slackbox.Server, clock *slackbox.MovableClock, events <-chan socketmode.Event) {
			require.Equal(t, 1, s.State().Apps[0].Waiting)
			clock.Advance(time.Second)
			inner[*slackevents.MessageEvent](t, events)
		},
		slackbox.Unreadable: func(t *testing.T, _ *slackbox.Server, _ *slackbox.MovableClock, events <-chan socketmode.Event) {
			waitFor(t, events, socketmode.EventTypeErrorBadMessage)
			inner[*slackevents.MessageEvent](t, events)
		},
		slackbox.Reorder: func(t *testing.T, s *slackbox.Server, _ *slackbox.MovableClock, events <-chan socketmode.Event) {
			_, err := s.Person("ana").Say("general", "second")
			require.NoError(t, err)
			m, _ := inner[*slackevents.MessageEvent](t, events)
			require.Equal(t, "second", m.Text)
			m, _ = inner[*slackevents.MessageEvent](t, events)
			require.Equal(t, "first", m.Text)
		},
		slackbox.Forget: func(t *testing.T, s *slackbox.Server, _ *slackbox.MovableClock, _ <-chan socketmode.Event) {
			require.Equal(t, 1, deliveries(s, "smith")["forgotten message"])
			require.Zero(t, deliveries(s, "smith")["sent message"])
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			clock := frozen()
			s := start(t, slackbox.Options{Clock: clock})
			events := listen(t, s, "smith", true)
			fault(t, s, slackbox.Fault{Kind: kind, App: "smith", Event: "message", DelayMS: 1000, Count: 1})
			_, err := s.Person("ana").Say("general", "first")
			require.NoError(t, err)
			check(t, s, clock, events)
			require.Equal(t, 1, s.FaultCounts()[string(kind)])
		})
	}
}

func TestStopPings_TheSocketStaysAndNothingMovesUntilANewOneTakesOver(t *testing.T) {
	clock := frozen()
	s := start(t, slackbox.Options{Clock: clock})
	old, _ := dial(t, s, "smith")
	n, err := s.StopPings("smith")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = s.Person("ana").Say("general", "unheard")
	require.NoError(t, err)
	require.True(t, s.State().Apps[0].Sockets[0].Silent)
	clock.Advance(3 * time.Second)
	require.Equal(t, 2, deliveries(s, "smith")["sent message"], "Slack takes the socket for alive")
	fresh, hello := dial(t, s, "smith")
	require.InDelta(t, 2, hello["num_connections"], 0)
	_ = old.CloseNow() // as a client does that misses its pings
	require.NoError(t, s.Wait(within(t), func() bool { return len(s.State().Apps[0].Sockets) == 1 }))
	clock.Advance(3*time.Second + time.Minute)
	require.InDelta(t, 2, frame(t, fresh)["retry_attempt"], 0)
}

func TestRateLimits_AreOffUntilTheyAreTurnedOn(t *testing.T) {
	clock := frozen()
	s := start(t, slackbox.Options{Clock: clock})
	api := bot(s, "smith")
	post := func(n int) (err error) {
		for range n {
			_, _, e := api.PostMessage(general, textOption("x"))
			err = errors.Join(err, e)
		}
		return err
	}
	require.NoError(t, post(20))
	s.SetSettings(slackbox.Settings{RateLimits: true})
	require.NoError(t, post(5))
	var limited *slack.RateLimitedError
	require.ErrorAs(t, post(1), &limited)
	require.Equal(t, time.Second, limited.RetryAfter)
	clock.Advance(time.Second)
	require.NoError(t, post(1))
	require.Error(t, post(1))
	_, _, err := api.PostMessage("C0RANDOM001", textOption("x"))
	require.NoError(t, err, "each channel has its own rate")
}

func TestFault_SlowIsDoneLate(t *testing.T) {
	s := start(t, slackbox.Options{})
	fault(t, s, slackbox.Fault{Kind: slackbox.Slow, DelayMS: 50, Count: 1})
	began := time.Now()
	_, _, err := bot(s, "smith").PostMessage(general, textOption("x"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), 50*time.Millisecond)
}

func TestFault_StopPingsOnAnEnvelopeSwallowsIt(t *testing.T) {
	clock := frozen()
	s := start(t, slackbox.Options{Clock: clock})
	dial(t, s, "smith")
	fault(t, s, slackbox.Fault{Kind: slackbox.StopPings, App: "smith", Count: 1})
	_, err := s.Person("ana").Say("general", "x")
	require.NoError(t, err)
	require.True(t, s.State().Apps[0].Sockets[0].Silent)
}

func TestQueue_ForgetsAfterTheTimeOfTheLadder(t *testing.T) {
	clock := frozen()
	s := start(t, slackbox.Options{Clock: clock})
	_, err := s.Person("ana").Say("general", "too old")
	require.NoError(t, err)
	clock.Advance(7 * time.Minute)
	_, err = s.Person("ana").Say("general", "fresh")
	require.NoError(t, err)
	events := listen(t, s, "smith", true)
	m, _ := inner[*slackevents.MessageEvent](t, events)
	require.Equal(t, "fresh", m.Text)
}
