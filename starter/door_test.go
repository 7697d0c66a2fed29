package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackapi"
	"agentsmith/internal/slackbox"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// street is a world whose Slack is real: the local one, through the unmodified client.
type street struct {
	*world
	box   *slackbox.Server
	app   slackbox.App
	ana   slackbox.Person
	dm    string
	close func()
}

func newStreet(t *testing.T) *street {
	t.Helper()
	box := slackbox.New(slackbox.Options{PingEvery: 100 * time.Millisecond})
	require.NoError(t, box.Start(t.Context(), ""))
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	s := &street{world: newWorld(t), box: box, ana: box.Person("ana")}
	for _, a := range box.State().Apps {
		if a.Name == "smith" {
			s.app = a.App
		}
	}
	dm, err := s.ana.DM("smith")
	require.NoError(t, err)
	s.dm = dm
	return s
}

// opens opens the door and waits for its socket.
func (s *street) opens() {
	s.t.Helper()
	client := slackapi.New(slackapi.Options{Token: s.app.BotToken, APIURL: s.box.URL()})
	id, err := client.AuthTest(s.t.Context())
	require.NoError(s.t, err)
	s.seat.slack, s.people.users, s.dispatcher.handOffs.slack = client, client, client
	s.roster.Team = id.Team
	s.roster.Self.BotUser, s.roster.Self.BotID = id.UserID, id.BotID
	s.door = newDoor(s.seat, s.inbox, doorOptions{appToken: s.app.AppToken, apiURL: s.box.URL(), timeout: 5 * time.Second, patience: 2 * time.Second, gap: s.backfill.opened})
	require.NoError(s.t, s.backfill.boot(s.t.Context()))
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan struct{}, 4)
	for _, work := range []func(context.Context){s.door.run, s.dispatcher.run, s.inbox.mend, s.backfill.run} {
		go func() { work(ctx); ended <- struct{}{} }()
	}
	closed := false
	s.close = func() {
		if !closed {
			closed = true
			cancel()
			for range 4 {
				<-ended
			}
		}
	}
	s.t.Cleanup(func() { s.close() })
	eventually(s.t, func() bool { return s.sockets() == 1 }, "the socket is open")
}

func (s *street) sockets() int {
	for _, a := range s.box.State().Apps {
		if a.Name == s.app.Name {
			return len(a.Sockets)
		}
	}
	return 0
}

// acked waits until nothing is on its way any more: all was acked.
func (s *street) acked() {
	s.t.Helper()
	eventually(s.t, func() bool { return s.box.Quiet("smith") }, "everything is acked")
}

func (s *street) told(kind workflows.Kind, ts string) {
	s.t.Helper()
	eventually(s.t, func() bool {
		for _, x := range s.brains.all() {
			if x.trigger.Kind == kind && (x.trigger.Line.TS == ts || x.trigger.EventTS == ts || ts == "") {
				return true
			}
		}
		return false
	}, string(kind)+" "+ts)
}

func TestDoor_TheStoryOfALine(t *testing.T) {
	s := newStreet(t)
	s.opens()
	ts, err := s.ana.Say("general", "@smith hello")
	require.NoError(t, err)
	s.told(workflows.KindLine, ts)
	s.acked()
	require.Len(t, s.brains.all(), 1, "one turn for its two copies")

	reply, err := s.ana.Reply("general", ts, "and more")
	require.NoError(t, err)
	s.told(workflows.KindLine, reply)
	stop, err := s.ana.Reply("general", ts, "stop")
	require.NoError(t, err)
	s.told(workflows.KindStop, stop)

	in, err := s.ana.Say(s.dm, "in the DM")
	require.NoError(t, err)
	s.told(workflows.KindLine, in)
	require.NoError(t, s.ana.React(s.dm, in, "x"))
	eventually(t, func() bool {
		for _, x := range s.brains.all() {
			if x.trigger.Kind == workflows.KindStop && x.thread.Root == in {
				return true
			}
		}
		return false
	}, "the reaction stops it")

	noted, err := s.ana.Say("general", "hello all")
	require.NoError(t, err)
	require.NoError(t, s.ana.Edit("general", noted, "hello all and @smith"))
	s.told(workflows.KindLine, noted)
	gone, err := s.ana.Say("random", "hello")
	require.NoError(t, err)
	require.NoError(t, s.ana.Delete("random", gone))
	s.acked()
	_, err = s.box.Person("olga").Say("general", "@smith let me in")
	require.NoError(t, err)
	s.told(workflows.KindDecline, "")
	for _, x := range s.brains.all() {
		if x.trigger.Kind == workflows.KindDecline {
			require.Equal(t, rules.ReasonOutsider, x.trigger.Reason)
		}
	}
	_, err = s.box.Person("gil").Say("general", "@smith let me in")
	require.NoError(t, err)
	eventually(t, func() bool {
		for _, x := range s.brains.all() {
			if x.trigger.Reason == rules.ReasonNotMember {
				return true
			}
		}
		return false
	}, "a guest")
}

