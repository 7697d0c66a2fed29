package page_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

const (
	box       = "#composer"
	threadBox = "#thread-composer"
)

// answers is a bot that repeats, in the thread, what it was asked.
func answers(t *testing.T, gate <-chan struct{}) func(*slack.Client, string, string, string) {
	return func(api *slack.Client, channel, thread, text string) {
		if gate != nil {
			if err := api.SetAssistantThreadsStatus(slack.AssistantThreadsSetStatusParameters{ChannelID: channel, ThreadTS: thread,
				Status: "is thinking…", LoadingMessages: []string{"reading the thread"}}); err != nil {
				t.Errorf("status: %v", err)
			}
			<-gate
		}
		if _, _, err := api.PostMessage(channel, slack.MsgOptionTS(thread), slack.MsgOptionText("You said: "+text, false),
			slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "smith_post", EventPayload: map[string]any{"post_id": "p1"}})); err != nil {
			t.Errorf("answer: %v", err)
		}
	}
}

func TestPage_ALineWithAMentionIsAnsweredInItsThread(t *testing.T) {
	w := newWorld(t)
	gate := make(chan struct{})
	w.bot("smith", answers(t, gate))
	p := w.as("ana", "general")

	// The name is completed from its first letters.
	p.typeIn(box, "hello @smi")
	p.until(`document.querySelector("#channel .names:not([hidden]) [aria-selected=true]")?.textContent.includes("smith")`)
	p.press("Enter", 0)
	require.Equal(t, "hello @smith ", ask[string](p, `document.querySelector("#composer").value`))
	p.typeIn(box, "are you there?")
	p.press("Enter", 0)
	row := p.row("#channel", "are you there?")
	p.shows(row+" .mention", "@smith")
	require.Equal(t, "", ask[string](p, `document.querySelector("#composer").value`))

	// What it is doing shows under the line, and in the thread, until it answers.
	p.shows(row+" .status-link", "smith is thinking…")
	p.click(row + " .status-link")
	p.shows("#thread .status", "smith is thinking…")
	p.shows("#thread .status", "reading the thread")
	p.shoot("status")
	close(gate)
	p.shows("#thread .row .content", "You said:")
	p.lacks("#thread .status", "thinking")
	p.lacks("#channel .status-link", "thinking")
	p.shows("#thread .row .badge", "BOT")
	p.shows(row+" .reply-count", "1 reply")

	// What was sent is a mention, not a name.
	history, err := w.client(w.user("ana").Token).GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: w.channel("general"), Limit: 1})
	require.NoError(t, err)
	require.Equal(t, "hello <@"+w.botUser("smith")+"> are you there?", history.Messages[0].Text)

	// The metadata is there for who asks.
	answer := p.row("#thread", "You said:")
	p.tool(answer, "Show metadata")
	p.shows("dialog", `"post_id": "p1"`)
	p.run(chromedp.KeyEvent(kb.Escape))
	p.until(`!document.querySelector("dialog")`)

	// A reply in the thread needs no second opening, and is counted.
	p.say(threadBox, "thank you")
	p.shows("#thread .row .content", "thank you")
	p.shows(row+" .reply-count", "2 replies")
}

