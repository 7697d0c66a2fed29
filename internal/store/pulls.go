package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"agentsmith/rules"
)

// PullRequest is a pull request and a thread that it belongs to (P2).
type PullRequest struct {
	// Repo is owner/name on GitHub; case does not matter.
	Repo   string
	Number int
	URL    string
	Branch string
	Seat   string
	Thread rules.Thread
}

const pullColumns = `repo, number, url, branch, seat, team, channel, root`

func scanPull(r scanner) (PullRequest, error) {
	var p PullRequest
	err := r.Scan(&p.Repo, &p.Number, &p.URL, &p.Branch, &p.Seat, &p.Thread.Team, &p.Thread.Channel, &p.Thread.Root)
	return p, err
}

// LinkPull links a pull request to a thread. Linked again it takes the newer URL and
// branch, where there are any.
func (s *Store) LinkPull(ctx context.Context, p PullRequest) error {
	if p.Repo == "" || p.Number <= 0 || p.Seat == "" || p.Thread.Channel == "" || p.Thread.Root == "" {
		return s.wrap("link pull request", fmt.Errorf("%w: it needs a repo, a number, a seat and a thread", ErrInvalid))
	}
	return s.write(ctx, "link pull request", func(ctx context.Context, q query) error {
		_, err := q.exec(ctx, `INSERT INTO pulls (repo_key, `+pullColumns+`, linked_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
			ON CONFLICT (repo_key, number, seat, team, channel, root) DO UPDATE SET
				url = CASE WHEN excluded.url = '' THEN pulls.url ELSE excluded.url END,
				branch = CASE WHEN excluded.branch = '' THEN pulls.branch ELSE excluded.branch END`,
			repoKey(p.Repo), p.Repo, p.Number, p.URL, p.Branch, p.Seat, p.Thread.Team, p.Thread.Channel, p.Thread.Root, s.micros())
		return err
	})
}

func repoKey(repo string) string { return strings.ToLower(repo) }

// PullThreads returns the links of a pull request, oldest first; none is no error.
func (s *Store) PullThreads(ctx context.Context, repo string, number int) ([]PullRequest, error) {
	return s.pulls(ctx, `SELECT `+pullColumns+` FROM pulls WHERE repo_key = $1 AND number = $2
		ORDER BY linked_at, seat, channel, root`, repoKey(repo), number)
}

// PullsOf returns the pull requests of a thread, oldest link first; none is no error.
func (s *Store) PullsOf(ctx context.Context, seat string, t rules.Thread) ([]PullRequest, error) {
	return s.pulls(ctx, `SELECT `+pullColumns+` FROM pulls WHERE `+claimThread+` ORDER BY linked_at, repo_key, number`,
		seat, t.Team, t.Channel, t.Root)
}

func (s *Store) pulls(ctx context.Context, text string, args ...any) ([]PullRequest, error) {
	var all []PullRequest
	err := s.view(ctx, "read pull requests", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, text, args...)
		all, err = collect(rows, err, scanPull)
		return err
	})
	return all, err
}

// deliveriesKept is how long a webhook's delivery is known: GitHub keeps those that can
// be sent again for 3 days.
const deliveriesKept = 30 * 24 * time.Hour

// FreshDelivery notes a webhook's delivery; fresh is false for one that was noted before.
func (s *Store) FreshDelivery(ctx context.Context, id string) (fresh bool, err error) {
	if id == "" || len(id) > 200 {
		return false, s.wrap("note delivery", fmt.Errorf("%w: %q is no delivery's id", ErrInvalid, short(id)))
	}
	err = s.write(ctx, "note delivery", func(ctx context.Context, q query) error {
		now := s.now()
		if _, err := q.exec(ctx, `DELETE FROM deliveries WHERE seen_at < $1`, now.Add(-deliveriesKept).UnixMicro()); err != nil {
			return err
		}
		n, err := q.exec(ctx, `INSERT INTO deliveries (id, seen_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`, id, now.UnixMicro())
		fresh = n > 0
		return err
	})
	if err != nil {
		return false, err
	}
	return fresh, nil
}

// SeenDelivery tells whether a webhook's delivery was noted. It is noted when it was
// handed on and not before, so that a crash in between loses no event.
func (s *Store) SeenDelivery(ctx context.Context, id string) (bool, error) {
	var n int
	err := s.view(ctx, "look for delivery", func(ctx context.Context, q query) error {
		return q.row(ctx, `SELECT COUNT(*) FROM deliveries WHERE id = $1`, id).Scan(&n)
	})
	return n > 0, err
}
