// Package slackapi is what Smith asks of Slack's Web API, one Client a seat, over
// the unmodified github.com/slack-go/slack. It adds what that client leaves open:
// a timeout, errors that say whether something may have been done, the retry of
// 429 and of nothing else, posts that can be found again, and raw messages.
package slackapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"golang.org/x/sync/singleflight"
)

const (
	defaultTimeout    = 10 * time.Second
	defaultRetryAfter = 30 * time.Second // where a 429 does not say
	maxBody           = 64 << 20
	maxWaits          = 5
	maxWait           = time.Minute // for a caller without a deadline
)

// Options say how a Client reaches Slack.
type Options struct {
	Token      string        // the seat's bot token (xoxb-…)
	APIURL     string        // "" is Slack's own; ends in a slash
	Timeout    time.Duration // of one request; 0 is 10 s
	HTTPClient *http.Client  // "" is a client of its own; it is copied, not changed
	Log        *slog.Logger
	// Now and Wait are for tests: nil is the real clock. Wait returns ctx's error
	// when ctx ends first.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
}

// Client talks to Slack as one seat. It is safe for concurrent use.
type Client struct {
	token   string
	apiURL  string
	timeout time.Duration
	http    *http.Client // API calls: bounded by timeout
	files   *http.Client // bytes of files: bounded by size
	log     *slog.Logger
	now     func() time.Time
	wait    func(context.Context, time.Duration) error

	mu       sync.Mutex
	identity Identity
	people   map[string]cachedPerson
	asking   singleflight.Group
}

// New makes a Client. It sends nothing.
func New(o Options) *Client {
	c := &Client{
		token: o.Token, apiURL: o.APIURL, timeout: o.Timeout, log: o.Log, now: o.Now, wait: o.Wait,
		people: map[string]cachedPerson{},
	}
	if c.apiURL == "" {
		c.apiURL = slack.APIURL
	}
	if !strings.HasSuffix(c.apiURL, "/") {
		c.apiURL += "/"
	}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.wait == nil {
		c.wait = wait
	}
	base := http.Client{}
	if o.HTTPClient != nil {
		base = *o.HTTPClient
	}
	api, files := base, base
	api.Timeout = c.timeout
	// A redirected POST would carry the token on: Slack's API never redirects.
	api.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	files.Timeout = 0
	files.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if len(via) >= 5 {
			return errors.New("too many redirects")
		}
		return c.mayReceiveToken(req.URL.String())
	}
	c.http, c.files = &api, &files
	return c
}

// Timeout is how long one request may take: what a caller waits out before it reads
// back a post that it is not sure of (B5).
func (c *Client) Timeout() time.Duration { return c.timeout }

// Identity is who the token is.
type Identity struct {
	Team   string // the installing workspace
	UserID string // the seat's bot user (D5)
	BotID  string
	URL    string   // the workspace's address
	Scopes []string // as Slack's answer lists them; nil where it does not
}

// AuthTest asks Slack who the token is, and remembers it. The errors are those of
// every call: ErrDeadCredentials, ErrAmbiguous, *RateLimited, *Rejected.
func (c *Client) AuthTest(ctx context.Context) (Identity, error) {
	var answer *slack.AuthTestResponse
	_, err := c.call(ctx, "auth.test", func(ctx context.Context, api *slack.Client) (err error) {
		answer, err = api.AuthTestContext(ctx)
		return err
	})
	if err != nil {
		return Identity{}, err
	}
	if answer == nil || answer.UserID == "" || answer.TeamID == "" {
		return Identity{}, fmt.Errorf("slack auth.test: %w: no user or team in the answer", ErrAmbiguous)
	}
	id := Identity{Team: answer.TeamID, UserID: answer.UserID, BotID: answer.BotID, URL: answer.URL}
	if scopes := answer.Header.Get("X-OAuth-Scopes"); scopes != "" {
		for s := range strings.SplitSeq(scopes, ",") {
			id.Scopes = append(id.Scopes, strings.TrimSpace(s))
		}
	}
	c.mu.Lock()
	c.identity = id
	c.mu.Unlock()
	return id, nil
}

