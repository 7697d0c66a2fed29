package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"agentsmith/rules"
)

// ErrLostClaim: the claim is no longer the caller's: it was released, ended, or taken over.
var ErrLostClaim = errors.New("the claim is somebody else's")

// ClaimState is how far a claim came (O6).
type ClaimState string

// A claim is a lease: its claimant starts an operator, and then it is the session's.
const (
	ClaimClaiming ClaimState = "claiming"
	ClaimBound    ClaimState = "bound"
)

// Claim is a thread's one operator, or the lease of whoever starts it (O6).
type Claim struct {
	// Slug names the task; no other live claim has it, of whatever seat.
	Slug      string
	Seat      string
	Thread    rules.Thread
	State     ClaimState
	Claimant  string
	ClaimedAt time.Time
	Repo      string
	Box       string
	// The rest is the session that it is bound to, as in Bound.
	Session  string
	Worktree string
	Branch   string
	Number   int
}

// Bound is the session that a claim is bound to. Session is its identity, a UUID;
// Number is the one that RegisterSession gave it.
type Bound struct {
	Session  string
	Worktree string
	Branch   string
	Number   int
}

// Wish is what a claimant wants. Claimant names one attempt and nobody else.
type Wish struct {
	Seat     string
	Thread   rules.Thread
	Slug     string
	Repo     string
	Box      string
	Claimant string
}

const claimColumns = `slug, seat, team, channel, root, state, claimant, claimed_at, repo, box, session, worktree, branch, number`

const claimThread = `seat = $1 AND team = $2 AND channel = $3 AND root = $4`

func scanClaim(r scanner) (Claim, error) {
	var c Claim
	var state string
	var at int64
	err := r.Scan(&c.Slug, &c.Seat, &c.Thread.Team, &c.Thread.Channel, &c.Thread.Root, &state, &c.Claimant, &at,
		&c.Repo, &c.Box, &c.Session, &c.Worktree, &c.Branch, &c.Number)
	c.State, c.ClaimedAt = ClaimState(state), timeOf(at)
	return c, err
}

func getClaim(ctx context.Context, q query, seat string, t rules.Thread) (*Claim, error) {
	return one(scanClaim(q.row(ctx, `SELECT `+claimColumns+` FROM claims WHERE `+claimThread,
		seat, t.Team, t.Channel, t.Root)))
}

// Claim asks to be the one who starts the thread's operator (O6). Won is true for
// exactly one claimant, also when it asks again while it is at it; everybody else
// learns whose claim stands. The row is made by one statement that the database itself
// holds to one live claim a thread and one thread a slug, across processes and boxes.
// A slug that another thread has is suffixed from this one's root ts.
func (s *Store) Claim(ctx context.Context, w Wish) (c Claim, won bool, err error) {
	if err := w.check(); err != nil {
		return Claim{}, false, s.wrap("claim", err)
	}
	err = s.write(ctx, "claim", func(ctx context.Context, q query) error {
		c, won = Claim{}, false
		for _, slug := range w.slugs() {
			n, err := q.exec(ctx, `INSERT INTO claims (`+claimColumns+`)
				VALUES ($1, $2, $3, $4, $5, 'claiming', $6, $7, $8, $9, '', '', '', 0)
				ON CONFLICT DO NOTHING`,
				slug, w.Seat, w.Thread.Team, w.Thread.Channel, w.Thread.Root, w.Claimant, s.micros(), w.Repo, w.Box)
			if err != nil {
				return err
			}
			stands, err := getClaim(ctx, q, w.Seat, w.Thread)
			if err != nil {
				return err
			}
			if stands != nil {
				c, won = *stands, n > 0 || stands.Claimant == clean(w.Claimant) && stands.State == ClaimClaiming
				return nil
			}
		}
		return fmt.Errorf("every slug like %s is taken", w.Slug)
	})
	if err != nil {
		return Claim{}, false, err
	}
	return c, won, nil
}

func (w Wish) check() error {
	switch {
	case w.Seat == "" || w.Thread.Channel == "" || w.Thread.Root == "":
		return fmt.Errorf("%w: a claim needs a seat and a thread", ErrInvalid)
	case w.Claimant == "":
		return fmt.Errorf("%w: a claim needs a claimant", ErrInvalid)
	case !rules.ValidSlug(w.Slug):
		return fmt.Errorf("%w: %q is no slug", ErrInvalid, short(w.Slug))
	}
	return nil
}

// slugs are the names to try: the one asked for, then the root's, then, where two
// threads have one root ts or two seats one thread, ones of seat and thread together.
func (w Wish) slugs() []string {
	all := []string{w.Slug, rules.SuffixSlug(w.Slug, w.Thread.Root)}
	for i := range 3 {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q %q", i, w.Seat, w.Thread.Team, w.Thread.Channel, w.Thread.Root))
		all = append(all, rules.SuffixSlug(w.Slug, fmt.Sprintf("%016d", binary.BigEndian.Uint64(sum[:])%1e16)))
	}
	return all
}

