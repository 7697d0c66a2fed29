package activities_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// others has another claimant claim the thread of a line.
func (b *base) others(line rules.Line) store.Claim { return b.othersOn(line, "main") }

func (b *base) othersOn(line rules.Line, box string) store.Claim {
	b.t.Helper()
	c, won, err := b.store.Claim(b.t.Context(), store.Wish{
		Seat: "smith", Thread: line.Thread(), Slug: "their-name", Repo: "shop", Box: box, Claimant: "another",
	})
	require.NoError(b.t, err)
	require.True(b.t, won)
	return c
}

// O6: who loses the claim is bound to the winner's operator.
func TestBind_TheLoserOfAClaimIsBoundToTheWinner(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "fix it")
	c := b.others(line)
	looks := 0
	wait := b.op.Wait
	b.op.Wait = func(ctx context.Context, d time.Duration) error {
		if looks++; looks == 3 {
			op := b.launcher.run(activities.Launch{Seat: "smith", Thread: line.Thread(), Slug: c.Slug, Repo: c.Repo})
			_, err := b.store.BindClaim(ctx, "smith", line.Thread(), "another", store.Bound{Session: op.Session, Number: 1})
			require.NoError(t, err)
		}
		return wait(ctx, d)
	}
	got := b.mustBind(rules.DispBound, "", line)
	require.Equal(t, "their-name", got.Operator.Slug)
	require.Empty(t, b.launcher.started())
	require.Equal(t, 3, looks)
	b.requireOne(got, line)
}

func TestBind_WaitsForAWinnerOnlySoLong(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "fix it")
	b.othersOn(line, "elsewhere")
	b.mustBind(rules.DispUnbound, rules.GapBusy, line)
	require.Empty(t, b.launcher.started())
	c, ok := b.claim(line.Thread())
	require.True(t, ok)
	require.Equal(t, "another", c.Claimant, "a claimant that may live keeps its claim")
}

// O7, O8: on one box the launcher's lock decides, so a claimant that says nothing for a
// while is taken over at once: the next line of a thread is its recovery.
func TestBind_TakesASilentClaimantOfItsOwnBoxOver(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "fix it")
	b.others(line)
	b.mustBind(rules.DispSpawned, "", line)
	require.Len(t, b.launcher.started(), 1)
}

func TestBind_SaysSoWhereTheWinnerFailed(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "fix it")
	b.others(line)
	b.op.Wait = func(ctx context.Context, _ time.Duration) error {
		_, err := b.store.ReleaseClaim(ctx, "smith", line.Thread(), "another")
		return err
	}
	b.mustBind(rules.DispUnbound, rules.GapLauncher, line)
	require.Empty(t, b.launcher.started())
}

// O6, O7: a claimant that died is taken over after its lease, and after the search.
func TestBind_TakesADeadClaimantOverAfterTheLeaseAndTheSearch(t *testing.T) {
	about := []string{"Check", "Claim", "TakeOverClaim", "Start"}
	t.Run("none runs", func(t *testing.T) {
		b := newBase(newRoom(t))
		line := b.says("", "fix it")
		b.others(line)
		b.ahead.Store(int64(7 * time.Minute))
		got := b.mustBind(rules.DispSpawned, "", line)
		require.Equal(t, "Check Claim Check TakeOverClaim Start Claim", only(b.ledger.trace.list(), about...))
		require.Equal(t, "their-name", got.Operator.Slug, "the claim keeps its name")
		b.requireOne(got, line)
	})
	t.Run("its session was made meanwhile", func(t *testing.T) {
		b := newBase(newRoom(t))
		line := b.says("", "fix it")
		c := b.others(line)
		b.ahead.Store(int64(7 * time.Minute))
		b.classifier.meanwhile = func() {
			b.launcher.run(activities.Launch{Seat: "smith", Thread: line.Thread(), Slug: c.Slug, Repo: c.Repo})
		}
		got := b.mustBind(rules.DispBound, "", line)
		require.Empty(t, b.launcher.started(), "what runs is adopted")
		b.requireOne(got, line)
	})
	t.Run("the search fails", func(t *testing.T) {
		b := newBase(newRoom(t))
		line := b.says("", "fix it")
		b.others(line)
		b.ahead.Store(int64(7 * time.Minute))
		b.classifier.meanwhile = func() { b.launcher.checkErr = errors.New("no tmux") }
		b.mustBind(rules.DispUnbound, rules.GapLauncher, line)
		require.NotContains(t, b.ledger.trace.list(), "TakeOverClaim")
	})
}

