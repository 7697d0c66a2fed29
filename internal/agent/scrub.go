package agent

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// tailBytes is how much of standard error is kept.
const tailBytes = 4 << 10

var (
	slackToken  = regexp.MustCompile(`\bx(?:ox[a-z]|app)-[A-Za-z0-9-]+`)
	apiKey      = regexp.MustCompile(`\bsk-ant-[A-Za-z0-9_-]+`)
	secretNames = regexp.MustCompile(`(?i)(key|token|secret|passw|credential|auth)`)
)

// scrubber takes secrets out of texts (X3): values of the agent's environment whose
// name says so, and what looks like a token.
type scrubber struct{ values []string }

func newScrubber(env []string) scrubber {
	var s scrubber
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if secretNames.MatchString(name) && len(value) >= 8 {
			s.values = append(s.values, value)
		}
	}
	slices.SortFunc(s.values, func(a, b string) int { return len(b) - len(a) })
	return s
}

func (s scrubber) scrub(text string) string {
	for _, v := range s.values {
		text = strings.ReplaceAll(text, v, "[secret]")
	}
	text = slackToken.ReplaceAllString(text, "[secret]")
	return apiKey.ReplaceAllString(text, "[secret]")
}

// plain is text fit for a log and a Slack line: one paragraph, no control characters.
func plain(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// tail is a writer that keeps the last tailBytes of what it was given. It keeps
// twice as many while it collects, so that a secret cut in two at the start of the
// tail is still seen whole.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - 2*tailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

func (t *tail) text(s scrubber) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := s.scrub(string(t.buf))
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	return plain(text)
}
