package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/config"
	"agentsmith/internal/slackapi"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// A1: a person's mention of the dispatcher asks this seat, and rides to its brain with the
// roster; nobody else's does, and in a DM it is an ordinary line.
func TestInbox_AnAskIsOwedAndCarriesTheRoster(t *testing.T) {
	w := newWorld(t)
	w.arrives(
		say("C1", ana, ts1, "", "<@UFORCE> is it safe?"),
		say("C1", "UTRIN", ts2, "", "<@UFORCE> thanks"),
		say("C1", self, ts3, "", "<@UFORCE> thanks"),
	)
	w.settled()
	require.Equal(t, []string{"line " + ts1}, w.brains.says())
	ask := w.brains.all()[0].trigger.Ask
	require.NotNil(t, ask)
	require.Equal(t, "UFORCE", ask.Dispatcher)
	require.Len(t, ask.Seats, 2)
	require.Contains(t, string(w.row("C1", ts1).Route), `"ask"`, "the route is recorded with it: nothing is decided twice")
	require.Equal(t, rules.Noted, w.row("C1", ts2).State)
}

func TestInbox_AnUnknownDispatcherMeansNothing(t *testing.T) {
	w := newWorld(t)
	w.force = newForceID(config.Dispatcher{}, nil)
	w.arrives(say("C1", ana, ts1, "", "<@UFORCE> is it safe?"))
	w.settled()
	require.Empty(t, w.brains.all())
	require.Equal(t, rules.Noted, w.row("C1", ts1).State)
}

// A5, D2: what another seat says of an ask wakes a running brain to look, its claims and its
// ordinary lines do not; nothing of it starts a turn.
func TestInbox_OnlyTheEndOfAnotherSeatsWorkIsAHint(t *testing.T) {
	marked := func(ts, user, state string) string {
		raw, err := json.Marshal(map[string]any{
			"type": "message", "channel": "C1", "channel_type": "channel", "user": user, "bot_id": "BTRIN", "ts": ts, "thread_ts": ts1, "text": "so it is",
			"metadata": map[string]any{"event_type": rules.EventForce, "event_payload": map[string]string{"ask_ts": ts1, "state": state}},
		})
		require.NoError(t, err)
		return string(raw)
	}
	w := newWorld(t)
	w.arrives(marked(ts2, "UTRIN", "working"), marked(ts3, "UTRIN", "final"), say("C1", "UTRIN", ts4, ts1, "<@USMITH> thanks"))
	w.settled()
	require.Equal(t, []string{"pick " + ts3}, w.brains.says())
}

// A8: a thread that this seat drives is its own without a mention, whoever else is in it.
func TestInbox_TheDriverAnswersWithoutAMention(t *testing.T) {
	w := newWorld(t)
	root := rules.Thread{Team: team, Channel: "C1", Root: ts1}
	w.arrives(say("C1", ben, ts1, "", "hello"), say("C1", ana, ts2, ts1, "and?"))
	w.settled()
	require.Empty(t, w.brains.all())
	require.NoError(t, w.store.Drive(t.Context(), seatName, root, ts1))
	w.arrives(say("C1", ana, ts3, ts1, "and now?"))
	w.settled()
	require.Equal(t, []string{"line " + ts3}, w.brains.says())
}

