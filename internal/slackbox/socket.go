package slackbox

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	// connectionTime is how long Slack says that a socket lives.
	connectionTime      = 18060 * time.Second
	debugConnectionTime = 360 * time.Second
	ticketTime          = time.Minute
	writeTimeout        = 10 * time.Second
)

// socket is one websocket of an app.
type socket struct {
	n    int
	conn *websocket.Conn
	stop context.CancelFunc

	mu      sync.Mutex
	queue   [][]byte
	silent  bool // half-open: neither heard nor saying anything
	last    bool // cut once the queue is written
	changed chan struct{}
}

func openConnection(c *call) (obj, *apiError) {
	ticket := c.s.newUUID()
	c.s.tickets[ticket] = c.who.app
	c.s.clock.AfterFunc(ticketTime, func() {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		delete(c.s.tickets, ticket)
	})
	return obj{"url": "ws" + c.s.base[len("http"):] + "/link/?ticket=" + ticket + "&app_id=" + c.who.app.ID}, nil
}

// serveSocket takes a Socket Mode connection and serves it until it ends.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	a := s.tickets[ticket]
	delete(s.tickets, ticket)
	s.mu.Unlock()
	if a == nil {
		http.Error(w, "This ticket is not good for a socket.", http.StatusForbidden)
		return
	}
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	k := &socket{stop: stop, changed: make(chan struct{}, 1)}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the ticket is what lets one in; slack-go's origin is api.slack.com
		OnPingReceived:     func(context.Context, []byte) bool { return !k.isSilent() },
	})
	if err != nil {
		s.opt.Log.Warn("socket of the local slack refused", "app", a.Name, "error", err)
		return
	}
	k.conn = conn
	conn.SetReadLimit(1 << 20)
	defer func() { _ = conn.CloseNow() }()
	lifetime := connectionTime
	if r.URL.Query().Get("debug_reconnects") == "true" {
		lifetime = debugConnectionTime
	}
	if !s.attach(a, k, lifetime) {
		_ = conn.Write(ctx, websocket.MessageText, s.disconnectFrame(a, "too_many_websockets"))
		_ = conn.Close(websocket.StatusNormalClosure, "too many websockets")
		return
	}
	go func() {
		defer s.wg.Done()
		if k.write(ctx) {
			s.detach(a, k) // before the client can know, so that nothing more is sent here
			k.stop()
		}
	}()
	go func() { defer s.wg.Done(); k.ping(ctx, s.opt.PingEvery) }()
	defer s.wg.Done()
	s.read(ctx, a, k)
	s.detach(a, k)
}

// attach puts a socket among its app's and greets it; false where there are too many.
func (s *Server) attach(a *app, k *socket, lifetime time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &a.hub
	if len(h.sockets) >= maxSockets || s.ctx.Err() != nil {
		return false
	}
	s.wg.Add(3) // its reader, writer and pinger; under mu, so that Close waits for all or none
	h.sockSeq++
	k.n = h.sockSeq
	h.sockets = append(h.sockets, k)
	k.push(s.mustJSON(obj{
		"type": "hello", "num_connections": len(h.sockets),
		"debug_info":      obj{"host": "applink-local", "build_number": 1, "approximate_connection_time": int(lifetime / time.Second)},
		"connection_info": obj{"app_id": a.ID},
	}))
	s.clock.AfterFunc(lifetime-10*time.Second, func() { s.expire(h, k, "warning") })
	s.clock.AfterFunc(lifetime, func() { s.expire(h, k, "refresh_requested") })
	s.flush(h)
	s.touched()
	return true
}

func (s *Server) expire(h *hub, k *socket, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(h.sockets, k) {
		s.disconnect(k, reason)
	}
}

func (s *Server) detach(a *app, k *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.hub.sockets = slices.DeleteFunc(a.hub.sockets, func(x *socket) bool { return x == k })
	s.touched()
}

// read takes acks until the socket ends.
func (s *Server) read(ctx context.Context, a *app, k *socket) {
	for {
		_, b, err := k.conn.Read(ctx)
		if err != nil {
			return
		}
		if k.isSilent() || len(b) >= maxAckPayload {
			continue // Slack drops an answer that is too long without a word
		}
		if id, payload, ok := parseAck(b); ok {
			s.mu.Lock()
			s.ack(&a.hub, k.n, id, payload)
			s.mu.Unlock()
		}
	}
}

// parseAck reads an app's answer to an envelope.
func parseAck(b []byte) (id string, payload json.RawMessage, ok bool) {
	var a struct {
		EnvelopeID string          `json:"envelope_id"`
		Payload    json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(b, &a) != nil || a.EnvelopeID == "" {
		return "", nil, false
	}
	return a.EnvelopeID, a.Payload, true
}

func (s *Server) disconnectFrame(a *app, reason string) json.RawMessage {
	f := obj{"type": "disconnect", "reason": reason, "debug_info": obj{"host": "applink-local"}}
	if a != nil {
		f["connection_info"] = obj{"app_id": a.ID}
	}
	return s.mustJSON(f)
}

// disconnect asks the client to go and cuts it when it is still there after the grace.
func (s *Server) disconnect(k *socket, reason string) {
	if reason == "" {
		reason = "refresh_requested"
	}
	k.push(s.disconnectFrame(nil, reason))
	grace := time.Duration(s.settings.DisconnectGraceMS) * time.Millisecond
	if grace == 0 {
		grace = 10 * time.Second
	}
	s.clock.AfterFunc(grace, k.cutAfterWrites)
}

func (k *socket) push(frame []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.silent {
		k.queue = append(k.queue, frame)
		k.wake()
	}
}

func (k *socket) wake() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// silence makes the socket half-open: it stays, and nothing moves on it.
func (k *socket) silence() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.silent, k.queue = true, nil
}

func (k *socket) isSilent() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.silent
}

// cut ends the socket without a word.
func (k *socket) cut() { k.stop() }

// cutAfterWrites ends the socket once what was pushed is written.
func (k *socket) cutAfterWrites() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = true
	k.wake()
}

// write sends what is pushed; it tells whether the socket is to end by that.
func (k *socket) write(ctx context.Context) bool {
	for {
		k.mu.Lock()
		frames, last := k.queue, k.last
		k.queue = nil
		k.mu.Unlock()
		for _, f := range frames {
			wctx, done := context.WithTimeout(ctx, writeTimeout)
			err := k.conn.Write(wctx, websocket.MessageText, f)
			done()
			if err != nil {
				return true
			}
		}
		if len(frames) > 0 {
			continue
		}
		if last {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-k.changed:
		}
	}
}

// ping keeps the client sure that the socket lives.
func (k *socket) ping(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if k.isSilent() {
			continue
		}
		pctx, done := context.WithTimeout(ctx, every)
		err := k.conn.Ping(pctx)
		done()
		if err != nil && ctx.Err() == nil && !k.isSilent() {
			k.stop()
			return
		}
	}
}

// socketView is a socket in the state.
type socketView struct {
	N      int  `json:"n"`
	Silent bool `json:"silent,omitempty"`
	Queued int  `json:"queued"`
}

func (k *socket) view() socketView {
	k.mu.Lock()
	defer k.mu.Unlock()
	return socketView{N: k.n, Silent: k.silent, Queued: len(k.queue)}
}
