package slackbox

import (
	"slices"
	"time"
)

// statusTime is how long an assistant status shows unless it is set again.
const statusTime = 2 * time.Minute

type statusKey struct {
	app             *app
	channel, thread string
}

type status struct {
	text    string
	loading []string
	until   time.Time
	timer   Timer
}

// Status is an assistant status that shows now.
type Status struct {
	App      string    `json:"app"`
	Channel  string    `json:"channel"`
	ThreadTS string    `json:"thread_ts"`
	Status   string    `json:"status"`
	Loading  []string  `json:"loading_messages,omitempty"`
	Until    time.Time `json:"until"`
}

// Statuses returns the assistant statuses that show now.
func (s *Server) Statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listStatuses()
}

func (s *Server) listStatuses() []Status {
	out := []Status{}
	for k, v := range s.statuses {
		out = append(out, Status{App: k.app.Name, Channel: k.channel, ThreadTS: k.thread, Status: v.text, Loading: v.loading, Until: v.until})
	}
	slices.SortFunc(out, func(a, b Status) int { return a.Until.Compare(b.Until) })
	return out
}

func setStatus(c *call) (obj, *apiError) {
	if c.who.app == nil {
		return nil, fail("not_allowed_token_type")
	}
	ch, bad := c.channel("channel_id", "")
	if bad != nil {
		return nil, bad
	}
	if !ch.has(c.who.user.ID) {
		return nil, fail("not_in_channel")
	}
	thread := c.p["thread_ts"]
	if !validTS(thread) {
		return nil, fail("invalid_thread_ts")
	}
	m := ch.byTS[thread]
	if m == nil || m.gone() || m.parent != nil { // a reply's ts is refused too: measured on Slack
		return nil, fail("invalid_thread_ts")
	}
	loading := c.p.list("loading_messages")
	if len(loading) > maxLoadingLines {
		return nil, fail("invalid_arguments")
	}
	text, said := c.p["status"]
	if !said {
		return nil, fail("invalid_arguments")
	}
	if text == "" {
		c.s.clearStatus(c.who.app, ch, m.ts, "cleared")
		return nil, nil
	}
	c.s.showStatus(c.who.app, ch, m.ts, text, loading)
	return nil, nil
}

func (s *Server) showStatus(a *app, ch *channel, thread, text string, loading []string) {
	key := statusKey{a, ch.id, thread}
	if old := s.statuses[key]; old != nil {
		old.timer.Stop()
	}
	st := &status{text: text, loading: loading, until: s.clock.Now().Add(statusTime)}
	st.timer = s.clock.AfterFunc(statusTime, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.statuses[key] == st {
			s.clearStatus(a, ch, thread, "expired")
		}
	})
	s.statuses[key] = st
	s.tellStatus(a, ch, thread, text, loading, "set")
}

func (s *Server) clearStatus(a *app, ch *channel, thread, why string) {
	key := statusKey{a, ch.id, thread}
	st := s.statuses[key]
	if st == nil {
		return
	}
	st.timer.Stop()
	delete(s.statuses, key)
	s.tellStatus(a, ch, thread, "", nil, why)
}

func (s *Server) tellStatus(a *app, ch *channel, thread, text string, loading []string, why string) {
	s.oracle.statuses = append(s.oracle.statuses, LoggedStatus{
		Seq: s.nextSeq(), At: s.clock.Now(), App: a.Name, Channel: ch.id, ThreadTS: thread, Status: text, Loading: loading, Why: why,
	})
	if loading == nil {
		loading = []string{}
	}
	s.stream(ch, s.mustJSON(obj{
		"type": "assistant_status", "channel": ch.id, "thread_ts": thread, "app": a.BotUser, "app_name": a.Name,
		"status": text, "loading_messages": loading,
	}))
	s.touched()
}

// whisper shows a message to one person alone and returns its ts.
func (s *Server) whisper(from *user, ch *channel, to, thread string, v version) string {
	ts := s.nextTS(s.clock.Now())
	s.oracle.ephemerals = append(s.oracle.ephemerals, LoggedEphemeral{
		Seq: s.nextSeq(), At: s.clock.Now(), From: from.Name, To: s.users[to].Name, Channel: ch.id, ThreadTS: thread, TS: ts, Text: v.text,
	})
	e := obj{"type": "ephemeral", "channel": ch.id, "ts": ts, "user": from.ID, "text": v.text}
	if from.app != nil {
		e["bot_id"], e["app_id"] = from.app.BotID, from.app.ID
	}
	if thread != "" {
		e["thread_ts"] = thread
	}
	if len(v.blocks) > 2 {
		e["blocks"] = v.blocks
	}
	s.streamTo(to, s.mustJSON(e))
	s.touched()
	return ts
}
