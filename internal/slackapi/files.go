package slackapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"agentsmith/rules"
)

// slowest is the pace, in bytes a second, under which a transfer is given up.
const slowest = 64 << 10

// UploadURL begins an upload (B4): it returns the file's id, to be stored before
// anything else is done, and the URL for SendBytes. size is in bytes, above 0.
func (c *Client) UploadURL(ctx context.Context, name string, size int) (fileID, uploadURL string, err error) {
	var answer *slack.GetUploadURLExternalResponse
	_, err = c.call(ctx, "files.getUploadURLExternal", func(ctx context.Context, api *slack.Client) (err error) {
		answer, err = api.GetUploadURLExternalContext(ctx, slack.GetUploadURLExternalParameters{FileName: rules.SafeFileName(name), FileSize: size})
		return err
	})
	if err == nil && (answer == nil || answer.FileID == "" || answer.UploadURL == "") {
		err = c.ambiguous("files.getUploadURLExternal", errors.New("no file id in the answer"))
	}
	if err != nil {
		return "", "", fmt.Errorf("begin upload: %w", err)
	}
	return answer.FileID, answer.UploadURL, nil
}

// SendBytes sends a file's bytes. Nobody sees them until CompleteUpload; a failed
// SendBytes may be repeated with the same URL.
func (c *Client) SendBytes(ctx context.Context, uploadURL, name string, r io.Reader, size int) error {
	if err := c.mayReceiveToken(uploadURL); err != nil {
		return fmt.Errorf("send file: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.transferTime(int64(size)))
	defer cancel()
	x := &transfer{http: c.files}
	err := slack.New(c.token, slack.OptionAPIURL(c.apiURL), slack.OptionHTTPClient(x)).
		UploadToURL(ctx, slack.UploadToURLParameters{UploadURL: uploadURL, Filename: rules.SafeFileName(name), Reader: r})
	if err != nil {
		return x.failed(c, "send file", err)
	}
	return nil
}

// CompleteUpload shares uploaded files into a thread, where everybody sees them.
// After an error that is ErrAmbiguous, ask FileShares before trying again (B5). A
// thread ts is required, as for Post; Slack shares a file whose parent is gone at the
// channel's top level: FileShares shows it there, and DeleteFile takes it back.
func (c *Client) CompleteUpload(ctx context.Context, fileIDs []string, channel, threadTS, comment string) error {
	if !rules.ValidTS(threadTS) {
		return fmt.Errorf("share files in %s: %w", channel, ErrNoThread)
	}
	p := slack.CompleteUploadExternalParameters{Channel: channel, ThreadTimestamp: threadTS, InitialComment: rules.EscapeText(comment)}
	for _, id := range fileIDs {
		p.Files = append(p.Files, slack.FileSummary{ID: id})
	}
	_, err := c.call(ctx, "files.completeUploadExternal", func(ctx context.Context, api *slack.Client) error {
		_, err := api.CompleteUploadExternalContext(ctx, p)
		return err
	})
	if err != nil {
		return fmt.Errorf("share files: %w", err)
	}
	return nil
}

// Share is a message that a file stands in.
type Share struct {
	Channel  string
	ThreadTS string // "" at the top level
	TS       string
}

// FileShares tells where a file is shared. Slack shares it some time after
// CompleteUpload has returned: none yet is not an error.
func (c *Client) FileShares(ctx context.Context, fileID string) ([]Share, error) {
	body, err := c.call(ctx, "files.info", func(ctx context.Context, api *slack.Client) error {
		_, _, _, err := api.GetFileInfoContext(ctx, fileID, 0, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look up file: %w", err)
	}
	var answer struct {
		File struct {
			Shares map[string]map[string][]struct {
				TS       string `json:"ts"`
				ThreadTS string `json:"thread_ts"`
			} `json:"shares"`
		} `json:"file"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, c.ambiguous("files.info", err)
	}
	var out []Share
	for _, channels := range answer.File.Shares {
		for channel, shares := range channels {
			for _, s := range shares {
				out = append(out, Share{Channel: channel, ThreadTS: s.ThreadTS, TS: s.TS})
			}
		}
	}
	slices.SortFunc(out, func(a, b Share) int { return strings.Compare(a.TS+a.Channel, b.TS+b.Channel) })
	return out, nil
}

// DeleteFile removes a file that the seat uploaded, with every message it stands in.
// One that is gone already is no error.
func (c *Client) DeleteFile(ctx context.Context, fileID string) error {
	_, err := c.call(ctx, "files.delete", func(ctx context.Context, api *slack.Client) error {
		return api.DeleteFileContext(ctx, fileID)
	})
	if IsRejected(err, "file_not_found", "file_deleted") {
		return nil
	}
	return err
}

// Download writes a file's bytes to w, at most limit of them, and returns how many. A
// larger file is ErrTooLarge, and a file that is not on Slack's own host is
// ErrForeignURL. What w holds after an error is to be thrown away.
func (c *Client) Download(ctx context.Context, f rules.File, w io.Writer, limit int64) (int64, error) {
	doing := "download file " + f.ID
	if err := c.mayReceiveToken(f.URLPrivate); err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	if f.Size > limit {
		return 0, fmt.Errorf("%s: %w", doing, ErrTooLarge)
	}
	ctx, cancel := context.WithTimeout(ctx, c.transferTime(limit))
	defer cancel()
	x, capped := &transfer{http: c.files}, &cappedWriter{w: w, left: limit}
	err := slack.New(c.token, slack.OptionAPIURL(c.apiURL), slack.OptionHTTPClient(x)).GetFileContext(ctx, f.URLPrivate, capped)
	switch {
	case errors.Is(err, ErrTooLarge):
		err = fmt.Errorf("%s: %w", doing, ErrTooLarge)
	case err != nil:
		err = x.failed(c, doing, err)
	}
	return limit - capped.left, err
}

func (c *Client) transferTime(size int64) time.Duration {
	return c.timeout + time.Duration(max(size, 0)/slowest)*time.Second
}

// mayReceiveToken refuses a URL that is not the API's own host, or, with Slack's own
// API, an https host of Slack's.
func (c *Client) mayReceiveToken(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return ErrForeignURL
	}
	api, err := url.Parse(c.apiURL)
	if err != nil {
		return ErrForeignURL
	}
	if u.Scheme == api.Scheme && u.Host != "" && strings.EqualFold(u.Host, api.Host) && u.User == nil {
		return nil
	}
	if u.Scheme == "https" && u.User == nil && slackHost(api.Hostname()) && slackHost(u.Hostname()) && (u.Port() == "" || u.Port() == "443") {
		return nil
	}
	return ErrForeignURL
}

func slackHost(host string) bool {
	host = strings.ToLower(host)
	for _, domain := range []string{"slack.com", "slack-gov.com"} {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

// transfer remembers how the HTTP exchange of a file went.
type transfer struct {
	http   *http.Client
	status int
	after  string
	signIn bool // Slack showed its sign-in page instead of the file
}

// Do is slack-go's door to HTTP.
func (t *transfer) Do(req *http.Request) (*http.Response, error) {
	resp, err := t.http.Do(req)
	if err == nil {
		t.status, t.after = resp.StatusCode, resp.Header.Get("Retry-After")
		t.signIn = resp.Request != nil && resp.Request.URL.Query().Has("redir")
	}
	return resp, err
}

func (t *transfer) failed(c *Client, doing string, err error) error {
	if errors.Is(err, ErrForeignURL) {
		return fmt.Errorf("%s: %w", doing, ErrForeignURL)
	}
	if t.signIn {
		return &Rejected{Method: doing, Code: "file_not_visible"}
	}
	if t.status == http.StatusOK {
		return c.ambiguous(doing, err)
	}
	_, judged := c.judge(doing, &exchange{status: t.status, retryAfter: t.after, err: transport(t.status, err)}, err)
	return judged
}

func transport(status int, err error) error {
	if status == 0 {
		return err
	}
	return nil
}

// cappedWriter stops a download that is larger than it said.
type cappedWriter struct {
	w    io.Writer
	left int64
}

// Write passes p on while there is room.
func (c *cappedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		return 0, ErrTooLarge
	}
	c.left -= int64(len(p))
	return c.w.Write(p)
}
