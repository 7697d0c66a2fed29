package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

// claimModel is what O6 says of a few threads that want few names.
type claimModel struct {
	*world
	stores []*store.Store
	run    int
	live   map[string]*store.Claim // by seat and root
}

// testClaimModel plays random histories of claims, each step through one of two stores on
// one database, as two processes would.
func testClaimModel(t *testing.T, newURL func(t *testing.T) string) {
	w := open(t, newURL)
	stores := []*store.Store{w.Store, openURL(t, w.url)}
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		m := &claimModel{world: w, stores: stores, run: run, live: map[string]*store.Claim{}}
		rt.Repeat(map[string]func(*rapid.T){
			"claim":       m.stepClaim,
			"claim again": m.stepClaim,
			"bind":        m.stepBind,
			"release":     m.stepRelease,
			"take over":   m.stepTakeOver,
			"end":         m.stepEnd,
			"":            m.check,
		})
	})
}

// drawn is a step's thread and the store that it goes through.
type drawn struct {
	*store.Store
	seat   string
	thread rules.Thread
	key    string
}

func (m *claimModel) draw(rt *rapid.T) drawn {
	s := rapid.SampledFrom([]string{seat, other}).Draw(rt, "seat")
	root := rapid.IntRange(1, 3).Draw(rt, "thread")
	th := rules.Thread{Team: team, Channel: fmt.Sprintf("C%d", m.run), Root: ts(root)}
	return drawn{rapid.SampledFrom(m.stores).Draw(rt, "store"), s, th, s + " " + th.Root}
}

func (m *claimModel) claimant(rt *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, label)
}

func (m *claimModel) session(rt *rapid.T) string {
	return fmt.Sprintf("s%d-%d", m.run, rapid.IntRange(1, 3).Draw(rt, "session"))
}

func (m *claimModel) stepClaim(rt *rapid.T) {
	d := m.draw(rt)
	// Each history has names of its own, and few, so that threads want the same.
	want := store.Wish{Seat: d.seat, Thread: d.thread, Slug: fmt.Sprintf("fix-%d-%d", m.run, rapid.IntRange(1, 2).Draw(rt, "slug")),
		Repo: "shop", Box: fmt.Sprintf("box%d", m.run), Claimant: m.claimant(rt, "claimant")}
	c, won, err := d.Claim(m.ctx(), want)
	require.NoError(rt, err)
	stands := m.live[d.key]
	if stands != nil {
		require.Equal(rt, *stands, m.timeless(c), "the incumbent stands")
		require.Equal(rt, stands.State == store.ClaimClaiming && stands.Claimant == want.Claimant, won)
		return
	}
	require.True(rt, won, "a free thread is had")
	for _, other := range m.live {
		require.NotEqual(rt, other.Slug, c.Slug, "a slug is one thread's")
	}
	require.True(rt, rules.ValidSlug(c.Slug))
	free := true
	for _, other := range m.live {
		free = free && other.Slug != want.Slug
	}
	if free {
		require.Equal(rt, want.Slug, c.Slug, "a free name is had")
	}
	require.Equal(rt, want.Claimant, c.Claimant)
	c = m.timeless(c)
	m.live[d.key] = &c
}

func (m *claimModel) stepBind(rt *rapid.T) {
	d := m.draw(rt)
	who, b := m.claimant(rt, "claimant"), bound(m.session(rt))
	c, err := d.BindClaim(m.ctx(), d.seat, d.thread, who, b)
	stands := m.live[d.key]
	if stands == nil || stands.Claimant != who || stands.State == store.ClaimBound && stands.Session != b.Session {
		require.ErrorIs(rt, err, store.ErrLostClaim)
		return
	}
	require.NoError(rt, err)
	stands.State, stands.Session, stands.Worktree, stands.Branch, stands.Number = store.ClaimBound, b.Session, b.Worktree, b.Branch, b.Number
	require.Equal(rt, *stands, m.timeless(c))
}

func (m *claimModel) stepRelease(rt *rapid.T) {
	d := m.draw(rt)
	who := m.claimant(rt, "claimant")
	released, err := d.ReleaseClaim(m.ctx(), d.seat, d.thread, who)
	require.NoError(rt, err)
	stands := m.live[d.key]
	require.Equal(rt, stands != nil && stands.Claimant == who && stands.State == store.ClaimClaiming, released)
	if released {
		delete(m.live, d.key)
	}
}

func (m *claimModel) stepTakeOver(rt *rapid.T) {
	d := m.draw(rt)
	from, to := m.claimant(rt, "from"), m.claimant(rt, "to")
	c, taken, err := d.TakeOverClaim(m.ctx(), d.seat, d.thread, from, to)
	stands := m.live[d.key]
	if stands == nil {
		require.ErrorIs(rt, err, store.ErrNotFound)
		return
	}
	require.NoError(rt, err)
	if stands.Claimant == from && from != to {
		stands.Claimant, stands.State, stands.Session, stands.Number = to, store.ClaimClaiming, "", 0
	}
	require.Equal(rt, *stands, m.timeless(c))
	require.Equal(rt, stands.Claimant == to && stands.State == store.ClaimClaiming, taken)
}

func (m *claimModel) stepEnd(rt *rapid.T) {
	d := m.draw(rt)
	session := m.session(rt)
	ended, err := d.EndClaim(m.ctx(), d.seat, d.thread, session)
	require.NoError(rt, err)
	stands := m.live[d.key]
	require.Equal(rt, stands != nil && stands.State == store.ClaimBound && stands.Session == session, ended)
	if ended {
		delete(m.live, d.key)
	}
}

// check compares every live claim with the model: one a thread, one a slug.
func (m *claimModel) check(rt *rapid.T) {
	all, err := m.Claims(m.ctx(), fmt.Sprintf("box%d", m.run))
	require.NoError(rt, err)
	threads, slugs := map[string]bool{}, map[string]bool{}
	for _, c := range all {
		key := c.Seat + " " + c.Thread.Root
		require.False(rt, threads[key], "two claims of one thread")
		require.False(rt, slugs[c.Slug], "two threads of one slug")
		threads[key], slugs[c.Slug] = true, true
		require.Equal(rt, *m.live[key], m.timeless(c))
	}
	require.Len(rt, all, len(m.live))
}

func (m *claimModel) timeless(c store.Claim) store.Claim {
	c.ClaimedAt = m.now
	return c
}
