package activities_test

import (
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/github"
	"agentsmith/internal/githubbox"
)

// hub is a local GitHub with one repository.
type hub struct {
	*githubbox.Server
	r *room
}

func (r *room) hub() (hub, activities.Pulls) {
	r.t.Helper()
	s := githubbox.New(githubbox.Options{})
	require.NoError(r.t, s.Start(r.t.Context(), "127.0.0.1:0"))
	r.t.Cleanup(func() { _ = s.Close() })
	c, err := github.New(github.Options{APIURL: s.URL(), Token: "ghp_local", Timeout: 10 * time.Second})
	require.NoError(r.t, err)
	return hub{s, r}, c
}

// github has the desk's task read a local GitHub.
func (d *desk) github() hub {
	h, c := d.hub()
	d.task.Pulls = c
	return h
}

func (h hub) open(branch string) int {
	h.r.t.Helper()
	n, err := h.OpenPull(githubbox.Pull{Repo: "acme/shop", Branch: branch, SHA: "4d3c2b1a4d3c2b1a4d3c2b1a4d3c2b1a4d3c2b1a", Title: "Fix the login"})
	require.NoError(h.r.t, err)
	return n
}

// limit has the next read told that the hour is used up.
func (h hub) limit() time.Time {
	until := time.Now().Add(time.Hour)
	h.Fail(githubbox.LimitReached(until))
	return until
}

// down has every read fail.
func (h hub) down() { h.Fail(githubbox.Fault{Status: 404, Body: `{"message":"Not Found"}`}) }
