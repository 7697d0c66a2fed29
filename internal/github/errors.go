package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	gogithub "github.com/google/go-github/v92/github"
)

// The errors that callers tell apart, beside *RateLimitError. Any other may pass.
var (
	// ErrNotFound: there is no such thing, or the token may not see it: GitHub does not
	// tell which.
	ErrNotFound = errors.New("GitHub knows no such thing, or the token may not see it")
	// ErrTokenRefused: GitHub takes this token for nobody's. It was said loudly.
	ErrTokenRefused = errors.New("GitHub refuses the token: give SMITH_GITHUB_TOKEN a valid one")
	// ErrForbidden: the token may not read this.
	ErrForbidden = errors.New("GitHub does not let this token read that")
)

const (
	// unknownWait is how long to wait where GitHub limits and names no time: its
	// documentation asks for a minute at least.
	unknownWait = time.Minute
	// longestWait is the longest that a limit is believed to last: GitHub counts by the hour.
	longestWait = time.Hour
)

// RateLimitError says that GitHub answers nothing until a time. Nothing is asked of it
// before then, so a caller may wait or go on with what it knows.
type RateLimitError struct {
	Until time.Time
	// Secondary: too much at once, not too much in the hour.
	Secondary bool
}

// Error is error.
func (e *RateLimitError) Error() string {
	return "GitHub's limit of requests is reached until " + e.Until.UTC().Format(time.RFC3339)
}

// done looks at how a call went. It names the error, and says loudly when the token is
// refused. What GitHub sent is in no error unquoted.
func (c *Client) done(ctx context.Context, what string, err error) error {
	if err == nil {
		c.clear(ctx)
		return nil
	}
	return fmt.Errorf("%s: %w", what, c.named(ctx, err))
}

func (c *Client) named(ctx context.Context, err error) error {
	var primary *gogithub.RateLimitError
	var secondary *gogithub.AbuseRateLimitError
	var twoFactor *gogithub.TwoFactorAuthError
	var answer *gogithub.ErrorResponse
	switch {
	case errors.As(err, &primary):
		return c.limited(primary.Rate.Reset.Time, false)
	case errors.As(err, &secondary):
		return c.limited(c.now().Add(secondary.GetRetryAfter()), true)
	case errors.As(err, &twoFactor):
		return c.refused(ctx)
	case errors.As(err, &answer) && answer.Response != nil:
		return c.answered(ctx, answer)
	}
	return err
}

func (c *Client) answered(ctx context.Context, answer *gogithub.ErrorResponse) error {
	status, header := answer.Response.StatusCode, answer.Response.Header
	switch {
	case status == http.StatusUnauthorized:
		return c.refused(ctx)
	case (status == http.StatusForbidden && header.Get("Retry-After") != "") || status == http.StatusTooManyRequests:
		return c.limited(waitOf(header, c.now()), true)
	case status == http.StatusForbidden:
		return fmt.Errorf("%w: it says %q", ErrForbidden, clip(answer.Message, 200))
	case status == http.StatusNotFound, status == http.StatusGone:
		return ErrNotFound
	}
	return fmt.Errorf("GitHub answered %d: %q", status, clip(answer.Message, 200))
}

// waitOf reads Retry-After, which GitHub gives in seconds, else X-RateLimit-Reset.
func waitOf(header http.Header, now time.Time) time.Time {
	if seconds, err := strconv.ParseInt(header.Get("Retry-After"), 10, 32); err == nil {
		return now.Add(time.Duration(seconds) * time.Second)
	}
	if at, err := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64); err == nil && header.Get("X-RateLimit-Remaining") == "0" {
		return time.Unix(at, 0)
	}
	return time.Time{}
}

// limited makes the error, with a time that is in the near future.
func (c *Client) limited(until time.Time, secondary bool) error {
	now := c.now()
	if !until.After(now) {
		until = now.Add(unknownWait)
	}
	if latest := now.Add(longestWait); until.After(latest) {
		until = latest
	}
	return &RateLimitError{Until: until, Secondary: secondary}
}

func (c *Client) refused(ctx context.Context) error {
	if c.loud != nil {
		c.loud.Alarm(ctx, loudName, "GitHub refuses the token, so pull requests are not read; give SMITH_GITHUB_TOKEN a valid one and start the worker again.")
	}
	return ErrTokenRefused
}

func (c *Client) clear(ctx context.Context) {
	if c.loud != nil {
		c.loud.Clear(ctx, loudName, "GitHub takes the token again.")
	}
}
