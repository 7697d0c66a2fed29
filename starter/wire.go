package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// wireWatcher hears what slack-go keeps to itself about a socket.
type wireWatcher interface {
	// disconnected: Slack said that it ends the socket, and why.
	disconnected(reason string)
	// silent: the socket is closed, and no ping had come for that long.
	silent(since time.Duration)
	// dialled: this is the newest connection.
	dialled(conn *watchedConn)
}

const (
	// pingPatience is how long a living socket may be without a ping. slack-go gives one
	// up after 30 s.
	pingPatience = 30 * time.Second
	// writeBuffer holds the largest ack in one frame; Slack drops one in pieces.
	writeBuffer = 32 << 10
	// peek is the largest frame that is looked at; a disconnect is far smaller.
	peek = 4 << 10
)

// watchDialer is slack-go's own dialer with an ear on the connection.
func watchDialer(w wireWatcher, patience time.Duration) *websocket.Dialer {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 15 * time.Second}
	secure := &tls.Dialer{NetDialer: dialer, Config: &tls.Config{NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}}
	dial := func(how func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := how(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			watched := &watchedConn{Conn: conn, watcher: w, patience: patience, heard: time.Now()}
			w.dialled(watched)
			return watched, nil
		}
	}
	return &websocket.Dialer{
		Proxy:             http.ProxyFromEnvironment,
		HandshakeTimeout:  45 * time.Second,
		WriteBufferSize:   writeBuffer,
		NetDialContext:    dial(dialer.DialContext),
		NetDialTLSContext: dial(secure.DialContext),
	}
}

// watchedConn reads along with a websocket's client.
type watchedConn struct {
	net.Conn
	watcher  wireWatcher
	patience time.Duration

	mu     sync.Mutex
	frames frameReader
	// heard is when the last ping came, or the connection was made.
	heard  time.Time
	ended  bool
	closed bool
}

// Read hands on what the server sent.
func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	var reasons []string
	c.mu.Lock()
	c.frames.feed(b[:n], func(opcode byte, payload []byte) {
		switch opcode {
		case opPing:
			c.heard = time.Now()
		case opText:
			if reason, ok := disconnectReason(payload); ok {
				c.ended = true
				reasons = append(reasons, reason)
			}
		}
	})
	if err != nil && !c.closed {
		c.ended = true // the other side ended it: no half-open socket
	}
	c.mu.Unlock()
	for _, r := range reasons {
		c.watcher.disconnected(r)
	}
	return n, err
}

// Close closes the connection, and tells when it had been silent.
func (c *watchedConn) Close() error {
	c.mu.Lock()
	silent := time.Since(c.heard)
	tell := !c.closed && !c.ended && c.frames.open && silent >= c.patience
	c.closed = true
	c.mu.Unlock()
	if tell {
		c.watcher.silent(silent)
	}
	return c.Conn.Close()
}

// drop closes the connection without a word: the socket is opened again.
func (c *watchedConn) drop() error {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	return c.Conn.Close()
}

func disconnectReason(frame []byte) (string, bool) {
	if !bytes.Contains(frame, []byte(`"disconnect"`)) {
		return "", false
	}
	var d struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	}
	if json.Unmarshal(frame, &d) != nil || d.Type != "disconnect" {
		return "", false
	}
	return d.Reason, true
}

const (
	opText byte = 1
	opPing byte = 9
)

// frameReader finds the frames of a server in the bytes of a websocket's connection. It
// only listens: what it does not understand it lets pass, for good.
type frameReader struct {
	// open: the handshake is over, frames follow. deaf: this is no plain websocket.
	open, deaf bool
	buf        []byte
	skip       uint64
}

// feed takes the next bytes and calls found for every small whole frame.
func (r *frameReader) feed(b []byte, found func(opcode byte, payload []byte)) {
	if r.deaf {
		return
	}
	if r.skip > 0 {
		n := min(r.skip, uint64(len(b)))
		r.skip -= n
		b = b[n:]
	}
	if len(b) == 0 {
		return
	}
	r.buf = append(r.buf, b...)
	if !r.open && !r.handshake() {
		return
	}
	for r.frame(found) {
	}
}

func (r *frameReader) handshake() bool {
	const status = "HTTP/1.1 101"
	if n := min(len(r.buf), len(status)); string(r.buf[:n]) != status[:n] {
		r.deaf, r.buf = true, nil
		return false
	}
	end := bytes.Index(r.buf, []byte("\r\n\r\n"))
	if end < 0 {
		if len(r.buf) > 64<<10 {
			r.deaf, r.buf = true, nil
		}
		return false
	}
	r.open, r.buf = true, r.buf[end+4:]
	return true
}

// frame takes one frame off the buffer, if it is there.
func (r *frameReader) frame(found func(opcode byte, payload []byte)) bool {
	if len(r.buf) < 2 {
		return false
	}
	head, length := 2, uint64(r.buf[1]&0x7f)
	switch length {
	case 126:
		head = 4
	case 127:
		head = 10
	}
	if r.buf[1]&0x80 != 0 { // a server masks nothing
		r.deaf, r.buf = true, nil
		return false
	}
	if len(r.buf) < head {
		return false
	}
	if head > 2 {
		length = 0
		for _, x := range r.buf[2:head] {
			length = length<<8 | uint64(x)
		}
	}
	if length > peek {
		rest := uint64(len(r.buf) - head)
		if rest < length {
			r.skip, r.buf = length-rest, nil
			return false
		}
		r.buf = r.buf[uint64(head)+length:]
		return true
	}
	whole := head + int(length)
	if len(r.buf) < whole {
		return false
	}
	if r.buf[0]&0x80 != 0 {
		found(r.buf[0]&0x0f, r.buf[head:whole])
	}
	r.buf = bytes.Clone(r.buf[whole:])
	return true
}
