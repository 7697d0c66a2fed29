package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrNotAMessage is what ParseMessage returns for outside input that is not a
// Slack message it could name: the caller keeps the raw event, and acks it (L2).
var ErrNotAMessage = errors.New("not a Slack message")

// Metadata is what an app hung on its message. Any app of the channel can read
// it and any app can forge it: believe it only together with the author's bot id.
type Metadata struct {
	EventType string          `json:"event_type"`
	Payload   json.RawMessage `json:"event_payload,omitempty"`
}

// ParseMessage reads one Slack message: the inner event of a message or an
// app_mention, the message inside a message_changed, or one entry of
// conversations.history and conversations.replies. Nothing but its name has to be
// there: a field that has an unexpected shape is left out rather than the line
// lost. channel may be "" when the message says it itself. The error wraps
// ErrNotAMessage when there is no object, no proper ts, no channel, or a thread_ts
// that is not a ts: such a thing could not be named, and its name reaches workflow ids.
func ParseMessage(team, channel string, raw json.RawMessage) (Line, error) {
	fields, err := object(raw)
	if err != nil {
		return Line{}, err
	}
	if channel == "" {
		channel = str(fields, "channel")
	}
	ts, root := str(fields, "ts"), str(fields, "thread_ts")
	if root == "" {
		root = ts
	}
	switch {
	case !validID(channel):
		return Line{}, fmt.Errorf("%w: channel %q", ErrNotAMessage, clip(channel))
	case !ValidTS(ts):
		return Line{}, fmt.Errorf("%w: ts %q", ErrNotAMessage, clip(ts))
	case !ValidTS(root):
		return Line{}, fmt.Errorf("%w: thread_ts %q", ErrNotAMessage, clip(root))
	}
	return Line{
		LineKey:     LineKey{Team: team, Channel: channel, TS: ts},
		Root:        root,
		ChannelType: str(fields, "channel_type"),
		User:        str(fields, "user"),
		BotID:       str(fields, "bot_id"),
		AppID:       first(str(fields, "app_id"), str(sub(fields, "bot_profile"), "app_id")),
		UserTeam:    first(str(fields, "user_team"), str(fields, "source_team"), str(fields, "team")),
		Subtype:     str(fields, "subtype"),
		Text:        str(fields, "text"),
		Files:       files(fields),
		EditedTS:    editedTS(fields),
		Raw:         bytes.Clone(raw),
	}, nil
}

// ParseMetadata returns the metadata of a message as ParseMessage takes it, and
// false when there is none. Events may come with the payload stripped: the type
// alone is a hint, to be confirmed by reading the message back.
func ParseMetadata(raw json.RawMessage) (Metadata, bool) {
	fields, err := object(raw)
	if err != nil {
		return Metadata{}, false
	}
	meta := sub(fields, "metadata")
	m := Metadata{EventType: str(meta, "event_type"), Payload: bytes.Clone(meta["event_payload"])}
	return m, m.EventType != ""
}

// ParseBlockIDs returns the ids of a message's blocks, in order: a post of ours can
// be told by them where its metadata may not be read.
func ParseBlockIDs(raw json.RawMessage) []string {
	fields, err := object(raw)
	if err != nil {
		return nil
	}
	var ids []string
	for _, block := range list(fields, "blocks") {
		if o, err := object(block); err == nil {
			if id := str(o, "block_id"); id != "" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// ValidTS tells whether ts is a Slack timestamp, which names a message: digits, a
// dot, and exactly six digits.
func ValidTS(ts string) bool {
	dot := len(ts) - 7
	if dot < 1 || dot > 12 || ts[dot] != '.' {
		return false
	}
	for i := range len(ts) {
		if i != dot && (ts[i] < '0' || ts[i] > '9') {
			return false
		}
	}
	return true
}

// validID tells whether id could be an id of Slack's: capital letters and digits.
func validID(id string) bool {
	if id == "" || len(id) > 32 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func files(fields map[string]json.RawMessage) []File {
	var out []File
	for _, raw := range list(fields, "files") {
		o, err := object(raw)
		if err != nil || str(o, "id") == "" || str(o, "mode") == "tombstone" {
			continue
		}
		f := File{
			ID:         str(o, "id"),
			Name:       first(str(o, "name"), str(o, "title")),
			Mimetype:   str(o, "mimetype"),
			URLPrivate: first(str(o, "url_private_download"), str(o, "url_private")),
		}
		// Slack Connect leaves the size out: it is 0 then, and not known.
		if json.Unmarshal(o["size"], &f.Size) != nil || f.Size < 0 {
			f.Size = 0
		}
		out = append(out, f)
	}
	return out
}

func editedTS(fields map[string]json.RawMessage) string {
	if ts := str(sub(fields, "edited"), "ts"); ValidTS(ts) {
		return ts
	}
	return ""
}

func object(raw json.RawMessage) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAMessage, err)
	}
	if fields == nil {
		return nil, fmt.Errorf("%w: null", ErrNotAMessage)
	}
	return fields, nil
}

func sub(fields map[string]json.RawMessage, name string) map[string]json.RawMessage {
	o, err := object(fields[name])
	if err != nil {
		return nil
	}
	return o
}

func list(fields map[string]json.RawMessage, name string) []json.RawMessage {
	var out []json.RawMessage
	if json.Unmarshal(fields[name], &out) != nil {
		return nil
	}
	return out
}

func str(fields map[string]json.RawMessage, name string) string {
	var s string
	if json.Unmarshal(fields[name], &s) != nil {
		return ""
	}
	return s
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// clip keeps hostile input short in an error.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40]
	}
	return s
}
