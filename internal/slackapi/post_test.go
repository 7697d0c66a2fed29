package slackapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/rules"
)

const (
	root   = "1700000000.000100"
	postTS = "1700000009.000100"
	postID = "smith/C1/1700000005.000000"
)

func answer() PostRequest {
	return PostRequest{Channel: "C1", ThreadTS: root, Markdown: "# Hi\n\n| a |\n|---|\n| <@U1> & b |", Footer: "opus · 3 s", PostID: postID, Part: 1, Parts: 2}
}

func TestPost_CarriesItsName(t *testing.T) {
	f := newFake(t)
	f.on("chat.postMessage", posted(postTS, root))
	r := answer()
	r.Payload = map[string]any{"turn": "x", "post_id": "not mine"}
	ts, err := f.client().Post(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, postTS, ts)
	form := f.form("chat.postMessage")
	require.Equal(t, root, form.Get("thread_ts"))
	require.Equal(t, "false", form.Get("unfurl_links"))
	require.Equal(t, "false", form.Get("unfurl_media"))
	require.JSONEq(t, `{"event_type":"smith_post","event_payload":{"post_id":"`+postID+`","part":1,"parts":2,"turn":"x"}}`, form.Get("metadata"))
	message, err := json.Marshal(map[string]json.RawMessage{"metadata": json.RawMessage(form.Get("metadata"))})
	require.NoError(t, err)
	require.True(t, rules.IsPost(message, postID, 1))
	require.True(t, rules.IsPost(json.RawMessage(`{"blocks":`+form.Get("blocks")+`}`), postID, 1), "found without its metadata too")
}

func TestPost_ShowsMarkdownAndKeepsItsText(t *testing.T) {
	f := newFake(t)
	f.on("chat.postMessage", posted(postTS, root))
	_, err := f.client().Post(t.Context(), answer())
	require.NoError(t, err)
	form := f.form("chat.postMessage")
	require.JSONEq(t, `[{"type":"markdown","text":"# Hi\n\n| a |\n|---|\n| <`+"\u2060"+`@U1> & b |"},
{"type":"context","block_id":"`+rules.PostBlockID(postID, 1)+`","elements":[{"type":"plain_text","text":"opus · 3 s","emoji":false}]}]`, form.Get("blocks"))
	require.Equal(t, "# Hi\n\n| a |\n|---|\n| &lt;\u2060@U1&gt; &amp; b |", form.Get("text"))

	r := answer()
	r.Footer = ""
	_, err = f.client().Post(t.Context(), r)
	require.NoError(t, err)
	require.Contains(t, f.form("chat.postMessage").Get("blocks"), `{"type":"divider","block_id":"sp-`)
}

func TestPost_ShowsALineOfOurs(t *testing.T) {
	f := newFake(t)
	f.on("chat.postMessage", posted(postTS, root))
	r := PostRequest{Channel: "C1", ThreadTS: root, Text: "<@U1> see https://example.com/?a=1&b=2. The agent ended with `exit 2` & <!here>", PostID: postID, AllowMentions: []string{"U1"}}
	_, err := f.client().Post(t.Context(), r)
	require.NoError(t, err)
	text := "<@U1> see https://example.com/?a=1&amp;b=2. The agent ended with `exit 2` &amp; &lt;\u2060!here&gt;"
	require.Equal(t, text, f.form("chat.postMessage").Get("text"))
	var blocks []struct {
		Type string
		ID   string `json:"block_id"`
		Text struct {
			Text     string
			Verbatim bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(f.form("chat.postMessage").Get("blocks")), &blocks))
	require.Len(t, blocks, 1)
	require.Equal(t, "section", blocks[0].Type)
	require.Equal(t, rules.PostBlockID(postID, 0), blocks[0].ID)
	require.Equal(t, strings.Replace(text, "https://example.com/?a=1&amp;b=2", "<https://example.com/?a=1&amp;b=2>", 1), blocks[0].Text.Text)
	require.True(t, blocks[0].Text.Verbatim, "#general is not made a link")
}

