package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// world is what a broom reaches, without anything real.
type world struct {
	threads []store.WorkThread
	says    map[string]activities.Launched // by slug
	fails   map[string]error
	asked   []activities.Launch
	bound   []rules.WorkDisposition
	names   []string
	down    error
	claims  map[string]store.Claim // by the thread's root
	claimed error
}

func (w *world) WorkThreads(context.Context, string) ([]store.WorkThread, error) {
	return w.threads, nil
}

func (w *world) ClaimOf(_ context.Context, _ string, t rules.Thread) (store.Claim, error) {
	c, ok := w.claims[t.Root]
	if !ok && w.claimed == nil {
		return c, store.ErrNotFound
	}
	return c, w.claimed
}

func (w *world) Check(_ context.Context, l activities.Launch) (activities.Launched, error) {
	w.asked = append(w.asked, l)
	if got, ok := w.says[l.Slug]; ok {
		return got, w.fails[l.Slug]
	}
	return activities.Launched{Outcome: activities.LaunchNone}, w.fails[l.Slug]
}

func (w *world) Bind(_ context.Context, _ string, _ rules.Line, asked rules.WorkDisposition, name string) error {
	w.bound, w.names = append(w.bound, asked), append(w.names, name)
	return w.down
}

func thread(root, slug, repo string) store.WorkThread {
	t := rules.Thread{Team: "T1", Channel: "C1", Root: root}
	return store.WorkThread{
		Thread: t, Slug: slug, Repo: repo, AskedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Line: rules.Line{LineKey: rules.LineKey{Team: t.Team, Channel: t.Channel, TS: root}, Root: root, Text: "fix it"},
	}
}

// sweep runs a broom over the world and returns what it printed.
func (w *world) sweep(t *testing.T, bind bool) (string, error) {
	t.Helper()
	var out strings.Builder
	b := broom{
		work: w, launcher: w, checkouts: []rules.Checkout{{Name: "web", Path: "/src/web"}}, out: &out, box: "main",
		now: func() time.Time { return time.Unix(1700000100, 0) },
	}
	if bind {
		b.door = w
	}
	err := b.sweep(t.Context(), []string{"smith"})
	return out.String(), err
}

func TestSweep_ListsWhatHasNoOperatorAndBindsNothingUnasked(t *testing.T) {
	w := &world{
		threads: []store.WorkThread{thread("1.000001", "fix-login", "web"), thread("1.000002", "add-page", "web")},
		says:    map[string]activities.Launched{"add-page": {Outcome: activities.LaunchExists, ThisThread: true}},
	}
	out, err := w.sweep(t, false)
	require.NoError(t, err)
	require.Equal(t, "smith  C1  1.000001  fix-login  web  asked 2026-01-02 03:04  no operator\n"+
		"1 thread has no operator. --bind binds one to each.\n", out)
	require.Equal(t, w.threads[0].Thread, w.asked[0].Thread)
	require.Empty(t, w.bound)
}

func TestSweep_SaysSoWhereNothingIsMissing(t *testing.T) {
	out, err := (&world{}).sweep(t, true)
	require.NoError(t, err)
	require.Equal(t, "Every thread that asked for work has its operator.\n", out)
}

func TestSweep_AnotherThreadsSessionOfThatNameIsNoOperatorOfThisOne(t *testing.T) {
	w := &world{
		threads: []store.WorkThread{thread("1.000001", "fix-login", "web")},
		says:    map[string]activities.Launched{"fix-login": {Outcome: activities.LaunchExists}},
	}
	out, err := w.sweep(t, true)
	require.NoError(t, err)
	require.Contains(t, out, "no operator; op-fix-login is another thread's; sent on\n")
	require.Len(t, w.bound, 1)
}

func TestSweep_BindsByNameAndTellsNobodyTwiceWhatIsMissing(t *testing.T) {
	noLine := thread("1.000004", "no-line", "web")
	noLine.Line = rules.Line{}
	w := &world{threads: []store.WorkThread{
		thread("1.000001", "fix-login", "web"), thread("1.000002", "fix-other", "we"), thread("1.000003", "fix-this", ""), noLine,
	}}
	out, err := w.sweep(t, true)
	require.NoError(t, err)
	require.Equal(t, []rules.WorkDisposition{{Kind: rules.KindWork, Slug: "fix-login", Repo: "web"}}, w.bound, "a repository goes by its exact name (O4)")
	require.Equal(t, []string{"1700000100.000000"}, w.names)
	require.Contains(t, out, "no operator; sent on\n")
	require.Contains(t, out, "no operator; not sent on: we is no checkout here\n")
	require.Contains(t, out, "no operator; not sent on: it names no repository\n")
	require.Contains(t, out, "no operator; not sent on: its line is not on record\n")
	require.Contains(t, out, "4 threads have no operator; 1 sent on.")
}

func TestSweep_WhatFailsForOneHoldsUpNoOther(t *testing.T) {
	w := &world{
		threads: []store.WorkThread{thread("1.000001", "fix-login", "web"), thread("1.000002", "add-page", "web")},
		fails:   map[string]error{"fix-login": errors.New("tmux is stuck")},
	}
	out, err := w.sweep(t, false)
	require.EqualError(t, err, "smith in C1, thread 1.000001: ask whether an operator runs: tmux is stuck")
	require.NotContains(t, out, "fix-login", "what could not be asked is no gap")
	require.Contains(t, out, "add-page")

	w = &world{threads: w.threads, down: errors.New("Temporal is down")}
	out, err = w.sweep(t, true)
	require.ErrorContains(t, err, "Temporal is down")
	require.Equal(t, 2, strings.Count(out, "not sent on: failed"))
}

func TestSweep_AskedNamesAreHostile(t *testing.T) {
	w := &world{threads: []store.WorkThread{thread("1.000001", "../x\x1b[2J", "a\nb")}}
	out, err := w.sweep(t, false)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(out, "\n"))
	require.NotContains(t, out, "\x1b")
	require.Empty(t, w.asked[0].Slug, "start-operator is asked about the thread alone")
}

// O7: the sessions of another box are out of this launcher's sight.
func TestSweep_AThreadOfAnotherBoxIsListedAndLeftToIt(t *testing.T) {
	w := &world{
		threads: []store.WorkThread{thread("1.000001", "fix-login", "web"), thread("1.000002", "add-page", "web")},
		claims:  map[string]store.Claim{"1.000001": {Box: "old\x1b[2J"}, "1.000002": {Box: "main"}},
	}
	out, err := w.sweep(t, true)
	require.NoError(t, err)
	require.Contains(t, out, "none on this box; box old")
	require.NotContains(t, out, "\x1b")
	require.Equal(t, []rules.WorkDisposition{{Kind: rules.KindWork, Slug: "add-page", Repo: "web"}}, w.bound, "a claim of this box says nothing (O7)")
	require.Contains(t, out, "2 threads have no operator; 1 sent on.")

	w = &world{threads: w.threads, claimed: errors.New("the database is away")}
	out, err = w.sweep(t, true)
	require.ErrorContains(t, err, "the database is away")
	require.Empty(t, w.bound)
	require.Empty(t, out)
}
