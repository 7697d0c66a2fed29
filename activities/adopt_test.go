package activities_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// liveOf is a session as tmux tells of it, made so long ago.
func liveOf(op rules.Operator, ago time.Duration) terminal.Live {
	return terminal.Live{
		Name: rules.OperatorName(op.Slug), ID: op.Session, Kind: terminal.KindOperator, Seat: op.Seat, Slug: op.Slug, Repo: op.Repo,
		Worktree: op.Worktree, Branch: op.Branch, Thread: op.Thread, Created: time.Now().Add(-ago),
	}
}

// O8, R11: an operator whose bind died after its launcher had started it is taken up without
// anybody writing, whoever made the claim; the next human turn finds it bound.
func TestAdoptOrphans_TakesUpWhatNobodyKnows(t *testing.T) {
	for _, step := range []string{"after Start", "before RegisterSession", "after RegisterSession", "before BindClaim", "after BindClaim", "before Adopt"} {
		t.Run(step, func(t *testing.T) {
			b := newBase(newRoom(t))
			line := b.says("", "fix it")
			b.points.arm(step, 0)
			_, err := b.bind(line)
			require.ErrorContains(t, err, "crashed")
			live := []terminal.Live{liveOf(b.launcher.live()[0], time.Minute)}
			activities.AdoptOrphans(t.Context(), b.op, live, true)
			for range 2 {
				activities.AdoptOrphans(t.Context(), b.op, live, false)
			}
			require.Len(t, b.door.told(), 1, "its task knows, and is not told again")
			got := b.mustBind(rules.DispBound, "", line)
			b.requireOne(got, line)
			require.Len(t, b.launcher.started(), 1)
		})
	}
}

// A bind that is about to take its session up is not disturbed, nor is anybody else's session.
func TestAdoptOrphans_LeavesTheOthersAlone(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "fix it")
	op := b.launcher.run(activities.Launch{Seat: "smith", Thread: line.Thread(), Slug: "fix-login", Repo: "shop"})
	person, stranger, unnamed := liveOf(op, time.Hour), liveOf(op, time.Hour), liveOf(op, time.Hour)
	person.Kind, stranger.Seat, unnamed.Slug = terminal.KindPerson, "agent-x", "../x"
	activities.AdoptOrphans(t.Context(), b.op, []terminal.Live{person, stranger, unnamed, liveOf(op, 0)}, false)
	b.op.Off = true
	activities.AdoptOrphans(t.Context(), b.op, []terminal.Live{liveOf(op, time.Hour)}, true)
	require.Empty(t, b.door.told())
	sessions, err := b.store.Sessions(t.Context())
	require.NoError(t, err)
	require.Empty(t, sessions)
	b.op.Off = false
	b.ahead.Store(int64(activities.OrphanAge))
	activities.AdoptOrphans(t.Context(), b.op, []terminal.Live{liveOf(op, time.Second)}, false)
	require.Len(t, b.door.told(), 1, "no bind takes that long")
	b.requireOne(b.mustBind(rules.DispBound, "", line), line)
}

// What a person has ended is not taken up, however long it takes to be gone.
func TestAdoptOrphans_LeavesWhatWasEnded(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "fix it")
	op := *b.mustBind(rules.DispSpawned, "", line).Operator
	b.points.arm("before Kill", 0)
	_, err := b.stop(line)
	require.ErrorContains(t, err, "crashed")
	told := len(b.door.told())
	activities.AdoptOrphans(t.Context(), b.op, []terminal.Live{liveOf(op, time.Hour)}, true)
	require.Len(t, b.door.told(), told)
	sessions, err := b.store.Sessions(t.Context())
	require.NoError(t, err)
	require.Empty(t, sessions)
}
