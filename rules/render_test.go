package rules

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCleanMarkdown_MentionsNobody(t *testing.T) {
	for _, md := range []string{
		"<!channel>", "<!here|here>", "<!everyone>", "<!subteam^S1|@devs>", "<!group>", "<!HERE>", "<!date^1^{date}|x>",
		"<@U1>", "<@U1|ana>", "<@W1>", "<#C1>", "<#C1|general>",
		"@channel", "@here!", "hi @everyone.", "@Channel", "@here @here @here", "(@here)", "@here,@channel",
		"**<!here>**", "`<!here>`", "```\n<!here>\n@channel\n```", "| a |\n|---|\n| <@U1> |", "[<!here>](https://x)", "[x](<@U1>)",
		"> @here", "- @channel", "_@here_", "*@channel*", "~~@here~~", "\\@here", "@\\here", "\\<!here>", "<\\!here>", "<\\@U1>",
		"&lt;!here&gt;", "&#60;!here>", "&#x3C;@U1>", "<&#33;here>", "<&excl;channel>", "<&#64;U1>", "&#64;here", "&commat;channel", "&lt;&#x40;U1",
		"<<@U1>>", "@h&#101;re", "<!&#x48;ere>", "<!sub&#116;eam^S1>", "&#0000060;&#0033;h&#x65re", "<!here<!here>", "@here@channel",
	} {
		t.Run(md, func(t *testing.T) {
			got := CleanMarkdown(md, "U2")
			require.Empty(t, mentionsIn(got), got)
			require.Equal(t, md, strings.ReplaceAll(got, joiner, ""), "what one reads stays")
			require.Empty(t, mentionsIn(EscapeText(md, "U2")))
		})
	}
}

func TestCleanMarkdown_LeavesTheRestAlone(t *testing.T) {
	for _, md := range []string{
		"# Head\n\n- a\n- b\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
		"[a link](https://example.com/?a=1&b=2) <https://example.com>",
		"```html\n<!DOCTYPE html><!-- no --><p>a &lt; b && c</p>\n```", "<# a PowerShell comment #>",
		"ana@example.com", "user@channel.example", "@ana", "npm i @types/node", "@hereafter", "#general #123 #fff", "a < b > c", "x@here",
		"👩‍👩‍👧‍👦 é 한글",
	} {
		require.Equal(t, md, CleanMarkdown(md))
	}
}

func TestCleanMarkdown_KeepsAllowedMentions(t *testing.T) {
	require.Equal(t, "<@U1> over to you, <"+joiner+"@U2>", CleanMarkdown("<@U1> over to you, <@U2>", "U1"))
	require.Equal(t, "<@U1> a &lt;"+joiner+"@U2&gt; &amp; b", EscapeText("<@U1> a <@U2> & b", "U1"))
}

func TestStripControls_LeavesText(t *testing.T) {
	require.Equal(t, "red text\tok\nnext", StripControls("\x1b[31mred\x1b[0m \x1b]0;title\x07te\x00xt\tok\r\nnext"))
	require.Equal(t, "abc", StripControls("a\x1bc\u009bb\x7f\u202ec"))
	require.Equal(t, "a\uFFFDb", StripControls("a\xffb"))
}

// mentionsIn is Slack's reading at its most generous: entities and escapes resolved.
func mentionsIn(s string) []string {
	s = strings.ReplaceAll(html.UnescapeString(s), `\`, "")
	return regexp.MustCompile(`(?i)<@[a-z0-9]|<#[a-z0-9]|<!(here|channel|everyone|group|subteam|date)|(^|[^a-z0-9_])@(here|channel|everyone|group)($|[^a-z0-9_])`).FindAllString(s, -1)
}

func TestCleanMarkdown_MentionsNobodyWhateverIsWritten(t *testing.T) {
	word := rapid.SampledFrom([]string{"<", "&lt;", "&#60;", "@", "&#64;", "!", "&#33;", "#", "\\", "h&#101;re", "&#x3C", "here", "channel", "everyone", "U1", "C1", "|", ">", " ", "\n", "`", "*", "a", ".", "\x1b[0m", "\x00", "\u202e"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(word, 0, 12).Draw(t, "words"), "")
		for _, got := range []string{CleanMarkdown(text), EscapeText(text)} {
			require.Empty(t, mentionsIn(got), "%q", got)
		}
		require.Equal(t, StripControls(text), strings.ReplaceAll(CleanMarkdown(text), joiner, ""))
	})
}

