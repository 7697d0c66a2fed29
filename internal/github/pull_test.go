package github_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/github"
	"agentsmith/internal/githubbox"
	"agentsmith/rules"
)

func TestPull_ReadsWhatIsThere(t *testing.T) {
	box, c, _ := start(t)
	n := open(t, box)
	s, err := c.Pull(t.Context(), repo, n)
	require.NoError(t, err)
	require.Equal(t, github.PullState{
		Repo: repo, Number: n, URL: fmt.Sprintf("%sacme/garden/pull/%d", box.WebURL(), n), Title: "Fix the gate", Branch: branch, HeadSHA: sha,
		State: rules.PullOpen, Checks: rules.ChecksNone, Review: rules.ReviewNone,
	}, s)

	require.NoError(t, box.SetDraft(repo, n, true))
	require.NoError(t, box.RequestReview(repo, n, "noor"))
	s, err = c.Pull(t.Context(), repo, n)
	require.NoError(t, err)
	require.True(t, s.Draft)
	require.Equal(t, rules.ReviewRequested, s.Review)

	require.NoError(t, box.Merge(repo, n))
	s, err = c.Pull(t.Context(), repo, n)
	require.NoError(t, err)
	require.Equal(t, rules.PullMerged, s.State)
	require.WithinDuration(t, time.Now(), s.MergedAt, time.Minute)
}

func TestPull_TellsClosedFromMerged(t *testing.T) {
	box, c, _ := start(t)
	n := open(t, box)
	require.NoError(t, box.ClosePull(repo, n))
	s, err := c.Pull(t.Context(), repo, n)
	require.NoError(t, err)
	require.Equal(t, rules.PullClosed, s.State)
	require.Zero(t, s.MergedAt)
}

func TestPull_AddsUpStatusesAndCheckRuns(t *testing.T) {
	run := func(name, status, conclusion string) githubbox.CheckRun {
		return githubbox.CheckRun{Name: name, Status: status, Conclusion: conclusion}
	}
	ok := githubbox.Status{Context: "lint", State: "success"}
	for name, c := range map[string]struct {
		statuses []githubbox.Status
		runs     []githubbox.CheckRun
		want     string
	}{
		"nothing":                  {nil, nil, rules.ChecksNone},
		"a status alone":           {[]githubbox.Status{ok}, nil, rules.ChecksPassed},
		"a run alone":              {nil, []githubbox.CheckRun{run("a", "completed", "success")}, rules.ChecksPassed},
		"skipped and neutral pass": {nil, []githubbox.CheckRun{run("a", "completed", "skipped"), run("b", "completed", "neutral")}, rules.ChecksPassed},
		"a run still runs":         {[]githubbox.Status{ok}, []githubbox.CheckRun{run("a", "in_progress", "")}, rules.ChecksPending},
		"a run waits":              {nil, []githubbox.CheckRun{run("a", "completed", "success"), run("b", "waiting", "")}, rules.ChecksPending},
		"a status is pending":      {[]githubbox.Status{{Context: "lint", State: "pending"}}, []githubbox.CheckRun{run("a", "completed", "success")}, rules.ChecksPending},
		"a run failed":             {[]githubbox.Status{ok}, []githubbox.CheckRun{run("a", "completed", "failure"), run("b", "queued", "")}, rules.ChecksFailed},
		"a run timed out":          {nil, []githubbox.CheckRun{run("a", "completed", "timed_out")}, rules.ChecksFailed},
		"a status is an error":     {[]githubbox.Status{{Context: "lint", State: "error"}}, []githubbox.CheckRun{run("a", "completed", "success")}, rules.ChecksFailed},
		"an unknown end":           {nil, []githubbox.CheckRun{run("a", "completed", "glorious")}, rules.ChecksPending},
		"an unknown status":        {[]githubbox.Status{{Context: "lint", State: "glorious"}}, nil, rules.ChecksPending},
	} {
		t.Run(name, func(t *testing.T) {
			box, client, _ := start(t)
			n := open(t, box)
			for _, s := range c.statuses {
				require.NoError(t, box.SetStatus(repo, sha, s))
			}
			for _, r := range c.runs {
				require.NoError(t, box.SetCheck(repo, sha, r))
			}
			s, err := client.Pull(t.Context(), repo, n)
			require.NoError(t, err)
			require.Equal(t, c.want, s.Checks)
		})
	}
}

