package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	gogithub "github.com/google/go-github/v92/github"
)

// The names of the webhooks that mean something here. ReadEvent reads the others as
// their name and their repository.
const (
	EventPing         = "ping"
	EventPush         = "push"
	EventPull         = "pull_request"
	EventReview       = "pull_request_review"
	EventReviewThread = "pull_request_review_thread"
	EventCheckRun     = "check_run"
	EventCheckSuite   = "check_suite"
	EventStatus       = "status"
)

// Known tells whether webhooks of that name tell of a branch or a pull request.
func Known(kind string) bool {
	switch kind {
	case EventPush, EventPull, EventReview, EventReviewThread, EventCheckRun, EventCheckSuite, EventStatus:
		return true
	}
	return false
}

// Event is what a webhook tells: which pull requests and branches to read again. It is
// made of what anyone can cause on GitHub, and only wakes.
type Event struct {
	// Delivery is GitHub's id of this sending; sending it again keeps it.
	Delivery string
	// Kind is its name, such as pull_request, and Action what happened, such as opened.
	Kind, Action string
	// Repo is owner/name; "" where an event is about none, as the ping of an organisation.
	Repo string
	// Number is the first of Numbers, and Branch the first of Branches.
	Number int
	Branch string
	SHA    string
	// Numbers are the pull requests of Repo that it is about.
	Numbers []int
	// Branches are those of Repo itself, never of a fork, that it is about.
	Branches []string
}

// The headers of a webhook.
const (
	headerEvent     = "X-GitHub-Event"
	headerDelivery  = "X-GitHub-Delivery"
	headerSignature = "X-Hub-Signature-256"
)

// The most that is taken of a list in a webhook, whose senders may grow it at will.
const maxNamed = 100

// ErrSignature: a webhook that GitHub did not sign with our secret. Nothing of it may be
// believed, and nothing is said about what is wrong with it.
var ErrSignature = errors.New("the webhook has no valid signature")

// Verify checks the signature of a webhook over its raw body, before anything of it is
// read, in constant time (X4). Only SHA-256 counts: the older X-Hub-Signature is
// refused. Without a secret nothing is valid.
func Verify(header http.Header, body, secret []byte) error {
	if len(secret) == 0 || !Signed(header) || gogithub.ValidateSignature(header.Get(headerSignature), body, secret) != nil {
		return ErrSignature
	}
	return nil
}

// Signed tells whether a webhook comes with something of the shape of a signature: what
// does not need not even be read. Verify says whether it is one.
func Signed(header http.Header) bool {
	given := header.Values(headerSignature)
	return len(given) == 1 && strings.HasPrefix(given[0], "sha256=")
}

var (
	deliveryPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	wordPattern     = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	shaPattern      = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
)

// repoPart is a repository in a payload.
type repoPart struct {
	ID       int64  `json:"id"`
	FullName string `json:"full_name"`
}

// headPart is one side of a pull request.
type headPart struct {
	Ref  string   `json:"ref"`
	SHA  string   `json:"sha"`
	Repo repoPart `json:"repo"`
}

// pullPart is a pull request in a payload.
type pullPart struct {
	Number int      `json:"number"`
	Head   headPart `json:"head"`
	Base   headPart `json:"base"`
}

// suitePart is a check suite, and the part of a check run that is like one.
type suitePart struct {
	HeadBranch   string     `json:"head_branch"`
	HeadSHA      string     `json:"head_sha"`
	PullRequests []pullPart `json:"pull_requests"`
}

// payload is what is read of any of the webhooks.
type payload struct {
	Action      string    `json:"action"`
	Repository  repoPart  `json:"repository"`
	PullRequest pullPart  `json:"pull_request"`
	CheckSuite  suitePart `json:"check_suite"`
	CheckRun    struct {
		suitePart
		CheckSuite suitePart `json:"check_suite"`
	} `json:"check_run"`
	Ref      string `json:"ref"`
	After    string `json:"after"`
	SHA      string `json:"sha"`
	Branches []struct {
		Name string `json:"name"`
	} `json:"branches"`
}

// ReadEvent reads a webhook: its headers, and its body as JSON. Call Verify first. It
// fails on what is no webhook of GitHub's, and on JSON that cannot be read; what it does
// return is of safe shape (X2), but for the branches: they are any text that git allows.
func ReadEvent(header http.Header, body []byte) (Event, error) {
	e := Event{Delivery: header.Get(headerDelivery), Kind: header.Get(headerEvent)}
	if !deliveryPattern.MatchString(e.Delivery) {
		return Event{}, fmt.Errorf("the webhook has no %s", headerDelivery)
	}
	if !wordPattern.MatchString(e.Kind) {
		return Event{}, fmt.Errorf("the webhook has no %s", headerEvent)
	}
	if !Known(e.Kind) && e.Kind != EventPing {
		return e, nil // its body may be of any shape
	}
	var p payload
	if err := json.Unmarshal(body, &p); err != nil {
		return Event{}, errors.New("the webhook's body is no JSON of the documented shape")
	}
	if wordPattern.MatchString(p.Action) {
		e.Action = p.Action
	}
	e.Repo = p.Repository.FullName
	if e.Repo != "" && !ValidRepo(e.Repo) || e.Repo == "" && e.Kind != EventPing {
		return Event{}, errors.New("the webhook names no repository")
	}
	e.take(p)
	if len(e.Numbers) > 0 {
		e.Number = e.Numbers[0]
	}
	if len(e.Branches) > 0 {
		e.Branch = e.Branches[0]
	}
	return e, nil
}

// take takes out what the webhook is about.
func (e *Event) take(p payload) {
	switch e.Kind {
	case EventPull, EventReview, EventReviewThread:
		e.number(p.PullRequest.Number)
		e.SHA = cleanSHA(p.PullRequest.Head.SHA)
		if id := p.PullRequest.Head.Repo.ID; id != 0 && id == p.Repository.ID {
			e.branch(p.PullRequest.Head.Ref)
		}
	case EventCheckSuite:
		e.suite(p.CheckSuite, p.Repository.ID)
	case EventCheckRun:
		e.suite(p.CheckRun.suitePart, p.Repository.ID)
		e.suite(p.CheckRun.CheckSuite, p.Repository.ID)
		e.SHA = cleanSHA(p.CheckRun.HeadSHA)
	case EventStatus:
		e.SHA = cleanSHA(p.SHA)
		for _, b := range p.Branches {
			e.branch(b.Name)
		}
	case EventPush:
		e.SHA = cleanSHA(p.After)
		if branch, ok := strings.CutPrefix(p.Ref, "refs/heads/"); ok {
			e.branch(branch)
		}
	}
}

// suite takes the pull requests into this very repository: a suite also names those of
// forks.
func (e *Event) suite(s suitePart, repo int64) {
	e.SHA = cleanSHA(s.HeadSHA)
	e.branch(s.HeadBranch)
	for _, pr := range s.PullRequests {
		if pr.Base.Repo.ID == repo && repo != 0 {
			e.number(pr.Number)
		}
	}
}

func (e *Event) number(n int) {
	if n > 0 && len(e.Numbers) < maxNamed && !slices.Contains(e.Numbers, n) {
		e.Numbers = append(e.Numbers, n)
	}
}

func (e *Event) branch(name string) {
	if name != "" && len(name) <= branchRunes && utf8.ValidString(name) && len(e.Branches) < maxNamed && !slices.Contains(e.Branches, name) {
		e.Branches = append(e.Branches, name)
	}
}

func cleanSHA(sha string) string {
	if shaPattern.MatchString(sha) {
		return sha
	}
	return ""
}
