package slackbox

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// FaultKind names a way in which Slack fails.
type FaultKind string

// Faults of the Web API.
const (
	RateLimited FaultKind = "rate_limited" // 429 with RetryAfter seconds
	ServerError FaultKind = "server_error" // Status (500), nothing done
	APIError    FaultKind = "api_error"    // 200 with "ok":false and Error; no Error: the field is left out
	Timeout     FaultKind = "timeout"      // nothing done, no answer for DelayMS (0: until the caller goes), then cut
	DropRequest FaultKind = "drop_request" // nothing done, the connection is cut
	Slow        FaultKind = "slow"         // done and answered after DelayMS
	// CommitLate answers at once (Status, or the connection is cut) and does the call
	// only DelayMS later: a read-back in between does not see it.
	CommitLate FaultKind = "commit_late"
	// LagReads lets a read see the world as it was DelayMS ago.
	LagReads FaultKind = "lag_reads"
	// ParentDeleted deletes the root just before a reply to it is posted.
	ParentDeleted FaultKind = "parent_deleted"
	// TokenRevoked revokes the caller's token before the call, for good.
	TokenRevoked FaultKind = "token_revoked"
	// ResponseLost does the call, then cuts the connection (after DelayMS) or answers Status.
	ResponseLost FaultKind = "response_lost"
)

// Faults of Socket Mode. Event matches the inner event's type.
const (
	Stall      FaultKind = "stall"      // this envelope and all behind it wait for DelayMS
	Duplicate  FaultKind = "duplicate"  // the frame is sent twice
	Reorder    FaultKind = "reorder"    // held until the next one was sent, DelayMS (500) at most
	DropAck    FaultKind = "drop_ack"   // the ack is not heard: redelivered
	DropFrame  FaultKind = "drop_frame" // the frame is not sent: redelivered
	Disconnect FaultKind = "disconnect" // a disconnect frame with Reason right behind the envelope
	CutSocket  FaultKind = "cut_socket" // the socket dies right behind the envelope
	StopPings  FaultKind = "stop_pings" // the socket goes silent (half-open) instead of taking the envelope
	Forget     FaultKind = "forget"     // the event is never raised: a gap that only history shows
	Unreadable FaultKind = "unreadable" // an envelope with an unknown inner event goes ahead of this one
)

// The moments at which faults strike.
func faultsBefore() []FaultKind {
	return []FaultKind{RateLimited, ServerError, APIError, Timeout, DropRequest, Slow, TokenRevoked}
}
func faultsAround() []FaultKind { return []FaultKind{CommitLate, LagReads, ParentDeleted} }
func faultsAfter() []FaultKind  { return []FaultKind{ResponseLost} }
func faultsSending() []FaultKind {
	return []FaultKind{Duplicate, DropAck, DropFrame, Disconnect, CutSocket, StopPings, Unreadable}
}

// Fault asks for a failure. Empty matchers match everything.
type Fault struct {
	ID   string    `json:"id,omitempty"`
	Kind FaultKind `json:"kind"`
	// Method matches Web API methods, with * ("chat.*").
	Method string `json:"method,omitempty"`
	// App is an app's or a person's name or id.
	App string `json:"app,omitempty"`
	// Event is the type of the inner event, or slash_commands, interactive.
	Event string `json:"event,omitempty"`
	// Channel is a channel's id or name.
	Channel string `json:"channel,omitempty"`
	// Skip lets the first matches pass.
	Skip int `json:"skip,omitempty"`
	// Count is how often it fires; 0 means always.
	Count int `json:"count,omitempty"`
	// Probability is the chance of each match, drawn from Seed; 0 means 1.
	Probability float64 `json:"probability,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`

	DelayMS    int    `json:"delay_ms,omitempty"`
	RetryAfter int    `json:"retry_after,omitempty"` // seconds
	Status     int    `json:"status,omitempty"`
	Error      string `json:"error,omitempty"`
	Reason     string `json:"reason,omitempty"`
	// Fired is how often it has fired.
	Fired int `json:"fired"`
}