func TestPull_CallsChecksUnknownWhereHalfOfThemMayNotBeRead(t *testing.T) {
	box, c, said := start(t)
	n := open(t, box)
	require.NoError(t, box.SetStatus(repo, sha, githubbox.Status{Context: "lint", State: "success"}))
	box.Fail(githubbox.Fault{Path: "/check-runs", Status: http.StatusForbidden, Body: `{"message":"Resource not accessible by personal access token"}`})
	s, err := c.Pull(t.Context(), repo, n)
	require.NoError(t, err)
	require.Equal(t, rules.ChecksUnknown, s.Checks)
	require.Equal(t, "map[]", said.all())

	require.NoError(t, box.SetStatus(repo, sha, githubbox.Status{Context: "lint", State: "failure"}))
	s, err = c.Pull(t.Context(), repo, n)
	require.NoError(t, err)
	require.Equal(t, rules.ChecksFailed, s.Checks, "one failure is enough")
}

func TestPull_TakesTheLastWordOfEachReviewer(t *testing.T) {
	type review = githubbox.Review
	for name, c := range map[string]struct {
		reviews   []review
		requested string
		want      string
	}{
		"a comment decides nothing":             {[]review{{State: "COMMENTED"}}, "", rules.ReviewNone},
		"approved":                              {[]review{{State: "APPROVED"}}, "", rules.ReviewApproved},
		"a later comment changes nothing":       {[]review{{State: "APPROVED"}, {State: "COMMENTED"}}, "", rules.ReviewApproved},
		"changes and then approved":             {[]review{{State: "CHANGES_REQUESTED"}, {State: "APPROVED"}}, "", rules.ReviewApproved},
		"approved and then changes":             {[]review{{State: "APPROVED"}, {State: "CHANGES_REQUESTED"}}, "", rules.ReviewChangesRequested},
		"one of two asks for changes":           {[]review{{User: "ada", State: "CHANGES_REQUESTED"}, {User: "noor", State: "APPROVED"}}, "", rules.ReviewChangesRequested},
		"dismissed":                             {[]review{{State: "CHANGES_REQUESTED"}, {State: "DISMISSED"}}, "", rules.ReviewNone},
		"dismissed, and another is asked":       {[]review{{State: "APPROVED"}, {State: "DISMISSED"}}, "ada", rules.ReviewRequested},
		"approved, and another is asked":        {[]review{{State: "APPROVED"}}, "ada", rules.ReviewApproved},
		"a stranger approves":                   {[]review{{User: "passerby", State: "APPROVED", Association: "NONE"}}, "", rules.ReviewNone},
		"a stranger asks for changes":           {[]review{{State: "APPROVED"}, {User: "passerby", State: "CHANGES_REQUESTED", Association: "FIRST_TIME_CONTRIBUTOR"}}, "", rules.ReviewApproved},
		"the author approves":                   {[]review{{User: "mira", State: "APPROVED"}}, "", rules.ReviewNone},
		"a state that GitHub has only invented": {[]review{{State: "APPLAUDED"}}, "", rules.ReviewNone},
	} {
		t.Run(name, func(t *testing.T) {
			box, client, _ := start(t)
			n := open(t, box)
			for _, r := range c.reviews {
				require.NoError(t, box.Review(repo, n, r))
			}
			if c.requested != "" {
				require.NoError(t, box.RequestReview(repo, n, c.requested))
			}
			s, err := client.Pull(t.Context(), repo, n)
			require.NoError(t, err)
			require.Equal(t, c.want, s.Review)
		})
	}
}

func TestPull_ReadsEveryPage(t *testing.T) {
	box, c, _ := start(t)
	n := open(t, box)
	for i := range 130 {
		require.NoError(t, box.SetCheck(repo, sha, githubbox.CheckRun{Name: fmt.Sprint("check ", i), Status: "completed", Conclusion: "success"}))
		require.NoError(t, box.SetStatus(repo, sha, githubbox.Status{Context: fmt.Sprint("status ", i), State: "success"}))
		require.NoError(t, box.Review(repo, n, githubbox.Review{State: "COMMENTED"}))
	}
	s, err := c.Pull(t.Context(), repo, n)
	require.NoError(t, err)
	require.Equal(t, rules.ChecksPassed, s.Checks)

	require.NoError(t, box.SetCheck(repo, sha, githubbox.CheckRun{Name: "the last", Status: "completed", Conclusion: "failure"}))
	require.NoError(t, box.Review(repo, n, githubbox.Review{State: "CHANGES_REQUESTED"}))
	s, err = c.Pull(t.Context(), repo, n)
	require.NoError(t, err)
	require.Equal(t, rules.ChecksFailed, s.Checks)
	require.Equal(t, rules.ReviewChangesRequested, s.Review)
}

