package slackbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

type messageEvent struct {
	*Message
	Channel     string `json:"channel"`
	ChannelType string `json:"channel_type"`
	EventTS     string `json:"event_ts"`
}

type hiddenEvent struct {
	Type            string   `json:"type"`
	Subtype         string   `json:"subtype"`
	Hidden          bool     `json:"hidden"`
	Message         *Message `json:"message,omitempty"`
	PreviousMessage *Message `json:"previous_message,omitempty"`
	DeletedTS       string   `json:"deleted_ts,omitempty"`
	Channel         string   `json:"channel"`
	ChannelType     string   `json:"channel_type"`
	TS              string   `json:"ts"`
	EventTS         string   `json:"event_ts"`
}

type mentionEvent struct {
	Type         string          `json:"type"`
	ClientMsgID  string          `json:"client_msg_id,omitempty"`
	User         string          `json:"user,omitempty"`
	BotID        string          `json:"bot_id,omitempty"`
	AppID        string          `json:"app_id,omitempty"`
	BotProfile   *BotProfile     `json:"bot_profile,omitempty"`
	Text         string          `json:"text"`
	TS           string          `json:"ts"`
	ThreadTS     string          `json:"thread_ts,omitempty"`
	ParentUserID string          `json:"parent_user_id,omitempty"`
	Team         string          `json:"team,omitempty"`
	UserTeam     string          `json:"user_team,omitempty"`
	SourceTeam   string          `json:"source_team,omitempty"`
	Blocks       json.RawMessage `json:"blocks,omitempty"`
	Attachments  json.RawMessage `json:"attachments,omitempty"`
	Files        []*File         `json:"files,omitempty"`
	Upload       *bool           `json:"upload,omitempty"`
	DisplayAsBot *bool           `json:"display_as_bot,omitempty"`
	Edited       *Edited         `json:"edited,omitempty"`
	Metadata     *Metadata       `json:"metadata,omitempty"`
	Channel      string          `json:"channel"`
	EventTS      string          `json:"event_ts"`
}

type eventCallback struct {
	Token          string          `json:"token"`
	TeamID         string          `json:"team_id"`
	ContextTeamID  string          `json:"context_team_id"`
	ContextEntID   *string         `json:"context_enterprise_id"`
	APIAppID       string          `json:"api_app_id"`
	Event          json.RawMessage `json:"event"`
	Type           string          `json:"type"`
	EventID        string          `json:"event_id"`
	EventTime      int64           `json:"event_time"`
	Authorizations []authorization `json:"authorizations"`
	ExtShared      bool            `json:"is_ext_shared_channel"`
	EventContext   string          `json:"event_context"`
}

type authorization struct {
	EnterpriseID        *string `json:"enterprise_id"`
	TeamID              string  `json:"team_id"`
	UserID              string  `json:"user_id"`
	IsBot               bool    `json:"is_bot"`
	IsEnterpriseInstall bool    `json:"is_enterprise_install"`
}

func (s *Server) mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		s.opt.Log.Error("event of the local slack", "error", err)
		return json.RawMessage("{}")
	}
	return b
}

// raiseMessage tells every app in the channel, and the pages, of a new message.
func (s *Server) raiseMessage(m *message) {
	full := s.render(m, view{metadata: true})
	event := func(md *Metadata) json.RawMessage {
		shown := *full
		shown.Metadata = md
		return s.mustJSON(messageEvent{&shown, m.ch.id, m.ch.kind, m.ts})
	}
	whole := event(full.Metadata)
	s.stream(m.ch, whole)
	named := s.mentioned(m)
	for _, a := range s.listeners(m.ch) {
		inner := whole
		if md := s.eventMetadata(a, full.Metadata); md != full.Metadata {
			inner = event(md)
		}
		s.raiseCopies(a, m, inner, named)
	}
	if s.parentChanged(m) {
		root := s.render(m.parent, view{metadata: true})
		s.raiseHidden(m.ch, hiddenEvent{Subtype: "message_changed", Message: root, PreviousMessage: root})
	}
	if s.settings.Unfurl && strings.Contains(m.text, "<http") {
		s.unfurl(m, nil)
	}
}

// raiseCopies raises message and app_mention for one app, in an order of chance.
func (s *Server) raiseCopies(a *app, m *message, inner json.RawMessage, named []string) {
	copies := []func(){func() {
		if a.wants(m.ch.messageEvent()) {
			s.raise(a, "message", m.ch, m.ts, inner)
		}
	}}
	if m.ch.kind != kindIM && m.author != a.user && slices.Contains(named, a.BotUser) && a.wants("app_mention") {
		copies = append(copies, func() { s.raise(a, "app_mention", m.ch, m.ts, s.mentionEvent(m)) })
		if s.rng.IntN(2) == 1 {
			slices.Reverse(copies)
		}
	}
	for _, raise := range copies {
		raise()
	}
}

// messageEvent is the subscription that a channel's messages belong to.
func (ch *channel) messageEvent() string { return "message." + strings.TrimSuffix(ch.scope(""), ":") }

func (s *Server) parentChanged(m *message) bool {
	if m.parent == nil {
		return false
	}
	switch s.settings.ParentChanged {
	case "all":
		return true
	case "off":
		return false
	}
	return m.ch.kind == kindIM
}

// eventMetadata is what of a message's metadata an app's event carries.
func (s *Server) eventMetadata(a *app, md *Metadata) *Metadata {
	if md == nil || !slices.Contains(a.Scopes, "metadata.message:read") {
		return nil
	}
	switch s.settings.EventMetadata {
	case "none":
		return nil
	case "stripped":
		return &Metadata{EventType: md.EventType}
	}
	return md
}