func TestDoor_DuplicatesReorderingAndLostAcksAreOneSignal(t *testing.T) {
	s := newStreet(t)
	for _, k := range []slackbox.FaultKind{slackbox.Duplicate, slackbox.Reorder, slackbox.DropAck, slackbox.Unreadable} {
		_, err := s.box.AddFault(slackbox.Fault{Kind: k, App: "smith", Count: 3})
		require.NoError(t, err)
	}
	s.opens()
	var said []string
	for range 8 {
		ts, err := s.ana.Say("general", "@smith hello")
		require.NoError(t, err)
		said = append(said, ts)
	}
	for _, ts := range said {
		s.told(workflows.KindLine, ts)
	}
	eventually(t, func() bool { _ = s.box.Advance(time.Minute); return s.box.Quiet("smith") }, "everything is acked")
	require.Len(t, s.brains.all(), 8)
	require.NotEmpty(t, s.raws(), "what cannot be read is kept")
}

func TestDoor_AStrangeEventIsKeptAndAcked(t *testing.T) {
	s := newStreet(t)
	s.opens()
	require.NoError(t, s.box.SendEvent("smith", json.RawMessage(`{"type":"rocket_launched","event_ts":"1.000000"}`)))
	require.NoError(t, s.box.SendRaw("smith", []byte(`{"type":"telegram","envelope_id":"strange-1"}`)))
	require.NoError(t, s.box.SendRaw("smith", []byte(`this is no JSON`)))
	require.NoError(t, s.box.SendEvent("smith", json.RawMessage(`{"type":"message","channel":"`+s.dm+`","user":"UX","ts":"1700000001.000100","thread_ts":"soon"}`)))
	ts, err := s.ana.Say(s.dm, "still here?")
	require.NoError(t, err)
	s.told(workflows.KindLine, ts)
	s.acked()
	require.Len(t, s.raws(), 3)
}

func TestDoor_ALineWithABlockNobodyKnowsIsNotLost(t *testing.T) {
	s := newStreet(t)
	s.opens()
	require.NoError(t, s.box.SendEvent("smith", json.RawMessage(`{"type":"message","channel":"`+s.dm+`","channel_type":"im","user":"UNEW","ts":"1700000001.000100","text":"hi","blocks":[{"type":"rich_text","elements":[{"type":"hologram","elements":7}]}]}`)))
	eventually(t, func() bool { return len(s.brains.all()) == 1 }, "it reaches its brain")
	s.acked()
}

func TestDoor_ReadsWhatItMissedWhileTheSocketWasGone(t *testing.T) {
	s := newStreet(t)
	s.opens()
	first, err := s.ana.Say(s.dm, "before the gap")
	require.NoError(t, err)
	s.told(workflows.KindLine, first)
	_, err = s.box.AddFault(slackbox.Fault{Kind: slackbox.Forget, App: "smith", Count: 2})
	require.NoError(t, err)
	missed, err := s.ana.Say(s.dm, "never delivered")
	require.NoError(t, err)
	inThread, err := s.ana.Reply(s.dm, first, "nor this")
	require.NoError(t, err)
	n, err := s.box.Cut("smith")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	s.told(workflows.KindLine, missed)
	s.told(workflows.KindLine, inThread)
}

func TestDoor_AHalfOpenSocketIsOpenedAgainAndSaidLoudly(t *testing.T) {
	s := newStreet(t)
	s.opens()
	_, err := s.box.StopPings("smith")
	require.NoError(t, err)
	ts, err := s.ana.Say(s.dm, "into the void")
	require.NoError(t, err)
	s.told(workflows.KindLine, ts)
	require.True(t, s.loud.wasRaised("silent smith"))
	eventually(t, func() bool { return s.loud.standing("silent smith") == "" }, "it is open again")
}

