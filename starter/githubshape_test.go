package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

func TestGitHubDoor_AnswersPingAndWhatItDoesNotKnow(t *testing.T) {
	r := newHookRoom(t)
	status, text := r.post(webhook("ping", hookPayload(t, "ping")))
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "pong\n", text)

	status, _ = r.post(webhook("star", hookPayload(t, "star.created")))
	require.Equal(t, http.StatusAccepted, status)
	require.Equal(t, map[string]int{hookPing: 1, hookNotAsked: 1}, r.counts)
	require.Empty(t, r.links.marked)
}

func TestGitHubDoor_AnUnknownRepositoryWakesNobody(t *testing.T) {
	r := newHookRoom(t)
	r.bind()
	body := bytes.ReplaceAll(hookPayload(t, "pull_request.opened"), []byte("acme/garden"), []byte("acme/elsewhere"))
	body = bytes.ReplaceAll(body, []byte("smith/water-the-roses"), []byte("main"))
	status, _ := r.post(webhook("pull_request", body))
	require.Equal(t, http.StatusAccepted, status)
	require.Empty(t, r.tasks.all())
	require.Empty(t, r.links.marked, "what nobody is about is not kept")
	require.Equal(t, map[string]int{hookNobody: 1}, r.counts)
}

func TestGitHubDoor_TakesNoBranchThatIsNoOperators(t *testing.T) {
	for _, branch := range []string{"main", "smith/", "smith/../water-the-roses", "smith/Water-The-Roses", "smith/water-the-roses/x", "Smith/water-the-roses", "refs/heads/smith/water-the-roses", "water-the-roses"} {
		r := newHookRoom(t)
		r.bind()
		body := bytes.ReplaceAll(hookPayload(t, "push"), []byte("refs/heads/smith/water-the-roses"), []byte("refs/heads/"+branch))
		status, _ := r.post(webhook("push", body))
		require.Equal(t, http.StatusAccepted, status, branch)
		require.Empty(t, r.tasks.all(), branch)
		require.Empty(t, r.links.asked, branch)
	}
}

func TestGitHubDoor_TellsOfAPullRequestWithoutAnOperator(t *testing.T) {
	linked := pullLink{seat: seatName, thread: rules.Thread{Channel: "C1", Root: ts1}, pull: store.PullRequest{Repo: hookRepo, Number: 7}}
	t.Run("no operator is bound", func(t *testing.T) {
		r := newHookRoom(t)
		r.links.pulls[7] = []pullLink{linked}
		status, _ := r.post(webhook("pull_request", hookPayload(t, "pull_request.closed")))
		require.Equal(t, http.StatusOK, status)
		require.Empty(t, r.tasks.all())
		require.Equal(t, []store.PullRequest{linked.pull}, r.orphans)
		require.True(t, r.links.marked[hookDelivery])
	})
	t.Run("its task has ended", func(t *testing.T) {
		r := newHookRoom(t)
		l := r.bind()
		r.tasks.err = fmt.Errorf("signal: %w", errNoTask)
		status, _ := r.post(webhook("pull_request", hookPayload(t, "pull_request.closed")))
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, []store.PullRequest{l.pull}, r.orphans)
	})
	t.Run("a branch alone says nothing", func(t *testing.T) {
		r := newHookRoom(t)
		r.bind()
		r.tasks.err = errNoTask
		status, _ := r.post(webhook("push", hookPayload(t, "push")))
		require.Equal(t, http.StatusOK, status)
		require.Empty(t, r.orphans)
	})
	t.Run("nobody listens", func(t *testing.T) {
		r := newHookRoom(t)
		r.orphan = nil
		r.links.pulls[7] = []pullLink{linked}
		status, _ := r.post(webhook("pull_request", hookPayload(t, "pull_request.closed")))
		require.Equal(t, http.StatusOK, status)
	})
	t.Run("a failure is answered so", func(t *testing.T) {
		r := newHookRoom(t)
		r.orphan = func(context.Context, rules.Thread, string, store.PullRequest) error { return context.DeadlineExceeded }
		r.links.pulls[7] = []pullLink{linked}
		status, _ := r.post(webhook("pull_request", hookPayload(t, "pull_request.closed")))
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Empty(t, r.links.marked)
	})
}

func TestGitHubDoor_WakesEveryThreadThoughOneFails(t *testing.T) {
	r := newHookRoom(t)
	second := rules.Thread{Channel: "C2", Root: ts2}
	r.links.pulls[7] = []pullLink{
		{seat: seatName, thread: second, pull: store.PullRequest{Repo: hookRepo, Number: 7}},
		{seat: seatName, thread: rules.Thread{Channel: "C1", Root: ts1}, slug: hookSlug, pull: store.PullRequest{Repo: hookRepo, Number: 7}},
	}
	r.orphan = func(context.Context, rules.Thread, string, store.PullRequest) error { return context.DeadlineExceeded }
	status, _ := r.post(webhook("pull_request", hookPayload(t, "pull_request.opened")))
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Len(t, r.tasks.all(), 1)
	require.Empty(t, r.links.marked)
}