func TestPost_RefusesLocally(t *testing.T) {
	f := newFake(t)
	for name, change := range map[string]func(*PostRequest){
		"no thread":              func(r *PostRequest) { r.ThreadTS = "" },
		"an odd thread ts":       func(r *PostRequest) { r.ThreadTS = "1700000000" },
		"a thread and none":      func(r *PostRequest) { r.NewThread = true },
		"no name":                func(r *PostRequest) { r.PostID = "" },
		"no channel":             func(r *PostRequest) { r.Channel = "" },
		"nothing to say":         func(r *PostRequest) { r.Markdown = "" },
		"a blank":                func(r *PostRequest) { r.Markdown = " \n\x00" },
		"two things to say":      func(r *PostRequest) { r.Text = "x" },
		"a type that is dropped": func(r *PostRequest) { r.EventType = "smith.post" },
	} {
		t.Run(name, func(t *testing.T) {
			r := answer()
			change(&r)
			_, err := f.client().Post(t.Context(), r)
			require.Error(t, err)
			if strings.Contains(name, "thread ts") || name == "no thread" {
				require.ErrorIs(t, err, ErrNoThread)
			}
			require.Equal(t, name == "a blank", IsRejected(err, "no_text"))
			require.Zero(t, f.count("chat.postMessage"))
		})
	}
}

func TestPost_StartsAThreadOnlyWhenTold(t *testing.T) {
	f := newFake(t)
	f.on("chat.postMessage", posted(postTS, ""))
	r := answer()
	r.ThreadTS, r.NewThread = "", true
	ts, err := f.client().Post(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, postTS, ts)
	require.False(t, f.form("chat.postMessage").Has("thread_ts"))
}

func TestPost_IsNeverSureWithoutATS(t *testing.T) {
	for name, answers := range map[string]http.HandlerFunc{
		"no ts":          says(`{"ok":true,"channel":"C1"}`),
		"ok:false":       says(`{"ok":false}`),
		"no message":     says(`{"ok":true,"ts":"1700000009.000100"}`),
		"the answer cut": hangsUp,
		"500":            fails(500),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.on("chat.postMessage", answers)
			ts, err := f.client().Post(t.Context(), answer())
			require.ErrorIs(t, err, ErrAmbiguous)
			require.Empty(t, ts)
			require.Equal(t, 1, f.count("chat.postMessage"))
		})
	}
}

func TestPost_TakesBackWhatLeaks(t *testing.T) {
	f := newFake(t)
	f.on("chat.postMessage", posted(postTS, ""))
	f.on("chat.delete", says(`{"ok":true}`))
	f.on("conversations.history", says(`{"ok":true,"messages":[]}`))
	_, err := f.client().Post(t.Context(), answer())
	require.ErrorIs(t, err, ErrParentGone)
	require.Equal(t, postTS, f.form("chat.delete").Get("ts"))
	require.Equal(t, "C1", f.form("chat.delete").Get("channel"))
}

func TestPost_SaysSoWhenALeakStays(t *testing.T) {
	f := newFake(t)
	f.on("chat.postMessage", posted(postTS, ""))
	f.on("chat.delete", fails(500))
	_, err := f.client().Post(t.Context(), answer())
	require.ErrorIs(t, err, ErrAmbiguous, "the caller reads back, and FindPost takes it away")
	require.NotErrorIs(t, err, ErrParentGone)
}

func TestPost_FallsBackToTextWhenBlocksAreRefused(t *testing.T) {
	f := newFake(t)
	f.on("chat.postMessage", says(`{"ok":false,"error":"invalid_blocks"}`), posted(postTS, root))
	ts, err := f.client().Post(t.Context(), answer())
	require.NoError(t, err)
	require.Equal(t, postTS, ts)
	form := f.form("chat.postMessage")
	require.False(t, form.Has("blocks"))
	require.True(t, strings.HasSuffix(form.Get("text"), "\nopus · 3 s"))
	require.Contains(t, form.Get("metadata"), postID)
}

func TestPost_SendsATooLongMarkdownAsText(t *testing.T) {
	f := newFake(t)
	f.on("chat.postMessage", posted(postTS, root))
	r := answer()
	r.Markdown = strings.Repeat("long ", 3000)
	_, err := f.client().Post(t.Context(), r)
	require.NoError(t, err)
	require.False(t, f.form("chat.postMessage").Has("blocks"))
}

func TestPost_KnowsASlackThatSaysTheThreadIsGone(t *testing.T) {
	f := newFake(t)
	f.on("chat.postMessage", says(`{"ok":false,"error":"thread_not_found"}`))
	_, err := f.client().Post(t.Context(), answer())
	require.ErrorIs(t, err, ErrParentGone)
}

