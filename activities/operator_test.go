package activities_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/rules"
)

func TestBind_SpawnsWhereAPersonAsksForWork(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "please fix the login")
	got := b.mustBind(rules.DispSpawned, "", line)
	b.requireOne(got, line)
	require.Equal(t, 1, got.Operator.Number)
	require.Equal(t, "fix-login", got.Operator.Slug)
	require.Equal(t, "shop", got.Operator.Repo)
	require.Equal(t, "main", got.Operator.Box)
	require.NotEmpty(t, got.Operator.Attach)
	starts := b.launcher.started()
	require.Len(t, starts, 1)
	require.Contains(t, starts[0].Brief, "please fix the login")
	require.Contains(t, starts[0].Brief, "https://example.slack.com/archives/"+line.Channel)
	require.Equal(t, []string{"shop"}, b.classifier.asked[0].Repos)
	require.Equal(t, "please fix the login", b.classifier.asked[0].Text)
}

func TestBind_HasSevenDispositions(t *testing.T) {
	work := rules.WorkDisposition{Kind: rules.KindWork, Slug: "fix-login", Repo: "shop"}
	tests := []struct {
		name    string
		says    rules.WorkDisposition
		change  func(*base, rules.Line)
		want    rules.Disposition
		why     string
		starts  int
		claimed bool
	}{
		{"a question", rules.WorkDisposition{Kind: rules.KindQuestion}, nil, rules.DispQuestion, "", 0, false},
		{"a kind that nobody knows", rules.WorkDisposition{Kind: "chore", Slug: "fix-login", Repo: "shop"}, nil, rules.DispQuestion, "", 0, false},
		{"no classifier", rules.NoDisposition(), nil, rules.DispUnavailable, rules.GapClassifier, 0, false},
		{"an outage that says work", rules.WorkDisposition{Kind: rules.KindWork, Repo: "shop", Unavailable: true}, nil, rules.DispUnavailable, rules.GapClassifier, 0, false},
		{"off", work, func(b *base, _ rules.Line) { b.op.Off = true }, rules.DispDisabled, "", 0, false},
		{"no repo", rules.WorkDisposition{Kind: rules.KindWork, Slug: "fix-login"}, nil, rules.DispUnscoped, "", 0, false},
		{"a repo that is no checkout", rules.WorkDisposition{Kind: rules.KindWork, Slug: "fix-login", Repo: "sho"}, nil, rules.DispUnscoped, "sho", 0, false},
		{"one runs", work, func(b *base, l rules.Line) {
			b.launcher.run(activities.Launch{Seat: "smith", Thread: l.Thread(), Slug: "fix-login", Repo: "shop"})
		}, rules.DispBound, "", 0, true},
		{"none runs", work, nil, rules.DispSpawned, "", 1, true},
		{"the launcher cannot look", work, func(b *base, _ rules.Line) { b.launcher.checkErr = errors.New("no tmux") }, rules.DispUnbound, rules.GapLauncher, 0, false},
		{"the launcher fails", work, func(b *base, _ rules.Line) {
			b.launcher.start = func(activities.Launch) (activities.Launched, error) {
				return activities.Launched{}, errors.New("no git")
			}
		}, rules.DispUnbound, rules.GapLauncher, 1, false},
		{"the launcher says what nobody knows", work, func(b *base, _ rules.Line) {
			b.launcher.start = func(activities.Launch) (activities.Launched, error) {
				return activities.Launched{Outcome: "maybe"}, nil
			}
		}, rules.DispUnbound, rules.GapLauncher, 1, false},
		{"as many run as may", work, func(b *base, _ rules.Line) {
			b.launcher.start = func(activities.Launch) (activities.Launched, error) {
				return activities.Launched{Outcome: activities.LaunchFull}, nil
			}
		}, rules.DispUnbound, rules.GapLimit, 1, false},
		{"the slug is another thread's", work, func(b *base, l rules.Line) {
			b.launcher.run(activities.Launch{Seat: "smith", Thread: rules.Thread{Team: l.Team, Channel: l.Channel, Root: "1.000001"}, Slug: "fix-login", Repo: "shop"})
		}, rules.DispUnbound, rules.GapTaken, 1, false},
		{"the task cannot be told", work, func(b *base, _ rules.Line) { b.door.err = errors.New("no Temporal") }, rules.DispUnbound, rules.GapTask, 1, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBase(newRoom(t))
			b.classifier.says = tt.says
			line := b.says("", "please fix the login")
			if tt.change != nil {
				tt.change(b, line)
			}
			got := b.mustBind(tt.want, tt.why, line)
			require.Len(t, b.launcher.started(), tt.starts)
			_, claimed := b.claim(line.Thread())
			require.Equal(t, tt.claimed, claimed)
			if got.Operator != nil {
				b.requireOne(got, line)
			}
		})
	}
}

