package slackbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

const (
	// maxSockets is how many sockets an app may have open.
	maxSockets = 10
	// keepFor is how long an envelope waits for a socket: as long as Slack's
	// redelivery ladder lasts.
	keepFor = 6*time.Minute + 10*time.Second
)

// ladder is how long after an unheard delivery the next one comes.
func ladder() []time.Duration { return []time.Duration{0, time.Minute, 5 * time.Minute} }

// hub holds an app's sockets and envelopes; guarded by Server.mu.
type hub struct {
	app      *app
	sockets  []*socket
	waiting  []*envelope // no socket to take them, or stalled
	inflight map[string]*envelope
	held     *envelope // reordered: goes behind the next one
	stalled  int       // stalls under way
	sockSeq  int
}

// envelope is one thing for an app, on whatever attempt.
type envelope struct {
	app                      *app
	id, kind, event          string
	channel, channelName, ts string
	payload                  json.RawMessage
	accepts                  bool
	attempt                  int
	reason                   string
	raised                   time.Time
	acked, deaf              bool
	timer                    Timer
	onAck                    func(payload json.RawMessage)
	onLost                   func()
}

func (e *envelope) match() match {
	event := e.event
	if event == "" {
		event = e.kind
	}
	return match{event: event, who: []string{e.app.Name, e.app.ID, e.app.BotUser}, channels: []string{e.channel, e.channelName}}
}

func (s *Server) newUUID() string {
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", s.rng.Uint32(), s.rng.IntN(1<<16), s.rng.IntN(1<<12), s.rng.IntN(1<<12), s.rng.Int64N(1<<48))
}

func (s *Server) newID(prefix string) string {
	return fmt.Sprintf("%s0%09X", prefix, s.nextSeq())
}

func (s *Server) delivery(e *envelope, what string, socket int, fault string) {
	s.oracle.deliveries = append(s.oracle.deliveries, LoggedDelivery{
		Seq: s.nextSeq(), At: s.clock.Now(), App: e.app.Name, Envelope: e.id, What: what, Type: e.kind, Event: e.event,
		Channel: e.channel, TS: e.ts, Socket: socket, Attempt: e.attempt, Fault: fault,
	})
	s.touched()
}

// dispatch sends an envelope, or keeps it until it can be sent; called with mu held.
func (s *Server) dispatch(e *envelope) {
	h := &e.app.hub
	if f := s.fire([]FaultKind{Stall}, e.match()); f != nil {
		h.stalled++
		s.clock.AfterFunc(time.Duration(f.DelayMS)*time.Millisecond, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			h.stalled--
			s.flush(h)
		})
	}
	if h.stalled > 0 || len(h.sockets) == 0 {
		s.queue(h, e)
		return
	}
	if h.held == nil {
		if f := s.fire([]FaultKind{Reorder}, e.match()); f != nil {
			s.hold(h, e, f)
			return
		}
	}
	s.send(e)
	s.release(h)
}

// hold keeps an envelope back until the next one was sent.
func (s *Server) hold(h *hub, e *envelope, f *Fault) {
	h.held = e
	s.delivery(e, "queued", 0, string(Reorder))
	delay := time.Duration(f.DelayMS) * time.Millisecond
	if delay == 0 {
		delay = 500 * time.Millisecond
	}
	s.clock.AfterFunc(delay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if h.held == e {
			s.release(h)
		}
	})
}

func (s *Server) release(h *hub) {
	if e := h.held; e != nil {
		h.held = nil
		s.send(e)
	}
}

// queue keeps an envelope for a socket to come and gives up those that waited too long.
func (s *Server) queue(h *hub, e *envelope) {
	for len(h.waiting) > 0 && s.stale(h.waiting[0]) {
		old := h.waiting[0]
		h.waiting = h.waiting[1:]
		s.giveUp(old)
	}
	h.waiting = append(h.waiting, e)
	s.delivery(e, "queued", 0, "")
}

func (s *Server) stale(e *envelope) bool { return s.clock.Now().Sub(e.raised) > keepFor }

