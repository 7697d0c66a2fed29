package slackapi

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/rules"
)

func TestUpload_GoesInSteps(t *testing.T) {
	f := newFake(t)
	var got string
	f.on("files.getUploadURLExternal", says(`{"ok":true,"file_id":"F1","upload_url":"`+f.URL+`/upload/v1/ticket"}`))
	f.on("/upload/v1/ticket", func(_ http.ResponseWriter, r *http.Request) {
		file, header, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		body, _ := io.ReadAll(file)
		got = header.Filename + ": " + string(body)
	})
	f.on("files.completeUploadExternal", says(`{"ok":true,"files":[{"id":"F1"}]}`))
	f.on("files.info", says(`{"ok":true,"file":{"id":"F1","shares":{"public":{"C1":[{"ts":"2.000000","thread_ts":"1.000000"}]},"private":{"D1":[{"ts":"3.000000"}]}}}}`))
	c := f.client()

	id, url, err := c.UploadURL(t.Context(), "../plot.png", 5)
	require.NoError(t, err)
	require.Equal(t, "F1", id)
	require.Equal(t, "_plot.png", f.form("files.getUploadURLExternal").Get("filename"))
	require.NoError(t, c.SendBytes(t.Context(), url, "plot.png", strings.NewReader("bytes"), 5))
	require.Equal(t, "plot.png: bytes", got)
	require.NoError(t, c.CompleteUpload(t.Context(), []string{"F1"}, "C1", "1.000000", "<!here>"))
	form := f.form("files.completeUploadExternal")
	require.Equal(t, "1.000000", form.Get("thread_ts"))
	require.Equal(t, "&lt;\u2060!here&gt;", form.Get("initial_comment"))
	shares, err := c.FileShares(t.Context(), "F1")
	require.NoError(t, err)
	require.Equal(t, []Share{{Channel: "C1", ThreadTS: "1.000000", TS: "2.000000"}, {Channel: "D1", TS: "3.000000"}}, shares)
}

func TestUpload_Refuses(t *testing.T) {
	f := newFake(t)
	c := f.client()
	require.ErrorIs(t, c.CompleteUpload(t.Context(), []string{"F1"}, "C1", "", ""), ErrNoThread)
	require.ErrorIs(t, c.SendBytes(t.Context(), "https://evil.example/upload", "x", strings.NewReader("x"), 1), ErrForeignURL)
}

func TestUpload_SaysWhatIsUnsure(t *testing.T) {
	f := newFake(t)
	f.on("files.completeUploadExternal", hangsUp)
	f.on("/upload", fails(500))
	c := f.client()
	require.ErrorIs(t, c.CompleteUpload(t.Context(), []string{"F1"}, "C1", "1.000000", ""), ErrAmbiguous)
	err := c.SendBytes(t.Context(), f.URL+"/upload", "x", strings.NewReader("x"), 1)
	require.ErrorIs(t, err, ErrAmbiguous)
	require.NotContains(t, err.Error(), f.URL, "the address of an upload is a secret")
}

func TestDownload_ReadsOnlyFromSlack(t *testing.T) {
	var stolen string
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen += r.Header.Get("Authorization") + "!" }))
	defer evil.Close()
	f := newFake(t)
	f.on("/files/F1", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = w.Write([]byte("bytes"))
	})
	f.on("/files/away", fails(302, "Location", evil.URL+"/x"))
	c := f.client()
	var got bytes.Buffer
	n, err := c.Download(t.Context(), rules.File{ID: "F1", URLPrivate: f.URL + "/files/F1"}, &got, 5)
	require.NoError(t, err)
	require.EqualValues(t, 5, n)
	require.Equal(t, "bytes", got.String())
	for _, url := range []string{evil.URL + "/x", f.URL + "/files/away", "https://files.slack.com/x", "file:///etc/passwd", "", "://", strings.Replace(f.URL, "http://", "http://u:p@", 1) + "/files/F1"} {
		_, err := c.Download(t.Context(), rules.File{ID: "F1", URLPrivate: url}, io.Discard, 100)
		require.ErrorIs(t, err, ErrForeignURL, url)
	}
	require.Empty(t, stolen)
}

func TestMayReceiveToken_KnowsSlacksHosts(t *testing.T) {
	c := New(Options{Token: token})
	for url, want := range map[string]bool{
		"https://files.slack.com/x": true, "https://slack.com/x": true, "https://a.slack-gov.com/x": true, "https://FILES.slack.com:443/x": true,
		"http://files.slack.com/x": false, "https://slack.com.evil.example/x": false, "https://evilslack.com/x": false,
		"https://files.slack.com@evil.example/x": false, "https://files.slack.com:8443/x": false, "https://127.0.0.1/x": false,
	} {
		require.Equal(t, want, c.mayReceiveToken(url) == nil, url)
	}
}

func TestDownload_KeepsToTheLimit(t *testing.T) {
	f := newFake(t)
	f.on("/files/F1", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
	c := f.client()
	var got bytes.Buffer
	_, err := c.Download(t.Context(), rules.File{ID: "F1", URLPrivate: f.URL + "/files/F1"}, &got, 1000)
	require.ErrorIs(t, err, ErrTooLarge)
	require.LessOrEqual(t, got.Len(), 1000)
	_, err = c.Download(t.Context(), rules.File{ID: "F1", Size: 2000, URLPrivate: f.URL + "/files/F1"}, &got, 1000)
	require.ErrorIs(t, err, ErrTooLarge)
	require.Equal(t, 1, f.count("/files/F1"), "a file that says it is too large is not asked for")
}

func TestDownload_SaysWhatWentWrong(t *testing.T) {
	f := newFake(t)
	f.on("/files/F1", fails(404), fails(429, "Retry-After", "7"), fails(302, "Location", "/signin?redir=%2Ffiles%2FF1"), hangsUp)
	f.on("/signin", says("<html>sign in</html>"))
	c := f.client()
	get := func() error {
		_, err := c.Download(t.Context(), rules.File{ID: "F1", URLPrivate: f.URL + "/files/F1"}, io.Discard, 10)
		return err
	}
	require.True(t, IsRejected(get(), "http_404"))
	require.ErrorAs(t, get(), new(*RateLimited))
	require.True(t, IsRejected(get(), "file_not_visible"), "a sign-in page is not the file")
	err := get()
	require.ErrorIs(t, err, ErrAmbiguous)
	require.NotContains(t, err.Error(), token)
}

func TestDeleteFile_TakesGoneForDone(t *testing.T) {
	f := newFake(t)
	f.on("files.delete", says(`{"ok":true}`), says(`{"ok":false,"error":"file_not_found"}`), says(`{"ok":false,"error":"cant_delete_file"}`))
	c := f.client()
	require.NoError(t, c.DeleteFile(t.Context(), "F1"))
	require.NoError(t, c.DeleteFile(t.Context(), "F1"))
	require.True(t, IsRejected(c.DeleteFile(t.Context(), "F1"), "cant_delete_file"))
}
