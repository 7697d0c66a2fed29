package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Server serves /healthz and /metrics.
type Server struct {
	http *http.Server
	addr net.Addr
	done chan error
}

// Serve listens on addr, which the config has checked (X4), and serves until Close.
// With addr "" it serves nothing. /healthz answers 200 or 503, as text, or as JSON
// where that is asked for by ?format=json or the Accept header.
func Serve(ctx context.Context, addr string, h *Health, m *Metrics) (*Server, error) {
	if addr == "" {
		return &Server{}, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for /healthz and /metrics: %w; is this process running already? Else change listen: in the config", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", h)
	mux.Handle("GET /metrics", m.handler())
	s := &Server{
		addr: l.Addr(),
		done: make(chan error, 1),
		http: &http.Server{
			Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
			WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		},
	}
	go func() { s.done <- s.http.Serve(l) }()
	return s, nil
}

// Addr returns the address that it listens on, "" where it serves nothing.
func (s *Server) Addr() string {
	if s.addr == nil {
		return ""
	}
	return s.addr.String()
}

// Close ends the server, and lets requests that have begun finish until ctx ends.
func (s *Server) Close(ctx context.Context) error {
	if s.http == nil {
		return nil
	}
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("close the server of /healthz and /metrics: %w", err)
	}
	return nil
}

// ServeHTTP is /healthz.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	report := h.Report(r.Context())
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	status := http.StatusOK
	if !report.OK {
		status = http.StatusServiceUnavailable
	}
	if r.URL.Query().Get("format") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json") {
		body, err := json.Marshal(report)
		if err != nil {
			http.Error(w, "the report could not be written", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(append(Clean(body), '\n'))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(report.String()))
}

// String is the report as text, one check a line.
func (r Report) String() string {
	var b strings.Builder
	b.WriteString(word(r.OK) + "\n")
	for _, c := range r.Checks {
		line := fmt.Sprintf("%-5s %s since %s", word(c.OK), c.Name, c.Since.UTC().Format(time.RFC3339))
		if c.Text != "" {
			line += ": " + c.Text
		}
		b.WriteString(string(Clean([]byte(strings.ReplaceAll(line, "\n", `\n`)))) + "\n")
	}
	return b.String()
}

func word(ok bool) string {
	if ok {
		return "green"
	}
	return "red"
}
