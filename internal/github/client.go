// Package github reads pull requests from GitHub, and the webhooks that tell of them
// (O10). A webhook only wakes: what is read from here is the truth. Nothing is written
// to GitHub.
package github

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v92/github"
)

const (
	// DefaultTimeout ends one request to GitHub.
	DefaultTimeout = 15 * time.Second
	// userAgent is what GitHub sees; it refuses requests without one.
	userAgent = "smith"
	// answerBytes is the most that is read of one answer. A page of a hundred pull
	// requests with long bodies is below 8 MiB.
	answerBytes = 32 << 20
	// pageSize is GitHub's largest.
	pageSize = 100
	// maxPages ends a list that does not end: ten thousand check runs of one commit.
	maxPages = 100
)

// Loud says trouble loudly (T6). *telemetry.Loud is one.
type Loud interface {
	Alarm(ctx context.Context, name, text string, args ...any)
	Clear(ctx context.Context, name, text string, args ...any)
}

// loudName is the check on /healthz that a refused token turns red.
const loudName = "github-token"

// Options say how GitHub is reached.
type Options struct {
	// APIURL is the base of the REST API, such as https://api.github.com/ or
	// https://github.example.org/api/v3/.
	APIURL string
	// Token is the access token; "" reads what everybody may read, at most 60 times an
	// hour. It is in no error and no log (X3).
	Token string
	// Timeout ends one request; 0 is DefaultTimeout.
	Timeout time.Duration
	// Loud is told when the token is refused, and when it is taken again; nil is silent.
	Loud Loud
	// Now is a test's clock; nil is time.Now.
	Now func() time.Time
}

// Client reads GitHub. All its methods may be called from any goroutine.
type Client struct {
	api     *gogithub.Client
	webHost string
	loud    Loud
	now     func() time.Time
}

// New returns a client. It does not call GitHub yet.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.APIURL)
	if err != nil || base.Host == "" || (base.Scheme != "https" && base.Scheme != "http") || base.User != nil {
		return nil, errors.New("the address of GitHub's API is none: write one like https://api.github.com/")
	}
	if !strings.HasSuffix(base.Path, "/") {
		base.Path += "/"
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	address := base.String()
	opts := []gogithub.ClientOptionsFunc{
		gogithub.WithHTTPClient(&http.Client{Timeout: o.Timeout, CheckRedirect: stayOn(base), Transport: bounded{http.DefaultTransport}}),
		gogithub.WithURLs(&address, nil),
		gogithub.WithUserAgent(userAgent),
		gogithub.WithMaxSecondaryRateLimitRetryAfterDuration(longestWait),
	}
	if o.Token != "" {
		opts = append(opts, gogithub.WithAuthToken(o.Token))
	}
	api, err := gogithub.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("make a client of GitHub: %w", err)
	}
	return &Client{api: api, webHost: strings.TrimPrefix(base.Host, "api."), loud: o.Loud, now: o.Now}, nil
}

// stayOn follows redirects, as of a renamed repository, on the same host only: the
// library adds the token to every request that it sends (X3).
func stayOn(base *url.URL) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if req.URL.Scheme != base.Scheme || req.URL.Host != base.Host {
			return errors.New("GitHub redirects to another host, which is not followed")
		}
		if len(via) >= 5 {
			return errors.New("GitHub redirects too often")
		}
		return nil
	}
}

// bounded ends answers that are too long.
type bounded struct{ next http.RoundTripper }

// RoundTrip is http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err == nil {
		resp.Body = &boundedBody{ReadCloser: resp.Body, left: answerBytes}
	}
	return resp, err
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read is io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("an answer of GitHub is over %d bytes", answerBytes)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// repoPattern is what GitHub allows as owner and name. A "." in an owner does not exist;
// a name of dots alone would leave the path.
var repoPattern = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,99})/[A-Za-z0-9._-]{1,100}$`)

// ValidRepo tells whether repo is owner/name as GitHub writes it.
func ValidRepo(repo string) bool {
	_, name, _ := strings.Cut(repo, "/")
	return repoPattern.MatchString(repo) && strings.Trim(name, ".") != ""
}

// splitRepo returns owner and name, or an error for what is no repository.
func splitRepo(repo string) (owner, name string, err error) {
	if !ValidRepo(repo) {
		return "", "", fmt.Errorf("%q is no repository: it is written owner/name", clip(repo, 100))
	}
	owner, name, _ = strings.Cut(repo, "/")
	return owner, name, nil
}
