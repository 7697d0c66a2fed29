package slackbox_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
)

// control sends a control request and reads the answer into out.
func control(t *testing.T, s *slackbox.Server, method, path, body string, out any) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.PageURL()+"_control/"+path, strings.NewReader(body))
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	if out != nil {
		require.NoError(t, json.Unmarshal(b, out), string(b))
	}
	return answer.StatusCode
}

func TestControl_EveryEndpointDoesWhatItsMethodDoes(t *testing.T) {
	s := start(t, slackbox.Options{Clock: frozen()})
	conn, _ := dial(t, s, "smith")
	ts, err := s.Person("ana").Say("random", "hello")
	require.NoError(t, err)
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "state", "", 200}, {"GET", "statuses", "", 200}, {"GET", "log", "", 200}, {"GET", "log?since=x", "", 400},
		{"GET", "clock", "", 200}, {"GET", "faults", "", 200}, {"GET", "settings", "", 200},
		{"POST", "faults", `{"kind":"slow","delay_ms":1,"count":1}`, 200}, {"POST", "faults", `{"kind":"slow","dealy_ms":1}`, 400},
		{"POST", "faults", `{"kind":"none"}`, 400}, {"POST", "faults", `{} {}`, 400}, {"DELETE", "faults", "", 200},
		{"POST", "settings", `{"rate_limits":true}`, 200}, {"POST", "settings", `{"rate":1}`, 400},
		{"POST", "clock", `{"advance":"1s"}`, 200}, {"POST", "clock", `{"advance":"soon"}`, 400},
		{"POST", "raw", `{"app":"smith","frame":{"type":"x"}}`, 200}, {"POST", "raw", `{"app":"smith","frame":"{"}`, 200},
		{"POST", "raw", `{"app":"nobody","frame":""}`, 400}, {"POST", "event", `{"app":"smith","event":{"type":"x"}}`, 200},
		{"POST", "home", `{"app":"smith","user":"ana"}`, 200}, {"POST", "home", `{"app":"smith","user":"nobody"}`, 400},
		{"POST", "command", `{"user":"ana","channel":"random","command":"/agents","text":"x"}`, 200},
		{"POST", "interactive", `{"user":"ana","channel":"random","ts":"` + ts + `","actions":[]}`, 400},
		{"POST", "unfurl", `{"channel":"random","ts":"` + ts + `"}`, 200},
		{"POST", "delete_hard", `{"channel":"random","ts":"` + ts + `"}`, 200}, {"POST", "delete_hard", `{"channel":"random","ts":"` + ts + `"}`, 400},
		{"POST", "add", `{"users":[{"name":"eva"}]}`, 200}, {"POST", "add", `{"users":[{"name":"eva"}]}`, 400},
		{"POST", "revoke", `{"token":"xoxb-local-smith"}`, 200}, {"POST", "restore", `{"token":"xoxb-local-smith"}`, 200},
		{"POST", "stop_pings", `{"app":"trinity"}`, 200}, {"POST", "disconnect", `{"app":"smith","reason":"warning"}`, 200},
		{"POST", "cut", `{"app":"smith"}`, 200}, {"POST", "cut", `{"app":"nobody"}`, 400},
	} {
		require.Equal(t, c.want, control(t, s, c.method, c.path, c.body, nil), "%s %s %s", c.method, c.path, c.body)
	}
	_, _, err = conn.Read(within(t))
	for err == nil {
		_, _, err = conn.Read(within(t))
	}
	require.True(t, s.Settings().RateLimits)
	var st slackbox.State
	control(t, s, "GET", "state", "", &st)
	require.Equal(t, "eva", st.Users[len(st.Users)-1].Name)
	require.Equal(t, 2, st.Counts["raw"])
	var log slackbox.Log
	control(t, s, "GET", "log", "", &log)
	require.True(t, log.Messages[0].Deleted())
	require.Equal(t, "hello", log.Messages[0].Text)
	require.NotEmpty(t, log.Calls)
	control(t, s, "GET", "log?since="+uintText(log.Next), "", &log)
	require.Empty(t, log.Messages)
}