// O5, O7, O2: the switch before everything, the search before the classifier.
func TestBind_AsksNoMoreThanItMust(t *testing.T) {
	about := []string{"Check", "Classify", "Claim", "Start"}
	t.Run("nothing when it is off", func(t *testing.T) {
		b := newBase(newRoom(t))
		b.op.Off = true
		b.mustBind(rules.DispDisabled, "", b.says("", "fix it"))
		require.Empty(t, only(b.ledger.trace.list(), about...))
	})
	t.Run("no classifier where one runs", func(t *testing.T) {
		b := newBase(newRoom(t))
		line := b.says("", "fix it")
		b.launcher.run(activities.Launch{Seat: "smith", Thread: line.Thread(), Slug: "fix-login", Repo: "shop"})
		b.mustBind(rules.DispBound, "", line)
		require.Equal(t, "Check Claim", only(b.ledger.trace.list(), about...))
	})
	t.Run("looks, classifies, claims, and only then starts", func(t *testing.T) {
		b := newBase(newRoom(t))
		b.mustBind(rules.DispSpawned, "", b.says("", "fix it"))
		require.Equal(t, "Check Classify Claim Start Claim", only(b.ledger.trace.list(), about...))
	})
	t.Run("nothing at all for lines that have ended", func(t *testing.T) {
		b := newBase(newRoom(t))
		line := b.says("", "fix it")
		b.post(b.answer(turn(line), "done"))
		got, err := b.bind(line)
		require.NoError(t, err)
		require.Equal(t, activities.Binding{}, got)
		require.Empty(t, only(b.ledger.trace.list(), about...))
	})
	t.Run("nothing at all for lines before a stop", func(t *testing.T) {
		b := newBase(newRoom(t))
		line := b.says("", "fix it")
		_, err := b.store.RecordStop(t.Context(), "smith", line.Thread(), later(line, 1))
		require.NoError(t, err)
		got, err := b.bind(line)
		require.NoError(t, err)
		require.Equal(t, activities.Binding{}, got)
		require.Empty(t, only(b.ledger.trace.list(), about...))
	})
}

func TestBind_ClaimsNothingForWhoMayNotSpawn(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "fix it")
	got, err := perform(b.op, b.op.Bind, activities.BindInput{Turn: turn(line)})
	require.NoError(t, err)
	b.requireDisposition(got, rules.DispUnbound, rules.GapNotAllowed)
	require.NotContains(t, b.ledger.trace.list(), "Claim")
	require.Empty(t, b.launcher.started())
	known, err := b.store.WorkThreads(t.Context(), "smith")
	require.NoError(t, err)
	require.Len(t, known, 1, "the sweep can find it")
	// Who may write in the thread, though, is bound to what runs.
	b.launcher.run(activities.Launch{Seat: "smith", Thread: line.Thread(), Slug: "fix-login", Repo: "shop"})
	got, err = perform(b.op, b.op.Bind, activities.BindInput{Turn: turn(line)})
	require.NoError(t, err)
	b.requireDisposition(got, rules.DispBound, "")
}

func TestBind_ClaimsNothingWithoutACheckout(t *testing.T) {
	for _, set := range [][]rules.Checkout{nil, {{Name: "shop-api"}}, {{Name: "shop"}, {Name: "shop", Path: "/other"}}} {
		b := newBase(newRoom(t))
		b.op.Checkouts = func() []rules.Checkout { return set }
		b.mustBind(rules.DispUnscoped, "shop", b.says("", "fix it"))
		require.NotContains(t, b.ledger.trace.list(), "Claim")
	}
}

func TestBind_StartsNothingForLinesThatEndWhileItClassifies(t *testing.T) {
	ends := map[string]func(*base, rules.Line) error{
		"a stop": func(b *base, l rules.Line) error {
			_, err := b.store.RecordStop(b.t.Context(), "smith", l.Thread(), later(l, 1))
			return err
		},
		"their outcome": func(b *base, l rules.Line) error {
			b.take(turn(l))
			_, err := b.store.FinishTurn(b.t.Context(), turn(l).ID, "smith", []rules.LineKey{l.LineKey}, rules.Declined, rules.ReasonStopped)
			return err
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			b := newBase(newRoom(t))
			line := b.says("", "fix it")
			b.classifier.meanwhile = func() { require.NoError(t, end(b, line)) }
			got, err := b.bind(line)
			require.NoError(t, err)
			require.Equal(t, activities.Binding{}, got)
			require.Empty(t, b.launcher.started())
			require.NotContains(t, b.ledger.trace.list(), "Claim")
		})
	}
}

func TestBind_NamesWorkThatTheClassifierGaveNoNameFor(t *testing.T) {
	for _, slug := range []string{"", "../../etc", "-rf", "A b"} {
		b := newBase(newRoom(t))
		b.classifier.says = rules.WorkDisposition{Kind: rules.KindWork, Slug: slug, Repo: "shop"}
		got := b.mustBind(rules.DispSpawned, "", b.says("", "repair the checkout page"))
		require.True(t, rules.ValidSlug(got.Operator.Slug), got.Operator.Slug)
		require.Contains(t, got.Operator.Slug, "checkout")
	}
}

// The sweep knows what the thread asked for: nothing is classified again.
func TestBind_OfTheSweepClassifiesNothing(t *testing.T) {
	b := newBase(newRoom(t))
	line := b.says("", "fix it")
	b.post(b.answer(turn(line), "which repository?"))
	got, err := perform(b.op, b.op.Bind, activities.BindInput{
		Turn: turn(line), MaySpawn: true, Asked: &rules.WorkDisposition{Kind: rules.KindWork, Slug: "swept-work", Repo: "shop"},
	})
	require.NoError(t, err)
	b.requireDisposition(got, rules.DispSpawned, "")
	require.Equal(t, "swept-work", got.Operator.Slug)
	require.Empty(t, b.classifier.asked)
}

// An answer to "which repository?" is no work by itself: the classifier is told what it answers.
func TestBind_TellsTheClassifierWhatTheThreadAskedBefore(t *testing.T) {
	b := newBase(newRoom(t))
	b.classifier.says.Repo = ""
	first := b.says("", "please fix the login")
	b.mustBind(rules.DispUnscoped, "", first)
	b.post(b.answer(turn(first), "which repository?"))
	b.classifier.says.Repo = "shop"
	b.mustBind(rules.DispSpawned, "", b.says(first.Root, "the shop"))
	require.Empty(t, b.classifier.asked[0].Earlier)
	require.Equal(t, "please fix the login", b.classifier.asked[1].Earlier)
	require.Equal(t, "the shop", b.classifier.asked[1].Text)
}
