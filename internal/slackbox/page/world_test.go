package page_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/slackbox/page"
)

// world is a local Slack with its page, and a browser to look at it.
type world struct {
	t      *testing.T
	slack  *slackbox.Server
	chrome *chrome
	boot   slackbox.Boot
}

func newWorld(t *testing.T) *world {
	t.Helper()
	seed := slackbox.DefaultSeed()
	for i, a := range seed.Apps {
		seed.Apps[i].BotToken, seed.Apps[i].AppToken = botToken(a.Name), appToken(a.Name)
	}
	s := slackbox.New(slackbox.Options{Seed: &seed, Page: page.Handler()})
	require.NoError(t, s.Start(t.Context(), ""))
	t.Cleanup(func() { _ = s.Close() })
	w := &world{t: t, slack: s, chrome: newChrome(t)}
	answer, err := http.Get(s.PageURL() + "_page/boot")
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&w.boot))
	return w
}

func botToken(app string) string { return "xoxb-of-" + app }
func appToken(app string) string { return "xapp-1-of-" + app }

// as opens the page as a person, at a channel.
func (w *world) as(name, where string) *tab {
	w.t.Helper()
	p := w.chrome.open(w.t, w.slack.PageURL()+"?as="+name+"&channel="+where)
	p.until(`document.querySelector(".beginning, .row, .quiet")`)
	return p
}

// user returns a person of the seed.
func (w *world) user(name string) slackbox.User {
	w.t.Helper()
	i := slices.IndexFunc(w.boot.Users, func(u slackbox.User) bool { return u.Name == name })
	require.GreaterOrEqual(w.t, i, 0, name)
	return w.boot.Users[i]
}

// botUser returns the bot user of an app of the seed.
func (w *world) botUser(name string) string {
	w.t.Helper()
	i := slices.IndexFunc(w.boot.Apps, func(a slackbox.BootApp) bool { return a.Name == name })
	require.GreaterOrEqual(w.t, i, 0, name)
	return w.boot.Apps[i].BotUser
}

// channel returns the id of a channel of the seed.
func (w *world) channel(name string) string {
	w.t.Helper()
	i := slices.IndexFunc(w.boot.Channels, func(c slackbox.Channel) bool { return c.Name == name })
	require.GreaterOrEqual(w.t, i, 0, name)
	return w.boot.Channels[i].ID
}

// client is an unmodified slack-go client with a token.
func (w *world) client(token string) *slack.Client {
	return slack.New(token, slack.OptionAPIURL(w.slack.URL()))
}

// bot runs an app by unmodified slack-go over Socket Mode: every mention and every
// direct line is answered in its thread by what answer says. It runs until the test ends.
func (w *world) bot(name string, answer func(api *slack.Client, channel, thread, text string)) {
	w.t.Helper()
	w.socket(name, func(api *slack.Client, sock *socketmode.Client, e socketmode.Event) {
		if e.Type != socketmode.EventTypeEventsAPI {
			return
		}
		_ = sock.Ack(*e.Request)
		outer, _ := e.Data.(slackevents.EventsAPIEvent)
		switch in := outer.InnerEvent.Data.(type) {
		case *slackevents.AppMentionEvent:
			if in.Edited == nil {
				answer(api, in.Channel, first(in.ThreadTimeStamp, in.TimeStamp), in.Text)
			}
		case *slackevents.MessageEvent:
			if strings.HasPrefix(in.Channel, "D") && in.BotID == "" && in.SubType == "" {
				answer(api, in.Channel, first(in.ThreadTimeStamp, in.TimeStamp), in.Text)
			}
		}
	})
}

// interactive runs an app that answers commands and buttons in the ack.
func (w *world) interactive(name string, answer func(kind, what string) string) {
	w.t.Helper()
	w.socket(name, func(_ *slack.Client, sock *socketmode.Client, e socketmode.Event) {
		text := ""
		switch in := e.Data.(type) {
		case slack.SlashCommand:
			text = answer(in.Command, in.Text)
		case slack.InteractionCallback:
			action := in.ActionCallback.BlockActions[0]
			text = answer(action.ActionID, action.Value)
		default:
			return
		}
		_ = sock.Ack(*e.Request, map[string]any{"response_type": "ephemeral", "text": text})
	})
}

// socket runs an app's socket until the test ends, and returns once it is open.
func (w *world) socket(name string, handle func(*slack.Client, *socketmode.Client, socketmode.Event)) {
	w.t.Helper()
	api := slack.New(botToken(name), slack.OptionAppLevelToken(appToken(name)), slack.OptionAPIURL(w.slack.URL()))
	sock := socketmode.New(api, socketmode.OptionLog(log.New(io.Discard, "", 0)))
	ctx, cancel := context.WithCancel(context.Background())
	ended, ready := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = sock.RunContext(ctx)
	}()
	go func() {
		for {
			select {
			case <-ended:
				return
			case e := <-sock.Events:
				if e.Type == socketmode.EventTypeHello {
					close(ready)
				}
				handle(api, sock, e)
			}
		}
	}()
	w.t.Cleanup(func() { cancel(); <-ended })
	select {
	case <-ready:
	case <-time.After(patience):
		w.t.Fatalf("%s never got a hello", name)
	}
}

func first(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

// post writes a message with a token and returns its ts.
func (w *world) post(token, channel, text string, opts ...slack.MsgOption) string {
	w.t.Helper()
	_, ts, err := w.client(token).PostMessageContext(w.t.Context(), channel, append([]slack.MsgOption{slack.MsgOptionText(text, false)}, opts...)...)
	require.NoError(w.t, err)
	return ts
}

// door stands between a browser and the local Slack, and can be shut.
type door struct {
	url  string
	shut atomic.Bool
	srv  *httptest.Server
	// late, if set, says until when the answer to a request is kept back; its body is given as text.
	late func(path, body string) <-chan struct{}
}

func newDoor(t *testing.T, to string) *door {
	t.Helper()
	target, err := url.Parse(to)
	require.NoError(t, err)
	d := &door{}
	through := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
	d.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.shut.Load() {
			panic(http.ErrAbortHandler)
		}
		if d.late == nil || r.Method != http.MethodPost {
			through.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := httptest.NewRecorder()
		through.ServeHTTP(answer, r)
		if until := d.late(r.URL.Path, string(body)); until != nil {
			<-until
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	d.url = d.srv.URL
	t.Cleanup(func() { d.close(); d.srv.Close() })
	return d
}

// close breaks every connection and lets no new one through.
func (d *door) close() {
	d.shut.Store(true)
	d.srv.CloseClientConnections()
}

func (d *door) open() { d.shut.Store(false) }