func TestPage_OwnLinesAreEditedAndDeleted(t *testing.T) {
	w := newWorld(t)
	w.post(w.user("ben").Token, w.channel("general"), "not yours")
	p := w.as("ana", "general")
	p.say(box, "ask @smith < 5 & more")
	row := p.row("#channel", "ask @smith")

	p.tool(row, "Edit")
	p.until(`document.activeElement.value === "ask @smith < 5 & more"`)
	p.run(chromedp.KeyEvent(" please"))
	p.press("Enter", 0)
	p.shows(row+" .content", "ask @smith < 5 & more please")
	p.shows(row+" .edited", "(edited)")
	p.shows(row+" .mention", "@smith")

	// The arrow up in an empty box edits the last own line; Escape leaves it as it was.
	p.run(chromedp.KeyEvent(kb.ArrowUp))
	p.until(`document.activeElement.closest(".editor")`)
	p.run(chromedp.KeyEvent(" not sent"), chromedp.KeyEvent(kb.Escape))
	p.until(`document.activeElement.id === "composer"`)
	p.until(`!document.querySelector(".editor")`)
	p.lacks(row+" .content", "not sent")

	other := p.row("#channel", "not yours")
	p.until(fmt.Sprintf(`document.querySelector(%s)`, quote(other)))
	p.tool(other, "React")
	require.False(t, ask[bool](p, fmt.Sprintf(`Boolean(document.querySelector(%s))`, quote(other+` .tools [aria-label="Delete"]`))))
	p.run(chromedp.KeyEvent(kb.Escape))

	p.tool(row, "Delete")
	p.shows("dialog", "ask @smith < 5")
	p.click("dialog .danger")
	p.until(fmt.Sprintf(`!document.querySelector(%s)`, quote(row)))
}

func TestPage_ReactionsAreAddedCountedAndTakenBack(t *testing.T) {
	w := newWorld(t)
	ts := w.post(w.user("ben").Token, w.channel("general"), "vote here")
	require.NoError(t, w.client(w.user("ben").Token).AddReaction("x", slack.NewRefToMessage(w.channel("general"), ts)))
	p := w.as("ana", "general")
	row := p.row("#channel", "vote here")
	p.shows(row+" .reaction .count", "1")
	p.click(row + ` .reaction[data-name="x"]`)
	p.shows(row+` .reaction.mine[data-name="x"] .count`, "2")

	p.tool(row, "React")
	p.typeIn(".emoji-find", "eye")
	p.click(`.emoji-picker [data-name="eyes"]`)
	p.shows(row+` .reaction.mine[data-name="eyes"] .count`, "1")
	p.click(row + ` .reaction[data-name="x"]`)
	p.until(fmt.Sprintf(`document.querySelector(%s)?.classList.contains("mine") === false`, quote(row+` .reaction[data-name="x"]`)))
	p.shows(row+` .reaction[data-name="x"] .count`, "1")
}

func TestPage_FilesGoBothWays(t *testing.T) {
	w := newWorld(t)
	p := w.as("ana", "general")
	dir := t.TempDir()
	note := filepath.Join(dir, "notes \u202egnp.txt")
	require.NoError(t, os.WriteFile(note, []byte("the notes"), 0o600))
	picture := filepath.Join(projectRoot(t), "testoutput")
	p.shoot("upload-me")
	p.run(chromedp.SetUploadFiles(chromedp.CSS(`#channel input[type=file]`), []string{note, filepath.Join(picture, "page-upload-me.png")}, chromedp.NodeReady))
	p.until(`document.querySelectorAll("#channel .chip").length === 2`)
	p.typeIn(box, "two files")
	p.press("Enter", 0)
	row := p.row("#channel", "two files")
	p.shows(row+" .file-name", "notes \ufffdgnp.txt")
	p.until(fmt.Sprintf(`document.querySelector(%s)?.naturalWidth > 0`, quote(row+" .preview")))
	p.until(`document.querySelectorAll("#channel .chip").length === 0`)
	require.NoError(t, os.Remove(filepath.Join(picture, "page-upload-me.png")))

	// The bytes come back as they went.
	require.Equal(t, "the notes", ask[string](p, fmt.Sprintf(`new Promise((done) => {
		const make = URL.createObjectURL;
		URL.createObjectURL = (blob) => { blob.text().then(done); return make(blob); };
		document.querySelector(%s).click();
	})`, quote(row+" button.file"))))
	p.click(row + " .preview-button")
	p.until(`document.querySelector("dialog .whole-picture")?.naturalWidth > 0`)
	p.run(chromedp.KeyEvent(kb.Escape))

	// A file can be dropped anywhere on the pane, and taken back before it is sent.
	for _, step := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop} {
		tell(p, input.DispatchDragEvent, input.DispatchDragEventParams{Type: step, X: 700, Y: 300,
			Data: &input.DragData{Items: []*input.DragDataItem{}, Files: []string{note}, DragOperationsMask: 1}})
	}
	p.shows("#channel .chip", "notes")
	p.until(`!document.querySelector(".dropping")`)
	p.click("#channel .chip button")
	p.until(`document.querySelectorAll("#channel .chip").length === 0`)
}

