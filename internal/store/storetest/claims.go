package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

func wish(root int, slug, claimant string) store.Wish {
	return store.Wish{Seat: seat, Thread: thread(root), Slug: slug, Repo: "shop", Box: box, Claimant: claimant}
}

func (w *world) claim(wi store.Wish) (store.Claim, bool) {
	w.t.Helper()
	c, won, err := w.Claim(w.ctx(), wi)
	require.NoError(w.t, err)
	return c, won
}

func bound(session string) store.Bound {
	return store.Bound{Session: session, Worktree: "/w/" + session, Branch: "smith/" + session, Number: 7}
}

func (w *world) bind(root int, claimant, session string) store.Claim {
	w.t.Helper()
	c, err := w.BindClaim(w.ctx(), seat, thread(root), claimant, bound(session))
	require.NoError(w.t, err)
	return c
}

// testClaims is the life of a claim (O6).
func testClaims(t *testing.T, newURL func(t *testing.T) string) {
	t.Run("Claim_TheFirstStandsAndEveryoneIsTold", func(t *testing.T) {
		w := open(t, newURL)
		first, won := w.claim(wish(1, "fix-login", "a"))
		require.True(t, won)
		require.Equal(t, store.Claim{Slug: "fix-login", Seat: seat, Thread: thread(1), State: store.ClaimClaiming, Claimant: "a",
			ClaimedAt: w.now, Repo: "shop", Box: box}, first)
		again, won := w.claim(wish(1, "fix-login", "a"))
		require.True(t, won, "its claimant asks again after a crash")
		require.Equal(t, first, again)
		loser, won := w.claim(wish(1, "other-name", "b"))
		require.False(t, won)
		require.Equal(t, first, loser, "the loser learns the winner")
		of, err := w.ClaimOf(w.ctx(), seat, thread(1))
		require.NoError(t, err)
		require.Equal(t, first, of)
		by, err := w.ClaimBySlug(w.ctx(), "fix-login")
		require.NoError(t, err)
		require.Equal(t, first, by)
		_, err = w.ClaimBySlug(w.ctx(), "other-name")
		require.ErrorIs(t, err, store.ErrNotFound)
	})
	t.Run("Claim_ASlugIsOneThreads", func(t *testing.T) {
		w := open(t, newURL)
		w.claim(wish(1, "fix", "a"))
		second, won := w.claim(wish(2, "fix", "b"))
		require.True(t, won)
		require.Equal(t, rules.SuffixSlug("fix", ts(2)), second.Slug)
		slugs := map[string]bool{"fix": true, second.Slug: true}
		for _, s := range []string{"trinity", "neo", "morpheus"} {
			wi := wish(2, "fix", "c")
			wi.Seat = s
			c, won := w.claim(wi)
			require.True(t, won, "another seat's claim of the same thread is its own")
			require.False(t, slugs[c.Slug], c.Slug)
			require.True(t, rules.ValidSlug(c.Slug))
			slugs[c.Slug] = true
		}
		all, err := w.Claims(w.ctx(), box)
		require.NoError(t, err)
		require.Len(t, all, 5)
		none, err := w.Claims(w.ctx(), "elsewhere")
		require.NoError(t, err)
		require.Empty(t, none)
	})
	t.Run("Claim_RefusesWhatNamesNobody", func(t *testing.T) {
		w := open(t, newURL)
		for _, bad := range []store.Wish{
			wish(1, "../etc", "a"), wish(1, "", "a"), wish(1, "fix", ""),
			{Thread: thread(1), Slug: "fix", Claimant: "a"}, {Seat: seat, Slug: "fix", Claimant: "a"},
		} {
			_, won, err := w.Claim(w.ctx(), bad)
			require.ErrorIs(t, err, store.ErrInvalid, "%+v", bad)
			require.False(t, won)
		}
	})
	t.Run("BindClaim_OnlyTheClaimantBindsAndOnce", func(t *testing.T) {
		w := open(t, newURL)
		_, err := w.BindClaim(w.ctx(), seat, thread(1), "a", bound("s1"))
		require.ErrorIs(t, err, store.ErrLostClaim)
		w.claim(wish(1, "fix", "a"))
		_, err = w.BindClaim(w.ctx(), seat, thread(1), "b", bound("s1"))
		require.ErrorIs(t, err, store.ErrLostClaim)
		_, err = w.BindClaim(w.ctx(), seat, thread(1), "a", store.Bound{})
		require.ErrorIs(t, err, store.ErrInvalid)
		c := w.bind(1, "a", "s1")
		require.Equal(t, store.ClaimBound, c.State)
		require.Equal(t, bound("s1"), store.Bound{Session: c.Session, Worktree: c.Worktree, Branch: c.Branch, Number: c.Number})
		require.Equal(t, c, w.bind(1, "a", "s1"), "the same again is no error")
		_, err = w.BindClaim(w.ctx(), seat, thread(1), "a", bound("s2"))
		require.ErrorIs(t, err, store.ErrLostClaim, "a bound claim is its session's")
		stands, won := w.claim(wish(1, "fix", "a"))
		require.False(t, won, "nor does its claimant start another")
		require.Equal(t, c, stands)
	})
	t.Run("ReleaseClaim_FreesOnlyTheClaimantsLease", func(t *testing.T) {
		w := open(t, newURL)
		w.claim(wish(1, "fix", "a"))
		released, err := w.ReleaseClaim(w.ctx(), seat, thread(1), "b")
		require.NoError(t, err)
		require.False(t, released)
		released, err = w.ReleaseClaim(w.ctx(), seat, thread(1), "a")
		require.NoError(t, err)
		require.True(t, released)
		released, err = w.ReleaseClaim(w.ctx(), seat, thread(1), "a")
		require.NoError(t, err)
		require.False(t, released)
		_, err = w.ClaimOf(w.ctx(), seat, thread(1))
		require.ErrorIs(t, err, store.ErrNotFound)
		_, won := w.claim(wish(2, "fix", "b"))
		require.True(t, won)
		w.bind(2, "b", "s1")
		released, err = w.ReleaseClaim(w.ctx(), seat, thread(2), "b")
		require.NoError(t, err)
		require.False(t, released, "a bound claim is no lease any more")
	})
	t.Run("LapseClaim_KeepsTheClaimForWhoeverComesNext", func(t *testing.T) {
		w := open(t, newURL)
		w.claim(wish(1, "fix", "a"))
		w.bind(1, "a", "s1")
		lapsed, err := w.LapseClaim(w.ctx(), seat, thread(1), "a")
		require.NoError(t, err)
		require.False(t, lapsed, "a bound claim is no lease any more")
		_, taken, err := w.TakeOverClaim(w.ctx(), seat, thread(1), "a", "b")
		require.NoError(t, err)
		require.True(t, taken)
		lapsed, err = w.LapseClaim(w.ctx(), seat, thread(1), "a")
		require.NoError(t, err)
		require.False(t, lapsed, "it is another's")
		lapsed, err = w.LapseClaim(w.ctx(), seat, thread(1), "b")
		require.NoError(t, err)
		require.True(t, lapsed)
		c, won := w.claim(wish(1, "other", "c"))
		require.False(t, won, "it stands")
		require.Equal(t, "fix", c.Slug)
		require.Equal(t, bound("s1").Worktree, c.Worktree)
		require.True(t, c.ClaimedAt.IsZero(), "its lease is over")
		require.Equal(t, store.ClaimClaiming, c.State)
	})
	t.Run("TakeOverClaim_IsACompareAndSetOnTheClaimant", func(t *testing.T) {
		w := open(t, newURL)
		_, _, err := w.TakeOverClaim(w.ctx(), seat, thread(1), "a", "b")
		require.ErrorIs(t, err, store.ErrNotFound)
		w.claim(wish(1, "fix", "a"))
		c, taken, err := w.TakeOverClaim(w.ctx(), seat, thread(1), "a", "b")
		require.NoError(t, err)
		require.True(t, taken)
		require.Equal(t, "b", c.Claimant)
		c, taken, err = w.TakeOverClaim(w.ctx(), seat, thread(1), "a", "c")
		require.NoError(t, err)
		require.False(t, taken, "of two who find it dead one takes it")
		require.Equal(t, "b", c.Claimant)
		_, taken, err = w.TakeOverClaim(w.ctx(), seat, thread(1), "a", "b")
		require.NoError(t, err)
		require.True(t, taken, "the taker asks again after a crash")
		_, err = w.BindClaim(w.ctx(), seat, thread(1), "a", bound("s1"))
		require.ErrorIs(t, err, store.ErrLostClaim, "the one that was not dead after all learns of it")

		w.bind(1, "b", "s1")
		c, taken, err = w.TakeOverClaim(w.ctx(), seat, thread(1), "b", "d")
		require.NoError(t, err)
		require.True(t, taken, "a claim whose session died is respawned")
		require.Equal(t, store.ClaimClaiming, c.State)
		require.Equal(t, "fix", c.Slug)
		require.Equal(t, "/w/s1", c.Worktree, "in its worktree")
		require.Empty(t, c.Session)
		ended, err := w.EndClaim(w.ctx(), seat, thread(1), "s1")
		require.NoError(t, err)
		require.False(t, ended, "the dead session's task ends nothing of the next one's")
	})
	t.Run("EndClaim_FreesThreadAndSlug", func(t *testing.T) {
		w := open(t, newURL)
		w.claim(wish(1, "fix", "a"))
		end := func(session string) bool {
			ended, err := w.EndClaim(w.ctx(), seat, thread(1), session)
			require.NoError(t, err)
			return ended
		}
		require.False(t, end(""), "a lease is released, not ended")
		w.bind(1, "a", "s1")
		require.False(t, end("s2"))
		require.True(t, end("s1"))
		require.False(t, end("s1"))
		c, won := w.claim(wish(2, "fix", "b"))
		require.True(t, won)
		require.Equal(t, "fix", c.Slug)
		_, won = w.claim(wish(1, "next", "a"))
		require.True(t, won)
	})
}
