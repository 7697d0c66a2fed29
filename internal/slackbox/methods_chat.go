package slackbox

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// content is what a post or an edit says.
type content struct {
	version
	given struct{ text, blocks, attachments, metadata bool }
}

// readContent checks and escapes what the caller wants to say.
func (c *call) readContent(limit int) (content, *apiError) {
	var v content
	text, hasText := c.p["text"]
	if md, ok := c.p["markdown_text"]; ok {
		if hasText && text != "" || c.p["blocks"] != "" {
			return v, fail("markdown_text_conflict")
		}
		if utf8.RuneCountInString(md) > maxMarkdown {
			return v, fail("msg_too_long")
		}
		text, hasText = md, true
	}
	v.given.text = hasText
	if utf8.RuneCountInString(text) > limit {
		return v, fail("msg_too_long")
	}
	if c.p.flag("link_names") || c.p["parse"] == "full" {
		text = c.s.linkNames(text)
	}
	v.text = escape(strings.ReplaceAll(text, "\x00", ""))
	raw, ok := c.p["blocks"]
	blocks, bad := checkBlocks(raw, c.s.blockID)
	if bad != nil {
		return v, bad
	}
	v.blocks, v.given.blocks = blocks, ok && raw != ""
	if raw, ok = c.p["attachments"]; ok && raw != "" {
		var all []json.RawMessage
		if json.Unmarshal([]byte(raw), &all) != nil {
			return v, fail("invalid_attachments")
		}
		if len(all) > maxAttachments {
			return v, fail("too_many_attachments")
		}
		v.attachments, v.given.attachments = json.RawMessage(raw), true
		if len(all) == 0 {
			v.attachments = nil
		}
	}
	raw, v.given.metadata = c.p["metadata"]
	md, warning, bad := checkMetadata(raw)
	if bad != nil {
		return v, bad
	}
	if warning != "" {
		c.warn(warning)
		c.messages = append(c.messages, "[WARN] metadata was dropped: event_type takes letters, digits, _ and - [json-pointer:/metadata/event_type]")
	}
	if md != nil && c.who.app == nil {
		return v, fail("metadata_must_be_sent_from_app")
	}
	v.metadata = md
	return v, nil
}

// settle gives the content its blocks and its time.
func (c *call) settle(v *version) {
	v.at = c.now
	if len(v.blocks) == 0 || string(v.blocks) == "[]" {
		v.blocks, v.autoBlocks = nil, false
		if v.text != "" {
			v.blocks, v.autoBlocks = richText(v.text, c.s.blockID()), true
		}
	}
}

func (s *Server) blockID() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, 5)
	for i := range b {
		b[i] = letters[s.rng.IntN(len(letters))]
	}
	return string(b)
}

func postMessage(c *call) (obj, *apiError) { return c.post("") }

func meMessage(c *call) (obj, *apiError) {
	body, bad := c.post("me_message")
	if bad != nil {
		return nil, bad
	}
	delete(body, "message")
	return body, nil
}

func (c *call) post(subtype string) (obj, *apiError) {
	ch, bad := c.postChannel()
	if bad != nil {
		return nil, bad
	}
	v, bad := c.readContent(maxText)
	if bad != nil {
		return nil, bad
	}
	if v.text == "" && len(v.blocks) <= 2 && len(v.attachments) == 0 {
		return nil, fail("no_text")
	}
	parent, bad := ch.parentOf(c.p["thread_ts"])
	if bad != nil {
		return nil, bad
	}
	m := &message{ch: ch, author: c.who.user, parent: parent, version: v.version, subtype: subtype, askedThread: c.p["thread_ts"]}
	m.broadcast = parent != nil && c.p.flag("reply_broadcast")
	if m.broadcast {
		m.subtype = "thread_broadcast"
	}
	if c.who.app != nil {
		m.username = c.p["username"]
		if m.username != "" {
			if m.subtype == "" {
				m.subtype = "bot_message"
			}
			m.icons = icons(c.p)
		}
	} else {
		m.clientMsgID = c.p["client_msg_id"]
		if m.clientMsgID == "" {
			m.clientMsgID = uuid.NewString()
		}
	}
	c.store(m)
	body := obj{"channel": ch.id, "ts": m.ts, "message": c.s.render(m, view{metadata: true})}
	return body, nil
}

func icons(p params) json.RawMessage {
	i := map[string]string{}
	if e := p["icon_emoji"]; e != "" {
		i["emoji"] = e
	}
	if u := p["icon_url"]; u != "" {
		i["image_48"] = u
	}
	if len(i) == 0 {
		return nil
	}
	b, _ := json.Marshal(i)
	return b
}

