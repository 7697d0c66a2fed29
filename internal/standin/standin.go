// Package standin is a local stand-in of the Anthropic Messages API: enough of it,
// streaming included, for the real claude CLI to run whole turns against, with no
// account and no internet. It claims to be nothing else: its default answer says
// that it is a stand-in.
//
// A test steers it by directives in the person's own line (see Script), or by a
// script of its own. What it was asked is kept in a log, which serves as an oracle:
// it knows which lines reached a model, whatever the system under test believes.
package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxRequest bounds one request's body, in bytes. The CLI sends the whole
// conversation with each request.
const maxRequest = 256 << 20

// Options say how a stand-in is run. The zero value is usable.
type Options struct {
	// Addr is the address to listen on; "" is a free port on loopback.
	Addr string
	// Script decides each answer; nil is Script(Directives{}).
	Script func(Request) Reply
	// Logger hears of requests that could not be read; nil is slog.Default().
	Logger *slog.Logger
	// Dump, when set, gets the raw body of every request for messages.
	Dump func(path string, body []byte)
}

// Outcome says how a request to the stand-in ended.
type Outcome string

// The outcomes of a request.
const (
	Open    Outcome = "open"    // being answered
	Served  Outcome = "served"  // answered to the end
	Refused Outcome = "refused" // answered with an error, as the script asked
	Aborted Outcome = "aborted" // the client went away first
)

// Entry is one request of a turn, or for an answer in a form, as the logs keep it. Requests
// that the CLI makes for itself (a title, a topic) are no entries.
type Entry struct {
	Time    time.Time `json:"time"`
	Session string    `json:"session"`
	Model   string    `json:"model"`
	// User is the newest prompt, whole. Section is its last section: what
	// directives are read from.
	User    string `json:"user"`
	Section string `json:"section"`
	// Lines are the Slack timestamps that stand in Section, in order.
	Lines []string `json:"lines,omitempty"`
	// Prompts counts the prompts of the conversation, this one included; Step the
	// tool calls made since this prompt.
	Prompts int `json:"prompts"`
	Step    int `json:"step"`
	// Answer is the text that was to be sent.
	Answer  string        `json:"answer,omitempty"`
	Status  int           `json:"status"`
	Outcome Outcome       `json:"outcome"`
	Took    time.Duration `json:"took_ns"`
}

// Server is a running stand-in.
type Server struct {
	opts Options
	ln   net.Listener
	http *http.Server
	stop context.CancelFunc

	mu         sync.Mutex
	entries    []*Entry
	forms      []*Entry
	background int
}

// Start listens and serves until ctx ends or Close is called.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Addr == "" {
		opts.Addr = "127.0.0.1:0"
	}
	if opts.Script == nil {
		opts.Script = Script(Directives{})
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	ln, err := net.Listen("tcp", opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("stand-in: listen on %s: %w", opts.Addr, err)
	}
	base, stop := context.WithCancel(ctx)
	s := &Server{opts: opts, ln: ln, stop: stop}
	s.http = &http.Server{
		Handler:           s.routes(),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	go func() { _ = s.http.Serve(ln) }()
	context.AfterFunc(base, func() { _ = s.http.Close() })
	return s, nil
}

// URL is what ANTHROPIC_BASE_URL must be for a CLI to talk to this stand-in.
func (s *Server) URL() string { return "http://" + s.ln.Addr().String() }

// Close stops the server; requests still open are dropped.
func (s *Server) Close() error {
	s.stop()
	return s.http.Close()
}

// Log returns the requests of turns so far, oldest first.
func (s *Server) Log() []Entry { return s.copyOf(&s.entries) }

// Forms returns the requests for an answer in a form so far, oldest first: those of the
// classifier. They are no turns, and Log has none of them. Answer is the form.
func (s *Server) Forms() []Entry { return s.copyOf(&s.forms) }

func (s *Server) copyOf(list *[]*Entry) []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Entry, 0, len(*list))
	for _, e := range *list {
		out = append(out, *e)
	}
	return out
}

// Background counts the requests that the CLI made for itself.
func (s *Server) Background() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.background
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", s.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", s.countTokens)
	for path, list := range map[string]func() []Entry{"GET /_log": s.Log, "GET /_forms": s.Forms} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(list())
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" { // the CLI asks HEAD / before its first request
			w.WriteHeader(http.StatusOK)
			return
		}
		writeError(w, http.StatusNotFound, "not_found_error", "the stand-in does not know "+r.URL.Path)
	})
	return mux
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return // the client went away
	}
	if s.opts.Dump != nil {
		s.opts.Dump(r.URL.Path, body)
	}
	req, err := ParseRequest(body)
	if err != nil {
		s.opts.Logger.Warn("stand-in: unreadable request", "error", err)
		writeError(w, http.StatusBadRequest, "invalid_request_error", "unreadable request")
		return
	}
	if h := r.Header.Get("X-Claude-Code-Session-Id"); h != "" {
		req.Session = h
	}
	if req.Background {
		s.mu.Lock()
		s.background++
		s.mu.Unlock()
		_ = send(r.Context(), w, req, Reply{Text: backgroundAnswer(req)})
		return
	}
	reply := s.opts.Script(req)
	entry := s.begin(req, reply)
	start := time.Now()
	err = send(r.Context(), w, req, reply)
	s.end(entry, outcomeOf(reply, err, r.Context().Err()), time.Since(start))
	if errors.Is(err, errDrop) {
		panic(http.ErrAbortHandler)
	}
}

func outcomeOf(reply Reply, err, gone error) Outcome {
	switch {
	case gone != nil || (err != nil && !errors.Is(err, errDrop)):
		return Aborted
	case reply.Status != 0 || err != nil:
		return Refused
	}
	return Served
}

func (s *Server) begin(req Request, reply Reply) *Entry {
	e := &Entry{
		Time: time.Now(), Session: req.Session, Model: req.Model, User: req.User, Section: req.Section,
		Lines: lineTS(req.Section), Prompts: req.Prompts, Step: req.Step, Answer: reply.Text,
		Status: reply.Status, Outcome: Open,
	}
	if e.Status == 0 {
		e.Status = http.StatusOK
	}
	list := &s.entries
	if req.Form {
		list = &s.forms
		if reply.Tool != nil {
			e.Answer = string(reply.Tool.Input)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, e)
	return e
}

func (s *Server) end(e *Entry, o Outcome, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Outcome = o
	e.Took = took
}

func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int64{"input_tokens": n / 4})
}
