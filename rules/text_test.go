package rules

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMentions_FindsEveryPersonOnce(t *testing.T) {
	for text, want := range map[string][]string{
		"":                              nil,
		"<@U1> and <@U2|ben> and <@U1>": {"U1", "U2"},
		"<@W0ABC>":                      {"W0ABC"},
		"<!subteam^S1> <#C1|general>":   nil,
		"<https://x.example/@U1>":       nil,
		"&lt;@U1&gt;":                   nil,
		"<@U1":                          nil,
		"<@U1|ben":                      nil,
		"<@<@U2>":                       {"U2"},
		"<@u1> <@U 1> <@>":              nil,
		"<@U1\n>":                       nil,
		"\u200f<@U1>\u202b":             {"U1"},
		"<@U\x001>":                     nil,
	} {
		require.Equal(t, want, Mentions(text), "%q", text)
	}
}

func TestMentions_FindsTheLastOfFiveThousand(t *testing.T) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "<@U%d> ", i)
	}
	ids := Mentions(text.String())
	require.Len(t, ids, 5000)
	require.Equal(t, "U4999", ids[4999])
}

func TestLine_MentionsInBlocksOnly(t *testing.T) {
	line := func(raw string) Line { return Line{Text: "nobody here", Raw: json.RawMessage(raw)} }
	require.True(t, line(`{"blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"user","user_id":"U1"}]}]}]}`).Mentions("U1"))
	require.True(t, line(`{"blocks":[{"type":"section","text":{"type":"mrkdwn","text":"hi <@U1>"}}]}`).Mentions("U1"))
	require.False(t, line(`{"blocks":[{"type":"section","text":{"type":"plain_text","text":"hi <@U1>"}}]}`).Mentions("U1"))
	require.False(t, line(`{"attachments":[{"blocks":[{"type":"user","user_id":"U1"}]}]}`).Mentions("U1"), "a quoted message is not this one")
	require.False(t, line(`{"blocks":"odd"}`).Mentions("U1"))
	require.False(t, line(`{`).Mentions("U1"))
	require.False(t, line(`{"blocks":[{"type":"user","user_id":""}]}`).Mentions(""), "an unknown seat is mentioned by nobody")
}

func TestLine_InDM(t *testing.T) {
	at := func(channel, kind string) Line { return Line{LineKey: LineKey{Channel: channel}, ChannelType: kind} }
	require.True(t, at("D1", "im").InDM())
	require.True(t, at("D1", "").InDM(), "the event may not say")
	require.False(t, at("G1", "mpim").InDM(), "several people: like a channel")
	require.False(t, at("C1", "").InDM())
	require.False(t, at("C1", "channel").InDM())
}

func TestLine_TopLevel(t *testing.T) {
	require.True(t, Line{LineKey: LineKey{TS: "1.000000"}, Root: "1.000000"}.TopLevel())
	require.True(t, Line{LineKey: LineKey{TS: "1.000000"}}.TopLevel())
	require.False(t, Line{LineKey: LineKey{TS: "2.000000"}, Root: "1.000000"}.TopLevel())
}

func TestUnescape_TakesOnePass(t *testing.T) {
	require.Equal(t, "a < b & c > d", Unescape("a &lt; b &amp; c &gt; d"))
	require.Equal(t, "&lt;", Unescape("&amp;lt;"), "a typed &lt; stays what was typed")
}

func TestPlainText_ReadsAsSeen(t *testing.T) {
	names := func(id string) string { return map[string]string{"U1": "ana"}[id] }
	for text, want := range map[string]string{
		"hi <@U1>, <@U2>, <@U3|ben>":                   "hi @ana, @U2, @ben",
		"see <#C1|general> and <#C2>":                  "see #general and #C2",
		"<!here> <!subteam^S1|@devs> <!date^1^x|noon>": "@here @devs noon",
		"<https://x.example/?a=1&amp;b=2>":             "https://x.example/?a=1&b=2",
		"<https://x.example|the page>":                 "the page (https://x.example)",
		"<mailto:a@x.example|a@x.example>":             "a@x.example (mailto:a@x.example)",
		"a &lt;@U1&gt; b &amp;lt;":                     "a <@U1> b &lt;",
		"unclosed <@U1":                                "unclosed <@U1",
		"":                                             "",
	} {
		require.Equal(t, want, PlainText(text, names), "%q", text)
	}
	require.Equal(t, "@U1", PlainText("<@U1>", nil))
}

func FuzzPlainText(f *testing.F) {
	f.Add("hi <@U1|a> &amp;lt; <!here> <#C1> <a|b>")
	f.Add("<<>><|><@|>\x00\xff")
	f.Fuzz(func(t *testing.T, text string) {
		PlainText(text, nil)
		for _, id := range Mentions(text) {
			if !strings.Contains(text, "<@"+id) || !validID(id) {
				t.Fatalf("%q mentions no %q", text, id)
			}
		}
	})
}