func TestPullOfBranch_PrefersTheOpenOneAndElseTheNewest(t *testing.T) {
	box, c, _ := start(t)
	_, found, err := c.PullOfBranch(t.Context(), repo, branch)
	require.ErrorIs(t, err, github.ErrNotFound, "no such repository")
	require.False(t, found)

	require.NoError(t, box.Push(repo, branch, sha))
	_, found, err = c.PullOfBranch(t.Context(), repo, branch)
	require.NoError(t, err)
	require.False(t, found)

	first, second := open(t, box), open(t, box)
	require.NoError(t, box.ClosePull(repo, second))
	third := open(t, box)
	require.NoError(t, box.ClosePull(repo, third))
	s, found, err := c.PullOfBranch(t.Context(), repo, branch)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, first, s.Number)

	require.NoError(t, box.Merge(repo, first))
	s, found, err = c.PullOfBranch(t.Context(), repo, branch)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, third, s.Number)
}

func TestPullOfBranch_NeverTakesAForkOrAnotherBranch(t *testing.T) {
	box, c, _ := start(t)
	_, err := box.OpenPull(githubbox.Pull{Repo: repo, Branch: branch, SHA: sha, Title: "From a fork", Author: "stranger", Fork: true})
	require.NoError(t, err)
	_, err = box.OpenPull(githubbox.Pull{Repo: repo, Branch: branch, SHA: sha, Title: "A fork of one's own", Author: "acme", Fork: true})
	require.NoError(t, err)
	_, err = box.OpenPull(githubbox.Pull{Repo: repo, Branch: branch + "-too", SHA: sha, Title: "Another"})
	require.NoError(t, err)
	_, found, err := c.PullOfBranch(t.Context(), repo, branch)
	require.NoError(t, err)
	require.False(t, found)
}

func TestPullOfBranch_LooksAgainAtWhatAFilterReturns(t *testing.T) {
	// GitHub drops a head that it cannot read and lists everything.
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`[{"number":3,"state":"open","head":{"ref":"other","repo":{"id":1}},"base":{"repo":{"id":1}}}]`))
	}))
	defer srv.Close()
	c, err := github.New(github.Options{APIURL: srv.URL})
	require.NoError(t, err)
	_, found, err := c.PullOfBranch(t.Context(), repo, branch)
	require.NoError(t, err)
	require.False(t, found)
}

func TestPull_RefusesWhatIsNoRepository(t *testing.T) {
	box, c, _ := start(t)
	for _, bad := range []string{"", "acme", "acme/", "/garden", "acme/garden/pulls", "acme/..", "acme/.", "../acme", "acme/gar den", "acme/garden?x=1", "acme/garden#", "ac.me/garden", "acme/g%2e", "acme/garden\n"} {
		_, err := c.Pull(t.Context(), bad, 1)
		require.ErrorContains(t, err, "is no repository", "%q", bad)
		_, _, err = c.PullOfBranch(t.Context(), bad, branch)
		require.ErrorContains(t, err, "is no repository", "%q", bad)
	}
	_, err := c.Pull(t.Context(), repo, 0)
	require.ErrorContains(t, err, "no such number")
	require.Empty(t, box.Requests())
}

func TestPull_ShowsNoLinkThatIsNotOfThisGitHub(t *testing.T) {
	for _, link := range []string{
		"https://evil.example/acme/garden/pull/5", "javascript:alert(1)", "HOST/acme/garden/pull/6", "HOST/acme/garden/pull/5?x=1", "HOST/acme/garden/pull/5|click",
	} {
		var base string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := `{}`
			switch r.URL.Path {
			case "/repos/acme/garden/pulls/5":
				body = fmt.Sprintf(`{"number":5,"state":"open","html_url":%q,"title":"a\u001b[31mb\u202ec\nd","head":{"ref":"x","sha":"../../etc"}}`, link)
			case "/repos/acme/garden/pulls/5/reviews":
				body = `[]`
			}
			_, _ = w.Write([]byte(body))
		}))
		base = srv.URL
		if len(link) > 4 && link[:4] == "HOST" {
			link = base + link[4:]
		}
		c, err := github.New(github.Options{APIURL: base})
		require.NoError(t, err)
		s, err := c.Pull(t.Context(), repo, 5)
		srv.Close()
		require.NoError(t, err)
		require.Empty(t, s.URL, link)
		require.Equal(t, "a [31mb c d", s.Title)
		require.Empty(t, s.HeadSHA)
		require.Equal(t, rules.ChecksUnknown, s.Checks)
	}
}

func TestPull_EndsWithItsContextAndItsTimeout(t *testing.T) {
	box, _, _ := start(t)
	n := open(t, box)
	box.Fail(githubbox.Fault{Delay: time.Minute})
	c, err := github.New(github.Options{APIURL: box.URL(), Token: token, Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	_, err = c.Pull(t.Context(), repo, n)
	require.Error(t, err)
	requireNoToken(t, err.Error())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Pull(ctx, repo, n)
	require.ErrorIs(t, err, context.Canceled)
}