func FuzzCleanMarkdown(f *testing.F) {
	f.Add("<!here> <@U1> @channel `<#C1>` &lt;!everyone&gt; \\<!here>")
	f.Add("\x1b[31m@here\x00@channel\xff")
	f.Add("<&#33;h&#101;re>")
	f.Add("<#&lt!here")
	f.Add("0&gt@ChAnnel &#62@here")
	f.Add("Ere> <@U0> @C\\\\hAnnel")
	f.Fuzz(func(t *testing.T, text string) {
		for _, got := range []string{CleanMarkdown(text, "U9"), EscapeText(text, "U9")} {
			require.Empty(t, mentionsIn(strings.ReplaceAll(got, "<@U9>", " ")), "%q", got)
			require.True(t, utf8.ValidString(got))
			require.NotContains(t, got, "\x1b")
		}
	})
}

func TestIsPost_KnowsItsNameByEither(t *testing.T) {
	byMetadata := json.RawMessage(`{"metadata":{"event_type":"smith_post","event_payload":{"post_id":"s/C1/1.000000","part":2}}}`)
	byBlock := json.RawMessage(`{"blocks":[{"block_id":"x"},{"block_id":"` + PostBlockID("s/C1/1.000000", 2) + `"}]}`)
	for _, raw := range []json.RawMessage{byMetadata, byBlock} {
		require.True(t, IsPost(raw, "s/C1/1.000000", 2))
		require.False(t, IsPost(raw, "s/C1/1.000000", 1))
		require.False(t, IsPost(raw, "s/C1/2.000000", 2))
	}
}

func TestSafeFileName_IsOneSafeComponent(t *testing.T) {
	for in, want := range map[string]string{
		"report.pdf":         "report.pdf",
		"../../etc/passwd":   "_.._etc_passwd",
		`C:\a\b.txt`:         "C__a_b.txt",
		".bashrc":            "bashrc",
		"--help":             "help",
		"":                   "file",
		"..":                 "file",
		"a\nb\x00c.txt":      "a bc.txt",
		"évil\u202egnp.exe":  "évilgnp.exe",
		"$(rm -rf).sh":       "_(rm -rf).sh",
		"  spaced  name .md": "spaced name .md",
	} {
		require.Equal(t, want, SafeFileName(in), "%q", in)
	}
	long := SafeFileName(strings.Repeat("é", 500) + ".tar.gz")
	require.LessOrEqual(t, len(long), 130)
	require.True(t, strings.HasSuffix(long, ".gz"))
	require.True(t, utf8.ValidString(long))
}

func FuzzSafeFileName(f *testing.F) {
	f.Add("../x")
	f.Add("\x00.\u2028")
	f.Add(strings.Repeat("0", 119) + " 0")
	f.Add(strings.Repeat("0", 90) + strings.Repeat(".", 25) + strings.Repeat("0", 30))
	f.Fuzz(func(t *testing.T, name string) {
		got := SafeFileName(name)
		require.NotEmpty(t, got)
		require.LessOrEqual(t, len(got), 140)
		require.NotContains(t, got, "/")
		require.NotContains(t, got, "\\")
		require.NotEqual(t, byte('.'), got[0])
		require.NotEqual(t, byte('-'), got[0])
		require.Equal(t, got, Visible(got), "no row is broken, no terminal steered")
		require.Equal(t, got, SafeFileName(got))
	})
}
