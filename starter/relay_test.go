package main

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
	"agentsmith/workflows"
)

const theSession = "11111111-1111-4111-8111-111111111111"

// relays is a world whose owner is ana, with one session.
func relays(t *testing.T) *world {
	w := newWorld(t)
	w.owners = []string{ana}
	n, err := w.store.RegisterSession(t.Context(), store.Session{ID: theSession, Name: "op-fix", Kind: "operator", Box: "main", Seat: seatName, Slug: "fix", Repo: "web"})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	return w
}

// decided waits until lines are dispatched.
func (w *world) decided(keys ...string) {
	w.t.Helper()
	w.dispatches(func() bool {
		for _, ts := range keys {
			if w.row("D1", ts).NeedsDispatch() {
				return false
			}
		}
		return true
	}, "")
}

func (w *world) relay() store.Relay {
	r, err := w.store.OpenRelay(w.t.Context(), store.Conversation{Seat: seatName, Team: team, Channel: "D1"})
	require.NoError(w.t, err)
	return r
}

func (w *world) noRelay() {
	_, err := w.store.OpenRelay(w.t.Context(), store.Conversation{Seat: seatName, Team: team, Channel: "D1"})
	require.ErrorIs(w.t, err, store.ErrNotFound)
}

// triggerOf is what was sent about a line.
func (w *world) triggerOf(ts string) workflows.Trigger {
	for _, s := range w.brains.all() {
		if s.trigger.Line.TS == ts {
			return s.trigger
		}
	}
	require.Fail(w.t, "no brain heard of the line", ts)
	return workflows.Trigger{}
}

// waiting are the lines that wait for the session of the open relay.
func (w *world) waiting(r store.Relay) (out []string) {
	_, lines, err := w.store.RelayBatch(w.t.Context(), r)
	require.NoError(w.t, err)
	for _, l := range lines {
		out = append(out, l.Key.TS)
	}
	return out
}

// R1, R4, R5, R8: a door opens the relay; the next line is queued for the session, its own
// brain is started standing down, and the tick is woken, in this order. The rejected reading
// "don't dispatch a carried line" has no run that could carry a deposit.
func TestR5_ACarriedLineIsDispatchedStandingDown(t *testing.T) {
	w := relays(t)
	w.arrives(say("D1", ana, ts1, "", "work on 1"), say("D1", ana, ts2, "", "continue"))
	w.decided(ts1, ts2)
	r := w.relay()
	require.Equal(t, rules.Relay{ID: "D1/" + ts1, Person: ana, Session: theSession, Number: 1, OpenedTS: ts1}, r.Relay)
	require.Equal(t, []string{ts2}, w.waiting(r))
	door := w.triggerOf(ts1)
	require.Equal(t, workflows.KindRelayDoor, door.Kind)
	require.Equal(t, rules.RelayOpen, door.Door.Act.What)
	carried := w.triggerOf(ts2)
	require.Equal(t, workflows.KindLine, carried.Kind)
	require.True(t, carried.RelayStandsDown)
	require.True(t, w.row("D1", ts2).StandsDown())
	said := w.brains.says()
	require.Subset(t, said, []string{"tick " + ts1, "tick " + ts2}, "each has the box looked after")
	for i, s := range w.brains.all() {
		if s.trigger.Kind == "tick" {
			require.Equal(t, "main", s.trigger.Line.Text)
			require.Contains(t, said[:i], map[string]string{ts1: "relay_door " + ts1, ts2: "line " + ts2}[s.trigger.EventTS], "its own run first")
		}
	}
	_, err := w.store.TakeLines(t.Context(), store.Turn{ID: "t", Seat: seatName, Thread: w.row("D1", ts2).Thread()},
		[]store.TakeLine{{Line: rules.Line{LineKey: w.row("D1", ts2).LineKey, Root: ts2}, Author: rules.Person, HasRow: true}})
	require.NoError(t, err)
	require.Equal(t, rules.Owed, w.row("D1", ts2).State, "no turn can take it")
}