type fault struct {
	Fault
	rng  *rand.Rand
	seen int
}

// match is what faults are matched against.
type match struct {
	method, event string
	write, reply  bool     // the method changes something; it names a thread
	who           []string // names and ids
	channels      []string
}

func (c *call) match() match {
	m := match{method: c.method, write: c.s.methods[c.method].write, reply: c.p["thread_ts"] != ""}
	if c.who != nil {
		m.who = append(m.who, c.who.user.ID, c.who.user.Name)
		if c.who.app != nil {
			m.who = append(m.who, c.who.app.ID)
		}
	}
	id := c.p["channel"]
	if id == "" {
		id = c.p["channel_id"]
	}
	m.channels = []string{id}
	if ch := c.s.channels[id]; ch != nil && ch.name != "" {
		m.channels = append(m.channels, ch.name)
	}
	return m
}

// AddFault asks for a failure and returns its id.
func (s *Server) AddFault(f Fault) (string, error) {
	all := slices.Concat(faultsBefore(), faultsAround(), faultsAfter(), faultsSending(), []FaultKind{Stall, Reorder, Forget})
	if !slices.Contains(all, f.Kind) {
		return "", fmt.Errorf("slackbox: there is no fault %q; use one of %v", f.Kind, all)
	}
	if _, err := path.Match(f.Method, ""); err != nil {
		return "", fmt.Errorf("slackbox: fault method %q: %w", f.Method, err)
	}
	if f.Probability < 0 || f.Probability > 1 || f.Count < 0 || f.Skip < 0 || f.DelayMS < 0 {
		return "", fmt.Errorf("slackbox: fault %s: a probability is from 0 to 1, and counts and delays are not negative", f.Kind)
	}
	if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
		return "", fmt.Errorf("slackbox: fault %s: %d is no HTTP status", f.Kind, f.Status)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.ID == "" {
		s.seq++
		f.ID = fmt.Sprintf("fault-%d", s.seq)
	}
	f.Fired = 0
	s.faults = append(s.faults, &fault{Fault: f, rng: rand.New(rand.NewPCG(f.Seed+1, 11))})
	return f.ID, nil
}

// Faults returns what was asked for, with how often each fired.
func (s *Server) Faults() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Fault, 0, len(s.faults))
	for _, f := range s.faults {
		out = append(out, f.Fault)
	}
	return out
}

// FaultCounts returns how often each kind has fired since the start, also by faults
// that were removed and by the direct methods (Disconnect, Cut, StopPings).
func (s *Server) FaultCounts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]int, len(s.fired))
	for k, n := range s.fired {
		out[k] = n
	}
	return out
}

// RemoveFault ends a fault; "" ends all of them.
func (s *Server) RemoveFault(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = slices.DeleteFunc(s.faults, func(f *fault) bool { return id == "" || f.ID == id })
}

// fire returns the first fault of these kinds that strikes; called with mu held.
func (s *Server) fire(kinds []FaultKind, m match) *Fault {
	for _, f := range s.faults {
		if !slices.Contains(kinds, f.Kind) || !f.matches(m) || f.Count > 0 && f.Fired >= f.Count {
			continue
		}
		f.seen++
		if f.seen <= f.Skip || f.Probability > 0 && f.rng.Float64() >= f.Probability {
			continue
		}
		f.Fired++
		s.fired[string(f.Kind)]++
		struck := f.Fault
		return &struck
	}
	return nil
}

func (f *fault) matches(m match) bool {
	if f.Method != "" {
		if ok, err := path.Match(f.Method, m.method); err != nil || !ok {
			return false
		}
	}
	if f.Kind == LagReads && !strings.HasPrefix(m.method, "conversations.") && m.method != "files.info" && m.method != "reactions.get" {
		return false
	}
	if (f.Kind == CommitLate || f.Kind == ResponseLost) && f.Method == "" && !m.write {
		return false
	}
	if f.Kind == ParentDeleted && (m.method != "chat.postMessage" || !m.reply) {
		return false
	}
	return (f.Event == "" || f.Event == m.event) &&
		(f.App == "" || slices.Contains(m.who, f.App)) &&
		(f.Channel == "" || slices.Contains(m.channels, f.Channel))
}