// flush sends what waited, in order, and gives up what waited too long.
func (s *Server) flush(h *hub) {
	for h.stalled == 0 && len(h.sockets) > 0 && len(h.waiting) > 0 {
		e := h.waiting[0]
		h.waiting = h.waiting[1:]
		if s.stale(e) {
			s.giveUp(e)
			continue
		}
		s.send(e)
	}
}

func (s *Server) giveUp(e *envelope) {
	delete(e.app.hub.inflight, e.id)
	s.delivery(e, "gave_up", 0, "")
	if e.onLost != nil {
		e.onLost()
	}
}

// send hands an envelope to one socket of chance and waits for the ack.
func (s *Server) send(e *envelope) {
	h := &e.app.hub
	if len(h.sockets) == 0 {
		s.queue(h, e)
		return
	}
	k := h.sockets[s.rng.IntN(len(h.sockets))]
	h.inflight[e.id] = e
	struck := s.fire(faultsSending(), e.match())
	fault := faultName(struck)
	e.deaf = struck != nil && struck.Kind == DropAck
	frame := e.frame()
	switch {
	case struck != nil && struck.Kind == StopPings:
		k.silence()
	case struck != nil && struck.Kind == DropFrame:
	default:
		if struck != nil && struck.Kind == Unreadable {
			k.push(e.unreadable(s))
		}
		k.push(frame)
	}
	s.delivery(e, "sent", k.n, fault)
	if struck != nil {
		switch struck.Kind {
		case Duplicate:
			other := h.sockets[s.rng.IntN(len(h.sockets))]
			other.push(frame)
			s.delivery(e, "sent", other.n, fault)
		case Disconnect:
			s.disconnect(k, struck.Reason)
		case CutSocket:
			k.cutAfterWrites()
		}
	}
	e.timer = s.clock.AfterFunc(s.opt.AckWithin, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unheard(e)
	})
}

// unheard climbs the redelivery ladder.
func (s *Server) unheard(e *envelope) {
	if e.acked || s.ctx.Err() != nil {
		return
	}
	steps := ladder()
	if e.kind != "events_api" || e.attempt >= len(steps) {
		s.giveUp(e)
		return
	}
	wait := steps[e.attempt]
	e.attempt++
	e.reason = "timeout"
	again := func() {
		if !e.acked {
			s.delivery(e, "retry", 0, "")
			s.dispatch(e)
		}
	}
	if wait == 0 {
		again()
		return
	}
	e.timer = s.clock.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		again()
	})
}

// ack takes an app's answer to an envelope; called with mu held.
func (s *Server) ack(h *hub, socket int, id string, payload json.RawMessage) {
	e := h.inflight[id]
	if e == nil {
		return
	}
	if e.deaf {
		e.deaf = false
		s.delivery(e, "ack_dropped", socket, string(DropAck))
		return
	}
	e.acked = true
	delete(h.inflight, id)
	if e.timer != nil {
		e.timer.Stop()
	}
	s.delivery(e, "acked", socket, "")
	h.waiting = slices.DeleteFunc(h.waiting, func(w *envelope) bool { return w == e })
	if e.onAck != nil {
		e.onAck(payload)
	}
}

func (e *envelope) frame() []byte {
	f := struct {
		EnvelopeID string          `json:"envelope_id"`
		Payload    json.RawMessage `json:"payload"`
		Type       string          `json:"type"`
		Accepts    bool            `json:"accepts_response_payload"`
		Attempt    *int            `json:"retry_attempt,omitempty"`
		Reason     *string         `json:"retry_reason,omitempty"`
	}{EnvelopeID: e.id, Payload: e.payload, Type: e.kind, Accepts: e.accepts}
	if e.kind == "events_api" {
		f.Attempt, f.Reason = &e.attempt, &e.reason
	}
	b, err := json.Marshal(f)
	if err != nil {
		return nil
	}
	return b
}

// unreadable is an envelope with an inner event that no client library knows.
func (e *envelope) unreadable(s *Server) []byte {
	bad := *e
	bad.id = s.newUUID()
	bad.payload = s.mustJSON(obj{
		"type": "event_callback", "team_id": s.team.ID, "api_app_id": e.app.ID, "event_id": "EvUNREADABLE",
		"event": obj{"type": "an_event_of_tomorrow", "was": e.event, "channel": e.channel, "ts": e.ts},
	})
	return bad.frame()
}