// R2, R6: the stop cuts the batch: what stands behind it is the brain's, also though nobody
// has looked since; it is no stop of turns.
func TestR6_AStopClosesTheRelayAndTheNextLineIsTheBrains(t *testing.T) {
	w := relays(t)
	w.arrives(say("D1", ana, ts1, "", "work on fix"))
	w.decided(ts1)
	r := w.relay()
	w.arrives(say("D1", ana, ts2, "", "continue"), say("D1", ana, ts4, "", "thanks"), say("D1", ana, ts3, "", "Stop."))
	w.decided(ts2, ts3, ts4)
	w.noRelay()
	require.True(t, w.triggerOf(ts2).RelayStandsDown)
	require.Equal(t, workflows.KindRelayDoor, w.triggerOf(ts3).Kind)
	require.Equal(t, rules.RelayClose, w.triggerOf(ts3).Door.Act.What)
	require.Equal(t, workflows.KindLine, w.triggerOf(ts4).Kind)
	require.False(t, w.triggerOf(ts4).RelayStandsDown)
	r, err := w.store.RelayByID(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, ts3, r.ClosedTS)
	require.Equal(t, []string{ts2}, w.waiting(r), "what was typed before the stop is still the session's")
}

// D4: a stop where no relay is open, or of somebody else, stops turns as ever.
func TestR6_AStopWithoutARelayIsAnOrdinaryOne(t *testing.T) {
	w := relays(t)
	w.arrives(say("D1", ana, ts1, "", "stop"))
	w.decided(ts1)
	require.Equal(t, workflows.KindStop, w.triggerOf(ts1).Kind)
	w.arrives(say("D1", ana, ts2, "", "work on 1"))
	w.decided(ts2)
	w.arrives(say("D1", ben, ts3, "", "stop"))
	w.decided(ts3)
	require.Equal(t, workflows.KindStop, w.triggerOf(ts3).Kind)
	require.Empty(t, w.relay().ClosedTS)
}

// R7: every uncertainty leaves the line to the brain.
func TestR7_EveryUncertaintyLeavesTheLineToTheBrain(t *testing.T) {
	brains := func(w *world, ts string) {
		t.Helper()
		w.decided(ts)
		got := w.triggerOf(ts)
		require.Equal(t, workflows.KindLine, got.Kind)
		require.False(t, got.RelayStandsDown)
		require.False(t, w.row("D1", ts).StandsDown())
	}
	open := func(t *testing.T) *world {
		w := relays(t)
		w.arrives(say("D1", ana, ts1, "", "work on 1"))
		w.decided(ts1)
		return w
	}
	t.Run("no relay", func(t *testing.T) {
		w := relays(t)
		w.arrives(say("D1", ana, ts2, "", "continue"))
		brains(w, ts2)
	})
	t.Run("another sender", func(t *testing.T) {
		w := open(t)
		w.arrives(say("D1", ben, ts2, "", "continue"))
		brains(w, ts2)
	})
	t.Run("an unreadable mode store", func(t *testing.T) {
		w := open(t)
		w.dispatcher.seat.ledger = unreadable{w.dispatcher.seat.ledger}
		w.arrives(say("D1", ana, ts2, "", "continue"))
		brains(w, ts2)
	})
	t.Run("an owner's door and an unreadable mode store", func(t *testing.T) {
		w := relays(t)
		w.dispatcher.seat.ledger = unreadable{w.dispatcher.seat.ledger}
		w.arrives(say("D1", ana, ts2, "", "work on 1"))
		brains(w, ts2) // and is not told that only owners may
	})
	t.Run("a seat that does not know itself", func(t *testing.T) {
		w := open(t)
		w.dispatcher.seat.roster.Self.BotUser = ""
		w.arrives(say("D1", ana, ts2, "", "continue"))
		brains(w, ts2)
	})
	t.Run("a mention", func(t *testing.T) {
		w := open(t)
		w.arrives(say("D1", ana, ts2, "", "<@"+self+"> what do you think?"))
		brains(w, ts2)
	})
	t.Run("a row that did not land", func(t *testing.T) {
		w := open(t)
		w.inbox.setDown(errors.New("the store is away"))
		w.arrives(say("D1", ana, ts2, "", "continue"))
		got := w.triggerOf(ts2)
		require.False(t, got.RelayStandsDown)
		require.NotEmpty(t, got.Raw, "the brain writes the row (L1)")
	})
}

// unreadable is a ledger whose modes cannot be read.
type unreadable struct{ ledger }

