package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/outbox"
	"agentsmith/internal/terminal"
	"agentsmith/rules"

	"agentsmith/activities"
)

// O11, R10: people's lines are typed once each, in their order.
func TestObserveTask_TypesLinesInTheirOrder(t *testing.T) {
	d := newDesk(t)
	d.queue(d.op1, "one", "two", "three")
	got := d.mustLook(d.op1)
	require.Equal(t, []string{"one", "two", "three"}, d.term.typed[d.op1.Session])
	require.False(t, got.Outstanding)
	require.True(t, got.Alive)
	d.mustLook(d.op1)
	require.Len(t, d.term.typed[d.op1.Session], 3)
}

func TestObserveTask_LeavesTheRestOfManyToTheNextLook(t *testing.T) {
	d := newDesk(t)
	var texts []string
	for _, c := range "abcdefghijkl" {
		texts = append(texts, string(c))
	}
	d.queue(d.op1, texts...)
	require.True(t, d.mustLook(d.op1).Outstanding, "more wait: look again soon")
	require.False(t, d.mustLook(d.op1).Outstanding)
	require.Equal(t, texts, d.term.typed[d.op1.Session])
}

func TestObserveTask_ALineThatIsHeldHoldsThoseBehindIt(t *testing.T) {
	for name, got := range map[string]typing{
		"held": {terminal.NotTyped, &terminal.HeldError{Reason: "a dialog is open"}}, "cut short": {terminal.Unsure, errAway},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.queue(d.op1, "one", "two", "three")
			d.term.says["two"] = got
			require.True(t, d.mustLook(d.op1).Outstanding)
			require.Equal(t, []string{"one"}, d.term.typed[d.op1.Session])
			delete(d.term.says, "two")
			require.False(t, d.mustLook(d.op1).Outstanding)
			require.Equal(t, []string{"one", "two", "three"}, d.term.typed[d.op1.Session])
			d.speakAll(d.op1)
			require.Empty(t, d.texts(), "nothing was unsure")
		})
	}
}

// R10: nobody knows whether it arrived: it is said once, and not typed again.
func TestObserveTask_SaysOnceThatALineIsUnsure(t *testing.T) {
	for _, point := range []string{"", "before AddDeposit", "after AddDeposit", "after MoveLine"} {
		t.Run("crash "+point, func(t *testing.T) {
			d := newDesk(t)
			d.queue(d.op1, "one", "two")
			d.term.says["one"] = typing{terminal.Unsure, nil}
			if point != "" {
				skip := 0
				if point == "after MoveLine" {
					skip = 1 // the first marks it as being typed
				}
				d.points.arm(point, skip)
				_, err := d.look(d.op1)
				require.ErrorContains(t, err, "crashed")
			}
			d.mustLook(d.op1)
			d.mustLook(d.op1)
			require.Equal(t, []string{"two"}, d.term.typed[d.op1.Session])
			d.speakAll(d.op1)
			d.requireStanding(d.first.Root, "I can't tell whether operator #1 op-fix-login got this line")
		})
	}
}

// A worker that dies while it types leaves one prompt of each line.
func TestObserveTask_TypesOnceWhereverAWorkerDies(t *testing.T) {
	for _, point := range []string{"before MoveLine", "after MoveLine", "before Type", "after Type"} {
		for skip := range 2 {
			d := newDesk(t)
			d.queue(d.op1, "one", "two")
			d.points.arm(point, skip)
			_, err := d.look(d.op1)
			require.ErrorContains(t, err, "crashed")
			d.mustLook(d.op1)
			require.Equal(t, []string{"one", "two"}, d.term.typed[d.op1.Session], "%s %d", point, skip)
			require.Empty(t, d.waiting(d.op1))
		}
	}
}

