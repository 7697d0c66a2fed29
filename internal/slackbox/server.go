package slackbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options say what kind of Slack to start.
type Options struct {
	// Seed is the world; nil means DefaultSeed.
	Seed *Seed
	// Clock is Slack's time; nil means NewClock. Only a *MovableClock can be moved by
	// the control API.
	Clock Clock
	// RandSeed seeds which socket an envelope takes, the order of a mention's two
	// copies and the fault probabilities; 0 means 1.
	RandSeed uint64
	// PingEvery is how often a socket is pinged, by the machine's time; 0 means 10 s.
	PingEvery time.Duration
	// AckWithin is how long an envelope waits for its ack; 0 means 3 s.
	AckWithin time.Duration
	// Settings are the switches that the control API can turn later.
	Settings Settings
	// Page is served at / and /page/; nil answers 404 there.
	Page http.Handler
	// Log takes what goes wrong in the server itself; nil means nothing is logged.
	Log *slog.Logger
}

// Settings are the switches of what Slack is known to do, or may do.
type Settings struct {
	// RateLimits turns Slack's published rates on.
	RateLimits bool `json:"rate_limits"`
	// ParentChanged says where a reply also raises message_changed for its root:
	// "im" (the default), "all" or "off".
	ParentChanged string `json:"parent_changed"`
	// EventMetadata is what message events carry: "full" (the default), "stripped"
	// (the event type alone) or "none".
	EventMetadata string `json:"event_metadata"`
	// MentionMetadata lets app_mention carry metadata too.
	MentionMetadata bool `json:"mention_metadata"`
	// Unfurl raises message_changed with an attachment after each message with a link.
	Unfurl bool `json:"unfurl"`
	// FileShareDelayMS is how long after files.completeUploadExternal the message with
	// the file appears, in milliseconds: on Slack it is not at once.
	FileShareDelayMS int `json:"file_share_delay_ms"`
	// DisconnectGraceMS is how long a socket still lives after a disconnect frame, in
	// milliseconds; 0 means 10,000.
	DisconnectGraceMS int `json:"disconnect_grace_ms"`
}

// Server is a local Slack. All its methods may be called from any goroutine.
type Server struct {
	opt      Options
	clock    Clock
	ownClock *MovableClock
	seedErr  error

	mu sync.Mutex
	world
	methods  map[string]method
	rng      *rand.Rand
	faults   []*fault
	fired    map[string]int
	settings Settings
	oracle   oracle
	limits   map[string]*bucket
	streams  map[*stream]struct{}
	tickets  map[string]*app
	answers  map[string]*responseURL
	changed  chan struct{}

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	http   *http.Server
	base   string
}

// New returns a local Slack that Start will serve.
func New(opt Options) *Server {
	if opt.RandSeed == 0 {
		opt.RandSeed = 1
	}
	if opt.PingEvery <= 0 {
		opt.PingEvery = 10 * time.Second
	}
	if opt.AckWithin <= 0 {
		opt.AckWithin = 3 * time.Second
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	seed := DefaultSeed()
	if opt.Seed != nil {
		seed = *opt.Seed
	}
	s := &Server{
		opt: opt, methods: methodTable(), clock: opt.Clock, settings: opt.Settings, rng: rand.New(rand.NewPCG(opt.RandSeed, 7)),
		fired: map[string]int{}, limits: map[string]*bucket{}, streams: map[*stream]struct{}{},
		tickets: map[string]*app{}, answers: map[string]*responseURL{}, changed: make(chan struct{}),
	}
	if s.clock == nil {
		s.ownClock = NewClock()
		s.clock = s.ownClock
	}
	s.seedErr = s.world.init(seed, s.clock.Now())
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Start listens on addr ("" means 127.0.0.1:0) and serves until Close. An address
// that is not loopback is refused: the tokens of this Slack are no secrets (X4).
func (s *Server) Start(ctx context.Context, addr string) error {
	if s.seedErr != nil {
		return s.seedErr
	}
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("slackbox: address %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("slackbox: address %q is not loopback: use 127.0.0.1", addr)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("slackbox: listening: %w", err)
	}
	s.mu.Lock()
	s.base = "http://" + ln.Addr().String()
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return s.ctx }}
	s.mu.Unlock()
	s.wg.Go(func() {
		if err := s.http.Serve(ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.opt.Log.Error("local slack stopped serving", "error", err)
		}
	})
	return nil
}

// URL is the base of the Web API, ending in a slash, as slack-go's OptionAPIURL and
// bolt's slackApiUrl want it.
func (s *Server) URL() string { return s.PageURL() + "api/" }

// PageURL is where a person opens the page.
func (s *Server) PageURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.base + "/"
}

// Close cuts every socket, stops serving and waits until all is still.
func (s *Server) Close() error {
	s.cancel()
	s.mu.Lock()
	srv := s.http
	for _, a := range s.apps {
		for _, k := range a.hub.sockets {
			k.cut()
		}
	}
	s.mu.Unlock()
	var err error
	if srv != nil {
		err = srv.Close()
	}
	if s.ownClock != nil {
		s.ownClock.Close()
	}
	s.wg.Wait()
	return err
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.serveAPI)
	mux.HandleFunc("GET /link/", s.serveSocket)
	mux.HandleFunc("POST /upload/v1/{key}", s.serveUpload)
	mux.HandleFunc("GET /files-pri/{file}/{rest...}", s.serveFile)
	mux.HandleFunc("GET /signin", s.serveSignin)
	mux.HandleFunc("POST /response/{key}", s.serveResponse)
	mux.HandleFunc("GET /_page/stream", s.serveStream)
	mux.HandleFunc("GET /_page/boot", s.serveBoot)
	s.controlRoutes(mux)
	if s.opt.Page != nil {
		mux.Handle("/", s.opt.Page)
	}
	return guard(mux)
}

// touched tells everyone who waits that something happened. Called with mu held.
func (s *Server) touched() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Wait returns once done says so, asking again after everything that happens here;
// it fails with ctx's error.
func (s *Server) Wait(ctx context.Context, done func() bool) error {
	for {
		s.mu.Lock()
		next := s.changed
		s.mu.Unlock()
		if done() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("slackbox: waiting: %w", ctx.Err())
		case <-next:
		}
	}
}
