package slackapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAuthTest_KnowsTheSeat(t *testing.T) {
	f := newFake(t)
	f.on("auth.test", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-OAuth-Scopes", "chat:write, users:read")
		says(`{"ok":true,"team_id":"T1","user_id":"UBOT","bot_id":"BBOT","url":"https://x.slack.com/"}`)(w, r)
	})
	id, err := f.client().AuthTest(t.Context())
	require.NoError(t, err)
	require.Equal(t, Identity{Team: "T1", UserID: "UBOT", BotID: "BBOT", URL: "https://x.slack.com/", Scopes: []string{"chat:write", "users:read"}}, id)
	require.Equal(t, token, f.form("auth.test").Get("token"))
}

func TestCall_SaysWhatMayHaveBeenDone(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"the connection is cut":  {hangsUp, ErrAmbiguous},
		"no answer":              {hangs, ErrAmbiguous},
		"500":                    {fails(500), ErrAmbiguous},
		"503":                    {fails(503), ErrAmbiguous},
		"no JSON":                {says("<html>"), ErrAmbiguous},
		"an empty answer":        {says(""), ErrAmbiguous},
		"half an answer":         {says(`{"ok":tr`), ErrAmbiguous},
		"JSON that is no answer": {says(`{}`), ErrAmbiguous},
		"a body that breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"ok":true`))
		}, ErrAmbiguous},
		"ok:false without error": {says(`{"ok":false}`), ErrAmbiguous},
		"fatal_error":            {says(`{"ok":false,"error":"fatal_error"}`), ErrAmbiguous},
		"invalid_auth":           {says(`{"ok":false,"error":"invalid_auth"}`), ErrDeadCredentials},
		"token_revoked":          {says(`{"ok":false,"error":"token_revoked"}`), ErrDeadCredentials},
		"account_inactive":       {says(`{"ok":false,"error":"account_inactive"}`), ErrDeadCredentials},
		"not_authed":             {says(`{"ok":false,"error":"not_authed"}`), ErrDeadCredentials},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.on("auth.test", c.answer)
			_, err := f.client(quick).AuthTest(t.Context())
			require.ErrorIs(t, err, c.want)
			require.Equal(t, 1, f.count("auth.test"), "nothing is sent twice")
			require.NotContains(t, err.Error(), token)
			require.NotContains(t, err.Error(), f.URL)
		})
	}
}

func TestCall_FollowsNoRedirect(t *testing.T) {
	evil := newFake(t)
	f := newFake(t)
	f.on("auth.test", fails(307, "Location", evil.URL+"/api/auth.test"))
	_, err := f.client().AuthTest(t.Context())
	require.ErrorIs(t, err, ErrAmbiguous)
	require.Zero(t, evil.count("auth.test"), "the token is in the body")
}

func TestCall_SaysWhatWasRefused(t *testing.T) {
	f := newFake(t)
	f.on("auth.test", says(`{"ok":false,"error":"missing_scope","needed":"users:read","provided":"x"}`), fails(413))
	c := f.client()
	_, err := c.AuthTest(t.Context())
	require.True(t, IsRejected(err, "missing_scope"))
	require.EqualError(t, err, "slack auth.test: missing_scope (needs users:read)")
	_, err = c.AuthTest(t.Context())
	require.True(t, IsRejected(err, "http_413"))
}

func TestCall_NobodyListening_IsAmbiguous(t *testing.T) {
	f := newFake(t)
	f.Close()
	_, err := f.client().AuthTest(t.Context())
	require.ErrorIs(t, err, ErrAmbiguous)
	require.NotContains(t, err.Error(), token)
}

func TestCall_StopsWithItsCaller(t *testing.T) {
	f := newFake(t)
	f.on("auth.test", hangs)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := f.client().AuthTest(ctx)
	require.ErrorIs(t, err, ErrAmbiguous)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestCall_WaitsOut429(t *testing.T) {
	f := newFake(t)
	f.on("auth.test", fails(429, "Retry-After", "3"), says(`{"ok":false,"error":"ratelimited"}`), says(`{"ok":true,"team_id":"T1","user_id":"UBOT"}`))
	var waits []time.Duration
	_, err := f.client(noWait(&waits)).AuthTest(t.Context())
	require.NoError(t, err)
	require.Equal(t, []time.Duration{3 * time.Second, defaultRetryAfter}, waits)
}

func TestCall_LeavesA429ThatPassesTheDeadline(t *testing.T) {
	f := newFake(t)
	f.on("auth.test", fails(429, "Retry-After", "30"))
	var waits []time.Duration
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := f.client(noWait(&waits)).AuthTest(ctx)
	var limited *RateLimited
	require.ErrorAs(t, err, &limited)
	require.Equal(t, &RateLimited{Method: "auth.test", After: 30 * time.Second}, limited)
	require.Empty(t, waits)
	require.Equal(t, 1, f.count("auth.test"))
}

func TestCall_GivesUpOn429AtLast(t *testing.T) {
	f := newFake(t)
	f.on("auth.test", fails(429, "Retry-After", "1"))
	var waits []time.Duration
	_, err := f.client(noWait(&waits)).AuthTest(t.Context())
	require.ErrorAs(t, err, new(*RateLimited))
	require.Len(t, waits, maxWaits)
}

func TestScrub_HidesTokenAndURL(t *testing.T) {
	c := New(Options{Token: token})
	require.Equal(t, "no [token] here", c.scrub(fmt.Errorf("no %s here", token)).Error())
	_, err := http.Get("http://127.0.0.1:1/secret-path")
	require.Error(t, err)
	require.NotContains(t, c.scrub(fmt.Errorf("wrapped: %w", err)).Error(), "secret-path")
	require.Equal(t, "plain", c.scrub(errors.New("plain")).Error())
}

func TestStatus_PassesOneLoadingMessage(t *testing.T) {
	f := newFake(t)
	f.on("assistant.threads.setStatus", says(`{"ok":true}`))
	c := f.client()
	require.NoError(t, c.SetStatus(t.Context(), "C1", "1.000000", "is reading, then thinking"))
	form := f.form("assistant.threads.setStatus")
	require.Equal(t, "is reading, then thinking", form.Get("status"))
	require.Equal(t, "is reading  then thinking", form.Get("loading_messages"))
	require.Equal(t, "1.000000", form.Get("thread_ts"))
	require.NoError(t, c.ClearStatus(t.Context(), "C1", "1.000000"))
	form = f.form("assistant.threads.setStatus")
	require.True(t, form.Has("status"))
	require.Empty(t, form.Get("status"))
	require.False(t, form.Has("loading_messages"))
}

func TestEphemeral_EscapesItsText(t *testing.T) {
	f := newFake(t)
	f.on("chat.postEphemeral", says(`{"ok":true,"message_ts":"1.000000"}`))
	require.NoError(t, f.client().Ephemeral(t.Context(), "C1", "U1", "", "<!here> & you"))
	form := f.form("chat.postEphemeral")
	require.Equal(t, "&lt;\u2060!here&gt; &amp; you", form.Get("text"))
	require.Equal(t, "U1", form.Get("user"))
}