// O11, R9: what waited for a session that died is its successor's.
func TestObserveTask_GivesTheLinesOfADeadSessionToTheNextOne(t *testing.T) {
	for _, point := range []string{"", "before QueueLines", "after QueueLines", "before MoveLine", "after MoveLine", "before EndSession", "after EndSession"} {
		t.Run("crash "+point, func(t *testing.T) {
			d := newDesk(t)
			d.queue(d.op1, "one", "two", "three")
			d.term.says["one"] = typing{terminal.NotTyped, &terminal.HeldError{Reason: "a dialog is open"}}
			d.mustLook(d.op1) // it is held
			delete(d.term.says, "one")
			d.launcher.die(d.op1.Session)
			got := d.mustLook(d.op1)
			require.False(t, got.Alive)
			require.True(t, got.Facts.Dead)
			require.False(t, got.Outstanding, "nothing can be done until it runs again")
			d.notice(d.op1, activities.NoticeDead, "dead-1")
			d.speakAll(d.op1)
			d.requireStanding(d.first.Root, "3 lines have not reached it, and will be passed on then.")

			op2 := d.next()
			d.queue(op2, "four")
			if point != "" {
				d.points.arm(point, 0)
				_, err := d.look(op2)
				require.ErrorContains(t, err, "crashed")
			}
			d.mustLook(op2)
			d.mustLook(op2)
			require.ElementsMatch(t, []string{"one", "two", "three", "four"}, d.term.typed[op2.Session])
			require.Empty(t, d.term.typed[d.op1.Session])
			require.Empty(t, d.waiting(d.op1))
			open, err := d.store.Sessions(t.Context())
			require.NoError(t, err)
			require.Len(t, open, 1, "the dead one's entry is closed")
			require.Equal(t, op2.Session, open[0].ID)
			d.speakAll(op2)
			require.Len(t, d.texts(), 1, "nothing more has to be said")
		})
	}
}

// R10: what may have been typed before the session died is not typed into the next one.
func TestObserveTask_SaysSoOfALineThatWasBeingTypedWhenTheSessionDied(t *testing.T) {
	for _, seen := range []bool{true, false} {
		d := newDesk(t)
		d.queue(d.op1, "one", "two")
		d.points.arm("before Type", 0)
		_, err := d.look(d.op1)
		require.ErrorContains(t, err, "crashed")
		d.launcher.die(d.op1.Session)
		if seen { // else the next one is there before anybody looked
			d.mustLook(d.op1)
		}
		op2 := d.next()
		d.mustLook(op2)
		require.Equal(t, []string{"two"}, d.term.typed[op2.Session])
		d.speakAll(op2)
		d.requireStanding(d.first.Root, "got this line, so it is not sent again: `one`")
	}
}

// A session that is being bound right now is no session before.
func TestObserveTask_LeavesASessionAloneThatIsBeingBound(t *testing.T) {
	d := newDesk(t)
	d.launcher.die(d.op1.Session)
	newer := d.launcher.run(activities.Launch{Seat: "smith", Thread: d.first.Thread(), Slug: "fix-login", Repo: "shop"})
	d.points.arm("after RegisterSession", 0)
	_, err := d.bind(d.room.says(d.first.Root, "go on"))
	require.ErrorContains(t, err, "crashed")
	d.queue(newer, "for the newer")
	require.False(t, d.mustLook(d.op1).Gone, "the claim is still the dead one's")
	require.Equal(t, []string{"queued for the newer"}, d.waiting(newer))
	open, err := d.store.Sessions(t.Context())
	require.NoError(t, err)
	require.Len(t, open, 2)
	// And when it is bound, it goes on as if nothing had been.
	op2 := *d.mustBind(rules.DispBound, "", d.room.says(d.first.Root, "go on")).Operator
	require.True(t, d.mustLook(d.op1).Gone)
	d.mustLook(op2)
	require.Equal(t, []string{"for the newer"}, d.term.typed[op2.Session])
}

