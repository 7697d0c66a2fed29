package slackbox_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
)

func TestFiles_GoUpInThreeStepsAndComeDownWithTheToken(t *testing.T) {
	s := start(t, slackbox.Options{})
	events := listen(t, s, "trinity", true)
	root, err := s.Person("ana").Say("general", "root")
	require.NoError(t, err)
	api := bot(s, "smith")
	f, err := api.UploadFile(slack.UploadFileParameters{
		Filename: "a b.txt", Content: "hello", FileSize: 5, Title: "A", Channel: general, ThreadTimestamp: root, InitialComment: "look"})
	require.NoError(t, err)
	m := nextSubtype(t, events, "file_share")
	require.Equal(t, []string{"look", root}, []string{m.Text, m.ThreadTimeStamp})
	info, _, _, err := api.GetFileInfo(f.ID, 0, 0)
	require.NoError(t, err)
	require.Equal(t, root, info.Shares.Public[general][0].ThreadTs)
	require.Equal(t, []string{"a b.txt", "A", "text/plain"}, []string{info.Name, info.Title, info.Mimetype})

	var got bytes.Buffer
	require.NoError(t, bot(s, "trinity").GetFile(info.URLPrivateDownload, &got))
	require.Equal(t, "hello", got.String())
	require.ErrorContains(t, client(s, "xoxb-no").GetFile(info.URLPrivateDownload, &got), "sign-in")
	require.ErrorContains(t, bot(s, "agent-force").GetFile(info.URLPrivate, &got), "sign-in", "no files:read")

	require.EqualError(t, bot(s, "trinity").DeleteFile(f.ID), "cant_delete_file")
	require.NoError(t, api.DeleteFile(f.ID))
	require.EqualError(t, api.DeleteFile(f.ID), "file_deleted")
	_, _, _, err = api.GetFileInfo(f.ID, 0, 0)
	require.EqualError(t, err, "file_deleted")
	_, _, _, err = api.GetFileInfo("F0", 0, 0)
	require.EqualError(t, err, "file_not_found")
}

func nextSubtype(t *testing.T, events <-chan socketmode.Event, subtype string) *slackevents.MessageEvent {
	t.Helper()
	for {
		m, _ := inner[*slackevents.MessageEvent](t, events)
		if m.SubType == subtype {
			return m
		}
	}
}

func TestFiles_TheShareComesLaterWhereSlackIsSlow(t *testing.T) {
	clock := frozen()
	s := start(t, slackbox.Options{Clock: clock, Settings: slackbox.Settings{FileShareDelayMS: 1000}})
	api := bot(s, "smith")
	f, err := api.UploadFile(slack.UploadFileParameters{Filename: "a", Content: "x", FileSize: 1, Channel: general})
	require.NoError(t, err)
	info, _, _, err := api.GetFileInfo(f.ID, 0, 0)
	require.NoError(t, err)
	require.Empty(t, info.Shares.Public)
	clock.Advance(time.Second)
	info, _, _, err = api.GetFileInfo(f.ID, 0, 0)
	require.NoError(t, err)
	require.Len(t, info.Shares.Public[general], 1)
}

func TestFiles_StepsOutOfOrderAreRefused(t *testing.T) {
	s := start(t, slackbox.Options{})
	api := bot(s, "smith")
	up, err := api.GetUploadURLExternalContext(t.Context(), slack.GetUploadURLExternalParameters{FileName: "a", FileSize: 3})
	require.NoError(t, err)
	complete := func(channel string) error {
		_, err := api.CompleteUploadExternalContext(t.Context(), slack.CompleteUploadExternalParameters{
			Files: []slack.FileSummary{{ID: up.FileID}}, Channel: channel})
		return err
	}
	require.EqualError(t, complete(general), "file_upload_not_finished")
	require.Error(t, api.UploadToURL(t.Context(), slack.UploadToURLParameters{UploadURL: up.UploadURL, Filename: "a", Content: "toolong"}))
	answer, err := http.Post(up.UploadURL, "application/octet-stream", strings.NewReader("abc"))
	require.NoError(t, err)
	_ = answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.EqualError(t, complete("C0"), "channel_not_found")
	require.NoError(t, complete(general))
	require.EqualError(t, complete(general), "file_already_completed")
}

func TestStatus_ShowsUntilItIsClearedByAPostAnEmptyOneOrTwoMinutes(t *testing.T) {
	clock := frozen()
	s := start(t, slackbox.Options{Clock: clock})
	root, err := s.Person("ana").Say("general", "root")
	require.NoError(t, err)
	api := bot(s, "smith")
	set := func(text string) {
		require.NoError(t, api.SetAssistantThreadsStatus(slack.AssistantThreadsSetStatusParameters{
			ChannelID: general, ThreadTS: root, Status: text, LoadingMessages: []string{"Reading …"}}))
	}
	set("is thinking…")
	st := s.Statuses()
	require.Len(t, st, 1)
	require.Equal(t, []string{"smith", "is thinking…", "Reading …"}, []string{st[0].App, st[0].Status, st[0].Loading[0]})
	clock.Advance(90 * time.Second)
	set("is thinking…")
	clock.Advance(90 * time.Second)
	require.Len(t, s.Statuses(), 1, "set again in time")
	clock.Advance(30 * time.Second)
	require.Empty(t, s.Statuses())
	set("is thinking…")
	set("")
	require.Empty(t, s.Statuses())
	set("is thinking…")
	_, reply, err := bot(s, "trinity").PostMessage(general, textOption("x"), slack.MsgOptionTS(root))
	require.NoError(t, err)
	require.Len(t, s.Statuses(), 1, "another app's post clears nothing")
	_, _, err = api.PostMessage(general, textOption("x"), slack.MsgOptionTS(root))
	require.NoError(t, err)
	require.Empty(t, s.Statuses())
	var why []string
	for _, x := range s.Log(0).Statuses {
		why = append(why, x.Why)
	}
	require.Equal(t, []string{"set", "set", "expired", "set", "cleared", "set", "post"}, why)
	for _, thread := range []string{"1.000000", "x", "", reply} {
		require.EqualError(t, api.SetAssistantThreadsStatus(slack.AssistantThreadsSetStatusParameters{
			ChannelID: general, ThreadTS: thread, Status: "x"}), "invalid_thread_ts", thread)
	}
}
