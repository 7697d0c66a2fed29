package githubbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options say what kind of GitHub to start.
type Options struct {
	// Token is the one that is taken; "" takes any, and none.
	Token string
	// Hook is where webhooks go; it can be set later.
	Hook Hook
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Log takes what goes wrong in the server itself; nil means nothing is logged.
	Log *slog.Logger
}

// Server is a local GitHub. All its methods may be called from any goroutine.
type Server struct {
	opt Options

	mu         sync.Mutex
	repos      map[string]*repository
	hook       Hook
	deliveries []Delivery
	faults     []*Fault
	requests   []string
	token      string
	lastID     int64

	http *http.Server
	base string
	wg   sync.WaitGroup
}

// New returns a local GitHub that Start will serve. It has no repository yet: the first
// push or pull request of one makes it.
func New(opt Options) *Server {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return &Server{opt: opt, repos: map[string]*repository{}, hook: opt.Hook, token: opt.Token, lastID: 1000}
}

// Start listens on addr ("" means 127.0.0.1:0) and serves until Close. An address that
// is not loopback is refused: whoever reaches this GitHub may change it (X4).
func (s *Server) Start(ctx context.Context, addr string) error {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("githubbox: address %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("githubbox: address %q is not loopback: use 127.0.0.1", addr)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("githubbox: listening: %w", err)
	}
	s.mu.Lock()
	s.base = "http://" + l.Addr().String() + "/"
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	s.mu.Unlock()
	s.wg.Go(func() {
		if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.opt.Log.Error("local GitHub stopped serving", "error", err)
		}
	})
	return nil
}

// URL is the base of the REST API, ending in a slash, as github.api_url wants it.
func (s *Server) URL() string { return s.WebURL() + "api/v3/" }

// WebURL is the base of the pages of repositories and pull requests, ending in a slash.
func (s *Server) WebURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.base
}

// Close stops serving.
func (s *Server) Close() error {
	s.mu.Lock()
	srv := s.http
	s.mu.Unlock()
	var err error
	if srv != nil {
		err = srv.Close()
	}
	s.wg.Wait()
	return err
}

func (s *Server) handler() http.Handler {
	api, pages, control := http.NewServeMux(), http.NewServeMux(), http.NewServeMux()
	api.HandleFunc("GET /api/v3/repos/{owner}/{name}/pulls", s.rest(s.listPulls))
	api.HandleFunc("GET /api/v3/repos/{owner}/{name}/pulls/{number}", s.rest(s.getPull))
	api.HandleFunc("GET /api/v3/repos/{owner}/{name}/pulls/{number}/reviews", s.rest(s.listReviews))
	api.HandleFunc("GET /api/v3/repos/{owner}/{name}/commits/{ref}/status", s.rest(s.getStatus))
	api.HandleFunc("GET /api/v3/repos/{owner}/{name}/commits/{ref}/check-runs", s.rest(s.listCheckRuns))
	api.HandleFunc("/api/v3/", s.rest(func(*repository, *http.Request) (answer, error) { return answer{}, errNotFound }))
	pages.HandleFunc("GET /{owner}/{name}/pull/{number}", s.page)
	s.controlRoutes(control)
	mux := http.NewServeMux()
	mux.Handle("/api/v3/", api)
	mux.Handle("/_control/", control)
	mux.Handle("/", pages)
	return mux
}

// nextID numbers everything. Called with mu held.
func (s *Server) nextID() int64 {
	s.lastID++
	return s.lastID
}
