package page_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox/page"
)

// drawn returns, for each input, the markup that a function of a module made of it.
func drawn(t *testing.T, call string, inputs []string) []string {
	t.Helper()
	srv := httptest.NewServer(page.Handler())
	t.Cleanup(srv.Close)
	p := newChrome(t).open(t, srv.URL+"/page/css/theme.css") // the modules' origin, without the page itself
	js := fmt.Sprintf(`(async () => {
		const {mrkdwn} = await import("/page/js/mrkdwn.js");
		const {markdown} = await import("/page/js/markdown.js");
		const {renderBlocks, restates} = await import("/page/js/blocks.js");
		const {encode, decode} = await import("/page/js/draft.js");
		const {Directory} = await import("/page/js/directory.js");
		const names = new Directory({team: {id: "T1"}, users: [{id: "U1", name: "ana"}, {id: "U2", name: "ben"}, {id: "U4", name: "ana-maria"}],
			apps: [{bot_user: "U3", name: "smith", bot_id: "B3"}, {bot_user: "U5", name: "agent force"}], channels: [{id: "C1", name: "general"}]}, "U1");
		const show = (nodes) => { const d = document.implementation.createHTMLDocument("").createElement("div"); d.append(...nodes); return d.innerHTML; };
		return [%s].map((input) => (%s));
	})()`, strings.Join(quoted(inputs), ", "), call)
	return ask[[]string](p, js)
}

func quoted(all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = quote(s)
	}
	return out
}

type textCase struct{ name, in, want string }

func check(t *testing.T, call string, cases []textCase) {
	t.Helper()
	inputs := make([]string, len(cases))
	for i, c := range cases {
		inputs[i] = c.in
	}
	got := drawn(t, call, inputs)
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			clean := strings.NewReplacer(` dir="auto"`, "", ` dir="ltr"`, "", ` rel="noopener noreferrer" target="_blank"`, " ~").Replace(got[i])
			require.Equal(t, c.want, clean)
		})
	}
}

func TestMrkdwn_DrawsSlackTextAndNothingElse(t *testing.T) {
	para := func(s string) string { return `<div class="para">` + s + `</div>` }
	check(t, "show(mrkdwn(input, names))", []textCase{
		{"plain", "hello", para("hello")},
		{"escapes once", "a &amp;lt; b &lt;script&gt;", para("a &amp;lt; b &lt;script&gt;")},
		{"bold italic strike", "*b* _i_ ~s~", para("<strong>b</strong> <em>i</em> <s>s</s>")},
		{"nested", "*b _i_*", para("<strong>b <em>i</em></strong>")},
		{"not inside words", "snake_case_name 2*3*4", para("snake_case_name 2*3*4")},
		{"not around spaces", "* a * _ b _", para("* a * _ b _")},
		{"code keeps marks", "`*a* &lt;b&gt;`", para(`<code class="code">*a* &lt;b&gt;</code>`)},
		{"block", "a\n```\nx *y*\n```\nb", para("a") + `<pre class="code-block"><code>x *y*</code></pre>` + para("b")},
		{"odd fence", "a ``` b", para("a ``` b")},
		{"quote", "&gt; one\n&gt; two\nthree", `<blockquote>` + para("one<br>two") + `</blockquote>` + para("three")},
		{"mention of another", "<@U2> hi", para(`<bdi class="mention" title="U2" data-user="U2">@ben</bdi> hi`)},
		{"mention of me", "<@U1>", para(`<bdi class="mention to-me" title="U1" data-user="U1">@ana</bdi>`)},
		{"mention of an app", "<@U3|x>", para(`<bdi class="mention" title="U3" data-user="U3">@smith</bdi>`)},
		{"mention of nobody", "<@U9|zoe>", para(`<bdi class="mention" title="U9" data-user="U9">@zoe</bdi>`)},
		{"here", "<!here>", para(`<bdi class="mention to-me">@here</bdi>`)},
		{"channel", "<#C1|general>", para(`<button type="button" class="channel-link" data-channel="C1"><bdi>#general</bdi></button>`)},
		{"link", "<https://x.org/a?b=1&amp;c=2|site>", para(`<a href="https://x.org/a?b=1&amp;c=2" ~ title="https://x.org/a?b=1&amp;c=2">site</a>`)},
		{"bare link", "see https://x.org/a.", para(`see <a href="https://x.org/a" ~ title="https://x.org/a">https://x.org/a</a>.`)},
		{"script address", "<javascript:alert(1)|click>", para(`<span class="dead-link" title="This address is not a web link.">click</span>`)},
		{"data address", "<data:text/html;base64,xx|click>", para(`<span class="dead-link" title="This address is not a web link.">click</span>`)},
		{"unknown bracket", "<b>", para("&lt;b&gt;")},
		{"markup", `<img src=x onerror=alert(1)>`, para("&lt;img src=x onerror=alert(1)&gt;")},
		{"emoji", ":tada: :nosuch:", para(`<span class="emoji" role="img" aria-label="tada" title=":tada:">🎉</span> :nosuch:`)},
		{"time is no emoji", "at 10:30:45", para("at 10:30:45")},
		{"stand-in character", "a \ufffc b <@U2>", para("a \ufffc b <bdi class=\"mention\" title=\"U2\" data-user=\"U2\">@ben</bdi>")},
		{"bold over a mention", "*<@U2>*", para(`<strong><bdi class="mention" title="U2" data-user="U2">@ben</bdi></strong>`)},
		{"empty", "", ""},
	})
}

