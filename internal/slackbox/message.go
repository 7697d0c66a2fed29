package slackbox

import (
	"slices"
	"time"
)

// view says what a reader sees of a message.
type view struct {
	metadata bool      // whole
	kind     bool      // of the metadata, the event type alone
	asOf     time.Time // zero: now
}

// seen tells whether the message exists for the reader.
func (v view) seen(m *message) bool {
	if v.asOf.IsZero() {
		return !m.gone()
	}
	return !m.storedAt.After(v.asOf) && (m.deletedAt.IsZero() || m.tombstone || m.deletedAt.After(v.asOf))
}

// at returns the version that the reader sees.
func (v view) at(m *message) version {
	now := m.version
	if v.asOf.IsZero() || !now.at.After(v.asOf) {
		return now
	}
	for _, old := range slices.Backward(m.old) {
		if !old.at.After(v.asOf) {
			return old
		}
	}
	return now
}

// render shows a message as Slack's API does.
func (s *Server) render(m *message, v view) *Message {
	says := v.at(m)
	out := &Message{Type: "message", Subtype: m.subtype, TS: m.ts, Text: says.text, Blocks: says.blocks,
		Attachments: says.attachments, Edited: says.edited, ClientMsgID: m.clientMsgID,
		Inviter: m.inviter, Username: m.username, Icons: m.icons}
	switch {
	case v.metadata:
		out.Metadata = says.metadata
	case v.kind && says.metadata != nil:
		out.Metadata = &Metadata{EventType: says.metadata.EventType}
	}
	s.signature(m, out)
	for _, f := range m.files {
		out.Files = append(out.Files, f.public())
	}
	if m.subtype == "file_share" {
		no := false
		out.Upload, out.DisplayAsBot = &no, &no
	}
	for _, r := range m.reactions {
		out.Reactions = append(out.Reactions, Reaction{Name: r.Name, Users: slices.Clone(r.Users), Count: len(r.Users)})
	}
	if m.parent != nil {
		out.ThreadTS, out.ParentUserID = m.parent.ts, m.parent.author.ID
		if m.broadcast {
			root := s.render(m.parent, v)
			root.Root = nil
			out.Root = root
		}
		return out
	}
	s.renderThread(m, v, out)
	if m.tombstone {
		yes := true
		out.Subtype, out.User, out.Text, out.Hidden = "tombstone", slackbotID, "This message was deleted.", true
		out.Blocks, out.Attachments, out.Files, out.Metadata, out.Edited, out.Reactions = nil, nil, nil, nil, nil, nil
		out.BotID, out.AppID, out.BotProfile, out.ClientMsgID, out.Username, out.Icons = "", "", nil, "", "", nil
		out.ThreadTS, out.IsLocked = m.ts, &yes
	}
	return out
}

// signature says who wrote the message.
func (s *Server) signature(m *message, out *Message) {
	u := m.author
	out.User, out.Team = u.ID, u.Team
	if u.app != nil {
		out.BotID, out.AppID = u.app.BotID, u.app.ID
		out.BotProfile = &BotProfile{ID: u.app.BotID, AppID: u.app.ID, UserID: u.ID, Name: u.Name,
			Icons: map[string]string{}, Updated: s.epoch, TeamID: u.Team}
		if m.username != "" && m.subtype == "bot_message" {
			out.User = ""
		}
	}
	if m.ch.shared {
		out.UserTeam, out.SourceTeam = u.Team, u.Team
	}
}

func (s *Server) renderThread(m *message, v view, out *Message) {
	for _, r := range m.replies {
		if !v.seen(r) {
			continue
		}
		out.ReplyCount++
		out.LatestReply = r.ts
		if !slices.Contains(out.ReplyUsers, r.author.ID) {
			out.ReplyUsers = append(out.ReplyUsers, r.author.ID)
		}
	}
	if out.ReplyCount > 0 {
		no := false
		out.ThreadTS, out.UsersCount, out.IsLocked, out.Subscribed = m.ts, len(out.ReplyUsers), &no, &no
	}
}

// change gives a message a new version and raises message_changed.
func (s *Server) change(m *message, next version) {
	before := s.render(m, view{metadata: true})
	m.old = append(m.old, m.version)
	m.version = next
	s.oracle.touch(s, m)
	s.raiseChanged(m, before, before.Text != m.text)
}

// delete removes a message, or leaves a tombstone where a thread hangs on it.
func (s *Server) delete(m *message, by string) {
	before := s.render(m, view{metadata: true})
	m.deletedAt, m.deletedBy = s.clock.Now(), by
	live := slices.ContainsFunc(m.replies, func(r *message) bool { return !r.gone() })
	if live {
		m.tombstone = true
		s.oracle.touch(s, m)
		s.raiseChanged(m, before, false)
		return
	}
	s.oracle.touch(s, m)
	s.raiseDeleted(m, before)
	if root := m.parent; root != nil && root.tombstone && !slices.ContainsFunc(root.replies, func(r *message) bool { return !r.gone() }) {
		root.tombstone = false
	}
}

// deleteHard removes a message so that no thread is left to reply to.
func (s *Server) deleteHard(m *message) {
	if m.gone() {
		return
	}
	before := s.render(m, view{metadata: true})
	m.deletedAt, m.tombstone, m.deletedBy = s.clock.Now(), false, slackbotID
	s.oracle.touch(s, m)
	s.raiseDeleted(m, before)
}

// channel finds the conversation that the call names, checks that the caller may
// know of it, and asks for the scope of its kind ("history", "read", or "" for none).
func (c *call) channel(param, action string) (*channel, *apiError) {
	if param == "" {
		param = "channel"
	}
	ch := c.s.channels[c.p[param]]
	if ch == nil || !c.knows(ch) {
		return nil, fail("channel_not_found")
	}
	if action != "" {
		if bad := c.needs(ch.scope(action)); bad != nil {
			return nil, bad
		}
	}
	return ch, nil
}

func (ch *channel) scope(action string) string {
	switch ch.kind {
	case kindGroup:
		return "groups:" + action
	case kindIM:
		return "im:" + action
	case kindMPIM:
		return "mpim:" + action
	}
	return "channels:" + action
}

func (c *call) knows(ch *channel) bool {
	if ch.has(c.who.user.ID) {
		return true
	}
	return ch.kind == kindChannel && c.who.user.Kind == Member
}

// postChannel finds where a message goes: a channel's id or name, or a user for
// the direct message with them.
func (c *call) postChannel() (*channel, *apiError) {
	id := c.p["channel"]
	if id == "" {
		return nil, fail("channel_not_found")
	}
	ch := c.s.channelOf(id)
	if ch == nil {
		if u := c.s.users[id]; u != nil && u.Kind != Deactivated && u.ID != slackbotID {
			ch = c.s.directMessage(c.who.user, u)
			ch.open = true
		}
	}
	switch {
	case ch == nil || !c.knows(ch):
		return nil, fail("channel_not_found")
	case ch.archived:
		return nil, fail("is_archived")
	case !ch.has(c.who.user.ID) && (c.who.scope == nil || !c.who.scope["chat:write.public"]):
		return nil, fail("not_in_channel")
	}
	return ch, nil
}