func (s *Server) mentioned(m *message) []string {
	if m.subtype == "channel_join" {
		return nil
	}
	blocks := m.blocks
	if m.autoBlocks {
		blocks = nil
	}
	return mentions(m.text, blocks)
}

func (s *Server) mentionEvent(m *message) json.RawMessage {
	x := s.render(m, view{metadata: s.settings.MentionMetadata})
	return s.mustJSON(mentionEvent{
		Type: "app_mention", ClientMsgID: x.ClientMsgID, User: x.User, BotID: x.BotID, AppID: x.AppID, BotProfile: x.BotProfile,
		Text: x.Text, TS: x.TS, ThreadTS: x.ThreadTS, ParentUserID: x.ParentUserID, Team: x.Team, UserTeam: x.UserTeam,
		SourceTeam: x.SourceTeam, Blocks: x.Blocks, Attachments: x.Attachments, Files: x.Files, Upload: x.Upload,
		DisplayAsBot: x.DisplayAsBot, Edited: x.Edited, Metadata: x.Metadata, Channel: m.ch.id, EventTS: x.TS,
	})
}

// raiseChanged raises message_changed, and app_mention again where a text was edited.
func (s *Server) raiseChanged(m *message, before *Message, textChanged bool) {
	now := s.render(m, view{metadata: true})
	s.raiseHidden(m.ch, hiddenEvent{Subtype: "message_changed", Message: now, PreviousMessage: before})
	if !textChanged || m.ch.kind == kindIM || m.tombstone {
		return
	}
	named := s.mentioned(m)
	for _, a := range s.listeners(m.ch) {
		if m.author != a.user && slices.Contains(named, a.BotUser) && a.wants("app_mention") {
			s.raise(a, "app_mention", m.ch, m.ts, s.mentionEvent(m))
		}
	}
}

func (s *Server) raiseDeleted(m *message, before *Message) {
	s.raiseHidden(m.ch, hiddenEvent{Subtype: "message_deleted", PreviousMessage: before, DeletedTS: m.ts})
}

func (s *Server) raiseHidden(ch *channel, e hiddenEvent) {
	e.Type, e.Hidden, e.Channel, e.ChannelType = "message", true, ch.id, ch.kind
	e.TS = s.nextTS(s.clock.Now())
	e.EventTS = e.TS
	whole := s.mustJSON(e)
	s.stream(ch, whole)
	ts := e.DeletedTS
	if e.Message != nil {
		ts = e.Message.TS
	}
	for _, a := range s.listeners(ch) {
		if !a.wants(ch.messageEvent()) {
			continue
		}
		inner := whole
		if e.strips(s, a) {
			inner = s.mustJSON(e.stripped(s, a))
		}
		s.raise(a, "message", ch, ts, inner)
	}
}

func (e hiddenEvent) strips(s *Server, a *app) bool {
	for _, m := range []*Message{e.Message, e.PreviousMessage} {
		if m != nil && m.Metadata != nil && s.eventMetadata(a, m.Metadata) != m.Metadata {
			return true
		}
	}
	return false
}

func (e hiddenEvent) stripped(s *Server, a *app) hiddenEvent {
	for _, p := range []**Message{&e.Message, &e.PreviousMessage} {
		if *p != nil {
			shown := **p
			shown.Metadata = s.eventMetadata(a, shown.Metadata)
			*p = &shown
		}
	}
	return e
}

func (s *Server) raiseJoined(ch *channel, u *user, inviter string) {
	e := obj{
		"type": "member_joined_channel", "user": u.ID, "channel": ch.id, "channel_type": strings.ToUpper(ch.id[:1]),
		"team": u.Team, "event_ts": s.nextTS(s.clock.Now()),
	}
	if inviter != "" {
		e["inviter"] = inviter
	}
	s.raiseSimple(ch, "member_joined_channel", "", e)
}

// raiseSimple raises an event that is the same for all who may see it.
func (s *Server) raiseSimple(ch *channel, typ, ts string, e obj) {
	inner := s.mustJSON(e)
	s.stream(ch, inner)
	for _, a := range s.listeners(ch) {
		if a.wants(typ) {
			s.raise(a, typ, ch, ts, inner)
		}
	}
}

// listeners are the apps in a channel.
func (s *Server) listeners(ch *channel) []*app {
	var in []*app
	for _, a := range s.apps {
		if ch.has(a.BotUser) {
			in = append(in, a)
		}
	}
	return in
}

func (a *app) wants(event string) bool { return slices.Contains(a.Events, event) }

// raise puts an event on its way to one app.
func (s *Server) raise(a *app, typ string, ch *channel, ts string, inner json.RawMessage) {
	e := &envelope{app: a, kind: "events_api", event: typ, ts: ts, id: s.newUUID(), raised: s.clock.Now()}
	shared := false
	if ch != nil {
		e.channel, e.channelName, shared = ch.id, ch.name, ch.shared
	}
	if f := s.fire([]FaultKind{Forget}, e.match()); f != nil {
		s.delivery(e, "forgotten", 0, string(Forget))
		return
	}
	id := s.nextSeq()
	e.payload = s.mustJSON(eventCallback{
		Token: "local", TeamID: s.team.ID, ContextTeamID: s.team.ID, APIAppID: a.ID, Event: inner, Type: "event_callback",
		EventID: fmt.Sprintf("Ev%010X", id), EventTime: s.clock.Now().Unix(), ExtShared: shared,
		Authorizations: []authorization{{TeamID: s.team.ID, UserID: a.BotUser, IsBot: true}},
		EventContext:   fmt.Sprintf("4-%s-%d", a.ID, id),
	})
	s.dispatch(e)
}
