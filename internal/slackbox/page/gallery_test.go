package page_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

// full fills a world with a morning's talk.
func full(t *testing.T, w *world) (root string) {
	t.Helper()
	general := w.channel("general")
	ana, ben, gil := w.user("ana").Token, w.user("ben").Token, w.user("gil").Token
	smith, trinity := "<@"+w.botUser("smith")+">", "<@"+w.botUser("trinity")+">"
	react := func(token, ts string, names ...string) {
		for _, name := range names {
			require.NoError(t, w.client(token).AddReaction(name, slack.NewRefToMessage(general, ts)))
		}
	}
	w.post(ben, general, "Good morning :wave: The nightly build failed on *two* of the five shards, the log says `context deadline exceeded`.")
	w.post(ben, general, "> retry budget spent after 3 attempts\nI had a look at <https://example.org/builds/4711|build 4711> but found nothing new.")
	root = w.post(ana, general, smith+" what changed between yesterday's build and this one?")
	react(ben, root, "eyes", "+1")
	react(gil, root, "eyes")
	answer := w.post(botToken("smith"), general, "Two changes went in.", slack.MsgOptionTS(root), slack.MsgOptionBlocks(
		slack.NewMarkdownBlock("a", "Two changes went in since the last green build:\n\n1. **Retry budget** lowered from 5 to 3 in `retry.go`\n2. The shard runner now waits for the **cache**, up to 30 s\n\n"+
			"| Shard | Before | Now |\n|---|---|---|\n| 2 | 41 s | 74 s |\n| 4 | 39 s | 71 s |\n\n```go\nif attempts >= budget.Max {\n\treturn fmt.Errorf(\"retry budget spent after %d attempts\", attempts)\n}\n```\nThe second one explains both failures. See [the change](https://example.org/pull/812)."),
		slack.NewContextBlock("c", slack.NewTextBlockObject(slack.MarkdownType, "read 14 files · 38 s · `claude`", false, false))))
	react(ana, answer, "tada")
	w.post(ana, general, "That makes sense. Can you raise the cache timeout and open a pull request?", slack.MsgOptionTS(root))
	w.post(gil, general, "لا أفهم لماذا يفشل البناء، هل يمكن لأحد أن يشرح؟")
	w.post(botToken("trinity"), general, "Shard 4 is green again.")
	w.post(ben, general, "Thanks "+trinity+"! Details in <#"+w.channel("random")+">, and here is the chart.")

	picture := image.NewRGBA(image.Rect(0, 0, 480, 180))
	for x := range 480 {
		for y := range 180 {
			c := color.RGBA{244, 242, 237, 255}
			if x%60 > 14 && x%60 < 46 && y > 160-(x*x/2200+x%60/2)%130 {
				c = color.RGBA{28, 104, 88, 255}
			}
			picture.Set(x, y, c)
		}
	}
	var chart bytes.Buffer
	require.NoError(t, png.Encode(&chart, picture))
	_, err := w.client(ben).UploadFileContext(t.Context(), slack.UploadFileParameters{Reader: &chart, FileSize: chart.Len(), Filename: "shard times.png", Channel: general})
	require.NoError(t, err)
	return root
}

// The pictures are for people to look at; the test sees to it that nothing sticks out.
func TestPage_FitsDesktopAndPhoneInLightAndDark(t *testing.T) {
	w := newWorld(t)
	root := full(t, w)
	p := w.as("ana", "general")
	p.until(`document.querySelector(".preview")?.naturalWidth > 0`)
	p.shows("#channel .reply-count", "2 replies")
	fits := func(name string) {
		t.Helper()
		require.True(t, ask[bool](p, `document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight`), name)
		require.Empty(t, ask[[]string](p, `[...document.querySelectorAll("#app *")].filter((e) => {
			const r = e.getBoundingClientRect();
			return r.width && !e.closest(".table-box, .scroll, .side-list") && (r.left < -1 || r.right > innerWidth + 1 || r.bottom > innerHeight + 1);
		}).map((e) => e.className || e.tagName)`), name)
		require.Empty(t, ask[[]string](p, `[...document.querySelectorAll("button, select, textarea, input:not([hidden])")].filter((e) =>
			!(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML)`), "nameless controls")
		p.shoot(name)
	}
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		p.size(1280, 800, false)
		p.run(chromedp.Navigate(w.slack.PageURL() + "?as=ana&channel=general"))
		p.until(`document.querySelector(".preview")?.naturalWidth > 0`)
		fits("desktop-" + scheme)
		p.run(chromedp.Navigate(w.slack.PageURL() + "?as=ana&channel=general&thread=" + root))
		p.shows("#thread .md table", "74 s")
		require.NoError(t, w.client(botToken("smith")).SetAssistantThreadsStatus(slack.AssistantThreadsSetStatusParameters{ChannelID: w.channel("general"), ThreadTS: root,
			Status: "is thinking…", LoadingMessages: []string{"opening a pull request"}}))
		p.shows("#thread .status", "smith is thinking…")
		p.until(`document.querySelector(".preview")?.naturalWidth > 0`)
		fits("desktop-thread-" + scheme)
		p.typeIn(threadBox, "and ask @")
		p.until(`document.querySelector("#thread .names:not([hidden])")`)
		p.tool(p.row("#channel", "Shard 4"), "React")
		p.until(`document.querySelector(".emoji-picker")`)
		fits("desktop-picker-" + scheme)
		p.size(820, 1100, false)
		p.run(chromedp.Navigate(w.slack.PageURL() + "?as=ana&channel=general&thread=" + root))
		p.shows("#thread .md table", "74 s")
		fits("tablet-" + scheme)
		p.size(390, 780, true)
		p.run(chromedp.Navigate(w.slack.PageURL() + "?as=ana"))
		p.until(`document.querySelector("#side .conv")?.getBoundingClientRect().width > 300`)
		fits("phone-list-" + scheme)
		p.click(`#side .conv[data-name="general"]`)
		p.until(`document.querySelector(".preview")?.naturalWidth > 0`)
		p.until(`(() => { const s = document.querySelector("#channel .scroll"); return s.scrollHeight - s.scrollTop - s.clientHeight < 2; })()`)
		fits("phone-channel-" + scheme)
		p.click(fmt.Sprintf(`#channel .row[data-ts="%s"] .replies`, root))
		p.shows("#thread .md table", "74 s")
		p.until(`getComputedStyle(document.querySelector("#channel")).display === "none"`)
		fits("phone-thread-" + scheme)
		p.click(`#thread [aria-label="Back to the channel"]`)
		p.until(`getComputedStyle(document.querySelector("#channel")).display !== "none"`)
	}
}
