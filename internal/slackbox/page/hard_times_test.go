package page_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

func TestPage_HostileTextIsInert(t *testing.T) {
	w := newWorld(t)
	general, ben := w.channel("general"), w.user("ben").Token
	w.post(ben, general, `<script>window.hit=1</script><img src=x onerror="window.hit=1"> <javascript:window.hit=1|click me>`)
	w.post(ben, general, "\u202e\u2067right to left\u202e\u2066")
	w.post(ben, general, "plain after it")
	w.post(ben, general, strings.Repeat("W", 6000))
	// Five thousand mentions: Slack's limit on a message's length makes them two messages.
	for range 2 {
		w.post(ben, general, strings.Repeat("<@"+w.botUser("smith")+">", 2000)+strings.Repeat("<@"+w.user("ana").ID+">", 500))
	}
	w.post(botToken("smith"), general, "fallback", slack.MsgOptionBlocks(
		slack.NewMarkdownBlock("m", "<script>window.hit=1</script> [x](javascript:window.hit=1) ![y](data:text/html,x) **bold**"),
		slack.NewContextBlock("c", slack.NewTextBlockObject(slack.MarkdownType, "<vbscript:x|y> `<b>` \u202e", false, false))))
	p := w.as("ana", "general")
	p.shows("#channel .row .content", "<script>window.hit=1</script>")
	p.shows("#channel .row .md strong", "bold")
	p.until(`document.querySelectorAll("#channel .mention").length === 5000`)
	require.Equal(t, "undefined", ask[string](p, `typeof window.hit`))
	require.Zero(t, ask[int](p, `document.querySelectorAll(".rows script, .rows img").length`))
	require.True(t, ask[bool](p, `[...document.querySelectorAll(".rows a")].every((a) => /^(https?|mailto):/.test(a.href) && a.rel.includes("noopener"))`))
	require.True(t, ask[bool](p, `document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll(".scroll")].every((s) => s.scrollWidth <= s.clientWidth)`))
	p.shoot("hostile")

	// Marks that turn the direction stay in their own message.
	require.True(t, ask[bool](p, `(() => {
		const plain = [...document.querySelectorAll(".rows .content .para")].find((e) => e.textContent === "plain after it");
		const r = document.createRange();
		const at = (i) => { r.setStart(plain.firstChild, i); r.setEnd(plain.firstChild, i + 1); return r.getBoundingClientRect().x; };
		return at(0) < at(6);
	})()`))
}

func TestPage_TextIsKeptWhenItCannotBeSent(t *testing.T) {
	w := newWorld(t)
	p := w.as("ana", "general")
	p.run(chromedp.Focus(chromedp.CSS(box)))
	long := strings.Repeat("a", 40001)
	require.True(t, ask[bool](p, fmt.Sprintf(`(() => { const b = document.querySelector("#composer"); b.value = %s; return b.dispatchEvent(new Event("input")); })()`, quote(long))))
	p.press("Enter", 0)
	p.shows("#channel .error", "too long")
	require.Len(t, ask[string](p, `document.querySelector("#composer").value`), len(long))
}

func TestPage_NothingIsLostOverAReconnect(t *testing.T) {
	w := newWorld(t)
	general, ben := w.channel("general"), w.user("ben").Token
	gone := w.post(ben, general, "to be deleted")
	edited := w.post(ben, general, "to be edited")
	root := w.post(ben, general, "the root")
	d := newDoor(t, w.slack.PageURL())
	p := w.chrome.open(t, d.url+"/?as=ana&channel=general&thread="+root)
	p.shows("#thread .row .content", "the root")
	p.shows("#channel .row .content", "to be deleted")
	p.until(`document.querySelector("#line").hidden`)

	d.close()
	p.shows("#line:not([hidden])", "Reconnecting…")
	p.typeIn(box, "kept while nobody answers")
	p.press("Enter", 0)
	p.shows("#channel .error", "No answer came")
	require.Equal(t, "kept while nobody answers", ask[string](p, `document.querySelector("#composer").value`))
	p.shoot("reconnecting")
	api := w.client(ben)
	_, _, err := api.DeleteMessage(general, gone)
	require.NoError(t, err)
	_, _, _, err = api.UpdateMessage(general, edited, slack.MsgOptionText("now edited", false))
	require.NoError(t, err)
	w.post(ben, general, "said meanwhile")
	w.post(ben, general, "a reply meanwhile", slack.MsgOptionTS(root))
	w.post(ben, w.channel("random"), "elsewhere")
	d.open()

	p.until(`document.querySelector("#line").hidden`)
	p.shows("#channel .row .content", "said meanwhile")
	p.shows("#channel .row .content", "now edited")
	p.lacks("#channel .row .content", "to be deleted")
	p.shows("#thread .row .content", "a reply meanwhile")
	p.shows("#channel .reply-count", "1 reply")
	p.until(`document.querySelector('#side .conv[data-name="random"] .dot')`)
	p.run(chromedp.Focus(chromedp.CSS(box)))
	p.press("Enter", 0)
	p.shows("#channel .row .content", "kept while nobody answers")
}

func TestPage_AnEventStandsOverAReadingThatItOvertook(t *testing.T) {
	w := newWorld(t)
	general, ben := w.channel("general"), w.user("ben").Token
	gone := w.post(ben, general, "to be deleted")
	edited := w.post(ben, general, "to be edited")
	d := newDoor(t, w.slack.PageURL())
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	d.late = func(path, body string) <-chan struct{} {
		if path == "/api/conversations.history" && strings.Contains(body, "channel="+general) {
			return held
		}
		return nil
	}
	p := w.chrome.open(t, d.url+"/?as=ana&channel=general")
	// The other conversations have been read, general has not.
	p.shows("#channel .top-of-list", "Loading…")
	p.until(`performance.getEntriesByType("resource").some((e) => e.name.endsWith("conversations.history"))`)

	api := w.client(ben)
	_, _, err := api.DeleteMessage(general, gone)
	require.NoError(t, err)
	_, _, _, err = api.UpdateMessage(general, edited, slack.MsgOptionText("now edited", false))
	require.NoError(t, err)
	w.post(ben, general, "said meanwhile")
	w.post(ben, w.channel("random"), "elsewhere")
	p.until(`document.querySelector('#side .conv[data-name="random"] .dot')`) // so the events before it are here too
	release()

	p.shows("#channel .row .content", "now edited")
	p.shows("#channel .row .content", "said meanwhile")
	p.lacks("#channel .row .content", "to be deleted")
}

func TestPage_AnEphemeralLineSaysThatOnlyThisPersonSeesIt(t *testing.T) {
	w := newWorld(t)
	ana, ben := w.as("ana", "general"), w.as("ben", "general")
	_, err := w.client(botToken("smith")).PostEphemeralContext(t.Context(), w.channel("general"), w.user("ana").ID, slack.MsgOptionText("a quiet word", false))
	require.NoError(t, err)
	w.post(botToken("smith"), w.channel("general"), "a loud word")
	ana.shows("#channel .row.note", "Only visible to you")
	ana.shows("#channel .row.note .content", "a quiet word")
	ben.shows("#channel .row .content", "a loud word")
	ben.lacks("#channel .row", "a quiet word")
	ana.click("#channel .row.note .text-button")
	ana.until(`!document.querySelector(".row.note")`)
}