func TestDoor_SecondProcessOnTheSameAppIsSaidLoudly(t *testing.T) {
	s := newStreet(t)
	other := newDoor(s.seat, s.inbox, doorOptions{appToken: s.app.AppToken, apiURL: s.box.URL(), timeout: 5 * time.Second, gap: func(time.Time) {}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = other.client.RunContext(ctx) }()
	eventually(t, func() bool { return s.sockets() == 1 }, "")
	client := slackapi.New(slackapi.Options{Token: s.app.BotToken, APIURL: s.box.URL()})
	_, err := client.AuthTest(t.Context())
	require.NoError(t, err)
	s.door = newDoor(s.seat, s.inbox, doorOptions{appToken: s.app.AppToken, apiURL: s.box.URL(), timeout: 5 * time.Second, gap: func(time.Time) {}})
	s.door.recount = 10 * time.Millisecond
	mine := make(chan struct{})
	go func() { defer close(mine); s.door.run(ctx) }()
	eventually(t, func() bool { return s.loud.standing("connections smith") != "" }, "two sockets")
	cancel()
	<-ended
	<-mine
}

func TestDoor_DeadCredentialsAreSaidLoudly(t *testing.T) {
	s := newStreet(t)
	s.opens()
	s.box.RevokeToken(s.app.AppToken)
	_, err := s.box.Cut("smith")
	require.NoError(t, err)
	eventually(t, func() bool { return strings.Contains(s.loud.standing("door smith"), "token_revoked") }, "")
}

func TestDoor_SocketModeSwitchedOffIsSaidLoudly(t *testing.T) {
	s := newStreet(t)
	s.opens()
	_, err := s.box.Disconnect("smith", "link_disabled")
	require.NoError(t, err)
	eventually(t, func() bool { return s.loud.wasRaised("door smith") }, "")
	_, err = s.box.Disconnect("smith", "refresh_requested")
	require.NoError(t, err)
}

func TestDoor_ACommandGetsAnAnswerInItsAck(t *testing.T) {
	s := newStreet(t)
	s.opens()
	require.NoError(t, s.ana.Command("general", "/agents", "hello"))
	eventually(t, func() bool { return len(s.box.Log(0).Ephemerals) == 1 }, "")
	require.Contains(t, s.box.Log(0).Ephemerals[0].Text, "/agents is retired. Mention <@UFORCE>")
}

func TestDoor_WhatIsNotDurableIsNotAcked(t *testing.T) {
	s := newStreet(t)
	s.opens()
	s.store.breakWith(errDown)
	s.brains.failing(func(sentSignal) error { return errDown })
	require.NoError(t, s.spool.close())
	ts, err := s.ana.Say(s.dm, "nobody can keep this")
	require.NoError(t, err)
	eventually(t, func() bool { return s.loud.standing("spool smith") != "" }, "")
	require.False(t, s.box.Quiet("smith"))
	s.store.breakWith(nil)
	s.brains.failing(nil)
	eventually(t, func() bool { _ = s.box.Advance(10 * time.Second); return s.box.Quiet("smith") }, "Slack sends it again")
	s.told(workflows.KindLine, ts)
	kept, err := openSpool(t.TempDir(), seatName)
	require.NoError(t, err)
	s.spool = kept
}

func TestDoor_StalledStoreDoesNotStallTheAcks(t *testing.T) {
	s := newStreet(t)
	s.opens()
	s.store.mu.Lock()
	s.store.hang = true
	s.store.mu.Unlock()
	for range 80 {
		_, err := s.ana.Say("random", "chatter")
		require.NoError(t, err)
	}
	// An ack that a slow disk made late is asked for again after a minute of Slack's.
	eventually(t, func() bool { _ = s.box.Advance(time.Second); return s.box.Quiet("smith") }, "everything is acked, by the spool")
	require.Equal(t, 1, s.sockets(), "the socket was never taken down")
	s.store.mu.Lock()
	s.store.hang = false
	s.store.mu.Unlock()
	eventually(t, func() bool { return s.spool.empty() && !s.inbox.isDown() }, "the spool is handed over")
}
