package main

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/rules"
)

// permutations calls f with every order of the events.
func permutations(events []string, f func([]string)) {
	var walk func(done, left []string)
	walk = func(done, left []string) {
		if len(left) == 0 {
			f(done)
			return
		}
		for i := range left {
			rest := append(append([]string{}, left[:i]...), left[i+1:]...)
			walk(append(append([]string{}, done...), left[i]), rest)
		}
	}
	walk(nil, events)
}

func TestOrder_TheCopiesOfAMentionAreOneTurnInAnyOrder(t *testing.T) {
	w := newWorld(t)
	n := 0
	permutations([]string{"message", "app_mention", "unfurl", "again"}, func(order []string) {
		ts := "17000002" + string(rune('0'+n/10)) + string(rune('0'+n%10)) + ".000000"
		n++
		events := map[string]string{
			"message":     say("C1", ana, ts, "", "<@USMITH> hi"),
			"app_mention": mention("C1", ana, ts, "", "<@USMITH> hi"),
			"unfurl":      unfurl("C1", ana, ts, "<@USMITH> hi", ts4),
			"again":       say("C1", ana, ts, "", "<@USMITH> hi"),
		}
		before := len(w.brains.all())
		for _, e := range order {
			w.arrives(events[e])
			w.settled()
		}
		w.dispatches(func() bool { return w.row("C1", ts).Dispatched }, strings.Join(order, ", "))
		require.Len(t, w.brains.all(), before+1, "%v", order)
	})
}

func TestOrder_TheNewestEditWinsInAnyOrder(t *testing.T) {
	w := newWorld(t)
	n := 0
	permutations([]string{"message", "older", "newer", "app_mention"}, func(order []string) {
		ts := "17000003" + string(rune('0'+n/10)) + string(rune('0'+n%10)) + ".000000"
		n++
		events := map[string]string{
			"message":     say("C1", ana, ts, "", "look"),
			"older":       edit("C1", ana, ts, "", "look here", "1700009001.000000"),
			"newer":       edit("C1", ana, ts, "", "look here <@USMITH>", "1700009002.000000"),
			"app_mention": strings.Replace(mention("C1", ana, ts, "", "look here <@USMITH>"), `"type"`, `"edited":{"ts":"1700009002.000000"},"type"`, 1),
		}
		before := len(w.brains.all())
		for _, e := range order {
			w.arrives(events[e])
		}
		require.Equal(t, rules.Owed, w.row("C1", ts).State, "%v", order)
		line, err := w.store.Line(t.Context(), rules.LineKey{Team: team, Channel: "C1", TS: ts})
		require.NoError(t, err)
		require.Equal(t, "look here <@USMITH>", line.Text, "%v", order)
		w.dispatches(func() bool { return w.row("C1", ts).Dispatched }, strings.Join(order, ", "))
		require.Len(t, w.brains.all(), before+1, "%v", order)
	})
}

// What was read before a thread was done with must not be signalled again.
func TestDispatch_AStaleLookBeginsNothing(t *testing.T) {
	w := newWorld(t)
	d := w.dispatcher
	thread := rules.Thread{Team: team, Channel: "C1", Root: ts1}
	first := d.look()
	require.True(t, d.begin(thread, first))
	second := d.look()
	require.False(t, d.begin(thread, second), "it is being signalled")
	d.end(thread, nil)
	require.Len(t, d.kick, 1, "there was more for it")
	require.False(t, d.begin(thread, second), "the second look was before its end")
	require.True(t, d.begin(thread, d.look()))
	d.end(thread, errDown)
	require.False(t, d.begin(thread, d.look()), "it rests")
}

func TestHouse_IsReadyWhenEveryDoorIsOpen(t *testing.T) {
	ready := 0
	h := &house{log: slog.New(slog.DiscardHandler), ready: func() { ready++ }}
	h.shut.Add(2)
	h.opened()
	require.Zero(t, ready)
	h.opened()
	require.Equal(t, 1, ready)
}
