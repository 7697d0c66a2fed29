package activities_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"agentsmith/activities"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

func (b *base) stop(line rules.Line) (activities.StopOperatorResult, error) {
	return perform(b.op, b.op.StopOperator, activities.StopOperatorInput{Seat: "smith", Thread: line.Thread(), EventTS: "9.000001"})
}

// O11: the session ends, the thread is free, the task is told.
func TestStopOperator_EndsItAndFreesTheThread(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "fix it")
	bound := b.mustBind(rules.DispSpawned, "", line)
	got, err := b.stop(line)
	require.NoError(t, err)
	require.Equal(t, bound.Operator.Session, got.Operator.Session)
	require.Equal(t, bound.Operator.Number, got.Operator.Number)
	require.Equal(t, bound.Operator.Branch, got.Operator.Branch)
	require.Empty(t, b.launcher.live())
	require.Equal(t, []string{bound.Operator.Session}, b.launcher.killed)
	_, claimed := b.claim(line.Thread())
	require.False(t, claimed)
	open, err := b.store.Sessions(t.Context())
	require.NoError(t, err)
	require.Empty(t, open)
	require.Equal(t, []string{"fix-login 9.000001"}, b.door.stopped)
	// Another may be started at once.
	next := b.mustBind(rules.DispSpawned, "", line)
	require.Equal(t, 2, next.Operator.Number)
}

func TestStopOperator_FindsNone(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "stop operator")
	b.launcher.run(activities.Launch{Seat: "smith", Thread: rules.Thread{Team: line.Team, Channel: line.Channel, Root: "1.000001"}, Slug: "theirs", Repo: "shop"})
	got, err := b.stop(line)
	require.NoError(t, err)
	require.Nil(t, got.Operator)
	require.Empty(t, b.launcher.killed, "another thread's goes on (X5)")
	require.Empty(t, b.door.stopped)
}

func TestStopOperator_FreesTheThreadOfADeadSession(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "fix it")
	bound := b.mustBind(rules.DispSpawned, "", line)
	b.launcher.die(bound.Operator.Session)
	got, err := b.stop(line)
	require.NoError(t, err)
	require.Equal(t, bound.Operator.Session, got.Operator.Session)
	_, claimed := b.claim(line.Thread())
	require.False(t, claimed)
}

// The store may know nothing of what runs: a bind died, or an older session's claim stands.
func TestStopOperator_FreesTheThreadWhateverTheStoreKnows(t *testing.T) {
	claims := map[string]func(*base, rules.Line){
		"no claim": func(*base, rules.Line) {},
		"a claimant that died": func(b *base, l rules.Line) {
			b.others(l)
		},
		"an older session's": func(b *base, l rules.Line) {
			b.others(l)
			_, err := b.store.BindClaim(b.t.Context(), "smith", l.Thread(), "another", store.Bound{Session: "old", Number: 1})
			require.NoError(b.t, err)
		},
	}
	for name, make := range claims {
		t.Run(name, func(t *testing.T) {
			b := newBase(newRoom(t))
			line := b.says("", "fix it")
			make(b, line)
			op := b.launcher.run(activities.Launch{Seat: "smith", Thread: line.Thread(), Slug: "fix-login", Repo: "shop"})
			got, err := b.stop(line)
			require.NoError(t, err)
			require.Equal(t, op.Session, got.Operator.Session)
			require.Empty(t, b.launcher.live())
			_, claimed := b.claim(line.Thread())
			require.False(t, claimed, "the thread is free at once")
		})
	}
}

// A stop that did not come through may be repeated until it has.
func TestStopOperator_MayBeRepeated(t *testing.T) {
	for _, point := range []string{"before Kill", "after Kill", "before EndSession", "after EndSession", "before EndClaim"} {
		t.Run(point, func(t *testing.T) {
			b := newBase(newRoom(t))
			line := b.says("", "fix it")
			b.mustBind(rules.DispSpawned, "", line)
			b.points.arm(point, 0)
			_, err := b.stop(line)
			require.ErrorContains(t, err, "crashed")
			got, err := b.stop(line)
			require.NoError(t, err)
			require.NotNil(t, got.Operator, "what was ended is said")
			require.Empty(t, b.launcher.live())
			_, claimed := b.claim(line.Thread())
			require.False(t, claimed)
		})
	}
}

func TestStopOperator_IsNoSuccessWhereItIsNone(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "fix it")
	b.mustBind(rules.DispSpawned, "", line)
	b.launcher.checkErr = errors.New("no tmux")
	_, err := b.stop(line)
	require.ErrorContains(t, err, "no tmux")
	b.launcher.checkErr = nil
	b.ledger.breaks("EndClaim", errStore)
	_, err = b.stop(line)
	require.ErrorContains(t, err, errStore.Error())
	b.ledger.breaks("EndClaim", nil)
	// The task finds out by itself.
	b.door.err = errors.New("no Temporal")
	got, err := b.stop(line)
	require.NoError(t, err)
	require.NotNil(t, got.Operator)
}

// O11: who sees that a stopped operator's session is gone does not take it for dead, at
// whatever moment it looks.
func TestStopOperator_IsNotToldOfAsDead(t *testing.T) {
	d := newDesk(t)
	d.points.arm("before ReleaseClaim", 0) // killed, the thread not yet free
	_, err := d.stop(d.first)
	require.ErrorContains(t, err, "crashed")
	require.Empty(t, d.launcher.live())
	d.notice(d.op1, activities.NoticeDead, "dead-1")
	d.speakAll(d.op1)
	d.requireStanding(d.first.Root)
}

// An operator that could not be ended goes on as one of the sessions.
func TestStopOperator_WhatCannotBeEndedStaysASession(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "fix it")
	bound := b.mustBind(rules.DispSpawned, "", line)
	b.launcher.killErr = errors.New("tmux hangs")
	_, err := b.stop(line)
	require.ErrorContains(t, err, "tmux hangs")
	b.requireOne(bound, line)
	b.launcher.killErr = nil
	_, err = b.stop(line)
	require.NoError(t, err)
	require.Empty(t, b.launcher.live())
}

// A repeat says what the attempt before it has ended, though the task freed the thread
// meanwhile; and a stop that found nothing to end says that.
func TestStopOperator_ARepeatTellsOfWhatWasEnded(t *testing.T) {
	d := newDesk(t)
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(discard()))
	var beaten *rules.Operator
	stop := func() (activities.StopOperatorResult, error) {
		env := suite.NewTestActivityEnvironment()
		env.RegisterActivity(d.op)
		if beaten != nil {
			env.SetHeartbeatDetails(*beaten)
		}
		env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
			beaten = &rules.Operator{}
			require.NoError(t, details.Get(beaten))
		})
		var out activities.StopOperatorResult
		v, err := env.ExecuteActivity(d.op.StopOperator, activities.StopOperatorInput{Seat: "smith", Thread: d.first.Thread(), EventTS: "9.000001"})
		if err == nil {
			err = v.Get(&out)
		}
		return out, err
	}
	d.ledger.breaks("EndClaim", errStore)
	_, err := stop()
	require.ErrorContains(t, err, errStore.Error())
	require.NotNil(t, beaten)
	d.ledger.breaks("EndClaim", nil)
	require.NoError(t, d.finish(d.op1, rules.OverStopped, rules.PhaseFacts{}))
	got, err := stop()
	require.NoError(t, err)
	require.NotNil(t, got.Operator)
	require.Equal(t, d.op1.Number, got.Operator.Number)
	require.False(t, got.Elsewhere)

	beaten = nil
	got, err = stop()
	require.NoError(t, err)
	require.Nil(t, got.Operator)
}