// O9: an operator that died is started again under its own name.
func TestBind_StartsADeadOperatorAgain(t *testing.T) {
	b := newBase(newRoom(t))
	first := b.says("", "fix it")
	was := b.mustBind(rules.DispSpawned, "", first)
	b.launcher.die(was.Operator.Session)
	b.classifier.says.Slug = "another-name"
	got := b.mustBind(rules.DispSpawned, "", b.says(first.Root, "go on"))
	require.Equal(t, was.Operator.Slug, got.Operator.Slug)
	require.NotEqual(t, was.Operator.Session, got.Operator.Session)
	require.Equal(t, 2, got.Operator.Number, "numbers are never given twice")
	c, _ := b.claim(first.Thread())
	require.Equal(t, got.Operator.Session, c.Session)
}

// O6, O8: a spawn that failed releases its claim, and what runs in spite of it is adopted.
func TestBind_AfterAStartThatFailed(t *testing.T) {
	t.Run("the claim is free, and the next line tries again", func(t *testing.T) {
		b := newBase(newRoom(t))
		b.launcher.start = func(activities.Launch) (activities.Launched, error) {
			return activities.Launched{}, errors.New("killed")
		}
		line := b.says("", "fix it")
		b.mustBind(rules.DispUnbound, rules.GapLauncher, line)
		_, claimed := b.claim(line.Thread())
		require.False(t, claimed)
		b.launcher.start = nil
		b.requireOne(b.mustBind(rules.DispSpawned, "", line), line)
	})
	t.Run("its session runs", func(t *testing.T) {
		b := newBase(newRoom(t))
		b.launcher.start = func(ask activities.Launch) (activities.Launched, error) {
			b.launcher.run(ask)
			return activities.Launched{}, errors.New("killed")
		}
		line := b.says("", "fix it")
		b.requireOne(b.mustBind(rules.DispSpawned, "", line), line)
	})
	t.Run("it found this thread's session", func(t *testing.T) {
		b := newBase(newRoom(t))
		b.launcher.start = func(ask activities.Launch) (activities.Launched, error) {
			return activities.Launched{Outcome: activities.LaunchExists, ThisThread: true, Operator: b.launcher.run(ask)}, nil
		}
		line := b.says("", "fix it")
		b.requireOne(b.mustBind(rules.DispBound, "", line), line)
	})
	t.Run("a claim that cannot be released is a lease", func(t *testing.T) {
		b := newBase(newRoom(t))
		b.launcher.start = func(activities.Launch) (activities.Launched, error) {
			return activities.Launched{}, errors.New("killed")
		}
		b.ledger.breaks("ReleaseClaim", errStore)
		line := b.says("", "fix it")
		b.mustBind(rules.DispUnbound, rules.GapLauncher, line)
		b.launcher.start = nil
		b.ahead.Store(int64(7 * time.Minute))
		b.requireOne(b.mustBind(rules.DispSpawned, "", line), line)
	})
}

// O7, O9: a start that fails in the place of a dead operator leaves its name and worktree,
// and the lines that wait there, for the next turn.
func TestBind_AFailedRestartKeepsTheTask(t *testing.T) {
	for name, start := range map[string]func(activities.Launch) (activities.Launched, error){
		"failed": func(activities.Launch) (activities.Launched, error) {
			return activities.Launched{}, errors.New("killed")
		},
		"full": func(activities.Launch) (activities.Launched, error) {
			return activities.Launched{Outcome: activities.LaunchFull}, nil
		},
		"says nonsense": func(activities.Launch) (activities.Launched, error) {
			return activities.Launched{Outcome: "perhaps"}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBase(newRoom(t))
			first := b.says("", "fix it")
			was := b.mustBind(rules.DispSpawned, "", first).Operator
			b.launcher.die(was.Session)
			b.launcher.start = start
			got, err := b.bind(b.says(first.Root, "go on"))
			require.NoError(t, err)
			require.Equal(t, rules.DispUnbound, got.Disposition)
			b.launcher.start = nil
			b.classifier.says.Slug = "another-name"
			again := b.mustBind(rules.DispSpawned, "", b.says(first.Root, "once more"))
			require.Equal(t, was.Slug, again.Operator.Slug)
			require.Equal(t, was.Worktree, again.Operator.Worktree)
			b.requireOneOf(again, first, 2)
		})
	}
}