// D2: a thread has a budget of hand-offs that no restart gives back.
func TestRoute_AThreadsHandOffsHaveAnEnd(t *testing.T) {
	w := newWorld(t)
	w.threadHandOffs = 2
	for i := range 4 {
		ts := fmt.Sprintf("170000001%d.000100", i)
		line := say("C1", "UTRIN", ts, ts1, "<@USMITH> yours")
		w.slack.replies["C1"+ts1] = append(w.slack.replies["C1"+ts1], rules.Line{
			LineKey: rules.LineKey{Team: team, Channel: "C1", TS: ts}, Root: ts1, User: "UTRIN",
			Raw: json.RawMessage(`{"metadata":{"event_type":"smith_handoff","event_payload":{"to":"smith","sibling_hop":0}}}`),
		})
		w.entrance = w.open() // a restart
		w.threadHandOffs = 2
		w.arrives(line)
		w.dispatches(func() bool { return w.row("C1", ts).Dispatched }, "it is dispatched")
	}
	var kinds []workflows.Kind
	for _, s := range w.brains.all() {
		kinds = append(kinds, s.trigger.Kind)
	}
	require.Equal(t, []workflows.Kind{workflows.KindLine, workflows.KindLine, workflows.KindDecline, workflows.KindDecline}, kinds)
	require.Equal(t, rules.ReasonThreadCap, w.brains.all()[2].trigger.Reason)
}

func TestFindDispatcher(t *testing.T) {
	w := newWorld(t)
	w.force = newForceID(config.Dispatcher{Name: "Agent Force"}, nil)
	for name, c := range map[string]struct {
		bot   string
		err   error
		again bool
	}{
		"it is not there":      {err: slackapi.ErrNoBot, again: true},
		"without users:read":   {err: &slackapi.Rejected{Method: "users.list", Code: "missing_scope"}, again: true},
		"Slack does not say":   {err: errors.New("down"), again: true},
		"it is this very seat": {bot: self, again: true},
	} {
		w.slack.bot, w.slack.botErr = c.bot, c.err
		require.Equal(t, c.again, w.findDispatcher(t.Context()) > 0, name)
		require.Empty(t, w.force.dispatcher(), name)
	}
	w.slack.bot, w.slack.botErr = "UFORCE", nil
	require.Zero(t, w.findDispatcher(t.Context()))
	require.Equal(t, "UFORCE", w.who().Dispatcher)
}

// A3: the dispatcher picks for a person's mention, once by its workflow's name, and an
// envelope whose pick could not begin is not acked.
func TestPicker_TakesPersonsMentionsOnly(t *testing.T) {
	var began []string
	var fails error
	base := seat{name: rules.DispatcherName, roster: rules.Roster{
		Team: team, Self: rules.SeatIdentity{Name: rules.DispatcherName, BotUser: "UFORCE"}, Dispatcher: "UFORCE",
		Seats: []rules.SeatIdentity{{Name: "smith", BotUser: self}},
	}, log: slog.New(slog.DiscardHandler)}
	base.force = newForceID(config.Dispatcher{}, []rules.PickSeat{{Name: "smith", BotUser: self}})
	p := &picker{seat: &base, start: func(_ context.Context, in workflows.ForcePickInput) error {
		began = append(began, in.Line.TS)
		return fails
	}}
	for _, e := range []string{
		say("C1", ana, ts1, "", "<@UFORCE> is it safe?"),
		say("C1", self, ts2, "", "<@UFORCE> thanks"),
		say("C1", "UFORCE", ts3, "", "<@UFORCE> thanks"),
		say("C1", ana, ts4, "", "no mention"),
		`{"type":"reaction_added","user":"UANA","reaction":"x","item":{"type":"message","channel":"C1","ts":"` + ts1 + `"},"event_ts":"` + ts4 + `"}`,
	} {
		require.NoError(t, p.receive(t.Context(), readEnvelope(team, envelopeOf(e))))
	}
	require.Equal(t, []string{ts1}, began)
	fails = errors.New("down")
	require.Error(t, p.receive(t.Context(), readEnvelope(team, envelopeOf(say("C1", ana, ts1, "", "<@UFORCE> is it safe?")))))
}

// A8: /agents is answered with one line.
func TestCommandText_PointsAtTheDispatcher(t *testing.T) {
	require.Equal(t, "/agents is retired. Mention <@UFORCE> in a channel instead: it asks every agent there.", rules.CommandText("/agents", "UFORCE"))
	require.Contains(t, rules.CommandText("/agents", ""), "@Agent Force")
	require.Contains(t, rules.CommandText("/other", "UFORCE"), "not a command")
}