func TestPage_ADirectMessageReachesTheApp(t *testing.T) {
	w := newWorld(t)
	w.bot("smith", answers(t, nil))
	p := w.as("ana", "general")
	p.click(`#side .conv[data-name="smith"]`)
	p.shows("#channel-title", "smith")
	p.say(box, "just between us")
	row := p.row("#channel", "just between us")
	p.shows(row+" .reply-count", "1 reply")
	p.click(row + " .replies")
	p.shows("#thread .row .content", "You said: just between us")
}

func TestPage_OthersSeeLinesAtOnceAndADotElsewhere(t *testing.T) {
	w := newWorld(t)
	ana, ben := w.as("ana", "general"), w.as("ben", "random")
	ana.say(box, "good morning")
	ben.until(`document.querySelector('#side .conv[data-name="general"] .dot')`)
	ben.click(`#side .conv[data-name="general"]`)
	ben.shows("#channel .row .content", "good morning")
	ben.until(`!document.querySelector('#side .conv[data-name="general"] .dot')`)
	ben.say(box, "morning!")
	ana.shows("#channel .row .name", "ben")

	// Being someone else is one choice away, and the address says who and where.
	ana.run(chromedp.SetValue(chromedp.CSS("#me"), w.user("gil").ID))
	require.True(t, ask[bool](ana, `document.querySelector("#me").dispatchEvent(new Event("change"))`))
	ana.until(`new URLSearchParams(location.search).get("as") === "gil"`)
	ana.say(box, "I am a guest")
	ben.shows("#channel .row .badge", "guest")
	ana.run(chromedp.Navigate(w.slack.PageURL() + "?as=olga&channel=general"))
	ana.shows("#channel .row .content", "good morning")
	ana.say(box, "I am of another team")
	ben.shows("#channel .row .badge", "other team")
	require.False(t, ask[bool](ana, `Boolean(document.querySelector('#side .conv[data-name="random"]'))`))
}

func TestPage_EverythingIsReachedByKeyboard(t *testing.T) {
	w := newWorld(t)
	p := w.as("ana", "general")
	p.say(box, "first line")
	p.say(box, "second line")
	first, second := p.row("#channel", "first line"), p.row("#channel", "second line")
	p.run(chromedp.Focus(chromedp.CSS("#channel .row[tabindex='0']")))
	for ask[string](p, `document.activeElement.querySelector(".content").textContent`) != "first line" {
		p.run(chromedp.KeyEvent(kb.ArrowUp))
	}
	p.until(fmt.Sprintf(`document.activeElement === document.querySelector(%s)`, quote(first)))
	p.press("r", 0)
	p.until(`document.activeElement.classList.contains("emoji-find")`)
	p.run(chromedp.KeyEvent("x"))
	p.press("Enter", 0)
	p.shows(first+` .reaction[data-name="x"]`, "1")
	p.until(fmt.Sprintf(`document.activeElement === document.querySelector(%s)`, quote(first)))
	p.run(chromedp.KeyEvent(kb.ArrowDown))
	p.press("e", 0)
	p.until(`document.activeElement.value === "second line"`)
	p.run(chromedp.KeyEvent(" more"))
	p.press("Enter", 0)
	p.shows(second+" .content", "second line more")
	p.until(`document.activeElement.id === "composer"`)
	p.run(chromedp.Focus(chromedp.CSS(second)))
	p.press("t", 0)
	p.until(`document.activeElement.id === "thread-composer"`)
	p.typeIn(threadBox, "one")
	p.press("Enter", shift)
	p.typeIn(threadBox, "two")
	p.press("Enter", 0)
	p.until(`[...document.querySelectorAll("#thread .para")].some((e) => e.innerText === "one\ntwo")`)
	p.run(chromedp.KeyEvent(kb.Escape))
	p.until(`document.querySelector("#thread").hidden`)
	p.until(fmt.Sprintf(`document.activeElement === document.querySelector(%s)`, quote(second)))
}

