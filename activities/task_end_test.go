package activities_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/outbox"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// O10: each is said once, however often it is asked for.
func TestSayNotice_SaysEachOnce(t *testing.T) {
	for _, point := range []string{"before AddDeposit", "after AddDeposit", "before Offer", "after Offer"} {
		d := newDesk(t)
		d.points.arm(point, 0)
		require.ErrorContains(t, d.tryNotice(d.op1, activities.NoticeBlocked, "blocked-1"), "crashed")
		d.notice(d.op1, activities.NoticeBlocked, "blocked-1")
		d.speakAll(d.op1)
		d.notice(d.op1, activities.NoticeBlocked, "blocked-1")
		d.speakAll(d.op1)
		d.requireStanding(d.first.Root, "waits for a person")
		d.notice(d.op1, activities.NoticeBlocked, "blocked-2")
		d.notice(d.op1, activities.NoticeDead, "dead-1")
		d.speakAll(d.op1)
		d.requireStanding(d.first.Root, "waits for a person", "waits for a person", "has ended before its work was done")
		require.Equal(t, 1, d.brains.forgot, "its brain binds anew (O10)")
	}
}

func TestSayNotice_KnowsTwoNotices(t *testing.T) {
	d := newDesk(t)
	require.Error(t, d.tryNotice(d.op1, "tired", "tired-1"))
	d.speakAll(d.op1)
	require.Empty(t, d.texts())
}

// O10: the final line is the last one, and then the thread is free.
func TestFinishTask_SaysTheFinalLineLastAndFreesTheThread(t *testing.T) {
	merged := rules.PhaseFacts{Pull: 7, PullURL: "https://github.com/acme/shop/pull/7", State: "merged"}
	for _, point := range []string{"", "before Kill", "after Kill", "before EndSession", "after EndSession", "before Remove", "before AddDeposit", "after AddDeposit", "before MoveLine", "after MoveLine", "before EndClaim", "after EndClaim"} {
		t.Run("crash "+point, func(t *testing.T) {
			d := newDesk(t)
			d.queue(d.op1, "one", "two")
			d.say(d.op1, outbox.Say, "it is merged")
			if point != "" {
				d.points.arm(point, 0)
				require.ErrorContains(t, d.finish(d.op1, "merged", merged), "crashed")
			}
			require.NoError(t, d.finish(d.op1, "merged", merged))
			require.NoError(t, d.finish(d.op1, "merged", merged))
			d.speakAll(d.op1)
			d.requireStanding(d.first.Root, "it is merged", "2 lines have not reached operator #1 op-fix-login", "is done: #7 is merged")
			require.Empty(t, d.launcher.live())
			require.Empty(t, d.waiting(d.op1), "nothing waits for what is over")
			require.Empty(t, d.term.removed, "the config keeps worktrees")
			_, claimed := d.claim(d.first.Thread())
			require.False(t, claimed)
			open, err := d.store.Sessions(t.Context())
			require.NoError(t, err)
			require.Empty(t, open)
			require.NotZero(t, d.brains.forgot)
		})
	}
}

func TestFinishTask_RemovesTheWorktreeOfWhatIsMergedOnly(t *testing.T) {
	for why, gone := range map[string]bool{"merged": true, "closed": false, "gave_up": false, "stopped": false} {
		d := newDesk(t)
		d.task.Clean = true
		require.NoError(t, d.finish(d.op1, why, rules.PhaseFacts{Pull: 7}))
		require.Equal(t, gone, len(d.term.removed) == 1, why)
	}
}

func TestFinishTask_TellsOfALineThatWasBeingTyped(t *testing.T) {
	d := newDesk(t)
	d.queue(d.op1, "one")
	d.points.arm("after Type", 0)
	_, err := d.look(d.op1)
	require.ErrorContains(t, err, "crashed")
	require.NoError(t, d.finish(d.op1, "stopped", rules.PhaseFacts{}))
	d.speakAll(d.op1)
	d.requireStanding(d.first.Root, "I can't tell whether operator #1 op-fix-login got this line")
}

// Of a stop its own line tells; what was not typed by then is told here.
func TestFinishTask_AfterAStopHandsLinesBack(t *testing.T) {
	for _, why := range []string{"stopped", "gone"} {
		t.Run(why, func(t *testing.T) {
			d := newDesk(t)
			d.queue(d.op1, "one")
			_, err := d.base.stop(d.first)
			require.NoError(t, err)
			require.NoError(t, d.finish(d.op1, why, rules.PhaseFacts{}))
			require.NoError(t, d.finish(d.op1, why, rules.PhaseFacts{}))
			d.speakAll(d.op1)
			d.requireStanding(d.first.Root, "1 line has not reached operator #1 op-fix-login, and will not: it is over.")
		})
	}
}

