package activities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/agent"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// after is a ts younger than every line so far.
func (r *room) after() string {
	return rules.TimeTS(r.box.Now().Add(time.Millisecond))
}

func (w *workshop) kill(in activities.KillAgentInput) activities.KillAgentResult {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	got, err := w.agent.KillAgent(ctx, in)
	require.NoError(w.t, err)
	return got
}

// A stop ends a turn whatever it is doing at that moment (D4).
func TestStop_EndsATurnAtEveryMoment(t *testing.T) {
	t.Run("before it starts", func(t *testing.T) {
		w := newWorkshop(t, fails(errors.New("no agent may run")))
		line := w.says("", "hello")
		require.Zero(t, w.kill(activities.KillAgentInput{Seat: "smith", Thread: line.Thread(), StopTS: w.after()}).Stopped)
		got, err := w.run(input(turn(line)))
		require.NoError(t, err)
		require.True(t, got.Nothing)
		w.requireOutcome(line, rules.Declined, rules.ReasonStopped)
	})
	t.Run("while it waits for a place", func(t *testing.T) {
		w := newWorkshop(t, fails(errors.New("no agent may run")))
		w.agent.Places = activities.NewPlaces(0)
		line := w.says("", "hello")
		done := w.runBeside(input(turn(line)))
		w.waitForStatus(rules.WaitingStatus(1))
		got := w.kill(activities.KillAgentInput{Seat: "smith", Thread: line.Thread(), StopTS: w.after()})
		require.Equal(t, 1, got.Stopped)
		requireType(t, (<-done).err, activities.ErrTypeStopped, "")
	})
	t.Run("while the agent runs", func(t *testing.T) {
		began := make(chan agent.Spec, 1)
		w := newWorkshop(t, works(began))
		line := w.says("", "hello")
		done := w.runBeside(input(turn(line)))
		<-began
		got := w.kill(activities.KillAgentInput{Seat: "smith", Thread: line.Thread(), StopTS: w.after()})
		require.Equal(t, 1, got.Stopped)
		select {
		case e := <-done:
			requireType(t, e.err, activities.ErrTypeStopped, "")
		case <-time.After(10 * time.Second):
			t.Fatal("the run goes on")
		}
	})
	t.Run("between the taking and the start of the agent", func(t *testing.T) {
		w := newWorkshop(t, nil)
		line := w.says("", "hello")
		prompted := false
		w.agent.Runner = runs(func(_ context.Context, s agent.Spec, started func(agent.Process) error) (agent.Result, error) {
			// The starter wrote the stop; no kill found the run yet.
			_, err := w.store.RecordStop(t.Context(), "smith", line.Thread(), w.after())
			require.NoError(t, err)
			if err := started(processOf(s)); err != nil {
				return agent.Result{}, err
			}
			prompted = true
			return agent.Result{Text: "Hello"}, nil
		})
		_, err := w.run(input(turn(line)))
		requireType(t, err, activities.ErrTypeStopped, "")
		require.False(t, prompted, "the agent did nothing")
	})
	t.Run("by another worker of the box", func(t *testing.T) {
		w := newWorkshop(t, nil)
		line := w.says("", "hello")
		w.agent.Runner = runs(func(_ context.Context, s agent.Spec, started func(agent.Process) error) (agent.Result, error) {
			require.NoError(t, started(processOf(s)))
			_, err := w.store.RecordStop(t.Context(), "smith", rules.Thread{Team: w.team, Channel: w.channel}, w.after())
			require.NoError(t, err)
			return agent.Result{}, &agent.ExitError{Code: -1, Signal: "killed"}
		})
		_, err := w.run(input(turn(line)))
		requireType(t, err, activities.ErrTypeStopped, "")
	})
}

// An answer that was complete when the stop came is no stopped one.
func TestStop_DoesNotUndoAnAnswer(t *testing.T) {
	w := newWorkshop(t, nil)
	line := w.says("", "hello")
	w.agent.Runner = runs(func(ctx context.Context, s agent.Spec, started func(agent.Process) error) (agent.Result, error) {
		got, err := says("Hello")(ctx, s, started)
		_, stopErr := w.store.RecordStop(t.Context(), "smith", line.Thread(), w.after())
		require.NoError(t, stopErr)
		return got, err
	})
	got, err := w.run(input(turn(line)))
	require.NoError(t, err)
	require.Equal(t, "Hello", got.Answer.Text)
}

