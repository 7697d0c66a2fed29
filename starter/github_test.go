package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/workflows"
)

func TestGitHubDoor_WakesTheTaskOfThePullRequest(t *testing.T) {
	for _, name := range []string{"pull_request.opened", "pull_request.closed", "pull_request_review.submitted", "check_run.completed", "check_suite.completed", "status", "push"} {
		t.Run(name, func(t *testing.T) {
			r := newHookRoom(t)
			r.bind()
			kind, _, _ := strings.Cut(name, ".")
			status, _ := r.post(webhook(kind, hookPayload(t, name)))
			require.Equal(t, http.StatusOK, status)
			pull := 7
			if kind == "status" || kind == "push" {
				pull = 0
			}
			require.Equal(t, []sentTask{{seatName, hookSlug, workflows.TaskTrigger{
				Kind: workflows.TaskGitHub, Delivery: hookDelivery, Event: name, Repo: hookRepo, Pull: pull,
			}}}, r.tasks.all(), "once, though it is linked by number and by branch")
			require.Empty(t, r.orphans)
			require.Equal(t, map[string]int{hookTaken: 1}, r.counts)
		})
	}
}

func TestGitHubDoor_TakesBothOfGitHubsForms(t *testing.T) {
	r := newHookRoom(t)
	r.bind()
	body := []byte(url.Values{"payload": {string(hookPayload(t, "push"))}}.Encode())
	req := webhook("push", body)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	status, _ := r.post(req)
	require.Equal(t, http.StatusOK, status)
	require.Len(t, r.tasks.all(), 1)
}

func TestGitHubDoor_RefusesWhatGitHubDidNotSign(t *testing.T) {
	body := hookPayload(t, "push")
	mac := hmac.New(sha1.New, []byte(hookSecret))
	mac.Write(body)
	old := "sha1=" + hex.EncodeToString(mac.Sum(nil))
	for name, change := range map[string]func(*http.Request){
		"none":               func(r *http.Request) { r.Header.Del("X-Hub-Signature-256") },
		"forged":             func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64)) },
		"another secret":     func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", signBody("another", body)) },
		"the empty secret":   func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", signBody("", body)) },
		"another body":       func(r *http.Request) { r.Body = io.NopCloser(bytes.NewReader(append([]byte(" "), body...))) },
		"the old one alone":  func(r *http.Request) { r.Header.Del("X-Hub-Signature-256"); r.Header.Set("X-Hub-Signature", old) },
		"the old one as new": func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", old) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newHookRoom(t)
			r.bind()
			req := webhook("push", body)
			change(req)
			status, _ := r.post(req)
			require.Equal(t, http.StatusUnauthorized, status)
			require.Empty(t, r.tasks.all())
			require.Empty(t, r.links.marked)
			require.Equal(t, map[string]int{hookForged: 1}, r.counts)
			require.NotContains(t, r.out.String(), hookSecret)
		})
	}
}

func TestGitHubDoor_LooksAtNothingBeforeTheSignature(t *testing.T) {
	r := newHookRoom(t)
	for _, c := range []struct{ kind, contentType, body string }{
		{"ping", "application/json", "{}"}, {"no event\x1b", "text/html", "<p>"}, {"push", "application/json", "not JSON"},
	} {
		req := webhook("push", []byte(c.body))
		req.Header.Set("X-GitHub-Event", c.kind)
		req.Header.Set("Content-Type", c.contentType)
		req.Header.Set("X-Hub-Signature-256", signBody("another", []byte(c.body)))
		status, _ := r.post(req)
		require.Equal(t, http.StatusUnauthorized, status)
	}
}

func TestGitHubDoor_LogsBadSignaturesOnceAMinute(t *testing.T) {
	r := newHookRoom(t)
	now := time.Unix(1700000000, 0)
	r.now = func() time.Time { return now }
	flood := func() {
		for range 20 {
			req := webhook("push", []byte("{}"))
			req.Header.Set("X-Hub-Signature-256", "sha256=00")
			r.post(req)
		}
	}
	flood()
	require.Equal(t, 1, strings.Count(r.out.String(), "no valid signature"))
	now = now.Add(forgedQuiet + time.Second)
	flood()
	require.Equal(t, 2, strings.Count(r.out.String(), "no valid signature"))
	require.Equal(t, 40, r.counts[hookForged])
}

func TestGitHubDoor_AReplayDoesNothing(t *testing.T) {
	r := newHookRoom(t)
	r.bind()
	for range 3 {
		status, _ := r.post(webhook("push", hookPayload(t, "push")))
		require.Equal(t, http.StatusOK, status)
	}
	require.Len(t, r.tasks.all(), 1)
	require.Equal(t, map[string]int{hookTaken: 1, hookReplayed: 2}, r.counts)
}

func TestGitHubDoor_MarksADeliveryOnlyAfterItsSignalWasTaken(t *testing.T) {
	r := newHookRoom(t)
	r.bind()
	r.tasks.before = func() { require.Empty(t, r.links.marked) }
	r.tasks.err = errors.New("Temporal is down")
	status, text := r.post(webhook("push", hookPayload(t, "push")))
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.NotContains(t, text, "Temporal is down")
	require.Empty(t, r.links.marked)

	r.tasks.err = nil
	status, _ = r.post(webhook("push", hookPayload(t, "push"))) // sent again by hand
	require.Equal(t, http.StatusOK, status)
	require.Len(t, r.tasks.all(), 1)
	require.True(t, r.links.marked[hookDelivery])
}

func TestGitHubDoor_SaysSoWhenTheStoreIsDown(t *testing.T) {
	for _, call := range []string{"seen", "ofPull", "ofSlug"} {
		t.Run(call, func(t *testing.T) {
			r := newHookRoom(t)
			r.bind()
			r.links.breaks(call, errors.New("the store is down"))
			status, text := r.post(webhook("pull_request", hookPayload(t, "pull_request.opened")))
			require.Equal(t, http.StatusServiceUnavailable, status)
			require.NotContains(t, text, "store is down")
			require.Empty(t, r.tasks.all())
			require.Equal(t, map[string]int{hookFailed: 1}, r.counts)
		})
	}
	t.Run("took", func(t *testing.T) {
		r := newHookRoom(t)
		r.bind()
		r.links.breaks("took", errors.New("the store is down"))
		status, _ := r.post(webhook("push", hookPayload(t, "push")))
		require.Equal(t, http.StatusOK, status, "the task was woken: nothing is lost")
	})
}
