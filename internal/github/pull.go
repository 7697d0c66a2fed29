package github

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v92/github"

	"agentsmith/rules"
)

// The most runes that are carried of a title and a branch.
const (
	titleRunes  = 300
	branchRunes = 255
)

// PullState is what is known of one pull request. Title and Branch were written by
// others: they are cut and free of control characters, and whoever shows them escapes
// them (X2).
type PullState struct {
	// Repo is owner/name of the repository that it would be merged into.
	Repo   string `json:"repo"`
	Number int    `json:"number"`
	// URL is its page; "" where what GitHub gave is no page of this GitHub (P1).
	URL      string    `json:"url,omitempty"`
	Title    string    `json:"title,omitempty"`
	Branch   string    `json:"branch,omitempty"`
	HeadSHA  string    `json:"head_sha,omitempty"`
	State    string    `json:"state"`
	Draft    bool      `json:"draft,omitempty"`
	Checks   string    `json:"checks"`
	Review   string    `json:"review"`
	MergedAt time.Time `json:"merged_at,omitzero"`
}

// Pull reads one pull request of repo (owner/name) with its checks and reviews, in four
// requests. It returns ErrNotFound, ErrTokenRefused, ErrForbidden, *RateLimitError, or
// what went wrong on the way.
func (c *Client) Pull(ctx context.Context, repo string, number int) (PullState, error) {
	owner, name, err := splitRepo(repo)
	if err != nil {
		return PullState{}, err
	}
	what := fmt.Sprintf("read pull request %d of %s", number, repo)
	if number < 1 {
		return PullState{}, fmt.Errorf("%s: it has no such number", what)
	}
	pr, _, err := c.api.PullRequests.Get(ctx, owner, name, number)
	if err = c.done(ctx, what, err); err != nil {
		return PullState{}, err
	}
	if pr.GetNumber() != number {
		return PullState{}, fmt.Errorf("%s: GitHub answered with number %d", what, pr.GetNumber())
	}
	s := c.stateOf(pr, repo)
	if s.Checks, err = c.checks(ctx, owner, name, s.HeadSHA); err != nil {
		return PullState{}, fmt.Errorf("%s: %w", what, err)
	}
	if s.Review, err = c.review(ctx, owner, name, pr); err != nil {
		return PullState{}, fmt.Errorf("%s: %w", what, err)
	}
	return s, nil
}

// PullOfBranch finds the pull request of a branch of repo itself, never of a fork: the
// open one, else the newest. Without one it returns false. Errors are those of Pull;
// ErrNotFound means the repository.
func (c *Client) PullOfBranch(ctx context.Context, repo, branch string) (PullState, bool, error) {
	owner, name, err := splitRepo(repo)
	if err != nil {
		return PullState{}, false, err
	}
	what := "look for the pull request of a branch of " + repo
	if branch == "" || len(branch) > branchRunes {
		return PullState{}, false, fmt.Errorf("%s: it has no such branch", what)
	}
	found := 0
	err = pages(func(page int) (*gogithub.Response, error) {
		list, resp, err := c.api.PullRequests.List(ctx, owner, name, &gogithub.PullRequestListOptions{
			State: "all", Head: owner + ":" + branch, Sort: "created", Direction: "desc",
			ListOptions: gogithub.ListOptions{Page: page, PerPage: pageSize},
		})
		for _, pr := range list {
			// GitHub drops a filter that it cannot read, and then lists everything.
			if pr.GetHead().GetRef() != branch || !ownBranch(pr) {
				continue
			}
			if pr.GetState() == rules.PullOpen {
				found = pr.GetNumber()
				return nil, err // the newest open one
			}
			if found == 0 {
				found = pr.GetNumber()
			}
		}
		return resp, err
	})
	if err = c.done(ctx, what, err); err != nil || found == 0 {
		return PullState{}, false, err
	}
	s, err := c.Pull(ctx, repo, found)
	return s, err == nil, err
}

// ownBranch tells whether a pull request's branch is in the repository itself. A fork
// may name its branches as it likes.
func ownBranch(pr *gogithub.PullRequest) bool {
	head, base := pr.GetHead().GetRepo(), pr.GetBase().GetRepo()
	return head.GetID() != 0 && head.GetID() == base.GetID()
}