func (unreadable) DecideConversation(context.Context, store.Conversation, func(store.ConversationState) []store.ConversationDecision) error {
	return errors.New("the modes cannot be read")
}

// X1: only owners open a relay; who may talk gets one line, who may not gets the ordinary one.
func TestX1_OnlyOwnersOpenARelay(t *testing.T) {
	w := relays(t)
	w.arrives(say("D1", ben, ts1, "", "work on 1"), say("D1", ben, ts2, "", "sessions"))
	w.decided(ts1, ts2)
	w.noRelay()
	for _, ts := range []string{ts1, ts2} {
		got := w.triggerOf(ts)
		require.Equal(t, workflows.KindRelayDoor, got.Kind)
		require.Equal(t, rules.RefuseNotOwner, got.Door.Act.Why)
	}
}

// R1: a session that there never was is refused, and opens nothing.
func TestR1_AnUnknownSessionIsRefused(t *testing.T) {
	w := relays(t)
	w.arrives(say("D1", ana, ts1, "", "work on 7"), say("D1", ana, ts2, "", "hello"))
	w.decided(ts1, ts2)
	w.noRelay()
	require.Equal(t, rules.RefuseUnknownSession, w.triggerOf(ts1).Door.Act.Why)
	require.False(t, w.triggerOf(ts2).RelayStandsDown)
}

// R8: a line is marked as dispatched only when its brain and its tick are told; a crash in
// between tells both again.
func TestR8_ALostWakeIsRepeated(t *testing.T) {
	w := relays(t)
	w.arrives(say("D1", ana, ts1, "", "work on 1"))
	w.decided(ts1)
	lost := 0
	w.brains.failing(func(s sentSignal) error {
		if s.trigger.Kind == "tick" && lost == 0 {
			lost++
			return errDown
		}
		return nil
	})
	w.arrives(say("D1", ana, ts2, "", "continue"))
	w.decided(ts2)
	require.Equal(t, 1, lost)
	require.Contains(t, w.brains.says(), "tick "+ts2)
	require.Equal(t, []string{ts2}, w.waiting(w.relay()), "queued once")
}

// L3: a line that waits for its session for too long has the tick woken; no brain is asked.
func TestL3_ALineThatARelayHoldsIsAskedOfItsTick(t *testing.T) {
	w := relays(t)
	w.arrives(say("D1", ana, ts1, "", "work on 1"), say("D1", ana, ts2, "", "continue"))
	w.decided(ts1, ts2)
	before := len(w.brains.all())
	w.owedTooLong = 0
	w.sweepOnce(t.Context())
	var kinds []string
	for _, s := range w.brains.all()[before:] {
		if s.trigger.EventTS == ts2 || s.trigger.Line.TS == ts2 || len(s.trigger.Lines) > 0 && s.trigger.Lines[0] == ts2 {
			kinds = append(kinds, string(s.trigger.Kind))
		}
	}
	require.Equal(t, []string{"tick"}, kinds)
}

// D4: `:x:` on a line that waits for its session takes it back; it is not typed.
func TestD4_ACrossWithdrawsALineThatWaits(t *testing.T) {
	w := relays(t)
	w.arrives(say("D1", ana, ts1, "", "work on 1"), say("D1", ana, ts2, "", "continue"))
	w.decided(ts1, ts2)
	w.arrives(reaction(ana, "x", "D1", ts2, ts3))
	row := w.row("D1", ts2)
	require.Equal(t, rules.Declined, row.State)
	require.Equal(t, rules.ReasonStopped, row.Reason)
	require.Empty(t, w.waiting(w.relay()))
}

func TestRoute_OfARelayIsReadBack(t *testing.T) {
	for _, r := range []route{
		{Kind: workflows.KindLine, StandsDown: true, Relay: "D1/" + ts1, Box: "main", MaySpawn: true},
		{Kind: workflows.KindRelayDoor, Door: &workflows.DoorInput{Seat: seatName, Act: rules.RelayAct{What: rules.RelayList}}},
	} {
		raw, err := json.Marshal(r)
		require.NoError(t, err)
		got, ok := readRoute(raw)
		require.True(t, ok)
		require.Equal(t, r, got)
	}
	_, ok := readRoute([]byte(`{"kind":"relay_door"}`))
	require.False(t, ok)
}