// parentOf finds the thread of a reply. A root that is gone is no error: the
// message goes to the channel, as on Slack.
func (ch *channel) parentOf(threadTS string) (*message, *apiError) {
	if threadTS == "" {
		return nil, nil
	}
	if !validTS(threadTS) {
		return nil, fail("invalid_thread_ts")
	}
	m := ch.byTS[threadTS]
	if m == nil || m.root().gone() {
		return nil, nil
	}
	return m.root(), nil
}

func validTS(ts string) bool {
	sec, micro, ok := strings.Cut(ts, ".")
	if !ok || len(micro) != 6 || sec == "" {
		return false
	}
	for _, r := range sec + micro {
		if r < '0' || r > '9' {
			return false
		}
	}
	return true
}

// store puts a message into the world and tells everyone.
func (c *call) store(m *message) {
	s := c.s
	c.settle(&m.version)
	m.ts, m.storedAt = s.nextTS(c.now), c.now
	m.ch.msgs = append(m.ch.msgs, m)
	m.ch.byTS[m.ts] = m
	if m.parent != nil {
		m.parent.replies = append(m.parent.replies, m)
	}
	s.oracle.stored(s, m)
	if m.author.app != nil {
		s.clearStatus(m.author.app, m.ch, m.root().ts, "post")
	}
	s.raiseMessage(m)
}

// own finds a message of the caller's to change.
func (c *call) own(denied string) (*message, *apiError) {
	ch, bad := c.channel("", "")
	if bad != nil {
		return nil, bad
	}
	m := ch.byTS[c.p["ts"]]
	if m == nil || !m.deletedAt.IsZero() {
		return nil, fail("message_not_found")
	}
	if m.author != c.who.user {
		return nil, fail(denied)
	}
	return m, nil
}

func updateMessage(c *call) (obj, *apiError) {
	m, bad := c.own("cant_update_message")
	if bad != nil {
		return nil, bad
	}
	if m.subtype == "channel_join" {
		return nil, fail("cant_update_message")
	}
	v, bad := c.readContent(maxUpdateText)
	if bad != nil {
		return nil, bad
	}
	next := v.version
	if !v.given.text && !v.given.blocks && !v.given.attachments {
		return nil, fail("no_text")
	}
	if !v.given.text {
		next.text = m.text
	}
	if !v.given.blocks && !m.autoBlocks {
		next.blocks = m.blocks
	}
	if !v.given.attachments {
		next.attachments = m.attachments
	}
	if !v.given.metadata {
		next.metadata = m.metadata
	}
	if next.text == "" && len(next.blocks) <= 2 && len(next.attachments) == 0 && len(m.files) == 0 {
		return nil, fail("no_text")
	}
	next.edited = &Edited{User: c.who.user.ID, TS: c.s.nextTS(c.now)}
	c.settle(&next)
	c.s.change(m, next)
	return obj{"channel": m.ch.id, "ts": m.ts, "text": m.text, "message": c.s.render(m, view{metadata: true})}, nil
}

func deleteMessage(c *call) (obj, *apiError) {
	m, bad := c.own("cant_delete_message")
	if bad != nil {
		return nil, bad
	}
	c.s.delete(m, c.who.user.ID)
	return obj{"channel": m.ch.id, "ts": m.ts}, nil
}

func getPermalink(c *call) (obj, *apiError) {
	ch, bad := c.channel("", "")
	if bad != nil {
		return nil, bad
	}
	m := ch.byTS[c.p["message_ts"]]
	if m == nil || m.gone() {
		return nil, fail("message_not_found")
	}
	return obj{"channel": ch.id, "permalink": c.s.permalink(m)}, nil
}

func (s *Server) permalink(m *message) string {
	link := s.base + "/archives/" + m.ch.id + "/p" + strings.ReplaceAll(m.ts, ".", "")
	if m.parent != nil {
		link += "?thread_ts=" + m.parent.ts + "&cid=" + m.ch.id
	}
	return link
}

func postEphemeral(c *call) (obj, *apiError) {
	ch, bad := c.postChannel()
	if bad != nil {
		return nil, bad
	}
	v, bad := c.readContent(maxText)
	if bad != nil {
		return nil, bad
	}
	if v.text == "" && len(v.blocks) <= 2 && len(v.attachments) == 0 {
		return nil, fail("no_text")
	}
	to := c.s.users[c.p["user"]]
	if to == nil || !ch.has(to.ID) {
		return nil, fail("user_not_in_channel")
	}
	return obj{"message_ts": c.s.whisper(c.who.user, ch, to.ID, c.p["thread_ts"], v.version)}, nil
}
