package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"agentsmith/rules"
)

// kind says what an envelope brings.
type kind string

const (
	isLine     kind = "line"
	isEdit     kind = "edit"
	isDeletion kind = "deletion"
	isReaction kind = "reaction"
	isCommand  kind = "command"
	// isNothing is a known event that is about no line.
	isNothing kind = "nothing"
	// isStrange is kept raw: unknown, malformed, or for another team.
	isStrange kind = "strange"
)

// inbound is one envelope, read. It holds everything that its handling needs, so that
// it may come from a socket, from the spool, or from a channel's history.
type inbound struct {
	kind kind
	// envelope is Slack's id of the delivery; never a key of anything (L2).
	envelope string
	// line is the line itself (isLine, isEdit), or only its name (isDeletion, isReaction).
	line rules.Line
	// mentioned: the event is an app_mention.
	mentioned bool
	// eventTS is Slack's own ts of the edit, the deletion or the reaction.
	eventTS string
	// user and reaction are who put which reaction; removed says it was taken away.
	user, reaction string
	removed        bool
	command        string
	// why and name say what is strange, and of which kind: a kind is warned of once.
	why, name string
	// raw is the envelope as it came.
	raw json.RawMessage
}

// envelope is a frame of a socket, as far as it is looked at.
type envelope struct {
	Type       string          `json:"type"`
	EnvelopeID string          `json:"envelope_id"`
	Payload    json.RawMessage `json:"payload"`
}

// payload is the callback inside an envelope, and the inner event's outline.
type payload struct {
	Type    string          `json:"type"`
	Team    string          `json:"team_id"`
	Command string          `json:"command"`
	Event   json.RawMessage `json:"event"`
}

