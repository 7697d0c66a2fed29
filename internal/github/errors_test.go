package github_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/github"
	"agentsmith/internal/githubbox"
)

func TestPull_SaysUntilWhenGitHubLimits(t *testing.T) {
	soon := time.Now().Add(20 * time.Minute).Truncate(time.Second)
	for name, c := range map[string]struct {
		fault githubbox.Fault
		want  time.Time
		also  bool
	}{
		"the hour is used up":             {githubbox.LimitReached(soon), soon, false},
		"too fast, 403":                   {githubbox.TooFast(http.StatusForbidden, 90*time.Second), time.Now().Add(90 * time.Second), true},
		"too fast, 429":                   {githubbox.TooFast(http.StatusTooManyRequests, 30*time.Second), time.Now().Add(30 * time.Second), true},
		"too fast, without a time":        {githubbox.Fault{Status: 429, Times: 1, Body: `{}`}, time.Now().Add(time.Minute), true},
		"a time that has passed":          {githubbox.LimitReached(time.Now().Add(-time.Hour)), time.Now().Add(time.Minute), false},
		"an hour beyond belief":           {githubbox.LimitReached(time.Now().Add(100 * time.Hour)), time.Now().Add(time.Hour), false},
		"a wait beyond belief":            {githubbox.TooFast(http.StatusForbidden, 1000*time.Hour), time.Now().Add(time.Hour), true},
		"403 with Retry-After and no doc": {githubbox.Fault{Status: 403, Times: 1, Header: map[string]string{"Retry-After": "45"}, Body: `no JSON`}, time.Now().Add(45 * time.Second), true},
	} {
		t.Run(name, func(t *testing.T) {
			box, client, said := start(t)
			n := open(t, box)
			box.Fail(c.fault)
			_, err := client.Pull(t.Context(), repo, n)
			var limit *github.RateLimitError
			require.ErrorAs(t, err, &limit)
			require.WithinDuration(t, c.want, limit.Until, 5*time.Second)
			require.Equal(t, c.also, limit.Secondary)
			require.Equal(t, "map[]", said.all())
		})
	}
}

func TestPull_AsksNothingWhileGitHubLimits(t *testing.T) {
	box, c, _ := start(t)
	n := open(t, box)
	box.Fail(githubbox.LimitReached(time.Now().Add(20 * time.Minute)))
	_, err := c.Pull(t.Context(), repo, n)
	require.Error(t, err)
	asked := len(box.Requests())
	_, err = c.Pull(t.Context(), repo, n)
	var limit *github.RateLimitError
	require.ErrorAs(t, err, &limit)
	require.Len(t, box.Requests(), asked)
}

func TestPull_ARefusedTokenIsSaidLoudlyUntilOneIsTaken(t *testing.T) {
	box, c, said := start(t)
	n := open(t, box)
	box.SetToken("another")
	_, err := c.Pull(t.Context(), repo, n)
	require.ErrorIs(t, err, github.ErrTokenRefused)
	require.Contains(t, said.all(), "SMITH_GITHUB_TOKEN")
	requireNoToken(t, err.Error()+said.all())
	box.SetToken(token)
	_, err = c.Pull(t.Context(), repo, n)
	require.NoError(t, err)
	require.Equal(t, "map[]", said.all())
}

func TestPull_TellsNotFoundForbiddenAndBroken(t *testing.T) {
	box, c, _ := start(t)
	n := open(t, box)
	_, err := c.Pull(t.Context(), repo, n+1)
	require.ErrorIs(t, err, github.ErrNotFound)
	_, err = c.Pull(t.Context(), "acme/elsewhere", 1)
	require.ErrorIs(t, err, github.ErrNotFound)

	box.Fail(githubbox.Fault{Status: http.StatusForbidden, Times: 1, Body: `{"message":"Resource not accessible\u001b[0m\nby this"}`})
	_, err = c.Pull(t.Context(), repo, n)
	require.ErrorIs(t, err, github.ErrForbidden)
	require.NotContains(t, err.Error(), "\x1b")
	require.NotContains(t, err.Error(), "\n")

	box.Fail(githubbox.Fault{Status: http.StatusBadGateway, Times: 1, Body: `<html>`})
	_, err = c.Pull(t.Context(), repo, n)
	require.ErrorContains(t, err, "502")
	for _, known := range []error{github.ErrNotFound, github.ErrForbidden, github.ErrTokenRefused} {
		require.False(t, errors.Is(err, known))
	}
}

func TestPull_TheTokenIsInNoError(t *testing.T) {
	dead, err := github.New(github.Options{APIURL: "http://127.0.0.1:1/", Token: token})
	require.NoError(t, err)
	_, err = dead.Pull(t.Context(), repo, 1)
	require.Error(t, err)
	requireNoToken(t, err.Error())

	odd, err := github.New(github.Options{APIURL: "http://127.0.0.1:1/", Token: token + "\n"})
	require.NoError(t, err)
	_, err = odd.Pull(t.Context(), repo, 1)
	require.Error(t, err)
	requireNoToken(t, err.Error())
}

func TestPull_TheTokenGoesToNoOtherHost(t *testing.T) {
	var told []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		told = append(told, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusMovedPermanently)
	}))
	defer here.Close()
	c, err := github.New(github.Options{APIURL: here.URL, Token: token})
	require.NoError(t, err)
	_, err = c.Pull(t.Context(), repo, 1)
	require.ErrorContains(t, err, "another host")
	require.Empty(t, told)
}

func TestPull_FollowsARenamedRepository(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, renamed := strings.CutPrefix(r.URL.Path, "/repos/acme/yard/")
		switch {
		case renamed:
			http.Redirect(w, r, "/repos/acme/garden/"+rest, http.StatusMovedPermanently)
		case rest == "/repos/acme/garden/pulls/1":
			_, _ = w.Write([]byte(`{"number":1,"state":"open","base":{"repo":{"full_name":"acme/garden"}}}`))
		default:
			_, _ = w.Write([]byte(`[]`))
		}
	}))
	defer srv.Close()
	c, err := github.New(github.Options{APIURL: srv.URL, Token: token})
	require.NoError(t, err)
	s, err := c.Pull(t.Context(), "acme/yard", 1)
	require.NoError(t, err)
	require.Equal(t, repo, s.Repo)
}

func TestPull_EndsAnAnswerThatIsTooLong(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		piece := []byte(strings.Repeat(" ", 1<<20))
		for range 64 {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	c, err := github.New(github.Options{APIURL: srv.URL})
	require.NoError(t, err)
	_, err = c.Pull(t.Context(), repo, 1)
	require.ErrorContains(t, err, "is over")
}

func TestNew_RefusesWhatIsNoAddress(t *testing.T) {
	for _, bad := range []string{"", "github", "ftp://api.github.com/", "https://user:" + token + "@api.github.com/", "://"} {
		_, err := github.New(github.Options{APIURL: bad})
		require.ErrorContains(t, err, "https://api.github.com/")
		requireNoToken(t, err.Error())
	}
}