func TestGuard_ForeignHostsAndOriginsAreRefused(t *testing.T) {
	s := start(t, slackbox.Options{})
	for _, c := range []struct {
		path, host, origin string
		want               int
	}{
		{"_control/state", "", "", 200}, {"_control/state", "evil.example:80", "", 403}, {"_control/state", "", "http://evil.example", 403},
		{"_page/boot", "", "", 200}, {"_page/boot", "evil.example", "", 403}, {"_page/boot", "", "null", 403},
		{"api/api.test", "", "", 200}, {"api/api.test", "", "http://evil.example", 403}, {"api/api.test", "", "same", 200},
		{"api/api.test", "127.0.0.1.evil.example", "", 403}, {"link/", "", "https://api.slack.com", 403},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.PageURL()+c.path, nil)
		require.NoError(t, err)
		if c.host != "" {
			r.Host = c.host
		}
		if c.origin == "same" {
			c.origin = strings.TrimSuffix(s.PageURL(), "/")
		}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		_ = answer.Body.Close()
		require.Equal(t, c.want, answer.StatusCode, c)
	}
	require.Error(t, slackbox.New(slackbox.Options{}).Start(t.Context(), "0.0.0.0:0"))
	require.Error(t, slackbox.New(slackbox.Options{}).Start(t.Context(), "no address"))
}

func TestStream_APersonSeesOnlyWhatIsTheirs(t *testing.T) {
	s := start(t, slackbox.Options{})
	require.NoError(t, s.Add(slackbox.Seed{Channels: []slackbox.Channel{{Name: "closed", Private: true, Members: []string{"ben", "smith"}}}}))
	answer, err := http.Get(s.PageURL() + "_page/stream?token=xoxb-local-smith")
	require.NoError(t, err)
	_ = answer.Body.Close()
	require.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	answer, err = http.Get(s.PageURL() + "_page/stream?token=xoxp-local-ana")
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	next := func() (e map[string]any) {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				require.NoError(t, json.Unmarshal([]byte(data), &e))
				return e
			}
		}
		require.FailNow(t, "the stream ended")
		return nil
	}
	_, err = s.Person("ben").Say("closed", "secret")
	require.NoError(t, err)
	api := bot(s, "smith")
	_, err = api.PostEphemeral(general, "U0BEN000001", textOption("for ben"))
	require.NoError(t, err)
	root, err := s.Person("ben").Say("general", "open")
	require.NoError(t, err)
	e := next()
	require.Equal(t, []any{"message", "open", "channel"}, []any{e["type"], e["text"], e["channel_type"]})
	require.NoError(t, api.SetAssistantThreadsStatus(slack.AssistantThreadsSetStatusParameters{ChannelID: general, ThreadTS: root, Status: "thinks"}))
	e = next()
	require.Equal(t, []any{"assistant_status", root, "thinks", smithID}, []any{e["type"], e["thread_ts"], e["status"], e["app"]})
	_, err = api.PostEphemeral(general, anaID, textOption("for ana"))
	require.NoError(t, err)
	e = next()
	require.Equal(t, []any{"ephemeral", "for ana", smithID}, []any{e["type"], e["text"], e["user"]})
	require.NoError(t, s.Person("ana").React("general", root, "eyes"))
	require.Equal(t, "reaction_added", next()["type"])
}

func TestBoot_TellsTheWorld(t *testing.T) {
	s := start(t, slackbox.Options{})
	answer, err := http.Get(s.PageURL() + "_page/boot")
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	var b slackbox.Boot
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&b))
	require.Equal(t, slackbox.User{ID: anaID, Name: "ana", RealName: "Ana", Token: "xoxp-local-ana", Team: "T0SMITH0001", Kind: slackbox.Member}, b.Users[0])
	require.Equal(t, slackbox.Outsider, b.Users[3].Kind)
	require.Equal(t, "U0AGENTFOR1", b.Apps[2].BotUser)
	require.Len(t, b.DMs, 8, "four people, two seats")
	require.Len(t, b.Channels, 2)
}

func TestSeed_IsRefusedWhereItMakesNoSense(t *testing.T) {
	for name, seed := range map[string]slackbox.Seed{
		"no name":       {Users: []slackbox.User{{}}},
		"same name":     {Users: []slackbox.User{{Name: "a"}, {Name: "a"}}},
		"same token":    {Users: []slackbox.User{{Name: "a", Token: "t"}, {Name: "b", Token: "t"}}},
		"same app id":   {Apps: []slackbox.App{{Name: "a", ID: "A1"}, {Name: "b", ID: "A1"}}},
		"no such name":  {Channels: []slackbox.Channel{{Name: "c", Members: []string{"nobody"}}}},
		"same channels": {Channels: []slackbox.Channel{{Name: "c"}, {Name: "c"}}},
	} {
		require.Error(t, slackbox.New(slackbox.Options{Seed: &seed}).Start(t.Context(), ""), name)
	}
}