// R11: a word is kept before its file goes, once, and in its order.
func TestObserveTask_CollectsWordsOnceWhereverAWorkerDies(t *testing.T) {
	for _, point := range []string{"", "before AddDeposit", "after AddDeposit", "before Remove", "after Remove", "before OwnDeposit", "after OwnDeposit", "before Offer", "after Offer"} {
		t.Run("crash "+point, func(t *testing.T) {
			d := newDesk(t)
			d.say(d.op1, outbox.Say, "first word")
			d.say(d.op1, outbox.Notification, "Claude needs your permission")
			d.say(d.op1, outbox.Say, "second word")
			d.say(d.op1, outbox.Stop, "second word") // repeats it
			if point != "" {
				d.points.arm(point, 0)
				_, err := d.look(d.op1)
				require.ErrorContains(t, err, "crashed")
			}
			d.mustLook(d.op1)
			d.speakAll(d.op1)
			d.mustLook(d.op1)
			d.speakAll(d.op1)
			d.requireStanding(d.first.Root, "first word", "second word")
			left, err := d.words.Words(d.op1.Session)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestObserveTask_KeepsTheFileOfAWordThatTheStoreDoesNotTake(t *testing.T) {
	d := newDesk(t)
	d.say(d.op1, outbox.Say, "first word")
	d.ledger.breaks("AddDeposit", errStore)
	_, err := d.look(d.op1)
	require.ErrorContains(t, err, errStore.Error())
	left, err := d.words.Words(d.op1.Session)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// R11: the next word waits until the one before stands in the thread.
func TestObserveTask_OffersOneWordAtATime(t *testing.T) {
	d := newDesk(t)
	d.say(d.op1, outbox.Say, "first word")
	d.say(d.op1, outbox.Say, "second word")
	require.True(t, d.mustLook(d.op1).Outstanding)
	require.True(t, d.mustLook(d.op1).Outstanding)
	require.Equal(t, "first word|first word", d.brains.texts(), "until it stands it is offered again")
	d.speak()
	d.mustLook(d.op1)
	require.Equal(t, "second word", d.brains.texts())
	d.speak()
	require.False(t, d.mustLook(d.op1).Outstanding)
	d.requireStanding(d.first.Root, "first word", "second word")
}

// R11: what a session said before it died comes before what the next one says.
func TestObserveTask_PostsTheLastWordsOfADeadSession(t *testing.T) {
	d := newDesk(t)
	d.say(d.op1, outbox.Say, "half done")
	d.mustLook(d.op1)
	d.say(d.op1, outbox.Stop, "I am dying")
	d.launcher.die(d.op1.Session)
	op2 := d.next() // before anybody looked
	d.say(op2, outbox.Say, "I go on")
	d.mustLook(op2)
	d.speakAll(op2)
	d.requireStanding(d.first.Root, "half done", "I am dying", "I go on")
	d.mustLook(op2)
	open, err := d.store.Sessions(t.Context())
	require.NoError(t, err)
	require.Len(t, open, 1, "then its entry is closed")
}

func TestObserveTask_IsGoneWhereTheThreadIsAnothers(t *testing.T) {
	d := newDesk(t)
	d.queue(d.op1, "one")
	d.launcher.die(d.op1.Session)
	d.next()
	got := d.mustLook(d.op1)
	require.True(t, got.Gone)
	require.Empty(t, d.term.typed)
}

func TestObserveTask_SeesWhatTheTerminalShows(t *testing.T) {
	d := newDesk(t)
	d.term.blocked = true
	d.term.progress = terminal.Progress{Exists: true, Commits: 3}
	got := d.mustLook(d.op1)
	require.True(t, got.Blocked)
	require.Equal(t, rules.PhaseFacts{
		Bound: true, Slug: "fix-login", Repo: "shop", Number: 1, Alive: true, Blocked: true, Branch: "smith/fix-login", Commits: 3,
	}, got.Facts)
	// Not to see is no sign of death.
	d.launcher.die(d.op1.Session)
	d.term.blind = errAway
	_, err := d.look(d.op1)
	require.ErrorContains(t, err, errAway.Error())
}