func TestFindPost_BelievesOnlyItsOwnBot(t *testing.T) {
	name := `"metadata":{"event_type":"smith_post","event_payload":{"post_id":"` + postID + `","part":1}}`
	block := `"blocks":[{"type":"context","block_id":"` + rules.PostBlockID(postID, 1) + `"}]`
	for title, c := range map[string]struct {
		message string
		found   bool
	}{
		"by metadata":       {`{"ts":"1700000009.000100","thread_ts":"1700000000.000100","bot_id":"BBOT",` + name + `}`, true},
		"by block id":       {`{"ts":"1700000009.000100","thread_ts":"1700000000.000100","user":"UBOT",` + block + `}`, true},
		"another app's":     {`{"ts":"1700000009.000100","bot_id":"BEVIL","user":"UEVIL",` + name + `,` + block + `}`, false},
		"a person's":        {`{"ts":"1700000009.000100","user":"U1",` + name + `}`, false},
		"nobody's":          {`{"ts":"1700000009.000100",` + name + `}`, false},
		"another post's":    {`{"ts":"1700000009.000100","bot_id":"BBOT","metadata":{"event_type":"smith_post","event_payload":{"post_id":"other","part":1}}}`, false},
		"another part's":    {`{"ts":"1700000009.000100","bot_id":"BBOT","metadata":{"event_type":"smith_post","event_payload":{"post_id":"` + postID + `","part":2}}}`, false},
		"an unnamed one":    {`{"ts":"1700000009.000100","bot_id":"BBOT"}`, false},
		"an unreadable one": {`{"ts":7}`, false},
	} {
		t.Run(title, func(t *testing.T) {
			f := newFake(t)
			f.on("conversations.replies",
				says(`{"ok":true,"messages":[{"ts":"1700000000.000100","user":"U1"}],"has_more":true,"response_metadata":{"next_cursor":"p2"}}`),
				says(`{"ok":true,"messages":[`+c.message+`]}`))
			ts, found, err := f.client().FindPost(t.Context(), "C1", root, postID, 1)
			require.NoError(t, err)
			require.Equal(t, c.found, found)
			require.Equal(t, c.found, ts == postTS)
			form := f.form("conversations.replies")
			require.Equal(t, "p2", form.Get("cursor"), "all pages")
			require.Equal(t, "1", form.Get("include_all_metadata"))
			require.Equal(t, "1700000005.000000", form.Get("oldest"), "not older than the line of the turn")
		})
	}
}

func TestFindPost_LooksForANewThreadInTheChannel(t *testing.T) {
	f := newFake(t)
	f.on("conversations.history", says(`{"ok":true,"messages":[{"ts":"1700000009.000100","bot_id":"BBOT","metadata":{"event_type":"smith_post","event_payload":{"post_id":"`+postID+`","part":1}}}]}`))
	ts, found, err := f.client().FindPost(t.Context(), "C1", "", postID, 1)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, postTS, ts)
}

func TestFindPost_TakesBackWhatLeakedWhenTheAnswerWasLost(t *testing.T) {
	f := newFake(t)
	f.on("conversations.replies", says(`{"ok":false,"error":"thread_not_found"}`))
	f.on("conversations.history", says(`{"ok":true,"messages":[{"ts":"1700000009.000100","bot_id":"BBOT","metadata":{"event_type":"smith_post","event_payload":{"post_id":"`+postID+`","part":1}}},
{"ts":"1700000008.000100","bot_id":"BBOT","text":"something else"},
{"ts":"1700000007.000100","thread_ts":"1700000000.000100","bot_id":"BBOT","metadata":{"event_type":"smith_post","event_payload":{"post_id":"`+postID+`","part":1}}}]}`))
	f.on("chat.delete", says(`{"ok":true}`))
	_, found, err := f.client().FindPost(t.Context(), "C1", root, postID, 1)
	require.ErrorIs(t, err, ErrParentGone)
	require.False(t, found)
	require.Equal(t, 1, f.count("chat.delete"))
	require.Equal(t, postTS, f.form("chat.delete").Get("ts"))
}

func TestFindPost_DoesNotCallAThreadGoneThatItMayOnlyNotSee(t *testing.T) {
	f := newFake(t)
	f.on("conversations.replies", says(`{"ok":false,"error":"thread_not_found"}`))
	f.on("conversations.history", says(`{"ok":true,"messages":[]}`))
	_, found, err := f.client().FindPost(t.Context(), "C1", root, postID, 1)
	require.NoError(t, err)
	require.False(t, found)
}

func TestFindPost_IsNotSureWhenItCannotRead(t *testing.T) {
	f := newFake(t)
	f.on("conversations.replies", fails(500))
	_, _, err := f.client().FindPost(t.Context(), "C1", root, postID, 1)
	require.ErrorIs(t, err, ErrAmbiguous)
}
