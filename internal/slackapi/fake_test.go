package slackapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const token = "xoxb-secret-token"

// fake is a Slack that answers as a test tells it to.
type fake struct {
	*httptest.Server
	t  *testing.T
	mu sync.Mutex
	// answers are taken one by one; the last one stays.
	answers map[string][]http.HandlerFunc
	calls   []string
	forms   map[string][]url.Values
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, answers: map[string][]http.HandlerFunc{}, forms: map[string][]url.Values{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	f.on("auth.test", says(`{"ok":true,"team_id":"T1","user_id":"UBOT","bot_id":"BBOT","url":"https://x.slack.com/"}`))
	return f
}

func (f *fake) on(method string, answers ...http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[method] = answers
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	_ = r.ParseForm()
	f.mu.Lock()
	f.calls = append(f.calls, method)
	f.forms[method] = append(f.forms[method], r.PostForm)
	queue := f.answers[method]
	var answer http.HandlerFunc
	if len(queue) > 0 {
		answer = queue[0]
	}
	if len(queue) > 1 {
		f.answers[method] = queue[1:]
	}
	f.mu.Unlock()
	if answer == nil {
		f.t.Errorf("no answer to %s", method)
		return
	}
	answer(w, r)
}

func (f *fake) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.forms[method])
}

// form is the newest call of a method.
func (f *fake) form(method string) url.Values {
	f.mu.Lock()
	defer f.mu.Unlock()
	forms := f.forms[method]
	require.NotEmpty(f.t, forms, method)
	return forms[len(forms)-1]
}

func (f *fake) client(opts ...func(*Options)) *Client {
	o := Options{Token: token, APIURL: f.URL + "/api/", Timeout: 5 * time.Second}
	for _, opt := range opts {
		opt(&o)
	}
	return New(o)
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	}
}

func fails(status int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte("<html>no</html>"))
	}
}

func hangsUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// posted answers a chat.postMessage.
func posted(ts, threadTS string) http.HandlerFunc {
	message, _ := json.Marshal(map[string]string{"ts": ts, "thread_ts": threadTS})
	return says(fmt.Sprintf(`{"ok":true,"channel":"C1","ts":%q,"message":%s}`, ts, message))
}

func quick(o *Options) { o.Timeout = 50 * time.Millisecond }

// noWait counts the waits, and does not wait.
func noWait(waits *[]time.Duration) func(*Options) {
	return func(o *Options) {
		o.Wait = func(_ context.Context, d time.Duration) error {
			*waits = append(*waits, d)
			return nil
		}
	}
}
