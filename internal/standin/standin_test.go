package standin

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start(context.Background(), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func ask(t *testing.T, ctx context.Context, s *Server, prompt string, stream bool) (*http.Response, error) {
	t.Helper()
	body, err := json.Marshal(object{"model": "m", "stream": stream, "messages": []object{{"role": "user", "content": prompt}}})
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/messages?beta=true", strings.NewReader(string(body)))
	require.NoError(t, err)
	req.Header.Set("X-Claude-Code-Session-Id", "the-session")
	return http.DefaultClient.Do(req)
}

func TestServer_StreamsInTheOrderOfTheAPI(t *testing.T) {
	res, err := ask(t, t.Context(), start(t), "[[say "+strings.Repeat("é", 1500)+"]]", true)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	var events []string
	var text strings.Builder
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			events = append(events, kind)
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var d struct{ Delta struct{ Text string } }
			require.NoError(t, json.Unmarshal([]byte(data), &d))
			text.WriteString(d.Delta.Text)
		}
	}
	require.Equal(t, []string{"message_start", "content_block_start", "content_block_delta", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}, events)
	require.Equal(t, strings.Repeat("é", 1500), text.String())
}

func TestServer_AnswersWithoutAStream(t *testing.T) {
	s := start(t)
	res, err := ask(t, t.Context(), s, "[[say hello]]", false)
	require.NoError(t, err)
	defer res.Body.Close()
	var m struct {
		Content    []struct{ Text string }
		StopReason string `json:"stop_reason"`
	}
	require.NoError(t, json.NewDecoder(res.Body).Decode(&m))
	require.Equal(t, "hello", m.Content[0].Text)
	require.Equal(t, "end_turn", m.StopReason)
}

func TestServer_LogsWhatItWasAskedAndHowItEnded(t *testing.T) {
	s := start(t)
	for _, prompt := range []string{"hello 1700000000.000100", "[[error 500]]", "[[drop]]"} {
		res, err := ask(t, t.Context(), s, prompt, true)
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for len(s.Log()) < 4 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err := ask(t, ctx, s, "[[hang]]", true)
	require.Error(t, err)
	require.Eventually(t, func() bool { return s.Log()[3].Outcome == Aborted }, 5*time.Second, time.Millisecond)

	res, err := http.Get(s.URL() + "/_log")
	require.NoError(t, err)
	defer res.Body.Close()
	var log []Entry
	require.NoError(t, json.NewDecoder(res.Body).Decode(&log))
	var outcomes []Outcome
	for _, e := range log {
		require.Equal(t, "the-session", e.Session)
		outcomes = append(outcomes, e.Outcome)
	}
	require.Equal(t, []Outcome{Served, Refused, Refused, Aborted}, outcomes)
	require.Equal(t, []string{"1700000000.000100"}, log[0].Lines)
	require.Equal(t, 500, log[1].Status)
}

func TestServer_RefusesWhatItDoesNotKnow(t *testing.T) {
	s := start(t)
	for path, status := range map[string]int{"/": 200, "/v1/models": 404, "/x": 404} {
		res, err := http.Get(s.URL() + path)
		require.NoError(t, err)
		_ = res.Body.Close()
		require.Equal(t, status, res.StatusCode, path)
	}
	for path, status := range map[string]int{"/v1/messages": 400, "/v1/messages/count_tokens": 200} {
		res, err := http.Post(s.URL()+path, "application/json", strings.NewReader("{"))
		require.NoError(t, err)
		_ = res.Body.Close()
		require.Equal(t, status, res.StatusCode, path)
	}
	require.Empty(t, s.Log())
}

func TestServer_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Start(ctx, Options{})
	require.NoError(t, err)
	cancel()
	require.Eventually(t, func() bool { _, err := http.Get(s.URL()); return err != nil }, 5*time.Second, time.Millisecond)
}
