package githubbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// repository is what is known of one.
type repository struct {
	id       int64
	fullName string
	pulls    []*pull // by number, from 1
	branches map[string]string
	statuses map[string][]Status
	runs     map[string][]CheckRun
}

// Pull is a pull request as it is opened.
type Pull struct {
	Repo   string `json:"repo"`
	Branch string `json:"branch"`
	SHA    string `json:"sha"`
	Title  string `json:"title"`
	// Author is a login; "" is mira.
	Author string `json:"author,omitempty"`
	Draft  bool   `json:"draft,omitempty"`
	// Fork: the branch is in somebody's fork, not in Repo.
	Fork bool `json:"fork,omitempty"`
}

// pull is a pull request.
type pull struct {
	Pull
	id                            int64
	number                        int
	closed                        bool
	openedAt, closedAt, updatedAt time.Time
	mergedAt                      time.Time
	requested                     []string
	reviews                       []Review
}

// Review is what a reviewer submits.
type Review struct {
	// User is a login; "" is noor.
	User string `json:"user,omitempty"`
	// State is APPROVED, CHANGES_REQUESTED, COMMENTED or DISMISSED.
	State string `json:"state"`
	// Association is what the reviewer is to the repository; "" is MEMBER.
	Association string `json:"association,omitempty"`
	id          int64
	at          time.Time
}

// Status is a commit status.
type Status struct {
	Context string `json:"context"`
	// State is pending, success, failure or error.
	State string `json:"state"`
	id    int64
	at    time.Time
}

// CheckRun is one check of a commit.
type CheckRun struct {
	Name string `json:"name"`
	// Status is queued, in_progress or completed; Conclusion is there when completed.
	Status     string `json:"status"`
	Conclusion string `json:"conclusion,omitempty"`
	id         int64
	at         time.Time
}

// errNotFound is what GitHub answers with 404.
var errNotFound = errors.New("githubbox: no such thing")

// repo returns a repository, which it makes. Called with mu held.
func (s *Server) repo(fullName string) (*repository, error) {
	owner, name, ok := strings.Cut(fullName, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("githubbox: %q is no repository: write owner/name", fullName)
	}
	key := strings.ToLower(fullName)
	if s.repos[key] == nil {
		s.repos[key] = &repository{
			id: s.nextID(), fullName: fullName, branches: map[string]string{}, statuses: map[string][]Status{}, runs: map[string][]CheckRun{},
		}
	}
	return s.repos[key], nil
}

func (r *repository) pull(number int) (*pull, error) {
	if number < 1 || number > len(r.pulls) {
		return nil, fmt.Errorf("%w: pull request %d of %s", errNotFound, number, r.fullName)
	}
	return r.pulls[number-1], nil
}

// change makes a change with mu held, and sends the webhooks that it returns without.
func (s *Server) change(repo string, how func(r *repository) ([]event, error)) error {
	s.mu.Lock()
	r, err := s.repo(repo)
	var events []event
	if err == nil {
		events, err = how(r)
	}
	s.mu.Unlock()
	for _, e := range events {
		s.send(e)
	}
	return err
}

// Push moves a branch to a commit, and with it the open pull requests of it.
func (s *Server) Push(repo, branch, sha string) error {
	return s.change(repo, func(r *repository) ([]event, error) {
		before := r.branches[branch]
		r.branches[branch] = sha
		events := []event{s.pushed(r, branch, before, sha)}
		for _, p := range r.pulls {
			if p.Branch == branch && !p.Fork && !p.closed {
				p.SHA, p.updatedAt = sha, s.opt.Now()
				events = append(events, s.pullEvent(r, p, "synchronize"))
			}
		}
		return events, nil
	})
}