type outline struct {
	Type        string          `json:"type"`
	Subtype     string          `json:"subtype"`
	Hidden      bool            `json:"hidden"`
	Channel     json.RawMessage `json:"channel"`
	ChannelType string          `json:"channel_type"`
	EventTS     string          `json:"event_ts"`
	DeletedTS   string          `json:"deleted_ts"`
	Message     json.RawMessage `json:"message"`
	User        json.RawMessage `json:"user"`
	Reaction    string          `json:"reaction"`
	Item        struct {
		Type    string `json:"type"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	} `json:"item"`
}

// notContent are the subtypes of messages that tell of a channel, not of a line. What
// is not named here is content: a line is rather read once too often than lost.
func notContent(subtype string) bool {
	switch subtype {
	case "channel_join", "channel_leave", "channel_topic", "channel_purpose", "channel_name",
		"channel_archive", "channel_unarchive", "channel_convert_to_private", "channel_convert_to_public",
		"channel_posting_permissions", "group_join", "group_leave", "group_topic", "group_purpose",
		"group_name", "group_archive", "group_unarchive", "pinned_item", "unpinned_item",
		"ekm_access_denied", "message_replied", "reply_broadcast", "bot_add", "bot_remove", "bot_enable", "bot_disable",
		"tombstone", "assistant_app_thread", "huddle_thread", "sh_room_created", "sh_room_shared",
		"reminder_add", "channel_canvas_updated", "document_mention":
		return true
	}
	return false
}

// readEnvelope reads one frame of a socket for the installing team. It never fails:
// what it cannot read comes back as isStrange with the envelope's id, to be kept raw
// and acked (L2).
func readEnvelope(team string, raw []byte) inbound {
	var e envelope
	err := json.Unmarshal(raw, &e)
	if err != nil && e.EnvelopeID == "" {
		// One field of an unexpected shape must not hide the envelope's id.
		var id struct {
			EnvelopeID string `json:"envelope_id"`
		}
		_ = json.Unmarshal(raw, &id)
		e.EnvelopeID = id.EnvelopeID
	}
	var in inbound
	switch {
	case err != nil:
		in = strange("envelope", fmt.Errorf("read the envelope: %w", err))
	case e.Type == "events_api":
		in = readCallback(team, e.Payload)
	case e.Type == "slash_commands":
		in = readCommand(team, e.Payload)
	default:
		in = strange("envelope "+e.Type, errors.New("no envelope of a kind that is read"))
	}
	in.envelope, in.raw = e.EnvelopeID, raw
	return in
}

func strange(name string, err error) inbound {
	return inbound{kind: isStrange, name: clip(name), why: clip(err.Error())}
}

func readCommand(team string, raw json.RawMessage) inbound {
	var p payload
	switch err := json.Unmarshal(raw, &p); {
	case err != nil:
		return strange("slash command", err)
	case p.Team != team:
		return strange("another team's command", errors.New("it is for another team"))
	}
	return inbound{kind: isCommand, command: p.Command}
}

func readCallback(team string, raw json.RawMessage) inbound {
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil {
		return strange("callback", fmt.Errorf("read the callback: %w", err))
	}
	var o outline
	if err := json.Unmarshal(p.Event, &o); err != nil {
		// A field of an odd shape is no reason to lose a message that can be named.
		var bare struct {
			Type    string `json:"type"`
			Subtype string `json:"subtype"`
		}
		if json.Unmarshal(p.Event, &bare) != nil || bare.Type == "" {
			return strange("event", fmt.Errorf("read the event: %w", err))
		}
		o = outline{Type: bare.Type, Subtype: bare.Subtype}
	}
	if p.Team != team {
		return strange("another team's "+o.Type, fmt.Errorf("it is for team %q", p.Team))
	}
	switch o.Type {
	case "message":
		return readMessage(team, p.Event, o)
	case "app_mention":
		in := readContent(team, "", p.Event, o)
		in.mentioned = in.kind == isLine
		if in.line.EditedTS != "" {
			in.kind, in.eventTS = isEdit, in.line.EditedTS
		}
		return in
	case "reaction_added", "reaction_removed":
		return readReaction(team, o)
	case "app_home_opened", "member_joined_channel", "member_left_channel", "channel_rename", "app_context_changed",
		"assistant_thread_started", "assistant_thread_context_changed", "message_metadata_posted":
		return inbound{kind: isNothing}
	}
	return strange("event "+o.Type, errors.New("no event of a kind that is read"))
}

func readMessage(team string, raw json.RawMessage, o outline) inbound {
	switch {
	case o.Subtype == "message_changed":
		return readChange(team, o)
	case o.Subtype == "message_deleted":
		return deletion(team, text(o.Channel), o.DeletedTS, o.EventTS)
	case notContent(o.Subtype):
		return inbound{kind: isNothing}
	case o.Hidden:
		return strange("hidden message "+o.Subtype, errors.New("a hidden message of an unknown kind"))
	}
	in := readContent(team, "", raw, o)
	if in.kind == isLine && in.line.EditedTS != "" {
		in.kind, in.eventTS = isEdit, in.line.EditedTS
	}
	return in
}

// readChange reads a message_changed. One without a mark of an edit is an unfurl or a
// count of replies: the same line once more, which is nothing unless it was missed (L4).
func readChange(team string, o outline) inbound {
	var m struct {
		Subtype string `json:"subtype"`
		TS      string `json:"ts"`
	}
	if err := json.Unmarshal(o.Message, &m); err != nil {
		return strange("message_changed", fmt.Errorf("read the changed message: %w", err))
	}
	if m.Subtype == "tombstone" {
		return deletion(team, text(o.Channel), m.TS, o.EventTS)
	}
	if notContent(m.Subtype) {
		return inbound{kind: isNothing}
	}
	in := readContent(team, text(o.Channel), o.Message, o)
	if in.kind == isLine && in.line.EditedTS != "" {
		in.kind, in.eventTS = isEdit, in.line.EditedTS
	}
	return in
}

func readContent(team, channel string, raw json.RawMessage, o outline) inbound {
	line, err := rules.ParseMessage(team, channel, raw)
	if err != nil {
		return strange("message", err)
	}
	if line.ChannelType == "" {
		line.ChannelType = o.ChannelType
	}
	return inbound{kind: isLine, line: line}
}

func deletion(team, channel, ts, eventTS string) inbound {
	line, err := named(team, channel, ts)
	if err != nil || !rules.ValidTS(eventTS) {
		return strange("deletion", fmt.Errorf("a deletion that names no message: channel %q, ts %q, event ts %q", channel, ts, eventTS))
	}
	return inbound{kind: isDeletion, line: line, eventTS: eventTS}
}

func readReaction(team string, o outline) inbound {
	if o.Item.Type != "message" {
		return inbound{kind: isNothing}
	}
	line, err := named(team, o.Item.Channel, o.Item.TS)
	if err != nil || !rules.ValidTS(o.EventTS) {
		return strange("reaction", fmt.Errorf("a reaction that names no message: channel %q, ts %q, event ts %q", o.Item.Channel, o.Item.TS, o.EventTS))
	}
	return inbound{
		kind: isReaction, line: line, eventTS: o.EventTS,
		user: text(o.User), reaction: o.Reaction, removed: o.Type == "reaction_removed",
	}
}

// named checks a message's name by the same rules as a whole message's.
func named(team, channel, ts string) (rules.Line, error) {
	raw, err := json.Marshal(map[string]string{"channel": channel, "ts": ts})
	if err != nil {
		return rules.Line{}, fmt.Errorf("name a message: %w", err)
	}
	line, err := rules.ParseMessage(team, "", raw)
	line.Raw = nil
	return line, err
}

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// clip keeps hostile input short where it reaches a log.
func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