func TestGitHubDoor_RefusesWhatIsNoWebhook(t *testing.T) {
	signed := func(body string) *http.Request { return webhook("push", []byte(body)) }
	large := strings.Repeat(" ", webhookBytes+1)
	for name, c := range map[string]struct {
		req    func() *http.Request
		status int
		count  string
	}{
		"GET": {func() *http.Request { r := signed("{}"); r.Method = http.MethodGet; return r }, http.StatusMethodNotAllowed, hookRefused},
		"PUT": {func() *http.Request { r := signed("{}"); r.Method = http.MethodPut; return r }, http.StatusMethodNotAllowed, hookRefused},
		"too large and says so": {func() *http.Request {
			r := signed("{}")
			r.Body, r.ContentLength = io.NopCloser(iotest.ErrReader(errors.New("it was read"))), webhookBytes+1
			return r
		}, http.StatusRequestEntityTooLarge, hookRefused},
		"too large in chunks": {func() *http.Request { r := signed(large); r.ContentLength = -1; return r }, http.StatusRequestEntityTooLarge, hookRefused},
		"no JSON":             {func() *http.Request { return signed("{") }, http.StatusBadRequest, hookMalformed},
		"empty":               {func() *http.Request { return signed("") }, http.StatusBadRequest, hookMalformed},
		"another type": {func() *http.Request { r := signed("{}"); r.Header.Set("Content-Type", "text/plain"); return r },
			http.StatusUnsupportedMediaType, hookMalformed},
		"no type": {func() *http.Request { r := signed("{}"); r.Header.Del("Content-Type"); return r }, http.StatusUnsupportedMediaType, hookMalformed},
		"a form without a payload": {func() *http.Request {
			r := signed("a=b")
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			return r
		}, http.StatusBadRequest, hookMalformed},
		"a form with two": {func() *http.Request {
			r := signed("payload={}&payload={}")
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			return r
		}, http.StatusBadRequest, hookMalformed},
		"no delivery": {func() *http.Request { r := signed("{}"); r.Header.Del("X-GitHub-Delivery"); return r }, http.StatusBadRequest, hookMalformed},
		"a delivery with a line": {func() *http.Request { r := signed("{}"); r.Header.Set("X-GitHub-Delivery", "a\nb"); return r },
			http.StatusBadRequest, hookMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			r := newHookRoom(t)
			r.bind()
			status, _ := r.post(c.req())
			require.Equal(t, c.status, status)
			require.Empty(t, r.tasks.all())
			require.Equal(t, map[string]int{c.count: 1}, r.counts)
		})
	}
}

func TestGitHubDoor_DoesNotReadWhatIsNotSigned(t *testing.T) {
	r := newHookRoom(t)
	req := webhook("push", []byte("{}"))
	req.Header.Del("X-Hub-Signature-256")
	req.Body = io.NopCloser(iotest.ErrReader(errors.New("it was read")))
	status, _ := r.post(req)
	require.Equal(t, http.StatusUnauthorized, status)
}

func TestGitHubDoor_TellsTheMostThatItReads(t *testing.T) {
	r := newHookRoom(t)
	r.bind()
	body := hookPayload(t, "push")
	body = append(body, bytes.Repeat([]byte(" "), webhookBytes-len(body))...)
	status, _ := r.post(webhook("push", body))
	require.Equal(t, http.StatusOK, status, "this much is read")
}

func TestGitHubDoor_LogsNothingThatAStrangerWrote(t *testing.T) {
	r := newHookRoom(t)
	r.bind()
	evil := `evil \u001b[2J\nlevel=ERROR msg=forged\u202e`
	for _, name := range []string{"pull_request.opened", "push", "check_run.completed", "status", "ping"} {
		body := hookPayload(t, name)
		for _, text := range []string{"Water the roses every morning", "smith/water-the-roses", "main", "Good.", "build", "Keep it logically awesome."} {
			body = bytes.ReplaceAll(body, []byte(`"`+text+`"`), []byte(`"`+evil+`"`))
		}
		kind, _, _ := strings.Cut(name, ".")
		req := webhook(kind, body)
		req.Header.Set("X-GitHub-Delivery", "d-"+kind)
		r.post(req)
	}
	require.NotContains(t, r.out.String(), "evil")
	require.NotContains(t, r.out.String(), "\x1b")
	require.NotContains(t, r.out.String(), "\nlevel=ERROR")
}

func TestGitHubDoor_WaitsForAPlaceAndThenSaysThatItIsBusy(t *testing.T) {
	r := newHookRoom(t)
	r.bind()
	for range webhookPlaces {
		r.places <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status, _ := r.post(webhook("push", hookPayload(t, "push")).WithContext(ctx))
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, map[string]int{hookBusy: 1}, r.counts)
}
