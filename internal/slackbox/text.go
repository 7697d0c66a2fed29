package slackbox

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

var (
	entity   = regexp.MustCompile(`^(?:@[UWB][A-Z0-9]+|#C[A-Z0-9]+|![a-z]+(?:\^[^<>|]+)*|[a-z][a-z0-9+.-]*:[^\s<>|]+)(?:\|[^<>]*)?$`)
	bareLink = regexp.MustCompile("^https?://[^\\s<>|`\"]+")
	mention  = regexp.MustCompile(`<@([UWB][A-Z0-9]+)(?:\|[^<>]*)?>`)
	atName   = regexp.MustCompile(`(^|[\s(])([@#])([A-Za-z0-9][A-Za-z0-9._-]*)`)
	anEntity = regexp.MustCompile(`<([^<>]+)>`)
)

// escape does what Slack does to a text on its way in: known entities in angle
// brackets stay, bare & < > are escaped, bare links become <links>.
func escape(text string) string {
	if !strings.ContainsAny(text, "&<>") && !strings.Contains(text, "://") {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 16)
	for i := 0; i < len(text); {
		rest := text[i:]
		switch c := text[i]; {
		case c == '&':
			if n := escaped(rest); n > 0 {
				b.WriteString(rest[:n])
				i += n
				continue
			}
			b.WriteString("&amp;")
			i++
		case c == '<':
			if end := strings.IndexAny(rest[1:], "<>"); end > 0 && rest[1+end] == '>' && entity.MatchString(rest[1:1+end]) {
				b.WriteString(rest[:end+2])
				i += end + 2
				continue
			}
			b.WriteString("&lt;")
			i++
		case c == '>':
			b.WriteString("&gt;")
			i++
		case c == 'h' && (i == 0 || !wordByte(text[i-1])):
			if link := linkAt(rest); link != "" {
				b.WriteString("<" + escapeAmp(link) + ">")
				i += len(link)
				continue
			}
			b.WriteByte(c)
			i++
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

// linkAt returns the bare link that s begins with, "" for none: up to an angle
// bracket, escaped or not, and without the punctuation of the sentence around it.
func linkAt(s string) string {
	link := bareLink.FindString(s)
	for _, bracket := range []string{"&lt;", "&gt;"} {
		link, _, _ = strings.Cut(link, bracket)
	}
	short := strings.TrimRight(link, ".,;:!?)'*_~")
	if strings.HasSuffix(short, "&amp") && strings.HasPrefix(link[len(short):], ";") {
		short += ";" // the end of an escape, not of a sentence
	}
	if _, host, _ := strings.Cut(short, "://"); host == "" {
		return ""
	}
	return short
}

// escaped returns the length of the escape that s begins with, 0 for none.
func escaped(s string) int {
	for _, e := range []string{"&amp;", "&lt;", "&gt;"} {
		if strings.HasPrefix(s, e) {
			return len(e)
		}
	}
	return 0
}

func escapeAmp(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if s[i] == '&' && escaped(s[i:]) == 0 {
			b.WriteString("&amp;")
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

var unescaper = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

// linkNames turns @name and #channel into entities, as link_names and parse=full do.
func (w *world) linkNames(text string) string {
	return atName.ReplaceAllStringFunc(text, func(hit string) string {
		m := atName.FindStringSubmatch(hit)
		name := strings.TrimRight(m[3], "._-")
		tail := m[3][len(name):]
		switch {
		case m[2] == "#":
			if c := w.channelByName(name); c != nil {
				return m[1] + "<#" + c.id + ">" + tail
			}
		case name == "here" || name == "channel" || name == "everyone":
			return m[1] + "<!" + name + ">" + tail
		default:
			if u := w.byName(name); u != nil {
				return m[1] + "<@" + u.ID + ">" + tail
			}
		}
		return hit
	})
}

// richText is the block that Slack makes from a text: text, mentions and links.
func richText(text, blockID string) json.RawMessage {
	type element struct {
		Type        string `json:"type"`
		Text        string `json:"text,omitempty"`
		UserID      string `json:"user_id,omitempty"`
		ChannelID   string `json:"channel_id,omitempty"`
		UsergroupID string `json:"usergroup_id,omitempty"`
		URL         string `json:"url,omitempty"`
		Range       string `json:"range,omitempty"`
	}
	elements := []element{}
	plain := func(s string) {
		if s != "" {
			elements = append(elements, element{Type: "text", Text: unescaper.Replace(s)})
		}
	}
	at := 0
	for _, m := range anEntity.FindAllStringSubmatchIndex(text, -1) {
		plain(text[at:m[0]])
		at = m[1]
		body, label, _ := strings.Cut(text[m[2]:m[3]], "|")
		switch {
		case strings.HasPrefix(body, "@"):
			elements = append(elements, element{Type: "user", UserID: body[1:]})
		case strings.HasPrefix(body, "#"):
			elements = append(elements, element{Type: "channel", ChannelID: body[1:]})
		case strings.HasPrefix(body, "!subteam^"):
			elements = append(elements, element{Type: "usergroup", UsergroupID: strings.TrimPrefix(body, "!subteam^")})
		case body == "!here" || body == "!channel" || body == "!everyone":
			elements = append(elements, element{Type: "broadcast", Range: body[1:]})
		case strings.HasPrefix(body, "!"):
			plain(label)
		default:
			elements = append(elements, element{Type: "link", URL: unescaper.Replace(body), Text: unescaper.Replace(label)})
		}
	}
	plain(text[at:])
	type section struct {
		Type     string    `json:"type"`
		Elements []element `json:"elements"`
	}
	b, err := json.Marshal([]struct {
		Type     string    `json:"type"`
		BlockID  string    `json:"block_id"`
		Elements []section `json:"elements"`
	}{{"rich_text", blockID, []section{{"rich_text_section", elements}}}})
	if err != nil {
		return nil
	}
	return b
}

// mentions returns the users that a message mentions, in its text or only in its blocks.
func mentions(text string, blocks json.RawMessage) []string {
	var ids []string
	add := func(s string) {
		if !strings.Contains(s, "<@") {
			return
		}
		for _, m := range mention.FindAllStringSubmatch(s, -1) {
			if !slices.Contains(ids, m[1]) {
				ids = append(ids, m[1])
			}
		}
	}
	add(text)
	if len(blocks) == 0 {
		return ids
	}
	var tree any
	if json.Unmarshal(blocks, &tree) != nil {
		return ids
	}
	walk(tree, func(m map[string]any) {
		if id, ok := m["user_id"].(string); ok && m["type"] == "user" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		if s, ok := m["text"].(string); ok {
			add(s)
		}
	})
	return ids
}

func walk(tree any, visit func(map[string]any)) {
	switch t := tree.(type) {
	case map[string]any:
		visit(t)
		for _, v := range t {
			walk(v, visit)
		}
	case []any:
		for _, v := range t {
			walk(v, visit)
		}
	}
}
