package slackbox

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// responseURL is where an app may answer a command or an action later: five times
// within half an hour.
type responseURL struct {
	app    *app
	ch     *channel
	to     string
	thread string
	left   int
	until  time.Time
}

const (
	responseTimes = 5
	responseTime  = 30 * time.Minute
)

func (s *Server) newResponseURL(a *app, ch *channel, to, thread string) string {
	key := s.newUUID()
	s.answers[key] = &responseURL{app: a, ch: ch, to: to, thread: thread, left: responseTimes, until: s.clock.Now().Add(responseTime)}
	return s.base + "/response/" + key
}

// runCommand is how the page's person types a slash command.
func runCommand(c *call) (obj, *apiError) {
	ch, bad := c.channel("", "")
	if bad != nil {
		return nil, bad
	}
	command, text := c.p["command"], c.p["text"]
	i := slices.IndexFunc(c.s.apps, func(a *app) bool { return slices.Contains(a.Commands, command) })
	if i < 0 || c.who.app != nil {
		return nil, fail("unknown_command")
	}
	a, u := c.s.apps[i], c.who.user
	name := ch.name
	if ch.kind == kindIM {
		name = "directmessage"
	}
	e := &envelope{app: a, kind: "slash_commands", id: c.s.newUUID(), accepts: true, raised: c.now, channel: ch.id, channelName: ch.name}
	e.payload = c.s.mustJSON(obj{
		"token": "local", "team_id": c.s.team.ID, "team_domain": c.s.team.Domain, "channel_id": ch.id, "channel_name": name,
		"user_id": u.ID, "user_name": u.Name, "command": command, "text": text, "api_app_id": a.ID,
		"is_enterprise_install": "false", "response_url": c.s.newResponseURL(a, ch, u.ID, ""), "trigger_id": c.s.newID("1.2."),
	})
	c.s.awaitAnswer(e, ch, u, "", command+" failed with the error \"operation_timeout\"")
	c.s.dispatch(e)
	return nil, nil
}

// awaitAnswer shows what the ack carries, or that none came.
func (s *Server) awaitAnswer(e *envelope, ch *channel, u *user, thread, lost string) {
	e.onAck = func(payload json.RawMessage) {
		if len(payload) > 0 {
			_ = s.respond(&responseURL{app: e.app, ch: ch, to: u.ID, thread: thread}, payload)
		}
	}
	e.onLost = func() {
		s.whisper(s.users[slackbotID], ch, u.ID, thread, version{text: escape(lost)})
	}
}

// runActions is how the page's person uses a button or menu of a message.
func runActions(c *call) (obj, *apiError) {
	ch, bad := c.channel("", "")
	if bad != nil {
		return nil, bad
	}
	m := ch.byTS[c.p["message_ts"]]
	if m == nil || !m.deletedAt.IsZero() || m.author.app == nil {
		return nil, fail("message_not_found")
	}
	var actions []map[string]any
	if json.Unmarshal([]byte(c.p["actions"]), &actions) != nil || len(actions) == 0 || c.who.app != nil {
		return nil, fail("invalid_arguments")
	}
	s, a, u := c.s, m.author.app, c.who.user
	for _, x := range actions {
		x["action_ts"] = s.nextTS(c.now)
	}
	e := &envelope{app: a, kind: "interactive", id: s.newUUID(), accepts: true, raised: c.now, channel: ch.id, channelName: ch.name, ts: m.ts}
	container := obj{"type": "message", "message_ts": m.ts, "channel_id": ch.id, "is_ephemeral": false}
	if t := m.threadTS(); t != "" {
		container["thread_ts"] = t
	}
	e.payload = s.mustJSON(obj{
		"type": "block_actions", "token": "local", "api_app_id": a.ID, "trigger_id": s.newID("1.2."),
		"team":      obj{"id": s.team.ID, "domain": s.team.Domain},
		"user":      obj{"id": u.ID, "username": u.Name, "name": u.Name, "team_id": u.Team},
		"container": container, "channel": obj{"id": ch.id, "name": ch.name}, "message": s.render(m, view{}),
		"state": obj{"values": obj{}}, "response_url": s.newResponseURL(a, ch, u.ID, m.threadTS()), "actions": actions,
		"enterprise": nil, "is_enterprise_install": false,
	})
	s.awaitAnswer(e, ch, u, m.threadTS(), "That action did not get through.")
	s.dispatch(e)
	return nil, nil
}

// OpenHome raises app_home_opened: person (name or id) opened the app's home tab.
func (s *Server) OpenHome(appName, person string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, u := s.appOf(appName), s.find(person)
	if a == nil || u == nil || u.bot() {
		return errNo("app or person", appName+", "+person)
	}
	ch := s.directMessage(u, a.user)
	if a.wants("app_home_opened") {
		s.raise(a, "app_home_opened", ch, "", s.mustJSON(obj{
			"type": "app_home_opened", "user": u.ID, "channel": ch.id, "tab": "home", "event_ts": s.nextTS(s.clock.Now()),
		}))
	}
	return nil
}

// serveResponse takes an app's later answer.
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "request_too_large", http.StatusRequestEntityTooLarge)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.answers[r.PathValue("key")]
	if u == nil || u.left == 0 || s.clock.Now().After(u.until) {
		http.Error(w, "used_url", http.StatusNotFound)
		return
	}
	u.left--
	if bad := s.respond(u, body); bad != nil {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = w.Write(s.encode(&call{s: s}, nil, bad))
		return
	}
	s.touched()
	_, _ = io.WriteString(w, "ok")
}

// respond shows an answer: to the one who asked alone, or as a message.
func (s *Server) respond(u *responseURL, payload json.RawMessage) *apiError {
	p := params{}
	if p.addJSON(payload) != nil {
		return fail("invalid_payload")
	}
	c := &call{s: s, method: "response_url", p: p, now: s.clock.Now(), who: s.tokens[u.app.BotToken]}
	v, bad := c.readContent(maxText)
	if bad != nil {
		return bad
	}
	if v.text == "" && len(v.blocks) <= 2 && len(v.attachments) == 0 {
		return fail("no_text")
	}
	thread := p["thread_ts"]
	if thread == "" {
		thread = u.thread
	}
	if strings.EqualFold(p["response_type"], "in_channel") {
		parent, bad := u.ch.parentOf(thread)
		if bad != nil {
			return bad
		}
		c.store(&message{ch: u.ch, author: u.app.user, parent: parent, version: v.version, askedThread: thread})
		return nil
	}
	s.whisper(u.app.user, u.ch, u.to, thread, v.version)
	return nil
}
