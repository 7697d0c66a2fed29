package slackbox

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// obj is the body of an answer; ok and warnings are added on the way out.
type obj map[string]any

// apiError is an answer with "ok":false.
type apiError struct {
	code             string
	messages         []string
	needed, provided string
	extra            obj
}

func fail(code string) *apiError { return &apiError{code: code} }

// call is one call of a Web API method; its method runs with Server.mu held.
type call struct {
	s        *Server
	method   string
	p        params
	who      *caller
	now      time.Time
	asOf     time.Time // what a lagging read sees; zero: everything
	warnings []string
	messages []string
}

// method is a Web API method. A bot needs one of its scopes; none means any token.
type method struct {
	run    func(*call) (obj, *apiError)
	scopes []string
	app    bool // takes an app-level token
	write  bool
}

func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	started := s.clock.Now()
	name := r.PathValue("method")
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		s.reply(w, name, fail("request_timeout"))
		return
	}
	p, err := parseParams(r.Header.Get("Content-Type"), r.URL.RawQuery, body)
	c := &call{s: s, method: name, p: p, now: started}
	if err != nil {
		code := "invalid_form_data"
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
			code = "invalid_json"
		}
		s.mu.Lock()
		s.oracle.call(s, c, fail(code), 0, "", nil)
		s.mu.Unlock()
		s.reply(w, name, fail(code))
		return
	}
	if kind, attrs, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == "application/json" && attrs["charset"] == "" {
		c.warn("missing_charset")
	}
	token := bearer(r)
	if token == "" {
		token = p["token"]
	}
	delete(p, "token")
	s.serveCall(w, r, c, token)
}

func bearer(r *http.Request) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// serveCall runs a call through the faults that stand before, around and behind it.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, c *call, token string) {
	s.mu.Lock()
	bad := s.identify(c, token)
	before := s.fire(faultsBefore(), c.match())
	s.mu.Unlock()
	if before != nil && !s.faultBefore(w, r, c, before) {
		return
	}
	s.mu.Lock()
	c.now = s.clock.Now()
	if retry := s.limited(c); bad == nil && retry > 0 {
		s.oracle.call(s, c, fail("ratelimited"), http.StatusTooManyRequests, "", nil)
		s.mu.Unlock()
		tooMany(w, retry)
		return
	}
	var around, after *Fault
	if bad == nil {
		around = s.fire(faultsAround(), c.match())
	}
	if around != nil && around.Kind == CommitLate {
		s.commitLate(c, around)
		s.mu.Unlock()
		s.loseResponse(w, r, around, 0)
		return
	}
	if around != nil {
		s.faultAround(c, around)
	}
	body, failed := s.run(c, bad)
	if failed == nil {
		after = s.fire(faultsAfter(), c.match())
	}
	fired := faultName(before, around, after)
	status := http.StatusOK
	if after != nil {
		status = after.Status
	}
	s.oracle.call(s, c, failed, status, fired, body)
	out := s.encode(c, body, failed)
	s.touched()
	s.mu.Unlock()
	if after != nil {
		s.loseResponse(w, r, after, time.Duration(after.DelayMS)*time.Millisecond)
		return
	}
	s.writeHeaders(w, c)
	_, _ = w.Write(out)
}

// identify finds who calls what; it fails as Slack does.
func (s *Server) identify(c *call, token string) *apiError {
	c.who = s.tokens[token]
	m, known := s.methods[c.method]
	switch {
	case !known:
		return &apiError{code: "unknown_method", extra: obj{"req_method": c.method}}
	case c.method == "api.test":
		return nil
	case token == "":
		return fail("not_authed")
	case s.revoked[token]:
		return fail("token_revoked")
	case c.who == nil:
		return fail("invalid_auth")
	case c.who.user.Kind == Deactivated:
		return fail("account_inactive")
	case m.app != (c.who.level == levelApp):
		return fail("not_allowed_token_type")
	}
	return c.needs(m.scopes...)
}

// needs fails with missing_scope unless the token has one of the scopes.
func (c *call) needs(scopes ...string) *apiError {
	if c.who.scope == nil || len(scopes) == 0 || slices.ContainsFunc(scopes, func(s string) bool { return c.who.scope[s] }) {
		return nil
	}
	return &apiError{code: "missing_scope", needed: strings.Join(scopes, ","), provided: strings.Join(c.who.scopes(), ",")}
}

func (w *caller) scopes() []string {
	all := make([]string, 0, len(w.scope))
	for s := range w.scope {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}

func (s *Server) run(c *call, bad *apiError) (obj, *apiError) {
	if bad != nil {
		return nil, bad
	}
	return s.methods[c.method].run(c)
}

func (c *call) warn(code string) { c.warnings = append(c.warnings, code) }

// encode writes the answer; called with mu held, as the body may point into the world.
func (s *Server) encode(c *call, body obj, failed *apiError) []byte {
	meta := obj{}
	if failed != nil {
		body = obj{"ok": false, "error": failed.code}
		for k, v := range failed.extra {
			body[k] = v
		}
		if failed.needed != "" {
			body["needed"], body["provided"] = failed.needed, failed.provided
		}
		c.messages = append(c.messages, failed.messages...)
	} else {
		if body == nil {
			body = obj{}
		}
		if _, said := body["ok"]; !said {
			body["ok"] = true
		}
	}
	if m, ok := body["response_metadata"].(obj); ok {
		meta = m
	}
	if len(c.messages) > 0 {
		meta["messages"] = c.messages
	}
	if len(c.warnings) > 0 {
		body["warning"] = strings.Join(c.warnings, ",")
		meta["warnings"] = c.warnings
	}
	if len(meta) > 0 {
		body["response_metadata"] = meta
	}
	out, err := json.Marshal(body)
	if err != nil {
		s.opt.Log.Error("answer of the local slack", "method", c.method, "error", err)
		return []byte(`{"ok":false,"error":"internal_error"}`)
	}
	return out
}

func (s *Server) writeHeaders(w http.ResponseWriter, c *call) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	if c.who != nil && c.who.scope != nil {
		h.Set("X-OAuth-Scopes", strings.Join(c.who.scopes(), ","))
		h.Set("X-Accepted-OAuth-Scopes", strings.Join(s.methods[c.method].scopes, ","))
	}
}

// reply answers a call that never reached its method.
func (s *Server) reply(w http.ResponseWriter, name string, failed *apiError) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(s.encode(&call{s: s, method: name}, nil, failed))
}

func tooMany(w http.ResponseWriter, retry time.Duration) {
	seconds := int((retry + time.Second - 1) / time.Second)
	w.Header().Set("Retry-After", strconv.Itoa(max(seconds, 1)))
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = fmt.Fprint(w, `{"ok":false,"error":"ratelimited"}`)
}
