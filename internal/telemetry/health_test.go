package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clock is a test's time.
type clock struct {
	sync.Mutex
	t time.Time
}

func (c *clock) now() time.Time { c.Lock(); defer c.Unlock(); return c.t }

func (c *clock) add(d time.Duration) { c.Lock(); defer c.Unlock(); c.t = c.t.Add(d) }

func noLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func serve(t *testing.T, h *Health) (base string, m *Metrics) {
	t.Helper()
	m, err := NewMetrics(noLog())
	require.NoError(t, err)
	s, err := Serve(t.Context(), "127.0.0.1:0", h, m)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return "http://" + s.Addr(), m
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestHealth_IsRedAsLongAsOneCheckIs(t *testing.T) {
	c := &clock{t: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	h := &Health{Now: c.now}
	base, _ := serve(t, h)
	code, body := get(t, base+"/healthz")
	require.Equal(t, 200, code)
	require.Equal(t, "green\n", body)

	require.True(t, h.Green("temporal", "connected"))
	require.False(t, h.Green("temporal", "connected still"))
	c.add(time.Minute)
	require.True(t, h.Red("slack smith", "the token was revoked\x1b[2J\ngreen forged"))
	c.add(time.Minute)
	require.False(t, h.Red("slack smith", "the token is still revoked\x1b[2J\ngreen forged"))
	code, body = get(t, base+"/healthz")
	require.Equal(t, 503, code)
	require.Equal(t, "red\n"+
		`red   slack smith since 2026-01-02T03:05:05Z: the token is still revoked\u001b[2J\ngreen forged`+"\n"+
		"green temporal since 2026-01-02T03:04:05Z: connected still\n", body)

	code, body = get(t, base+"/healthz?format=json")
	require.Equal(t, 503, code)
	var r Report
	require.NoError(t, json.Unmarshal([]byte(body), &r))
	require.False(t, r.OK)
	require.Len(t, r.Checks, 2)
	require.Equal(t, "slack smith", r.Checks[0].Name)
	require.Equal(t, time.Date(2026, 1, 2, 3, 5, 5, 0, time.UTC), r.Checks[0].Since)

	h.Green("slack smith", "")
	code, _ = get(t, base+"/healthz")
	require.Equal(t, 200, code)
}

func TestHealth_MakesItsProbesWhenAsked(t *testing.T) {
	h := &Health{}
	broken := errors.New("no such table")
	h.Probe("store", func(context.Context) error { return broken })
	h.Probe("temporal", func(context.Context) error { return nil })
	r := h.Report(t.Context())
	require.False(t, r.OK)
	require.Equal(t, "no such table", r.Checks[0].Text)
	broken = nil
	require.True(t, h.Report(t.Context()).OK)
}

func TestHealth_AProbeThatHangsIsRedAndHoldsUpNothingElse(t *testing.T) {
	h := &Health{}
	over := make(chan struct{})
	defer close(over)
	h.Probe("hung", func(context.Context) error { <-over; return nil })
	h.Probe("well", func(context.Context) error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // as if the time were up
	r := h.Report(ctx)
	require.False(t, r.OK)
	require.Equal(t, "hung", r.Checks[0].Name)
	require.False(t, r.Checks[0].OK)
}

func TestServe_CountsWhatTheTemporalSDKCounts(t *testing.T) {
	base, m := serve(t, &Health{})
	m.Temporal.WithTags(map[string]string{"operation": "Signal"}).Counter("temporal_request").Inc(2)
	m.Temporal.Timer("temporal_request_latency").Record(30 * time.Millisecond)
	own, err := m.Meter.Int64Counter("smith_turns")
	require.NoError(t, err)
	own.Add(t.Context(), 1)
	code, body := get(t, base+"/metrics")
	require.Equal(t, 200, code)
	require.Contains(t, body, `temporal_request_total{operation="Signal"} 2`)
	require.Contains(t, body, `temporal_request_latency_seconds_bucket{le="0.05"} 1`)
	require.Contains(t, body, `temporal_request_latency_seconds_bucket{le="0.02"} 0`)
	require.Contains(t, body, "smith_turns_total 1")
	require.Contains(t, body, "go_goroutines")
}

func TestServe_SaysWhatToDoWhenTheAddressIsTaken(t *testing.T) {
	m, err := NewMetrics(noLog())
	require.NoError(t, err)
	s, err := Serve(t.Context(), "127.0.0.1:0", &Health{}, m)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(context.Background())) }()
	_, err = Serve(t.Context(), s.Addr(), &Health{}, m)
	require.ErrorContains(t, err, "is this process running already? Else change listen: in the config")
}

func TestServe_WithoutAnAddressServesNothing(t *testing.T) {
	s, err := Serve(t.Context(), "", nil, nil)
	require.NoError(t, err)
	require.Empty(t, s.Addr())
	require.NoError(t, s.Close(t.Context()))
}

func TestServe_TakesOnlyGET(t *testing.T) {
	base, _ := serve(t, &Health{})
	resp, err := http.Post(base+"/healthz", "text/plain", nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
}

func TestLoud_SaysTroubleInThreePlacesAndOnce(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, "info", "text")
	require.NoError(t, err)
	var mu sync.Mutex
	var said []string
	l := &Loud{Log: log, Health: &Health{}, Say: func(ctx context.Context, text string) error {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, text)
		return ctx.Err()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a process that is ending says it as well
	l.Alarm(ctx, "slack smith", "the token of seat smith was revoked", KeySeat, "smith")
	l.Alarm(ctx, "slack smith", "the token of seat smith was revoked", KeySeat, "smith")
	l.Wait()
	require.Equal(t, []string{"the token of seat smith was revoked"}, said)
	require.False(t, l.Health.Report(t.Context()).OK)
	require.Equal(t, 2, bytes.Count(out.Bytes(), []byte("level=ERROR")))
	require.Contains(t, out.String(), "seat=smith")

	l.Clear(ctx, "slack smith", "seat smith is connected again")
	l.Clear(ctx, "slack smith", "seat smith is connected again")
	l.Clear(ctx, "temporal", "connected")
	l.Wait()
	require.Equal(t, []string{"the token of seat smith was revoked", "seat smith is connected again"}, said)
	require.True(t, l.Health.Report(t.Context()).OK)
	require.NotContains(t, out.String(), "could not be told")
}

func TestLoud_AnOpsChannelThatCannotBeToldIsLogged(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, "info", "text")
	require.NoError(t, err)
	l := &Loud{Log: log, Health: &Health{}, Say: func(context.Context, string) error { return errors.New("slack is down") }}
	l.Alarm(t.Context(), "store", "the store is full")
	l.Wait()
	require.Contains(t, out.String(), "the ops channel could not be told")
}

func TestLoud_NeedsNoOpsChannel(t *testing.T) {
	l := &Loud{Log: noLog(), Health: &Health{}}
	l.Alarm(t.Context(), "store", "the store is full")
	l.Wait()
	require.False(t, l.Health.Report(t.Context()).OK)
}