func TestPage_ACommandAndAButtonReachTheApp(t *testing.T) {
	w := newWorld(t)
	w.interactive("smith", func(kind, what string) string { return "you sent " + kind + " " + what })
	w.post(botToken("smith"), w.channel("general"), "choose", slack.MsgOptionBlocks(slack.NewActionBlock("b",
		slack.NewButtonBlockElement("go", "on", slack.NewTextBlockObject(slack.PlainTextType, "Go on", false, false)))))
	p := w.as("ana", "general")
	p.typeIn(box, "/nosuch thing")
	p.press("Enter", 0)
	p.shows("#channel .error", "There is no command /nosuch here. Known: /agents.")
	require.Equal(t, "/nosuch thing", ask[string](p, `document.querySelector("#composer").value`))
	ask[string](p, `document.querySelector("#composer").value = ""`)
	p.say(box, "/agents who?")
	p.shows("#channel .row.note .content", "you sent /agents who?")
	p.click("#channel .actions button")
	p.shows("#channel .row.note .content", "you sent go on")
}

func TestPage_OlderLinesComeWhenScrolledUp(t *testing.T) {
	w := newWorld(t)
	for i := range 150 {
		w.post(w.user([]string{"ana", "ben"}[i%2]).Token, w.channel("general"), fmt.Sprintf("line %03d", i))
	}
	p := w.as("ana", "general")
	p.shows("#channel .row .content", "line 149")
	p.until(`(() => { const s = document.querySelector("#channel .scroll"); return s.scrollHeight - s.scrollTop - s.clientHeight < 2; })()`)
	require.Equal(t, 60, ask[int](p, `document.querySelectorAll("#channel .row").length`))
	for shown := 120; shown <= 150; shown += 30 {
		p.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#channel .scroll").scrollTop = 40`))
		p.until(fmt.Sprintf(`document.querySelectorAll("#channel .row").length === %d`, shown))
		// The line that was on top is still in sight.
		require.Greater(t, ask[int](p, `document.querySelector("#channel .scroll").scrollTop`), 300)
	}
	p.shows("#channel .beginning", "beginning of #general")
	p.until(`!document.querySelector("#channel .jump").hidden`)
	w.post(w.user("ben").Token, w.channel("general"), "a new one")
	p.shows("#channel .row .content", "a new one")
	require.Greater(t, ask[int](p, `(() => { const s = document.querySelector("#channel .scroll"); return s.scrollHeight - s.scrollTop - s.clientHeight; })()`), 300)
	p.click("#channel .jump")
	p.until(`document.querySelector("#channel .jump").hidden`)
}

func TestPage_ADeepLinkOpensPersonChannelAndThread(t *testing.T) {
	w := newWorld(t)
	root := w.post(w.user("ben").Token, w.channel("random"), "the root")
	w.post(w.user("ana").Token, w.channel("random"), "the reply", slack.MsgOptionTS(root))
	p := w.as("ana", "random&thread="+root)
	p.shows("#thread .row .content", "the reply")
	p.shows("#channel-title", "#random")
	p.run(chromedp.KeyEvent(kb.Escape))
	p.until(`document.querySelector("#thread").hidden`)
	p.run(chromedp.NavigateBack())
	p.until(`!document.querySelector("#thread").hidden`)
}