func (c *Client) stateOf(pr *gogithub.PullRequest, repo string) PullState {
	s := PullState{
		Repo: repo, Number: pr.GetNumber(), Title: clip(pr.GetTitle(), titleRunes), Branch: clip(pr.GetHead().GetRef(), branchRunes),
		HeadSHA: cleanSHA(pr.GetHead().GetSHA()), State: rules.PullClosed, Draft: pr.GetDraft(), MergedAt: pr.GetMergedAt().Time,
	}
	if full := pr.GetBase().GetRepo().GetFullName(); ValidRepo(full) {
		s.Repo = full
	}
	if c.page(pr.GetHTMLURL(), pr.GetNumber()) {
		s.URL = pr.GetHTMLURL()
	}
	switch {
	case pr.GetMerged() || !s.MergedAt.IsZero():
		s.State = rules.PullMerged
	case pr.GetState() == rules.PullOpen:
		s.State = rules.PullOpen
	}
	return s
}

// page tells whether a link is the page of a pull request on this very GitHub (P1).
func (c *Client) page(link string, number int) bool {
	u, err := url.Parse(link)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host == c.webHost && u.User == nil &&
		u.RawQuery == "" && u.Fragment == "" && strings.HasSuffix(u.Path, "/pull/"+strconv.Itoa(number)) &&
		!strings.ContainsAny(link, "<>|\"'`\\ \t\r\n")
}

// checks reads the statuses and the check runs of a commit.
func (c *Client) checks(ctx context.Context, owner, name, sha string) (string, error) {
	if sha == "" {
		return rules.ChecksUnknown, nil
	}
	t := tally{}
	for _, read := range []func(context.Context, string, string, string, *tally) error{c.statuses, c.checkRuns} {
		err := read(ctx, owner, name, sha, &t)
		switch {
		case errors.Is(err, ErrForbidden), errors.Is(err, ErrNotFound):
			t.unknown = true
		case err != nil:
			return "", err
		}
	}
	return t.says(), nil
}

func (c *Client) statuses(ctx context.Context, owner, name, sha string, t *tally) error {
	err := pages(func(page int) (*gogithub.Response, error) {
		all, resp, err := c.api.Repositories.GetCombinedStatus(ctx, owner, name, sha, &gogithub.ListOptions{Page: page, PerPage: pageSize})
		if err == nil {
			for _, s := range all.Statuses {
				t.status(s.GetState())
			}
		}
		return resp, err
	})
	return c.done(ctx, "its statuses", err)
}

func (c *Client) checkRuns(ctx context.Context, owner, name, sha string, t *tally) error {
	err := pages(func(page int) (*gogithub.Response, error) {
		all, resp, err := c.api.Checks.ListCheckRunsForRef(ctx, owner, name, sha, &gogithub.ListCheckRunsOptions{
			ListOptions: gogithub.ListOptions{Page: page, PerPage: pageSize},
		})
		if err == nil {
			for _, run := range all.CheckRuns {
				t.run(run.GetStatus(), run.GetConclusion())
			}
		}
		return resp, err
	})
	return c.done(ctx, "its check runs", err)
}

func (c *Client) review(ctx context.Context, owner, name string, pr *gogithub.PullRequest) (string, error) {
	v := verdicts{author: pr.GetUser().GetLogin(), last: map[string]string{}}
	err := pages(func(page int) (*gogithub.Response, error) {
		list, resp, err := c.api.PullRequests.ListReviews(ctx, owner, name, pr.GetNumber(), &gogithub.ListOptions{Page: page, PerPage: pageSize})
		for _, r := range list { // oldest first
			v.take(r.GetUser().GetLogin(), r.GetAuthorAssociation(), r.GetState())
		}
		return resp, err
	})
	if err = c.done(ctx, "its reviews", err); err != nil {
		return "", err
	}
	return v.says(len(pr.RequestedReviewers)+len(pr.RequestedTeams) > 0), nil
}

// pages calls get for every page of a list, until one has no next or get returns no
// response.
func pages(get func(page int) (*gogithub.Response, error)) error {
	page := 1
	for range maxPages {
		resp, err := get(page)
		if err != nil || resp == nil || resp.NextPage == 0 {
			return err
		}
		page = resp.NextPage
	}
	return fmt.Errorf("a list of GitHub has over %d pages", maxPages)
}
