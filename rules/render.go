package rules

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// How an answer is posted. An agent writes standard markdown, and Slack has a block
// for exactly that: the `markdown` block, which renders headings, lists, links, code
// and tables, where Slack's older mrkdwn has no tables and no headings and every
// conversion to it loses something. So an answer goes into a markdown block as it
// is, and its whole text, escaped, into the message's `text`, which is what
// notifications, screen readers, search and other apps read. Where Slack refuses the
// block, the text alone is posted. The limits are Slack's: 12,000 characters for
// all markdown blocks of one message, and about 13,200 for all its blocks.
//
// A markdown block is not safe by itself: Slack resolves its own <…> tokens in it
// (https://github.com/PostHog/posthog/pull/95054, measured), <!here> and <@U…>
// with them. So a mention is broken here, in text and in code, before it is sent: a
// word joiner, which has no width, between the characters that must stand together.
// What one reads stays the same.

// PartLimit is how long one part of an answer may be, as TextLen counts: below
// Slack's 12,000, to leave room for what CleanMarkdown adds.
const PartLimit = 11_000

// joiner is U+2060: no width, and no line breaks at it.
const joiner = "\u2060"

var (
	// token is the beginning of a Slack token that mentions: <@…, <#C…, <!here….
	token = regexp.MustCompile(`(` + spelled("<") + `)(` + slashes + `(?:` + spelled("@") + `|` + spelled("#") + slashes + `[A-Za-z0-9&]|` +
		spelled("!") + slashes + many + `|` + spelled("!") + slashes + `(?:` + spelled("subteam") + `|` + spelled("date") + `)))`)
	// broadcast is a name that addresses many, as people type it. A character reference
	// before it may stand for what is no letter, also without its semicolon.
	broadcast = regexp.MustCompile(`(^|[^A-Za-z0-9_]|&#?[A-Za-z0-9]+)(` + spelled("@") + `)(` + slashes + many + `(?:$|[^A-Za-z0-9_]))`)
	mention   = regexp.MustCompile(`<@([UW][A-Z0-9]{1,30})>`)
	ansi      = regexp.MustCompile(`\x1b(?:\[[0-9:;<=>?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])`)
)

// slashes are markdown's escapes, which a reader does not see.
const slashes = `\\*`

var many = `(?:` + spelled("here") + `|` + spelled("channel") + `|` + spelled("everyone") + `|` + spelled("group") + `)`

// spelled is a pattern of every way to write a word that a markdown reader turns into
// it: letters of either case, and character references, with or without escapes between.
func spelled(word string) string {
	names := map[rune]string{'<': "|&lt;?|&LT;?", '@': "|&commat;", '!': "|&excl;", '#': "|&num;"}
	var b strings.Builder
	for i, r := range word {
		if i > 0 {
			b.WriteString(slashes)
		}
		b.WriteString(`(?:` + regexp.QuoteMeta(string(r)) + names[r])
		for _, r := range []rune{r, unicode.ToUpper(r)} {
			fmt.Fprintf(&b, `|%s|&#0*%d;?|&#[xX]0*(?i:%x);?`, regexp.QuoteMeta(string(r)), r, r)
		}
		b.WriteString(`)`)
	}
	return b.String()
}

// StripControls takes out of text what is not text: terminal control sequences, control
// characters other than newline and tab, bytes that are no UTF-8, and the characters
// that reverse the order of what is read (X2).
func StripControls(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = ansi.ReplaceAllString(text, "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case r < ' ', r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e:
			return -1
		}
		return r
	}, text)
}

// CleanMarkdown makes an agent's markdown safe to put into a markdown block (X2):
// StripControls, and no mention of anyone, nor of a channel, in whatever spelling, but for
// those of the allowed user ids, written <@U…>.
func CleanMarkdown(md string, allowed ...string) string {
	return keepingMentions(StripControls(md), allowed, defuse)
}

// EscapeText makes any text safe to be a message's text, or the mrkdwn of a block:
// StripControls, Slack's three characters escaped, no mention but of the allowed user ids.
func EscapeText(text string, allowed ...string) string {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	return keepingMentions(StripControls(text), allowed, func(s string) string {
		return escape.Replace(defuse(s))
	})
}

func keepingMentions(text string, allowed []string, clean func(string) string) string {
	var b strings.Builder
	pos := 0
	for _, m := range mention.FindAllStringSubmatchIndex(text, -1) {
		if slices.Contains(allowed, text[m[2]:m[3]]) {
			b.WriteString(clean(text[pos:m[0]]))
			b.WriteString(text[m[0]:m[1]])
			pos = m[1]
		}
	}
	b.WriteString(clean(text[pos:]))
	return b.String()
}

func defuse(s string) string {
	// Spellings that share a character need a second look.
	for before := ""; before != s; {
		before = s
		s = token.ReplaceAllString(s, "${1}"+joiner+"${2}")
		s = broadcast.ReplaceAllString(s, "${1}${2}"+joiner+"${3}")
	}
	return s
}

// TextLen is a text's length as Slack's limits are taken to count it: UTF-16 code
// units, never fewer than the characters.
func TextLen(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r >= 0x10000 {
			n++
		}
	}
	return n
}

// PostBlockID is the block_id that a post's part carries (B5), for where its metadata
// may not be read.
func PostBlockID(postID string, part int) string {
	sum := sha1.Sum([]byte(postID + "#" + strconv.Itoa(part)))
	return "sp-" + hex.EncodeToString(sum[:])
}

// IsPost tells whether a message carries the name of that post and part, in its
// metadata or in a block_id. Anyone can write either: ask first whose message it is.
func IsPost(raw json.RawMessage, postID string, part int) bool {
	if id, p := postNamed(raw); id == postID && p == part {
		return true
	}
	return slices.Contains(ParseBlockIDs(raw), PostBlockID(postID, part))
}

// OfPost tells whether a message is one of that post's, by its metadata.
func OfPost(raw json.RawMessage, postID string) bool {
	id, _ := postNamed(raw)
	return id != "" && id == postID
}

func postNamed(raw json.RawMessage) (id string, part int) {
	m, ok := ParseMetadata(raw)
	if !ok {
		return "", 0
	}
	var payload struct {
		PostID string `json:"post_id"`
		Part   int    `json:"part"`
	}
	if json.Unmarshal(m.Payload, &payload) != nil {
		return "", 0
	}
	return payload.PostID, payload.Part
}

// maxFileName is in bytes: what file systems take, with room for a suffix.
const maxFileName = 120

// SafeFileName makes a file's name one path component that is safe to write, to show
// and to pass to a program (X2): no separators, no control characters, not hidden, no
// leading dash, of bounded length, its extension kept. It is never empty.
func SafeFileName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return ' '
		case strings.ContainsRune(`/\:*?"<>|`+"`$;&'!", r), r >= 0x2028 && r <= 0x2029, r >= 0x2066 && r <= 0x2069, r == 0xfeff:
			return '_'
		}
		return r
	}, StripControls(name))
	name = strings.Trim(strings.Join(strings.Fields(name), " "), " ")
	name = strings.TrimRight(strings.TrimLeft(name, ".-~ "), ". ")
	ext := ""
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && len(name)-dot <= 16 {
		name, ext = name[:dot], name[dot:]
	}
	if len(name)+len(ext) > maxFileName {
		name = strings.TrimRight(strings.ToValidUTF8(name[:maxFileName-len(ext)], ""), ". ")
	}
	if name == "" {
		name = "file"
	}
	return name + ext
}