// A task whose thread is another session's ends nothing of it, and leaves it the lines.
func TestFinishTask_LeavesAnothersThreadAlone(t *testing.T) {
	d := newDesk(t)
	d.queue(d.op1, "one")
	d.launcher.die(d.op1.Session)
	op2 := d.next()
	require.NoError(t, d.finish(d.op1, "gone", rules.PhaseFacts{}))
	require.Len(t, d.launcher.live(), 1)
	c, claimed := d.claim(d.first.Thread())
	require.True(t, claimed)
	require.Equal(t, op2.Session, c.Session)
	d.mustLook(op2)
	require.Equal(t, []string{"one"}, d.term.typed[op2.Session])
	d.speakAll(op2)
	require.Empty(t, d.texts())
}

func TestFinishTask_IsNotDoneWhereTheSessionDoesNotEnd(t *testing.T) {
	d := newDesk(t)
	d.task.Terminal = &stubborn{d.term}
	require.ErrorContains(t, d.finish(d.op1, "merged", rules.PhaseFacts{Pull: 7}), "end the session")
	_, claimed := d.claim(d.first.Thread())
	require.True(t, claimed, "the thread is not free while it runs")
}

// stubborn is a terminal whose sessions do not end.
type stubborn struct{ *screens }

func (*stubborn) Kill(context.Context, string) error { return errAway }

// The branch's pull request is read from GitHub, and tells when the task is over (O10, P2).
func TestObserveTask_ReadsThePullRequest(t *testing.T) {
	d := newDesk(t)
	gh := d.github()
	d.term.progress = terminal.Progress{Exists: true, Commits: 1, Remote: "acme/shop"}
	require.Zero(t, d.mustLook(d.op1).Facts.Pull, "there is none yet")
	n := gh.open(d.op1.Branch)
	got := d.mustLook(d.op1)
	require.Equal(t, n, got.Facts.Pull)
	require.Equal(t, "open", got.Facts.State)
	require.Empty(t, got.Over)
	linked, err := d.store.PullThreads(t.Context(), "acme/shop", n)
	require.NoError(t, err)
	require.Len(t, linked, 1)
	require.Equal(t, d.first.Thread(), linked[0].Thread)

	require.NoError(t, gh.Merge("acme/shop", n))
	got, err = perform(d.task, d.task.ObserveTask, activities.ObserveInput{Operator: d.op1, Seen: got.Facts})
	require.NoError(t, err)
	require.Equal(t, "open", got.Facts.State, "it was not asked for, and stands as it was")
	got, err = perform(d.task, d.task.ObserveTask, activities.ObserveInput{Operator: d.op1, Seen: got.Facts, Pull: true})
	require.NoError(t, err)
	require.Equal(t, "merged", got.Over)
}

func TestObserveTask_IsOverWhenThePullRequestIsClosed(t *testing.T) {
	d := newDesk(t)
	gh := d.github()
	d.term.progress = terminal.Progress{Exists: true, Remote: "acme/shop"}
	n := gh.open(d.op1.Branch)
	require.NoError(t, gh.ClosePull("acme/shop", n))
	got := d.mustLook(d.op1)
	require.Equal(t, "closed", got.Facts.State)
	require.Equal(t, "closed", got.Over)
}

// What GitHub does not say now stands as it was, and it is left alone for as long as it asks.
func TestObserveTask_LeavesGitHubAloneWhenItAsks(t *testing.T) {
	d := newDesk(t)
	gh := d.github()
	d.term.progress = terminal.Progress{Exists: true, Remote: "acme/shop"}
	gh.open(d.op1.Branch)
	seen := d.mustLook(d.op1).Facts
	until := gh.limit()
	got, err := perform(d.task, d.task.ObserveTask, activities.ObserveInput{Operator: d.op1, Seen: seen, Pull: true})
	require.NoError(t, err)
	require.WithinDuration(t, until, got.RetryAt, 2e9)
	require.Equal(t, seen, got.Facts)
	gh = d.github()
	gh.down()
	got, err = perform(d.task, d.task.ObserveTask, activities.ObserveInput{Operator: d.op1, Seen: seen, Pull: true})
	require.NoError(t, err)
	require.Zero(t, got.RetryAt)
	require.Equal(t, seen, got.Facts)
}
