package githubbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	gogithub "github.com/google/go-github/v92/github"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/githubbox"
)

const (
	repo   = "acme/orchard"
	branch = "smith/prune-the-trees"
	sha    = "aa11bb22cc33dd44ee55ff66aa77bb88cc99dd00"
	secret = "a secret of the hook"
)

// received is one webhook as it arrived.
type received struct {
	event   string
	payload []byte
}

// receiver keeps the webhooks that it checks and reads with GitHub's own library.
type receiver struct {
	t   *testing.T
	mu  sync.Mutex
	got []received
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	body, err := gogithub.ValidatePayload(req, []byte(secret))
	if err != nil {
		r.t.Errorf("a webhook is not signed as GitHub signs: %v", err)
		return
	}
	if _, err := gogithub.ParseWebHook(gogithub.WebHookType(req), body); err != nil {
		r.t.Errorf("a webhook is not of GitHub's shape: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, received{gogithub.WebHookType(req), body})
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func start(t *testing.T, form bool) (*githubbox.Server, *receiver) {
	t.Helper()
	r := &receiver{t: t}
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)
	box := githubbox.New(githubbox.Options{Hook: githubbox.Hook{URL: srv.URL, Secret: secret, Form: form}})
	require.NoError(t, box.Start(t.Context(), ""))
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	return box, r
}

// story does everything that can happen to a pull request.
func story(t *testing.T, box *githubbox.Server) {
	t.Helper()
	require.NoError(t, box.Ping(repo))
	require.NoError(t, box.Star(repo))
	require.NoError(t, box.Push(repo, branch, sha))
	n, err := box.OpenPull(githubbox.Pull{Repo: repo, Branch: branch, SHA: sha, Title: "Prune the trees", Draft: true})
	require.NoError(t, err)
	require.NoError(t, box.SetDraft(repo, n, false))
	require.NoError(t, box.RequestReview(repo, n, "noor"))
	require.NoError(t, box.SetCheck(repo, sha, githubbox.CheckRun{Name: "build", Status: "queued"}))
	require.NoError(t, box.SetCheck(repo, sha, githubbox.CheckRun{Name: "build", Status: "completed", Conclusion: "failure"}))
	require.NoError(t, box.SetStatus(repo, sha, githubbox.Status{Context: "lint", State: "success"}))
	require.NoError(t, box.Review(repo, n, githubbox.Review{State: "APPROVED"}))
	require.NoError(t, box.Push(repo, branch, strings.Repeat("b", 40)))
	require.NoError(t, box.Merge(repo, n))
}

func TestServer_SendsWhatGitHubsOwnLibraryTakes(t *testing.T) {
	for _, form := range []bool{false, true} {
		box, r := start(t, form)
		story(t, box)
		var got []string
		for _, g := range r.all() {
			var p struct {
				Action     string `json:"action"`
				Repository struct {
					FullName string `json:"full_name"`
				} `json:"repository"`
			}
			require.NoError(t, json.Unmarshal(g.payload, &p))
			require.Equal(t, repo, p.Repository.FullName)
			got = append(got, strings.TrimSuffix(g.event+"."+p.Action, "."))
		}
		require.Equal(t, []string{
			"ping", "star.created", "push", "pull_request.opened", "pull_request.ready_for_review", "pull_request.review_requested",
			"check_run.created", "check_run.completed", "check_suite.completed", "status", "pull_request_review.submitted",
			"push", "pull_request.synchronize", "pull_request.closed",
		}, got)
	}
}

func TestServer_SendsNothingOfItsSamples(t *testing.T) {
	box, r := start(t, false)
	story(t, box)
	require.Len(t, r.all(), 14)
	for _, g := range r.all() {
		for _, left := range []string{"acme/garden", `"garden"`, "water-the-roses", "3f1c9a7be0d2", "api.github.com", "https://github.com"} {
			require.False(t, strings.Contains(string(g.payload), left), "%s: %s", g.event, left)
		}
	}
}

// shape lists the paths of a JSON value.
func shape(v any, at string, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			into[at+"/"+k] = true
			shape(x, at+"/"+k, into)
		}
	case []any:
		for _, x := range v {
			shape(x, at+"[]", into)
		}
	}
}

