package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"agentsmith/internal/github"
	"agentsmith/internal/store"
	"agentsmith/rules"
	"agentsmith/workflows"
)

const (
	// webhookPath is where GitHub sends webhooks.
	webhookPath = "/github/webhook"
	// webhookPlaces is how many webhooks are read at once, which bounds the memory that
	// they take. A check suite sends a few dozen in a burst; further ones wait.
	webhookPlaces = 32
	// webhookWork ends the work of one webhook, before GitHub gives up after 10 s.
	webhookWork = 8 * time.Second
	// forgedQuiet is how long nothing more is logged of webhooks with a bad signature.
	forgedQuiet = time.Minute
)

// pullLink is a thread that a webhook is about.
type pullLink struct {
	seat   string
	thread rules.Thread
	// slug is the operator's that works for the thread; "" where none does.
	slug string
	// pull is the pull request that links them; number 0: found by its branch alone.
	pull store.PullRequest
}

// pullLinks is what the store knows of pull requests and webhooks.
type pullLinks interface {
	// ofPull are the threads that a pull request is linked to.
	ofPull(ctx context.Context, repo string, number int) ([]pullLink, error)
	// ofSlug are the threads whose operator has that slug: one, or none.
	ofSlug(ctx context.Context, slug string) ([]pullLink, error)
	// seen tells whether a delivery was handed on; took remembers that it was.
	seen(ctx context.Context, delivery string) (bool, error)
	took(ctx context.Context, delivery string) error
}

// operatorTasks reaches the workflows of operator tasks; errNoTask where none runs.
type operatorTasks interface {
	tell(ctx context.Context, seat, slug string, trigger workflows.TaskTrigger) error
}

// withoutOperator is told of a pull request whose thread has no operator task (P2).
type withoutOperator func(ctx context.Context, t rules.Thread, seat string, pull store.PullRequest) error

// githubDoor takes the webhooks of GitHub and wakes the operator tasks that they are
// about (O10). A webhook is only a wake: the task reads GitHub itself. So one that is
// lost costs time until the next slow poll, and one that comes twice costs a read.
type githubDoor struct {
	secret []byte
	links  pullLinks
	tasks  operatorTasks
	// orphan is told of what has no operator task; nil is nobody.
	orphan withoutOperator
	count  func(outcome string)
	log    *slog.Logger
	now    func() time.Time

	places chan struct{}
	// forged is when the last bad signature was logged, in ns.
	forged atomic.Int64
}

// newGitHubDoor returns a door that is not served yet.
func newGitHubDoor(secret string, links pullLinks, tasks operatorTasks, orphan withoutOperator, count func(string), log *slog.Logger) *githubDoor {
	if count == nil {
		count = func(string) {}
	}
	return &githubDoor{
		secret: []byte(secret), links: links, tasks: tasks, orphan: orphan, count: count, log: log, now: time.Now,
		places: make(chan struct{}, webhookPlaces),
	}
}

// ServeHTTP takes one webhook. Its answers are read by whoever set the webhook up, on
// GitHub's page of recent deliveries; GitHub itself sends nothing again.
func (d *githubDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	ctx, cancel := context.WithTimeout(r.Context(), webhookWork)
	defer cancel()
	outcome, text, err := d.take(ctx, w, r)
	status := http.StatusOK
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		status, outcome, text = refused.status, refused.outcome, refused.text
	case err != nil:
		status, outcome, text = http.StatusServiceUnavailable, hookFailed, "Smith could not hand this on; it looks at its pull requests again by itself."
		d.log.WarnContext(ctx, "a webhook of GitHub was not handed on; the task looks by itself later", "error", err)
	case outcome == hookNotAsked || outcome == hookNobody:
		status = http.StatusAccepted
	}
	d.count(outcome)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

// take reads a webhook and acts on it.
func (d *githubDoor) take(ctx context.Context, w http.ResponseWriter, r *http.Request) (outcome, text string, err error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return "", "", &refusal{http.StatusMethodNotAllowed, hookRefused, "Webhooks are sent by POST."}
	}
	if r.ContentLength > webhookBytes {
		return "", "", tooLarge()
	}
	if !github.Signed(r.Header) {
		d.logForged(ctx)
		return "", "", unsigned() // without reading it
	}
	select {
	case d.places <- struct{}{}:
		defer func() { <-d.places }()
	case <-ctx.Done():
		return "", "", &refusal{http.StatusServiceUnavailable, hookBusy, "Too many webhooks at once."}
	}
	body, err := readWebhook(w, r)
	if err != nil {
		return "", "", err
	}
	// Nothing of it is looked at before this, its headers included.
	if err := github.Verify(r.Header, body, d.secret); err != nil {
		d.logForged(ctx)
		return "", "", unsigned()
	}
	payload, err := unwrap(r.Header.Get("Content-Type"), body)
	if err != nil {
		return "", "", err
	}
	e, err := github.ReadEvent(r.Header, payload)
	if err != nil {
		d.log.WarnContext(ctx, "a signed webhook could not be read", "error", err)
		return "", "", &refusal{http.StatusBadRequest, hookMalformed, "This is no webhook of the documented shape: " + err.Error() + "."}
	}
	return d.act(ctx, e)
}

