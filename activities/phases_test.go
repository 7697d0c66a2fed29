package activities_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/slackbox"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// wall is a room with the part that shows phases.
type wall struct {
	*room
	phases *activities.Phases
	line   rules.Line
}

func newWall(t *testing.T) *wall {
	t.Helper()
	r := newRoom(t)
	return &wall{
		room: r, line: r.says("", "please fix the login"),
		phases: &activities.Phases{Seats: r.seats, Ledger: &phaseLedger{r.store, r.points}, Poster: r.poster, Log: r.poster.Log},
	}
}

// phaseLedger is the real store between points.
type phaseLedger struct {
	*store.Store
	p *points
}

func (l *phaseLedger) SetPhaseMessage(ctx context.Context, seat string, t rules.Thread, ts, shown string) error {
	return around0(l.p, "SetPhaseMessage", func() error { return l.Store.SetPhaseMessage(ctx, seat, t, ts, shown) })
}

func (w *wall) try(in activities.PublishInput) (activities.Published, error) {
	in.Seat, in.Thread = "smith", w.line.Thread()
	return perform(w.phases, w.phases.PublishPhases, in)
}

func (w *wall) publish(f rules.PhaseFacts) activities.Published {
	w.t.Helper()
	got, err := w.try(activities.PublishInput{Facts: f})
	require.NoError(w.t, err)
	require.Len(w.t, got.States, 11, "the render is returned whatever is shown (P2)")
	return got
}

// table is the one message that shows the phases.
func (w *wall) table() slackbox.LoggedMessage {
	w.t.Helper()
	in, leaked := w.standing(w.line.Root)
	require.Empty(w.t, leaked)
	require.Len(w.t, in, 1, "one message a thread (P3)")
	return in[0]
}

func bound() rules.PhaseFacts {
	return rules.PhaseFacts{Bound: true, Slug: "fix-login", Repo: "shop", Number: 1, Alive: true}
}

// P2: the message is withheld while every row is a gap; what the rows say is returned.
func TestPublishPhases_ShowsNothingWhereAllAreGaps(t *testing.T) {
	w := newWall(t)
	for _, in := range []activities.PublishInput{{}, {Read: true}, {Facts: rules.PhaseFacts{Repo: "shop", Slug: "fix-login"}}} {
		got, err := w.try(in)
		require.NoError(t, err)
		require.Len(t, got.States, 11)
		for name, s := range got.States {
			require.True(t, s.Gap(), name)
		}
		require.Zero(t, got.Done)
		require.Empty(t, got.TS)
	}
	w.requireStanding(w.line.Root)
	require.Zero(t, w.calls("chat.postMessage"))
}

// P2: it is derived from the rows: that a line was found to ask for work, or not to, shows nothing.
func TestPublishPhases_ShowsNothingOfAVerdict(t *testing.T) {
	for _, verdict := range []rules.WorkDisposition{{Kind: rules.KindQuestion}, {Kind: rules.KindWork, Slug: "fix-login"}} {
		b := newBase(newRoom(t))
		b.classifier.says = verdict
		line := b.says("", "is the login broken?")
		got, err := b.bind(line)
		require.NoError(t, err)
		require.Nil(t, got.Operator)
		w := &wall{room: b.room, line: line, phases: &activities.Phases{Seats: b.seats, Ledger: b.store, Poster: b.poster, Log: b.poster.Log}}
		out, err := w.try(activities.PublishInput{Read: true})
		require.NoError(t, err)
		require.Len(t, out.States, 11)
		w.requireStanding(line.Root)
	}
}

// P2: a thread with a pull request and no operator has a table.
func TestPublishPhases_ShowsAPullRequestWithoutAnOperator(t *testing.T) {
	for _, reads := range []bool{true, false} {
		w := newWall(t)
		gh, pulls := w.hub()
		n := gh.open("fix/login")
		require.NoError(t, w.store.LinkPull(t.Context(), store.PullRequest{
			Repo: "acme/shop", Number: n, URL: "https://github.com/acme/shop/pull/1", Branch: "fix/login", Seat: "smith", Thread: w.line.Thread(),
		}))
		if reads {
			w.phases.Pulls = pulls
			require.NoError(t, gh.Merge("acme/shop", n))
		}
		got, err := w.try(activities.PublishInput{Read: true})
		require.NoError(t, err)
		require.NotEmpty(t, got.PRURL)
		require.Equal(t, rules.PhaseDone, got.States[rules.RowPull])
		require.Equal(t, reads, got.States[rules.RowMerged] == rules.PhaseDone)
		require.True(t, got.States[rules.RowOperator].Gap())
		m := w.table()
		require.Equal(t, got.TS, m.TS)
		require.Contains(t, m.Text, "pull request: #1")
	}
}

