package rules

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// angle is what Slack writes in angle brackets: a person, a channel, a group, a link.
var angle = regexp.MustCompile(`<([^<>\n]*)>`)

// Mentions returns the user ids that a text mentions, each once, in order. It reads
// the text as Slack sent it: a typed "<@U1>" arrives escaped and is no mention.
func Mentions(text string) []string {
	var ids []string
	seen := map[string]bool{}
	for rest := text; ; {
		at := strings.Index(rest, "<@")
		if at < 0 {
			return ids
		}
		rest = rest[at+2:]
		end := strings.IndexAny(rest, "<>\n")
		if end < 0 || rest[end] != '>' {
			continue
		}
		id, _, _ := strings.Cut(rest[:end], "|")
		if validID(id) && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
}

// Mentions tells whether the line mentions user: in its text, or only in its blocks,
// as a bot's line may. What is quoted in an attachment is not this line's mention.
func (l Line) Mentions(user string) bool {
	if user == "" {
		return false
	}
	return slices.Contains(Mentions(l.Text), user) || slices.Contains(blockMentions(l.Raw), user)
}

// InDM tells whether the line stands in a conversation between one person and the
// seat. Events do not always say the channel's type; a DM's id starts with D.
func (l Line) InDM() bool {
	return l.ChannelType == "im" || (l.ChannelType == "" && strings.HasPrefix(l.Channel, "D"))
}

// TopLevel tells whether the line starts its own thread.
func (l Line) TopLevel() bool { return l.Root == "" || l.Root == l.TS }

// blockMentions returns the user ids of a message's rich text elements.
func blockMentions(raw json.RawMessage) []string {
	if len(raw) == 0 {
		return nil
	}
	var m struct {
		Blocks json.RawMessage `json:"blocks"`
	}
	if json.Unmarshal(raw, &m) != nil || len(m.Blocks) == 0 {
		return nil
	}
	var blocks any
	if json.Unmarshal(m.Blocks, &blocks) != nil {
		return nil
	}
	var ids []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if v["type"] == "user" {
				if id, ok := v["user_id"].(string); ok && validID(id) {
					ids = append(ids, id)
				}
				return
			}
			if v["type"] == "mrkdwn" {
				if text, ok := v["text"].(string); ok {
					ids = append(ids, Mentions(text)...)
				}
			}
			for _, name := range []string{"elements", "text", "fields"} {
				walk(v[name])
			}
		}
	}
	walk(blocks)
	return ids
}

// unescaper undoes Slack's escaping in ONE pass: "&amp;lt;" is a typed "&lt;".
var unescaper = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

// Unescape turns a piece of Slack text without angle brackets into what was typed.
// Find mentions first: afterwards a typed "<@U1>" cannot be told from a mention.
func Unescape(text string) string { return unescaper.Replace(text) }

// PlainText turns a line's text into what a reader sees: mentions as @name, channels
// as #name, links as their address, and the rest unescaped. name gives the name of a
// user id; where it is nil or returns "" the id itself stands.
func PlainText(text string, name func(user string) string) string {
	var out strings.Builder
	at := 0
	for _, m := range angle.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(Unescape(text[at:m[0]]))
		out.WriteString(plainAngle(text[m[2]:m[3]], name))
		at = m[1]
	}
	out.WriteString(Unescape(text[at:]))
	return out.String()
}

func plainAngle(inner string, name func(string) string) string {
	target, label, labelled := strings.Cut(inner, "|")
	label = Unescape(label)
	switch {
	case strings.HasPrefix(target, "@"):
		user := target[1:]
		if name != nil {
			if n := name(user); n != "" {
				return "@" + n
			}
		}
		if labelled && label != "" {
			return "@" + label
		}
		return "@" + user
	case strings.HasPrefix(target, "#"):
		if labelled && label != "" {
			return "#" + label
		}
		return target
	case strings.HasPrefix(target, "!subteam^"):
		if labelled && label != "" {
			return "@" + strings.TrimPrefix(label, "@")
		}
		return "@" + strings.TrimPrefix(target, "!subteam^")
	case strings.HasPrefix(target, "!"):
		if labelled && label != "" {
			return label
		}
		return "@" + target[1:]
	case labelled && label != "" && label != Unescape(target):
		return label + " (" + Unescape(target) + ")"
	}
	return Unescape(target)
}