// BindClaim makes the claim its session's: the operator runs. Only its claimant can, and
// only once; the same binding again is no error. ErrLostClaim.
func (s *Store) BindClaim(ctx context.Context, seat string, t rules.Thread, claimant string, b Bound) (Claim, error) {
	if b.Session == "" {
		return Claim{}, s.wrap("bind claim", fmt.Errorf("%w: a binding needs a session", ErrInvalid))
	}
	var c Claim
	err := s.write(ctx, "bind claim", func(ctx context.Context, q query) (err error) {
		c, err = scanClaim(q.row(ctx, `UPDATE claims SET state = 'bound', session = $6, worktree = $7, branch = $8, number = $9
			WHERE `+claimThread+` AND claimant = $5 AND (state = 'claiming' OR session = $6)
			RETURNING `+claimColumns,
			seat, t.Team, t.Channel, t.Root, claimant, b.Session, b.Worktree, b.Branch, b.Number))
		return lost(err)
	})
	if err != nil {
		return Claim{}, err
	}
	return c, nil
}

func lost(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrLostClaim
	}
	return err
}

// ReleaseClaim gives the lease up: its operator could not be started. False where it is
// not the claimant's, or is bound.
func (s *Store) ReleaseClaim(ctx context.Context, seat string, t rules.Thread, claimant string) (bool, error) {
	return s.changed(ctx, "release claim", `DELETE FROM claims WHERE `+claimThread+` AND claimant = $5 AND state = 'claiming'`,
		seat, t.Team, t.Channel, t.Root, claimant)
}

// LapseClaim ends the lease of a claim and leaves it standing: whoever comes next takes it
// over, with its slug and worktree. False where it is not the claimant's, or is bound.
func (s *Store) LapseClaim(ctx context.Context, seat string, t rules.Thread, claimant string) (bool, error) {
	return s.changed(ctx, "lapse claim", `UPDATE claims SET claimed_at = 0 WHERE `+claimThread+` AND claimant = $5 AND state = 'claiming'`,
		seat, t.Team, t.Channel, t.Root, claimant)
}

// TakeOverClaim makes a dead claimant's claim, or one whose session is dead, that of
// another, who starts or binds anew: by compare-and-set on the claimant, and only after
// the search of O7. It keeps slug, repo and worktree. Taken is false where the claim is
// neither from's nor to's any more; the claim as it stands comes back. ErrNotFound.
func (s *Store) TakeOverClaim(ctx context.Context, seat string, t rules.Thread, from, to string) (c Claim, taken bool, err error) {
	if to == "" {
		return Claim{}, false, s.wrap("take over claim", fmt.Errorf("%w: a claim needs a claimant", ErrInvalid))
	}
	err = s.write(ctx, "take over claim", func(ctx context.Context, q query) error {
		c, taken = Claim{}, false
		if from != to {
			_, err := q.exec(ctx, `UPDATE claims SET state = 'claiming', claimant = $6, claimed_at = $7, session = '', number = 0
				WHERE `+claimThread+` AND claimant = $5`,
				seat, t.Team, t.Channel, t.Root, from, to, s.micros())
			if err != nil {
				return err
			}
		}
		stands, err := getClaim(ctx, q, seat, t)
		if err != nil {
			return err
		}
		if stands == nil {
			return ErrNotFound
		}
		c, taken = *stands, stands.Claimant == clean(to) && stands.State == ClaimClaiming
		return nil
	})
	if err != nil {
		return Claim{}, false, err
	}
	return c, taken, nil
}

// EndClaim ends a bound claim: the task is over, and thread, slug and the ask for work are
// done with. False where the claim is not this session's.
func (s *Store) EndClaim(ctx context.Context, seat string, t rules.Thread, session string) (bool, error) {
	var ended bool
	err := s.write(ctx, "end claim", func(ctx context.Context, q query) error {
		n, err := q.exec(ctx, `DELETE FROM claims WHERE `+claimThread+` AND session = $5 AND state = 'bound'`,
			seat, t.Team, t.Channel, t.Root, session)
		ended = n > 0
		if err != nil || !ended {
			return err
		}
		_, err = q.exec(ctx, `UPDATE work SET done_at = $5 WHERE `+claimThread+` AND done_at = 0`,
			seat, t.Team, t.Channel, t.Root, s.micros())
		return err
	})
	if err != nil {
		return false, err
	}
	return ended, nil
}

// ClaimOf returns the thread's live claim. ErrNotFound.
func (s *Store) ClaimOf(ctx context.Context, seat string, t rules.Thread) (Claim, error) {
	var c Claim
	err := s.view(ctx, "read claim", func(ctx context.Context, q query) (err error) {
		c, err = scanClaim(q.row(ctx, `SELECT `+claimColumns+` FROM claims WHERE `+claimThread,
			seat, t.Team, t.Channel, t.Root))
		return err
	})
	return c, err
}

// ClaimBySlug returns the live claim of a slug. ErrNotFound.
func (s *Store) ClaimBySlug(ctx context.Context, slug string) (Claim, error) {
	var c Claim
	err := s.view(ctx, "read claim", func(ctx context.Context, q query) (err error) {
		c, err = scanClaim(q.row(ctx, `SELECT `+claimColumns+` FROM claims WHERE slug = $1`, slug))
		return err
	})
	return c, err
}

// Claims returns the live claims of a box, oldest first.
func (s *Store) Claims(ctx context.Context, box string) ([]Claim, error) {
	var all []Claim
	err := s.view(ctx, "read claims", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT `+claimColumns+` FROM claims WHERE box = $1 ORDER BY claimed_at, slug`, box)
		all, err = collect(rows, err, scanClaim)
		return err
	})
	return all, err
}