func TestPublishPhases_SaysWhenGitHubCouldNotBeRead(t *testing.T) {
	w := newWall(t)
	gh, pulls := w.hub()
	w.phases.Pulls = pulls
	require.NoError(t, w.store.LinkPull(t.Context(), store.PullRequest{Repo: "acme/shop", Number: gh.open("fix/login"), Seat: "smith", Thread: w.line.Thread()}))
	gh.down()
	_, err := w.try(activities.PublishInput{Read: true})
	require.ErrorContains(t, err, "read the thread's pull request")
	w.requireStanding(w.line.Root)
}

// P3: one message, edited in place, and only when it says something else.
func TestPublishPhases_EditsItsOneMessage(t *testing.T) {
	w := newWall(t)
	first := w.publish(bound())
	require.Equal(t, first.TS, w.table().TS)
	edits := w.calls("chat.update")
	require.Equal(t, first, w.publish(bound()))
	require.Equal(t, edits, w.calls("chat.update"), "nothing changed: nothing is asked of Slack")
	f := bound()
	f.Branch, f.Commits = "smith/fix-login", 3
	second := w.publish(f)
	require.Equal(t, first.TS, second.TS)
	require.Greater(t, second.Done, first.Done)
	require.Contains(t, w.table().Text, "3 commits")
	require.Equal(t, 1, w.calls("chat.postMessage"))
	// Back to gaps, the table stands as it was.
	w.publish(rules.PhaseFacts{})
	require.Contains(t, w.table().Text, "3 commits")
}

// X2: what a branch is called calls nobody.
func TestPublishPhases_CallsNobody(t *testing.T) {
	w := newWall(t)
	f := bound()
	f.Branch = "<!channel>`<@U0ANA000001>"
	f.PullURL, f.Pull = "javascript:alert(1)", 3
	w.publish(f)
	text := w.table().Text
	require.NotContains(t, text, "<!channel>")
	require.NotContains(t, text, "<@U0ANA000001>")
	require.NotContains(t, text, "javascript:")
}

// B5, P3: wherever a worker dies, one message stands, and it says what is known.
func TestPublishPhases_PostsOneMessageWhereverAWorkerDies(t *testing.T) {
	for _, point := range []string{"before BeginPost", "after BeginPost", "before Post", "after Post", "before ConfirmPost", "after ConfirmPost", "before SetPhaseMessage", "after SetPhaseMessage"} {
		for skip := range 2 {
			if skip > 0 && !strings.Contains(point, "SetPhase") {
				continue
			}
			w := newWall(t)
			w.points.arm(point, skip)
			_, err := w.try(activities.PublishInput{Facts: bound()})
			require.ErrorContains(t, err, "crashed", "%s %d", point, skip)
			f := bound()
			f.Commits, f.Branch = 2, "smith/fix-login" // time went on meanwhile
			got := w.publish(f)
			require.Equal(t, got.TS, w.table().TS)
			require.Contains(t, w.table().Text, "2 commits", "%s %d", point, skip)
		}
	}
}

// What stands is the text of the first attempt to post it, until it is edited.
func TestPublishPhases_EditsWhatAnEarlierAttemptPosted(t *testing.T) {
	w := newWall(t)
	w.points.arm("after Post", 0)
	_, err := w.try(activities.PublishInput{Facts: bound()})
	require.ErrorContains(t, err, "crashed")
	f := bound()
	f.Branch, f.Commits = "smith/fix-login", 2
	w.points.arm("after SetPhaseMessage", 0)
	_, err = w.try(activities.PublishInput{Facts: f})
	require.ErrorContains(t, err, "crashed")
	w.publish(f)
	require.Contains(t, w.table().Text, "2 commits")
}

// A table that somebody deleted stays away; what it would say is returned all the same.
func TestPublishPhases_LeavesADeletedTableDeleted(t *testing.T) {
	w := newWall(t)
	first := w.publish(bound())
	require.NoError(t, w.box.DeleteHard(w.channel, first.TS))
	f := bound()
	f.Commits = 1
	got := w.publish(f)
	require.Equal(t, rules.PhaseDone, got.States[rules.RowCommits])
	w.requireStanding(w.line.Root)
	require.Equal(t, 1, w.calls("chat.postMessage"))
}

func TestPublishPhases_IsRepeatedWhereSlackDoesNotAnswer(t *testing.T) {
	w := newWall(t)
	w.publish(bound())
	w.fault(slackbox.Fault{Kind: slackbox.ServerError, Method: "chat.update", Count: 1, Status: 503})
	f := bound()
	f.Branch, f.Commits = "smith/fix-login", 5
	_, err := w.try(activities.PublishInput{Facts: f})
	if err != nil { // a client that tries again by itself is as good
		w.publish(f)
	}
	require.Contains(t, w.table().Text, "5 commits")
}
