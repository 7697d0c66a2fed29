package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/standin"
)

// B4: a long answer is split, never cut.
func TestB4_ALongAnswerIsSplitNeverCut(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[long 60000]]")
	var all string
	wait(t, "for all parts", func() (bool, string) {
		posts := r.posts(root)
		all = ""
		for _, p := range posts {
			all += p.Text + "\n"
		}
		parts, _ := payload(append(posts, slackbox.LoggedMessage{})[0])["parts"].(float64)
		return len(posts) > 1 && len(posts) == int(parts), fmt.Sprintf("%d of %v parts", len(posts), parts)
	})
	want := 60000 / len("row 00001 of a long answer, by the stand-in\n")
	for i := 1; i <= want; i++ {
		require.Equal(t, 1, strings.Count(all, fmt.Sprintf("row %05d", i)), "row %d", i)
	}
}

// B4: an agent with nothing to add posts nothing.
func TestB4_AnAgentThatAbstainsPostsNothing(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[abstain]]")
	r.quietAbout(root, "abstained")
	wait(t, "for the run", func() (bool, string) { return len(r.runs(root)) == 1 && r.runs(root)[0].Outcome == standin.Served, "" })
	r.settleRoom() // the status is gone though nothing was posted (B7)
	r.answer("smith", r.reply("ana", root, "@smith [[say now]]"))
	require.Len(t, r.posts(root), 1)
}

// B4: files go both ways.
func TestB4_FilesGoBothWays(t *testing.T) {
	t.Parallel()
	r := workshop(t).room(t)
	ana := slack.New("xoxp-local-ana", slack.OptionAPIURL(r.Slack.URL()))
	name := `../../we;ird "$(id)" name.txt`
	up, err := ana.UploadFileContext(t.Context(), slack.UploadFileParameters{
		Content: "what ana sends", FileSize: len("what ana sends"), Filename: name, Channel: r.id,
		InitialComment: "<@" + r.botUser("smith") + "> [[file OUTBOX/reply.txt what smith sends]] [[say here it is]]",
	})
	require.NoError(t, err)
	require.NotEmpty(t, up.ID)
	var ts string
	wait(t, "for the line", func() (bool, string) {
		for _, m := range r.Slack.Log(0).Messages {
			if m.Channel == r.id && m.App == "" {
				ts = m.TS
			}
		}
		return ts != "", ""
	})
	require.Contains(t, r.answer("smith", ts).Text, "here it is")
	wait(t, "for the file", func() (bool, string) {
		for _, p := range r.posts(ts) {
			if len(p.Message.Files) == 1 && p.Message.Files[0].Name == "reply.txt" {
				return true, ""
			}
		}
		return false, fmt.Sprint(r.texts())
	})
	dir := filepath.Join(r.Dir, "data", "threads", "smith", r.id, ts, "inbox")
	got, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, got, 1, "a hostile name stays in the inbox (X2)")
	text, err := os.ReadFile(got[0])
	require.NoError(t, err)
	require.Equal(t, "what ana sends", string(text))
	require.Contains(t, r.runs(ts)[0].Section, "file: inbox/")
}

// B5: whatever becomes of the request, the reader sees the answer once.
func TestB5_ThePostIsSeenOnceWhateverBecomesOfItsRequest(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]slackbox.Fault{
		"stored, response lost":    {Kind: slackbox.ResponseLost},
		"stored, server error":     {Kind: slackbox.ResponseLost, Status: 500},
		"server error":             {Kind: slackbox.ServerError},
		"committed late":           {Kind: slackbox.CommitLate, DelayMS: 3000},
		"committed after a look":   {Kind: slackbox.CommitLate, DelayMS: 5500},
		"no answer":                {Kind: slackbox.Timeout},
		"rate limited":             {Kind: slackbox.RateLimited, RetryAfter: 2},
		"ok false without an word": {Kind: slackbox.APIError},
		"connection cut":           {Kind: slackbox.DropRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := home(t).room(t)
			f.Method, f.App, f.Channel, f.Count = "chat.postMessage", "smith", r.id, 1
			r.fault(t, f)
			ts := r.say("ana", "@smith [[say once]]")
			require.Contains(t, r.answer("smith", ts).Text, "once")
			r.settleRoom()
			require.Len(t, r.posts(ts), 1)
		})
	}
}

// B5: lost responses while reads lag: the second look, 5 s later, finds the post.
func TestB5_LaggingReadsDoNotDoubleThePost(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	r.fault(t, slackbox.Fault{Kind: slackbox.LagReads, App: "smith", Channel: r.id, DelayMS: 4000})
	r.fault(t, slackbox.Fault{Kind: slackbox.ResponseLost, Method: "chat.postMessage", App: "smith", Channel: r.id, Count: 1})
	ts := r.say("ana", "@smith [[say once]]")
	r.answer("smith", ts)
	r.settleRoom()
	require.Len(t, r.posts(ts), 1)
}

// B5: a reply whose parent is gone never leaks to the channel.
func TestB5_AReplyWhoseParentIsGoneNeverLeaks(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	r.fault(t, slackbox.Fault{Kind: slackbox.ParentDeleted, Method: "chat.postMessage", App: "smith", Channel: r.id, Count: 1})
	ts := r.say("ana", "@smith [[say nowhere]]")
	r.quietAbout(ts, "its root was deleted")
	wait(t, "until the leak was taken back", func() (bool, string) {
		for _, m := range r.Slack.Log(0).Messages {
			if m.Channel == r.id && m.App == "smith" && m.Deleted() {
				return true, ""
			}
		}
		return false, fmt.Sprint(r.texts())
	})
	r.settleRoom()
	require.Empty(t, r.texts())
}
