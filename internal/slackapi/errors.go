package slackapi

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// ErrAmbiguous is any answer that does not tell whether Slack did what it was
// asked: a timeout, a broken connection, a 5xx, a body that is no answer, ok without
// a ts, ok:false without an error, and Slack's own fatal_error and internal_error.
// After a Post it means: the post may stand in the thread, now or a little later.
// Wait out the request timeout and read it back (FindPost) before sending again (B5).
var ErrAmbiguous = errors.New("slack may have taken the request and did not say so")

// ErrParentGone is returned when the message that a post was to stand under is
// deleted. Nothing of the post is left behind in the channel (B5).
var ErrParentGone = errors.New("the thread's first message is gone")

// ErrDeadCredentials is returned when Slack does not take the token any more: only
// a person can mend that.
var ErrDeadCredentials = errors.New("slack does not accept the token")

// ErrNoThread is returned by Post, before anything is sent, for a post without its
// thread's ts (B5).
var ErrNoThread = errors.New("refusing to post without a thread ts")

// ErrForeignURL is returned for a file that does not lie with Slack: the token goes
// to no other host (X3).
var ErrForeignURL = errors.New("the file is not on a Slack host")

// ErrTooLarge is returned by Download for a file over the limit.
var ErrTooLarge = errors.New("the file is larger than allowed")

// RateLimited is a 429 that could not be waited out within the caller's deadline.
// Nothing was done.
type RateLimited struct {
	Method string
	After  time.Duration // how long Slack asks to wait
}

// Error says which method to leave alone, and for how long.
func (e *RateLimited) Error() string {
	return fmt.Sprintf("slack %s: rate limited, retry after %s", e.Method, e.After)
}

// Rejected is Slack's plain no: nothing was done, and the same request will be
// refused again.
type Rejected struct {
	Method string
	Code   string // Slack's error string, or http_<status>
	Needed string // the scopes that a missing_scope asks for
}

// Error names the method and Slack's error string.
func (e *Rejected) Error() string {
	if e.Needed != "" {
		return fmt.Sprintf("slack %s: %s (needs %s)", e.Method, e.Code, e.Needed)
	}
	return fmt.Sprintf("slack %s: %s", e.Method, e.Code)
}

// IsRejected tells whether err is a Rejected with one of the codes.
func IsRejected(err error, codes ...string) bool {
	var r *Rejected
	return errors.As(err, &r) && slices.Contains(codes, r.Code)
}

// fromCode makes the error of an ok:false.
func fromCode(method string, env envelope) error {
	switch env.Error {
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired",
		"not_allowed_token_type", "org_login_required", "ekm_access_denied":
		return fmt.Errorf("slack %s: %w (%s)", method, ErrDeadCredentials, env.Error)
	case "ratelimited", "rate_limited":
		return &RateLimited{Method: method, After: defaultRetryAfter}
	// Slack says of these that part of the operation may have succeeded.
	case "", "fatal_error", "internal_error", "request_timeout", "service_unavailable":
		return fmt.Errorf("slack %s: %w (ok:false %s)", method, ErrAmbiguous, env.Error)
	}
	return &Rejected{Method: method, Code: clean(env.Error), Needed: clean(env.Needed)}
}

// ambiguous makes the error of an exchange that broke off. The token and the URL
// stay out of it: an upload's URL is a secret too (X3).
func (c *Client) ambiguous(method string, cause error) error {
	return fmt.Errorf("slack %s: %w: %w", method, ErrAmbiguous, c.scrub(cause))
}

// scrub takes the URL off an HTTP client's error, and replaces an error that has
// the token in it.
func (c *Client) scrub(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if c.token != "" && strings.Contains(err.Error(), c.token) {
		return errors.New(strings.ReplaceAll(err.Error(), c.token, "[token]"))
	}
	return err
}

// clean keeps what came off the wire short and on one line.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
	if len(s) > 200 {
		s = s[:200]
	}
	return strings.ToValidUTF8(s, "")
}