func TestServer_SendsTheShapeOfItsPayloads(t *testing.T) {
	box, r := start(t, false)
	story(t, box)
	known := map[string]map[string]bool{}
	require.NoError(t, filepath.WalkDir("payloads", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		var doc any
		require.NoError(t, json.Unmarshal(raw, &doc), path)
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		event, _, _ := strings.Cut(name, ".")
		if known[event] == nil {
			known[event] = map[string]bool{}
		}
		shape(doc, "", known[event])
		return nil
	}))
	for _, g := range r.all() {
		var doc any
		require.NoError(t, json.Unmarshal(g.payload, &doc))
		paths := map[string]bool{}
		shape(doc, "", paths)
		for path := range paths {
			// Somebody who is asked, or merged, is a user like every other.
			if strings.Contains(path, "/merged_by/") || strings.Contains(path, "/requested_reviewers[]") {
				continue
			}
			require.True(t, known[g.event][path], "%s: %s", g.event, path)
		}
	}
}

func TestRedeliver_KeepsTheIdAndTheBody(t *testing.T) {
	box, r := start(t, false)
	require.NoError(t, box.Push(repo, branch, sha))
	first := box.Deliveries()[0]
	require.NoError(t, box.Redeliver(first.ID))
	require.Equal(t, first.ID, box.Deliveries()[1].ID)
	require.Equal(t, r.all()[0], r.all()[1])
	require.Error(t, box.Redeliver("no such"))
}

func TestDeliveries_SayWhatCameBack(t *testing.T) {
	box, _ := start(t, false)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	box.SetHook(githubbox.Hook{URL: srv.URL})
	require.NoError(t, box.Ping(repo))
	srv.Close()
	require.NoError(t, box.Ping(repo))
	all := box.Deliveries()
	require.Equal(t, http.StatusTeapot, all[0].Status)
	require.Zero(t, all[1].Status)
	require.NotEmpty(t, all[1].Err)
}

func TestSetHook_SendsOnlyTheEventsThatItAsksFor(t *testing.T) {
	box, r := start(t, false)
	hook := githubbox.Hook{Secret: secret, Events: []string{"pull_request"}}
	srv := httptest.NewServer(r)
	defer srv.Close()
	hook.URL = srv.URL
	box.SetHook(hook)
	story(t, box)
	for _, g := range r.all() {
		require.Contains(t, []string{"ping", "pull_request"}, g.event)
	}
	require.Len(t, r.all(), 6)
}

func TestStart_RefusesWhatIsNotLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "192.0.2.1:0", "example.org:0", "nonsense"} {
		require.Error(t, githubbox.New(githubbox.Options{}).Start(t.Context(), addr), addr)
	}
}

func TestControl_DoesOverHTTPWhatTheMethodsDo(t *testing.T) {
	box, r := start(t, false)
	call := func(method, what, body string) string {
		req, err := http.NewRequestWithContext(context.Background(), method, box.WebURL()+"_control/"+what, bytes.NewReader([]byte(body)))
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return strings.TrimSpace(resp.Status[:3] + " " + string(out))
	}
	require.Equal(t, `200 {}`, call("POST", "push", `{"repo":"acme/orchard","branch":"b","sha":"c"}`))
	require.Equal(t, `200 {"number":1}`, call("POST", "pull", `{"repo":"acme/orchard","branch":"b","sha":"c","title":"<b>t</b>"}`))
	require.Equal(t, `200 {}`, call("POST", "check", `{"repo":"acme/orchard","sha":"c","check":{"name":"build","status":"completed","conclusion":"success"}}`))
	require.Equal(t, `200 {}`, call("POST", "status", `{"repo":"acme/orchard","sha":"c","status":{"context":"lint","state":"success"}}`))
	require.Equal(t, `200 {}`, call("POST", "review", `{"repo":"acme/orchard","number":1,"review":{"state":"APPROVED"}}`))
	require.Equal(t, `200 {}`, call("POST", "merge", `{"repo":"acme/orchard","number":1}`))
	require.Contains(t, call("POST", "merge", `{"repo":"acme/orchard","number":2}`), "400 ")
	require.Contains(t, call("POST", "merge", `{"repo":"acme/orchard","numbr":1}`), "400 ")
	require.Len(t, r.all(), 7)
	require.Contains(t, call("GET", "deliveries", ""), `"status":200`)

	resp, err := http.Get(box.WebURL() + "acme/orchard/pull/1")
	require.NoError(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(page), "&lt;b&gt;t")
	require.Contains(t, string(page), "merged")
}
