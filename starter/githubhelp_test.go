package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/internal/telemetry"
	"agentsmith/rules"
	"agentsmith/workflows"
)

const (
	hookSecret   = "a secret of the hook"
	hookDelivery = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
	hookRepo     = "acme/garden"
	hookSlug     = "water-the-roses"
)

// fakeLinks is what the store knows of pull requests.
type fakeLinks struct {
	mu     sync.Mutex
	pulls  map[int][]pullLink // of hookRepo
	slugs  map[string]pullLink
	marked map[string]bool
	asked  []string // slugs
	// fail makes the named call fail.
	fail map[string]error
}

func newFakeLinks() *fakeLinks {
	return &fakeLinks{pulls: map[int][]pullLink{}, slugs: map[string]pullLink{}, marked: map[string]bool{}, fail: map[string]error{}}
}

func (f *fakeLinks) ofPull(_ context.Context, repo string, number int) ([]pullLink, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if repo != hookRepo {
		return nil, f.fail["ofPull"]
	}
	return f.pulls[number], f.fail["ofPull"]
}

func (f *fakeLinks) ofSlug(_ context.Context, slug string) ([]pullLink, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, slug)
	if l, ok := f.slugs[slug]; ok {
		return []pullLink{l}, f.fail["ofSlug"]
	}
	return nil, f.fail["ofSlug"]
}

func (f *fakeLinks) seen(_ context.Context, delivery string) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marked[delivery], f.fail["seen"]
}

func (f *fakeLinks) took(_ context.Context, delivery string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail["took"]; err != nil {
		return err
	}
	f.marked[delivery] = true
	return nil
}

func (f *fakeLinks) breaks(call string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail[call] = err
}

// sentTask is one signal to an operator task.
type sentTask struct {
	seat, slug string
	trigger    workflows.TaskTrigger
}

// fakeTasks are operator tasks that keep what they are told.
type fakeTasks struct {
	mu   sync.Mutex
	sent []sentTask
	err  error
	// before is called before each signal is taken.
	before func()
}

func (f *fakeTasks) tell(_ context.Context, seat, slug string, trigger workflows.TaskTrigger) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		f.before()
	}
	if f.err != nil {
		return f.err
	}
	f.sent = append(f.sent, sentTask{seat, slug, trigger})
	return nil
}

func (f *fakeTasks) all() []sentTask {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]sentTask(nil), f.sent...)
}

// hookRoom is a webhook door with all that is around it.
type hookRoom struct {
	*githubDoor
	links   *fakeLinks
	tasks   *fakeTasks
	orphans []store.PullRequest
	counts  map[string]int
	out     *bytes.Buffer
	mu      sync.Mutex
}

func newHookRoom(t *testing.T) *hookRoom {
	t.Helper()
	r := &hookRoom{links: newFakeLinks(), tasks: &fakeTasks{}, counts: map[string]int{}, out: &bytes.Buffer{}}
	log, err := telemetry.NewLogger(&lockedWriter{w: r.out, mu: &r.mu}, "debug", "text")
	require.NoError(t, err)
	r.githubDoor = newGitHubDoor(hookSecret, r.links, r.tasks, func(_ context.Context, _ rules.Thread, _ string, p store.PullRequest) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.orphans = append(r.orphans, p)
		return nil
	}, func(outcome string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.counts[outcome]++
	}, log)
	return r
}

type lockedWriter struct {
	w  io.Writer
	mu *sync.Mutex
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// bind links pull request 7 and the branch of it to a thread with an operator.
func (r *hookRoom) bind() pullLink {
	l := pullLink{seat: seatName, thread: rules.Thread{Channel: "C1", Root: ts1}, slug: hookSlug}
	r.links.slugs[hookSlug] = l
	l.pull = store.PullRequest{Repo: hookRepo, Number: 7, Seat: seatName, Thread: l.thread}
	r.links.pulls[7] = []pullLink{l}
	return l
}

func hookPayload(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "internal", "githubbox", "payloads", name+".json"))
	require.NoError(t, err)
	return raw
}

func signBody(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// webhook is a request as GitHub makes it.
func webhook(kind string, body []byte) *http.Request {
	r := httptest.NewRequest(http.MethodPost, webhookPath, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-GitHub-Event", kind)
	r.Header.Set("X-GitHub-Delivery", hookDelivery)
	r.Header.Set("X-Hub-Signature-256", signBody(hookSecret, body))
	return r
}

// post gives a request to the door and returns the answer's status and text.
func (r *hookRoom) post(req *http.Request) (status int, text string) {
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}