// act wakes whom a webhook is about. It is marked as taken after that, never before: a
// crash in between costs a second wake, and not the event.
func (d *githubDoor) act(ctx context.Context, e github.Event) (outcome, text string, err error) {
	switch {
	case e.Kind == github.EventPing:
		d.log.InfoContext(ctx, "GitHub's ping came: the webhook is set up", "repo", e.Repo, "delivery", e.Delivery)
		return hookPing, "pong", nil
	case !github.Known(e.Kind):
		return hookNotAsked, "Smith does nothing with these; it needs pull requests, reviews, checks, statuses and pushes.", nil
	}
	if seen, err := d.links.seen(ctx, e.Delivery); err != nil {
		return "", "", fmt.Errorf("look for the delivery %s: %w", e.Delivery, err)
	} else if seen {
		return hookReplayed, "This delivery was taken before; nothing is done.", nil
	}
	found, err := d.find(ctx, e)
	if err != nil {
		return "", "", err
	}
	if len(found) == 0 {
		return hookNobody, "No thread is about this.", nil
	}
	var errs []error
	for _, link := range found {
		errs = append(errs, d.wake(ctx, e, link))
	}
	if err := errors.Join(errs...); err != nil {
		return "", "", fmt.Errorf("delivery %s: %w", e.Delivery, err)
	}
	d.log.InfoContext(ctx, "a webhook of GitHub was handed on", "event", eventName(e), "repo", e.Repo, "pull", e.Number, "delivery", e.Delivery, "threads", len(found))
	if err := d.links.took(ctx, e.Delivery); err != nil {
		d.log.WarnContext(ctx, "a delivery was not marked as taken; sent again it wakes again", "delivery", e.Delivery, "error", err)
	}
	return hookTaken, "Taken.", nil
}

// find returns the threads that a webhook is about: by the links of its pull requests,
// and by its branches where they are an operator's.
func (d *githubDoor) find(ctx context.Context, e github.Event) ([]pullLink, error) {
	type key struct {
		seat   string
		thread rules.Thread
		number int
	}
	var found []pullLink
	have, woken := map[key]bool{}, map[string]bool{}
	take := func(links []pullLink) {
		for _, l := range links {
			k := key{l.seat, l.thread, l.pull.Number}
			if have[k] || (l.slug != "" && woken[l.seat+"/"+l.slug]) {
				continue
			}
			have[k] = true
			if l.slug != "" {
				woken[l.seat+"/"+l.slug] = true
			}
			found = append(found, l)
		}
	}
	for _, n := range e.Numbers {
		links, err := d.links.ofPull(ctx, e.Repo, n)
		if err != nil {
			return nil, fmt.Errorf("look for the threads of pull request %d of %s: %w", n, e.Repo, err)
		}
		take(links)
	}
	for _, branch := range e.Branches {
		slug, ok := strings.CutPrefix(branch, rules.BranchOf(""))
		if !ok || !rules.ValidSlug(slug) {
			continue
		}
		links, err := d.links.ofSlug(ctx, slug)
		if err != nil {
			return nil, fmt.Errorf("look for the operator %s: %w", slug, err)
		}
		take(links)
	}
	return found, nil
}

// wake wakes the operator task of a thread. Where none runs, a pull request is told to
// whoever renders for a thread without a task (P2); a branch alone says nothing then.
func (d *githubDoor) wake(ctx context.Context, e github.Event, link pullLink) error {
	if link.slug != "" {
		err := d.tasks.tell(ctx, link.seat, link.slug, workflows.TaskTrigger{
			Kind: workflows.TaskGitHub, Delivery: e.Delivery, Event: eventName(e), Repo: e.Repo, Pull: cmp.Or(link.pull.Number, e.Number),
		})
		if !errors.Is(err, errNoTask) {
			return err
		}
	}
	if link.pull.Number == 0 || d.orphan == nil {
		return nil
	}
	if err := d.orphan(ctx, link.thread, link.seat, link.pull); err != nil {
		return fmt.Errorf("tell the thread %s of %s of its pull request: %w", link.thread.Root, link.thread.Channel, err)
	}
	return nil
}

func eventName(e github.Event) string {
	if e.Action == "" {
		return e.Kind
	}
	return e.Kind + "." + e.Action
}

// logForged logs a bad signature, once in a while: whoever finds the door can send as
// many as they like.
func (d *githubDoor) logForged(ctx context.Context) {
	now, last := d.now().UnixNano(), d.forged.Load()
	if last != 0 && now-last < int64(forgedQuiet) || !d.forged.CompareAndSwap(last, now) {
		return
	}
	d.log.WarnContext(ctx, "a webhook has no valid signature: it is not GitHub's, or its secret is not SMITH_GITHUB_WEBHOOK_SECRET; further ones are counted and not logged for a minute")
}
