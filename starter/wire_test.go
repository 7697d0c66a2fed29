package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const handshake = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"

func frame(opcode byte, payload []byte) []byte {
	head := []byte{0x80 | opcode}
	switch n := len(payload); {
	case n < 126:
		head = append(head, byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 127), uint64(n))
	}
	return append(head, payload...)
}

func TestFrameReader_FindsSmallFramesHoweverTheyArrive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := []byte(handshake)
		var want [][]byte
		for _, n := range rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 125, 126, 200, peek, peek + 1, 70000}), 0, 8).Draw(t, "lengths") {
			payload := bytes.Repeat([]byte{'x'}, n)
			stream = append(stream, frame(opText, payload)...)
			if n <= peek {
				want = append(want, payload)
			}
		}
		stream = append(stream, frame(opPing, []byte("end"))...)
		var r frameReader
		var got [][]byte
		pinged := false
		for len(stream) > 0 {
			n := rapid.IntRange(1, len(stream)).Draw(t, "read")
			r.feed(stream[:n], func(opcode byte, payload []byte) {
				if opcode == opPing {
					pinged = true
					return
				}
				got = append(got, bytes.Clone(payload))
			})
			stream = stream[n:]
		}
		if !pinged || len(got) != len(want) {
			t.Fatalf("found %d of %d frames, ping %v", len(got), len(want), pinged)
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("frame %d differs", i)
			}
		}
	})
}

func FuzzFrameReader(f *testing.F) {
	f.Add([]byte(handshake), frame(opText, []byte(`{"type":"disconnect","reason":"link_disabled"}`)))
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"), []byte{0x16, 3, 1})
	f.Add([]byte(handshake), []byte{0x81, 127, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(_ *testing.T, a, b []byte) {
		var r frameReader
		found := func(_ byte, payload []byte) { disconnectReason(payload) }
		r.feed(a, found)
		r.feed(b, found)
	})
}

type heard struct {
	reasons []string
	silence time.Duration
}

func (h *heard) disconnected(reason string) { h.reasons = append(h.reasons, reason) }
func (h *heard) silent(since time.Duration) { h.silence = since }
func (h *heard) dialled(*watchedConn)       {}
func pipeConn(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	return a, b
}

func TestWatchedConn_HearsWhySlackDisconnects(t *testing.T) {
	h := &heard{}
	server, client := pipeConn(t)
	c := &watchedConn{Conn: client, watcher: h, patience: pingPatience, heard: time.Now().Add(-time.Hour)}
	go func() {
		_, _ = server.Write([]byte(handshake))
		_, _ = server.Write(frame(opText, []byte(`{"type":"events_api","payload":{"text":"\"disconnect\""}}`)))
		_, _ = server.Write(frame(opText, []byte(`{"type":"disconnect","reason":"link_disabled"}`)))
		_ = server.Close()
	}()
	_, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, []string{"link_disabled"}, h.reasons)
	require.NoError(t, c.Close())
	require.Zero(t, h.silence, "the other side ended it")
}

func TestWatchedConn_TellsOfASocketThatWasHalfOpen(t *testing.T) {
	for name, c := range map[string]struct {
		since time.Duration
		ping  bool
		want  bool
	}{"no ping": {time.Minute, false, true}, "a ping": {time.Minute, true, false}, "young": {time.Second, false, false}} {
		h := &heard{}
		server, client := pipeConn(t)
		w := &watchedConn{Conn: client, watcher: h, patience: pingPatience, heard: time.Now().Add(-c.since)}
		sent := []byte(handshake)
		if c.ping {
			sent = append(sent, frame(opPing, nil)...)
		}
		go func() { _, _ = server.Write(sent) }()
		_, err := io.ReadFull(w, make([]byte, len(sent)))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		require.NoError(t, w.Close())
		require.Equal(t, c.want, h.silence > 0, name)
	}
}