// Only turns of older lines are ended: a stop that arrives late spares younger work.
func TestKillAgent_SparesYoungerLines(t *testing.T) {
	began := make(chan agent.Spec, 1)
	w := newWorkshop(t, works(began))
	stopTS := w.after()
	require.NoError(t, w.box.Advance(time.Second))
	line := w.says("", "hello")
	done := w.runBeside(input(turn(line)))
	<-began
	require.Zero(t, w.kill(activities.KillAgentInput{Seat: "smith", Thread: line.Thread(), StopTS: stopTS}).Stopped)
	require.Empty(t, w.kills.list())
	require.Equal(t, 1, w.kill(activities.KillAgentInput{Seat: "smith", Thread: line.Thread()}).Stopped, `"" ends them all`)
	requireType(t, (<-done).err, activities.ErrTypeStopped, "")
}

// A stop that was typed after one of a turn's lines is meant for the turn, whatever the
// order in which the lines came.
func TestKillAgent_EndsATurnByItsOldestLine(t *testing.T) {
	began := make(chan agent.Spec, 1)
	w := newWorkshop(t, works(began))
	old := w.says("", "one")
	stopTS := w.after()
	require.NoError(t, w.box.Advance(time.Second))
	young := w.says(old.Root, "two")
	done := w.runBeside(input(turn(young, old)))
	<-began
	require.Equal(t, 1, w.kill(activities.KillAgentInput{Seat: "smith", Thread: old.Thread(), StopTS: stopTS}).Stopped)
	requireType(t, (<-done).err, activities.ErrTypeStopped, "")
}

// In a thread the stop is the thread's; at a DM's top level it is the whole channel's.
func TestKillAgent_EndsTheThreadOrTheWholeChannel(t *testing.T) {
	for name, c := range map[string]struct {
		whole bool
		want  int
	}{"thread": {false, 1}, "whole channel": {true, 2}} {
		t.Run(name, func(t *testing.T) {
			began := make(chan agent.Spec, 2)
			w := newWorkshop(t, works(began))
			a, b := w.says("", "one"), w.says("", "two")
			doneA := w.runBeside(input(turn(a)))
			<-began
			doneB := w.runBeside(input(turn(b)))
			<-began
			in := activities.KillAgentInput{Seat: "smith", Thread: a.Thread(), WholeChannel: c.whole, StopTS: w.after()}
			require.Equal(t, c.want, w.kill(in).Stopped)
			requireType(t, (<-doneA).err, activities.ErrTypeStopped, "")
			if !c.whole {
				w.kill(activities.KillAgentInput{Seat: "smith", Thread: b.Thread()})
			}
			requireType(t, (<-doneB).err, activities.ErrTypeStopped, "")

			// A line of the scope that is older than the stop, and comes later, is stopped too.
			newest, err := w.store.NewestStop(t.Context(), "smith", b.Thread())
			require.NoError(t, err)
			require.Equal(t, c.whole, newest == in.StopTS)
		})
	}
}

// An agent in the hands of another worker is ended by its identity, and only if the
// stop is meant for it (D4, X5).
func TestKillAgent_EndsTheProcessOfAnotherWorker(t *testing.T) {
	w := newWorkshop(t, nil)
	a, other := w.says("", "one"), w.says("", "another thread")
	for _, l := range []rules.Line{a, other} {
		w.take(turn(l))
		require.NoError(t, w.store.SetProcess(t.Context(), turn(l).ID, store.Process{RunID: "run " + l.TS, PID: 77, BootID: "b"}))
	}
	stopTS := w.after()
	require.NoError(t, w.box.Advance(time.Second))
	young := w.says(a.Root, "younger than the stop")
	w.take(turn(young))
	require.NoError(t, w.store.SetProcess(t.Context(), turn(young).ID, store.Process{RunID: "young", PID: 78, BootID: "b"}))

	in := activities.KillAgentInput{Seat: "smith", Thread: a.Thread(), StopTS: stopTS}
	require.Equal(t, 1, w.kill(in).Stopped)
	require.Equal(t, []string{"run " + a.TS}, w.kills.list())

	w.kills.err = errors.New("still alive")
	got, err := w.agent.KillAgent(t.Context(), in)
	require.ErrorContains(t, err, "still alive")
	require.Zero(t, got.Stopped, "what was not confirmed is not counted")
}

// A store that is down does not keep a person's stop from the agent.
func TestKillAgent_EndsTheRunAlsoWhenTheStopCannotBeRecorded(t *testing.T) {
	began := make(chan agent.Spec, 1)
	w := newWorkshop(t, works(began))
	line := w.says("", "hello")
	done := w.runBeside(input(turn(line)))
	<-began
	w.agent.Ledger = &noStops{w.store}
	require.Equal(t, 1, w.kill(activities.KillAgentInput{Seat: "smith", Thread: line.Thread(), StopTS: w.after()}).Stopped)
	requireType(t, (<-done).err, activities.ErrTypeStopped, "")
}

type noStops struct{ *store.Store }

func (*noStops) RecordStop(context.Context, string, rules.Thread, string) (bool, error) {
	return false, errors.New("the store is down")
}