// OpenPull opens a pull request and returns its number.
func (s *Server) OpenPull(p Pull) (number int, err error) {
	err = s.change(p.Repo, func(r *repository) ([]event, error) {
		if p.Branch == "" || p.SHA == "" {
			return nil, errors.New("githubbox: a pull request has a branch and a commit")
		}
		if p.Author == "" {
			p.Author = "mira"
		}
		opened := &pull{Pull: p, id: s.nextID(), number: len(r.pulls) + 1, openedAt: s.opt.Now(), updatedAt: s.opt.Now()}
		r.pulls = append(r.pulls, opened)
		number = opened.number
		if !p.Fork {
			r.branches[p.Branch] = p.SHA
		}
		return []event{s.pullEvent(r, opened, "opened")}, nil
	})
	return number, err
}

// onPull changes one pull request.
func (s *Server) onPull(repo string, number int, how func(r *repository, p *pull) event) error {
	return s.change(repo, func(r *repository) ([]event, error) {
		p, err := r.pull(number)
		if err != nil {
			return nil, err
		}
		p.updatedAt = s.opt.Now()
		return []event{how(r, p)}, nil
	})
}

// Merge merges a pull request.
func (s *Server) Merge(repo string, number int) error {
	return s.onPull(repo, number, func(r *repository, p *pull) event {
		p.closed, p.closedAt, p.mergedAt = true, s.opt.Now(), s.opt.Now()
		return s.pullEvent(r, p, "closed")
	})
}

// ClosePull closes a pull request without a merge.
func (s *Server) ClosePull(repo string, number int) error {
	return s.onPull(repo, number, func(r *repository, p *pull) event {
		p.closed, p.closedAt = true, s.opt.Now()
		return s.pullEvent(r, p, "closed")
	})
}

// SetDraft makes a pull request a draft, or ready.
func (s *Server) SetDraft(repo string, number int, draft bool) error {
	return s.onPull(repo, number, func(r *repository, p *pull) event {
		p.Draft = draft
		if draft {
			return s.pullEvent(r, p, "converted_to_draft")
		}
		return s.pullEvent(r, p, "ready_for_review")
	})
}

// RequestReview asks somebody for a review.
func (s *Server) RequestReview(repo string, number int, user string) error {
	return s.onPull(repo, number, func(r *repository, p *pull) event {
		if !slices.Contains(p.requested, user) {
			p.requested = append(p.requested, user)
		}
		return s.pullEvent(r, p, "review_requested")
	})
}

// Review submits a review; its user is no longer asked for one.
func (s *Server) Review(repo string, number int, review Review) error {
	return s.onPull(repo, number, func(r *repository, p *pull) event {
		if review.User == "" {
			review.User = "noor"
		}
		if review.Association == "" {
			review.Association = "MEMBER"
		}
		review.id, review.at = s.nextID(), s.opt.Now()
		p.requested = slices.DeleteFunc(p.requested, func(u string) bool { return u == review.User })
		p.reviews = append(p.reviews, review)
		return s.reviewEvent(r, p, review)
	})
}

// SetStatus sets a status of a commit; the newest of a context counts.
func (s *Server) SetStatus(repo, sha string, status Status) error {
	return s.change(repo, func(r *repository) ([]event, error) {
		status.id, status.at = s.nextID(), s.opt.Now()
		list := slices.DeleteFunc(r.statuses[sha], func(o Status) bool { return o.Context == status.Context })
		r.statuses[sha] = append(list, status)
		return []event{s.statusEvent(r, sha, status)}, nil
	})
}

// SetCheck sets a check run of a commit; the newest of a name counts. When the last run
// of a commit completes, so does its suite.
func (s *Server) SetCheck(repo, sha string, run CheckRun) error {
	return s.change(repo, func(r *repository) ([]event, error) {
		run.id, run.at = s.nextID(), s.opt.Now()
		list := slices.DeleteFunc(r.runs[sha], func(o CheckRun) bool { return o.Name == run.Name })
		r.runs[sha] = append(list, run)
		events := []event{s.checkRunEvent(r, sha, run)}
		if !slices.ContainsFunc(r.runs[sha], func(o CheckRun) bool { return o.Status != "completed" }) {
			events = append(events, s.checkSuiteEvent(r, sha))
		}
		return events, nil
	})
}