// O7: what this box cannot see, it does not take for gone.
func TestBind_LeavesTheClaimOfAnotherBoxAlone(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "fix it")
	b.othersOn(line, "elsewhere")
	_, err := b.store.BindClaim(t.Context(), "smith", line.Thread(), "another", store.Bound{Session: "theirs", Number: 1})
	require.NoError(t, err)
	b.mustBind(rules.DispUnbound, rules.GapElsewhere, line)
	require.Empty(t, b.launcher.started())
	c, _ := b.claim(line.Thread())
	require.Equal(t, "theirs", c.Session)
	// The way out that the thread is told of.
	got, err := b.stop(line)
	require.NoError(t, err)
	require.True(t, got.Elsewhere)
	require.Equal(t, "elsewhere", got.Operator.Box)
	require.Equal(t, []string{"their-name 9.000001"}, b.door.stopped, "its task ends it there")
	b.mustBind(rules.DispSpawned, "", line)
}

// Whatever the store refuses, it is said, and the next turn brings everything in line
// without a second start.
func TestBind_SurvivesAStoreThatFailsAtEachStep(t *testing.T) {
	for _, call := range []string{"Claim", "RegisterSession", "BindClaim"} {
		t.Run(call, func(t *testing.T) {
			b := newBase(newRoom(t))
			line := b.says("", "fix it")
			b.ledger.breaks(call, errStore)
			b.mustBind(rules.DispUnbound, rules.GapStore, line)
			b.ledger.breaks(call, nil)
			want := rules.DispBound
			if call == "Claim" {
				want = rules.DispSpawned
			}
			got := b.mustBind(want, "", line)
			require.Len(t, b.launcher.started(), 1)
			b.requireOne(got, line)
		})
	}
	for _, call := range []string{"NewestStop", "OpenLines"} {
		t.Run(call, func(t *testing.T) {
			b := newBase(newRoom(t))
			b.ledger.breaks(call, errStore)
			_, err := b.bind(b.says("", "fix it"))
			require.ErrorContains(t, err, errStore.Error())
			require.Empty(t, b.launcher.started())
		})
	}
	t.Run("AskedForWork", func(t *testing.T) {
		b := newBase(newRoom(t))
		b.ledger.breaks("AskedForWork", errStore)
		line := b.says("", "fix it")
		b.requireOne(b.mustBind(rules.DispSpawned, "", line), line)
	})
	t.Run("TakeOverClaim", func(t *testing.T) {
		b := newBase(newRoom(t))
		line := b.says("", "fix it")
		b.others(line)
		b.ahead.Store(int64(7 * time.Minute))
		b.ledger.breaks("TakeOverClaim", errStore)
		b.mustBind(rules.DispUnbound, rules.GapStore, line)
		require.Empty(t, b.launcher.started())
	})
}

// A worker that dies at any step leaves a thread that the next turn binds: one session,
// one number, one claim, and a task that knows (O6-O8).
func TestBind_ComesToOneOperatorWhereverAWorkerDies(t *testing.T) {
	for _, step := range []string{"AskedForWork", "Claim", "Start", "RegisterSession", "BindClaim", "Adopt"} {
		for _, side := range []string{"before ", "after "} {
			t.Run(side+step, func(t *testing.T) {
				b := newBase(newRoom(t))
				line := b.says("", "fix it")
				b.points.arm(side+step, 0)
				_, err := b.bind(line)
				require.ErrorContains(t, err, "crashed "+side+step)
				require.True(t, b.points.fired())
				b.ahead.Store(int64(7 * time.Minute)) // its lease is over
				got, err := b.bind(line)
				require.NoError(t, err)
				b.requireOne(got, line)
				// And once more: nothing changes.
				again := b.mustBind(rules.DispBound, "", line)
				require.Equal(t, got.Operator, again.Operator)
				b.requireOne(again, line)
			})
		}
	}
}

func TestBind_OfTwentyAtOnceStartsOne(t *testing.T) {
	b := newBase(newRoom(t))
	b.op.Wait = activities.Wait
	b.op.Now = time.Now
	line := b.says("", "fix it")
	gate := make(chan struct{})
	got := make([]activities.Binding, 20)
	errs := make([]error, len(got))
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			<-gate
			got[i], errs[i] = b.bind(line)
		})
	}
	close(gate)
	all.Wait()
	require.Len(t, b.launcher.started(), 1)
	spawned := 0
	for i := range got {
		require.NoError(t, errs[i])
		require.NotNil(t, got[i].Operator, "%+v", got[i])
		require.Equal(t, b.launcher.live()[0].Session, got[i].Operator.Session)
		require.Equal(t, 1, got[i].Operator.Number)
		if got[i].Disposition == rules.DispSpawned {
			spawned++
		} else {
			require.Equal(t, rules.DispBound, got[i].Disposition)
		}
	}
	require.Equal(t, 1, spawned)
	b.requireOne(got[0], line)
}