// self returns the identity, asking for it the first time.
func (c *Client) self(ctx context.Context) (Identity, error) {
	c.mu.Lock()
	id := c.identity
	c.mu.Unlock()
	if id.UserID != "" {
		return id, nil
	}
	return c.AuthTest(ctx)
}

// envelope is what every answer of Slack's API has.
type envelope struct {
	OK     *bool  `json:"ok"`
	Error  string `json:"error"`
	Needed string `json:"needed"`
}

// exchange keeps one HTTP exchange as it was. slack-go's typed answers lose fields,
// and its errors do not tell a broken exchange from a refusal: so it only builds
// the requests here, and what came back is judged and parsed from the bytes.
type exchange struct {
	http       *http.Client
	status     int
	retryAfter string
	body       []byte
	err        error
}

// Do is slack-go's door to HTTP.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	resp, err := x.http.Do(req)
	if err != nil {
		x.err = err
		return nil, err
	}
	defer resp.Body.Close()
	x.status, x.retryAfter = resp.StatusCode, resp.Header.Get("Retry-After")
	if x.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody)); err != nil {
		x.err = err
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(x.body))
	return resp, nil
}

// call runs one API method through slack-go and returns the answer's bytes. A 429
// is waited out as long as the caller's deadline leaves room; nothing else is ever
// sent twice (slack-go's own retries would repeat a post that was stored).
func (c *Client) call(ctx context.Context, method string, do func(context.Context, *slack.Client) error) ([]byte, error) {
	for waits := 0; ; waits++ {
		x := &exchange{http: c.http}
		err := do(ctx, slack.New(c.token, slack.OptionAPIURL(c.apiURL), slack.OptionHTTPClient(x),
			slack.OptionOnWarning(func(path string, _ any, w *slack.Warning) {
				c.log.Debug("slack warns", "method", path, "codes", w.Codes)
			})))
		body, err := c.judge(method, x, err)
		var limited *RateLimited
		if !errors.As(err, &limited) || waits >= maxWaits || !canWait(ctx, limited.After) {
			return body, err
		}
		c.log.Info("slack asks to wait", "method", method, "after", limited.After)
		if c.wait(ctx, limited.After) != nil {
			return nil, err
		}
	}
}

func (c *Client) judge(method string, x *exchange, err error) ([]byte, error) {
	switch {
	case x.err != nil:
		return nil, c.ambiguous(method, x.err)
	case x.status == 0 && err != nil:
		return nil, fmt.Errorf("slack %s: not sent: %w", method, c.scrub(err))
	case x.status == http.StatusTooManyRequests:
		after := defaultRetryAfter
		if s, err := strconv.Atoi(strings.TrimSpace(x.retryAfter)); err == nil && s >= 0 {
			after = max(time.Duration(s)*time.Second, time.Second)
		}
		return nil, &RateLimited{Method: method, After: after}
	case x.status >= 400 && x.status < 500 && x.status != http.StatusRequestTimeout:
		return nil, &Rejected{Method: method, Code: "http_" + strconv.Itoa(x.status)}
	case x.status != http.StatusOK:
		return nil, c.ambiguous(method, fmt.Errorf("http status %d", x.status))
	}
	var env envelope
	if err := json.Unmarshal(x.body, &env); err != nil || env.OK == nil {
		return nil, c.ambiguous(method, errors.New("the answer is not Slack's"))
	}
	if !*env.OK {
		return nil, fromCode(method, env)
	}
	return x.body, nil
}

// canWait tells whether a wait leaves the caller the time to send once more.
func canWait(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	if !ok {
		return d <= maxWait
	}
	return time.Until(deadline) > d+time.Second
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