func faultName(fs ...*Fault) string {
	var names []string
	for _, f := range fs {
		if f != nil {
			names = append(names, string(f.Kind))
		}
	}
	return strings.Join(names, ",")
}

// faultBefore carries out a fault that stands before the call; it tells whether the
// call goes on.
func (s *Server) faultBefore(w http.ResponseWriter, r *http.Request, c *call, f *Fault) bool {
	delay := time.Duration(f.DelayMS) * time.Millisecond
	logged := func(code string, status int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.oracle.call(s, c, fail(code), status, string(f.Kind), nil)
		s.touched()
	}
	switch f.Kind {
	case RateLimited:
		logged("ratelimited", http.StatusTooManyRequests)
		tooMany(w, time.Duration(max(f.RetryAfter, 1))*time.Second)
	case ServerError:
		status := f.Status
		if status == 0 {
			status = http.StatusInternalServerError
		}
		logged(http.StatusText(status), status)
		http.Error(w, "<html><body>Server Error</body></html>", status)
	case APIError:
		logged(f.Error, http.StatusOK)
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		body := obj{"ok": false}
		if f.Error != "" {
			body["error"] = f.Error
		}
		_ = json.NewEncoder(w).Encode(body)
	case Timeout:
		logged("timeout", 0)
		s.pause(r, delay, delay == 0)
		panic(http.ErrAbortHandler)
	case DropRequest:
		logged("dropped", 0)
		panic(http.ErrAbortHandler)
	case Slow:
		s.pause(r, delay, false)
		return true
	case TokenRevoked:
		if c.who != nil {
			s.RevokeToken(c.who.token())
		}
		logged("token_revoked", http.StatusOK)
		s.reply(w, c.method, fail("token_revoked"))
	}
	return false
}

// token returns the token of the caller's level.
func (w *caller) token() string {
	switch w.level {
	case levelBot:
		return w.app.BotToken
	case levelApp:
		return w.app.AppToken
	}
	return w.user.Token
}

// pause waits for d on Slack's clock, or for ever; the caller's going ends it.
func (s *Server) pause(r *http.Request, d time.Duration, forever bool) {
	done := make(chan struct{})
	if !forever {
		t := s.clock.AfterFunc(d, func() { close(done) })
		defer t.Stop()
	}
	select {
	case <-done:
	case <-r.Context().Done():
	case <-s.ctx.Done():
	}
}

// faultAround changes what the call sees; called with mu held.
func (s *Server) faultAround(c *call, f *Fault) {
	switch f.Kind {
	case LagReads:
		c.asOf = c.now.Add(-time.Duration(f.DelayMS) * time.Millisecond)
	case ParentDeleted:
		if ch := s.channels[c.p["channel"]]; ch != nil && c.p["thread_ts"] != "" {
			if m := ch.byTS[c.p["thread_ts"]]; m != nil {
				s.deleteHard(m)
			}
		}
	}
}

// commitLate does the call later; called with mu held.
func (s *Server) commitLate(c *call, f *Fault) {
	s.oracle.call(s, c, fail("not_yet"), f.Status, string(f.Kind), nil)
	s.touched()
	s.clock.AfterFunc(time.Duration(f.DelayMS)*time.Millisecond, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.now = s.clock.Now()
		body, failed := s.run(c, nil)
		s.oracle.call(s, c, failed, 0, "committed_late", body)
		s.touched()
	})
}

// loseResponse ends a call whose answer must not arrive.
func (s *Server) loseResponse(w http.ResponseWriter, r *http.Request, f *Fault, hold time.Duration) {
	if hold > 0 {
		s.pause(r, hold, false)
	}
	if f.Status != 0 {
		http.Error(w, "<html><body>Server Error</body></html>", f.Status)
		return
	}
	panic(http.ErrAbortHandler)
}
