package slackbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrNotMovable says that the server's clock is not a *MovableClock.
var ErrNotMovable = errors.New("slackbox: this clock cannot be moved")

func errNo(what, name string) error { return fmt.Errorf("slackbox: there is no %s %q", what, name) }

// State is the world as it stands.
type State struct {
	Now      time.Time    `json:"now"`
	Settings Settings     `json:"settings"`
	Team     Team         `json:"team"`
	Users    []User       `json:"users"`
	Apps     []AppState   `json:"apps"`
	Channels []Channel    `json:"channels"`
	DMs      []BootDM     `json:"dms"`
	Statuses []Status     `json:"statuses"`
	Faults   []Fault      `json:"faults"`
	Counts   countsByKind `json:"fault_counts"`
}

type countsByKind map[string]int

// AppState is an app and what is on its way to it.
type AppState struct {
	App
	Sockets  []socketView `json:"sockets"`
	Waiting  int          `json:"waiting"`  // envelopes with no socket to take them
	Inflight int          `json:"inflight"` // sent and not acked, or between two attempts
}

// State returns the world as it stands, tokens and all.
func (s *Server) State() State {
	faults, counts := s.Faults(), s.FaultCounts()
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.boot()
	st := State{Now: s.clock.Now(), Settings: s.settings, Team: s.team, Users: b.Users, Channels: b.Channels, DMs: b.DMs,
		Statuses: b.Statuses, Faults: faults, Counts: counts}
	for _, a := range s.apps {
		x := AppState{App: a.App, Sockets: []socketView{}, Waiting: len(a.hub.waiting), Inflight: len(a.hub.inflight)}
		for _, k := range a.hub.sockets {
			x.Sockets = append(x.Sockets, k.view())
		}
		st.Apps = append(st.Apps, x)
	}
	return st
}

// Quiet tells whether nothing is on its way to these apps; none named means all.
func (s *Server) Quiet(apps ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.apps {
		if len(apps) > 0 && !slices.Contains(apps, a.Name) {
			continue
		}
		if len(a.hub.waiting)+len(a.hub.inflight) > 0 || a.hub.held != nil {
			return false
		}
	}
	return true
}

// Now is Slack's time.
func (s *Server) Now() time.Time { return s.clock.Now() }

// Advance moves Slack's clock and runs what falls due; ErrNotMovable for a clock of
// another kind.
func (s *Server) Advance(d time.Duration) error {
	c, ok := s.clock.(*MovableClock)
	if !ok {
		return ErrNotMovable
	}
	c.Advance(d)
	return nil
}

// Settings returns the switches.
func (s *Server) Settings() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings
}

// SetSettings turns the switches.
func (s *Server) SetSettings(v Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings = v
}

// Add puts more people, apps and channels into the world.
func (s *Server) Add(seed Seed) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.touched()
	return s.grow(seed)
}

// eachSocket calls f for each socket of an app; "" means every app.
func (s *Server) eachSocket(appName string, kind FaultKind, f func(*socket)) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if appName != "" && s.appOf(appName) == nil {
		return 0, errNo("app", appName)
	}
	n := 0
	for _, a := range s.apps {
		if appName != "" && s.appOf(appName) != a {
			continue
		}
		for _, k := range slices.Clone(a.hub.sockets) {
			f(k)
			n++
			if kind == CutSocket {
				a.hub.sockets = slices.DeleteFunc(a.hub.sockets, func(x *socket) bool { return x == k })
			}
		}
	}
	s.fired[string(kind)] += n
	return n, nil
}

// Disconnect sends a disconnect frame (warning, refresh_requested or link_disabled)
// on every socket of an app ("": of all) and returns how many.
func (s *Server) Disconnect(appName, reason string) (int, error) {
	return s.eachSocket(appName, Disconnect, func(k *socket) { s.disconnect(k, reason) })
}

// Cut ends every socket of an app ("": of all) without a word.
func (s *Server) Cut(appName string) (int, error) {
	return s.eachSocket(appName, CutSocket, (*socket).cut)
}

// StopPings makes every socket that an app has now half-open ("": of all): it stays
// and nothing moves on it. A new socket works.
func (s *Server) StopPings(appName string) (int, error) {
	return s.eachSocket(appName, StopPings, (*socket).silence)
}

// SendRaw sends any bytes as a frame to one of the app's sockets; it fails where
// there is none.
func (s *Server) SendRaw(appName string, frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.appOf(appName)
	if a == nil {
		return errNo("app", appName)
	}
	if len(a.hub.sockets) == 0 {
		return errNo("open socket of app", appName)
	}
	a.hub.sockets[s.rng.IntN(len(a.hub.sockets))].push(frame)
	s.fired["raw"]++
	return nil
}

// SendEvent raises an inner event of any shape to one app, through the ordinary
// envelope, ack and redelivery.
func (s *Server) SendEvent(appName string, inner json.RawMessage) error {
	if !json.Valid(inner) {
		return errors.New("slackbox: an event must be JSON")
	}
	var head struct {
		Type    string `json:"type"`
		Channel any    `json:"channel"`
		TS      any    `json:"ts"`
	}
	_ = json.Unmarshal(inner, &head)
	channel, _ := head.Channel.(string)
	ts, _ := head.TS.(string)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.appOf(appName)
	if a == nil {
		return errNo("app", appName)
	}
	s.raise(a, head.Type, s.channels[channel], ts, inner)
	return nil
}

// RevokeToken makes a token answer token_revoked from now on.
func (s *Server) RevokeToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked[token] = true
	s.fired[string(TokenRevoked)]++
}

// RestoreToken takes a revocation back.
func (s *Server) RestoreToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.revoked, token)
}

// DeleteHard removes a message so that no thread is left to reply to.
func (s *Server) DeleteHard(channelName, ts string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.messageAt(channelName, ts)
	if err != nil {
		return err
	}
	s.deleteHard(m)
	s.fired[string(ParentDeleted)]++
	return nil
}

// Unfurl gives a message an attachment, as Slack does with links: message_changed
// with the same text. nil stands for a small one.
func (s *Server) Unfurl(channelName, ts string, attachments json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.messageAt(channelName, ts)
	if err != nil {
		return err
	}
	s.unfurl(m, attachments)
	return nil
}

func (s *Server) unfurl(m *message, attachments json.RawMessage) {
	if len(attachments) == 0 {
		attachments = s.mustJSON([]obj{{"id": 1, "title": "A page", "from_url": "https://example.com/", "fallback": "A page"}})
	}
	next := m.version
	next.at, next.attachments = s.clock.Now(), attachments
	s.change(m, next)
}

func (s *Server) messageAt(channelName, ts string) (*message, error) {
	ch := s.channelOf(channelName)
	if ch == nil {
		return nil, errNo("channel", channelName)
	}
	m := ch.byTS[ts]
	if m == nil || m.gone() {
		return nil, errNo("message", ts)
	}
	return m, nil
}