func TestMarkdown_DrawsWhatAnAgentWrites(t *testing.T) {
	check(t, "show(markdown(input, names))", []textCase{
		{"paragraphs", "one\ntwo\n\nthree", "<p>one<br>two</p><p>three</p>"},
		{"heading", "## Done #", `<p class="md-heading md-h2" role="heading" aria-level="4">Done</p>`},
		{"inline", "**b** *i* ~~s~~ `c` __b__ _i_", `<p><strong>b</strong> <em>i</em> <s>s</s> <code class="code">c</code> <strong>b</strong> <em>i</em></p>`},
		{"both", "***x***", "<p><strong><em>x</em></strong></p>"},
		{"snake", "a_b_c 2*3*4 *", "<p>a_b_c 2<em>3</em>4 *</p>"},
		{"escape", `\*no\*`, "<p>*no*</p>"},
		{"fence", "```go\nfunc *x*\n```", `<pre class="code-block"><code>func *x*</code></pre>`},
		{"open fence", "~~~\nx", `<pre class="code-block"><code>x</code></pre>`},
		{"list", "- a\n- b\n  - c\n- [x] d", "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>☑ d</li></ul>"},
		{"ordered", "3. a\n4. b", `<ol start="3"><li>a</li><li>b</li></ol>`},
		{"quote", "> a\n> b", "<blockquote><p>a<br>b</p></blockquote>"},
		{"rule", "a\n\n---\n", "<p>a</p><hr>"},
		{"table", "| a | b |\n|---|:-:|\n| 1 | `x|y` |", `<div class="table-box" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th>a</th><th>b</th></tr></thead>` +
			`<tbody><tr><td>1</td><td><code class="code">x|y</code></td></tr></tbody></table></div>`},
		{"link", "[site](https://x.org/a_(b))", `<p><a href="https://x.org/a_(b)" ~ title="https://x.org/a_(b)">site</a></p>`},
		{"script link", "[x](javascript:alert(1))", `<p><span class="dead-link" title="This address is not a web link.">x</span></p>`},
		{"mention", "hi <@U2>", `<p>hi <bdi class="mention" title="U2" data-user="U2">@ben</bdi></p>`},
		{"markup", "<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"},
		{"emoji", ":x:", `<p><span class="emoji" role="img" aria-label="x">❌</span></p>`},
	})
}

func TestDraft_TurnsNamesIntoMentionsAndEscapesTheRest(t *testing.T) {
	check(t, "encode(input, names)", []textCase{
		{"mention", "@smith hi", "<@U3> hi"},
		{"longest name", "@ana-maria and @ana", "<@U4> and <@U1>"},
		{"a name with a space", "@Agent Force who?", "<@U5> who?"},
		{"not in an address", "me@smith x@ana.org", "me@smith x@ana.org"},
		{"not part of a word", "@smithy", "@smithy"},
		{"channel", "#general", "<#C1|general>"},
		{"here", "@here", "<!here>"},
		{"escapes", "a < b & c > d", "a &lt; b &amp; c &gt; d"},
		{"code stays", "`@smith` ```@ana```", "`@smith` ```@ana```"},
		{"typed tokens", "<@U2> <@U9> <https://x|y>", "<@U2> &lt;@U9&gt; &lt;https://x|y&gt;"},
	})
}

func TestDraft_AnEditKeepsWhatHasNoTypedForm(t *testing.T) {
	check(t, "(() => { const d = decode(input, names); return d.typed + ' → ' + encode(d.typed, names, d.keep); })()", []textCase{
		{"mention", "<@U3> a &lt; b", "@smith a < b → <@U3> a &lt; b"},
		{"labelled link", "<https://x.org|y> <@U9>", "<https://x.org|y> <@U9> → <https://x.org|y> <@U9>"},
		{"bare link", "<https://x.org>", "https://x.org → https://x.org"},
	})
}

// A text of any kind is drawn, also when it is several times as long as Slack's own limit
// of 40,000 characters: what costs the square of its length would not come to its end.
func TestText_LongHostileTextIsDrawnToItsEnd(t *testing.T) {
	many := func(s string) string { return strings.Repeat(s, 200000/len(s)) }
	inputs := []string{many("<@U1>"), many("*a "), many("_*~a"), many("`"), many("<"), many("["), many("[a]("), many("**a "), many("\\"), many("| "), many("> "), many("- "),
		many("https://"), many("http://a.."), many("https://....."), many("&lt;"), many(":a"), many("```"), many("(("), many("![")}
	for i, got := range drawn(t, `String(show(mrkdwn(input, names)).length > 0 && show(markdown(input, names)).length > 0 && encode(input, names).length > 0)`, inputs) {
		require.Equal(t, "true", got, "%.20q", inputs[i])
	}
}
