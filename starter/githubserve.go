package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.temporal.io/api/serviceerror"

	"agentsmith/internal/config"
	"agentsmith/internal/telemetry"
	"agentsmith/signals"
	"agentsmith/workflows"
)

// errNoTask: no task runs for that operator.
var errNoTask = errors.New("no task runs for this operator")

// taskClient reaches operator tasks on a Temporal server.
type taskClient struct{ client signals.Client }

// tell sends a trigger to a running operator task.
func (c taskClient) tell(ctx context.Context, seat, slug string, trigger workflows.TaskTrigger) error {
	ctx, cancel := context.WithTimeout(ctx, signalTimeout)
	defer cancel()
	err := c.client.SignalWorkflow(ctx, workflows.OperatorTaskID(seat, slug), "", workflows.SignalOperatorTask, trigger)
	var notFound *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case errors.As(err, &notFound):
		return fmt.Errorf("%w: %w", errNoTask, err)
	}
	return fmt.Errorf("signal the task of the operator %s: %w", slug, err)
}

// healthGitHub is the webhook door on /healthz.
const healthGitHub = "github-webhooks"

// githubServer serves the webhook door.
type githubServer struct {
	http *http.Server
	addr net.Addr
	done chan error
}

// githubOptions are what serveGitHub needs besides the door.
type githubOptions struct {
	// listen is the address, which the config has checked (X4); "" is none.
	listen string
	health *telemetry.Health
	log    *slog.Logger
}

// serveGitHub opens the webhook door until close. Without an address or a secret there
// is none, and pull requests are seen by the slow poll alone.
func serveGitHub(ctx context.Context, door *githubDoor, o githubOptions) (*githubServer, error) {
	if o.listen == "" || len(door.secret) == 0 {
		missing := "github.listen"
		if o.listen != "" {
			missing = "SMITH_GITHUB_WEBHOOK_SECRET"
		}
		o.log.InfoContext(ctx, "no webhooks of GitHub are taken, pull requests are looked at by the poll alone: "+missing+" is not set")
		return &githubServer{}, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return nil, fmt.Errorf("listen for the webhooks of GitHub: %w; is this process running already? Else change github.listen in the config", err)
	}
	mux := http.NewServeMux()
	mux.Handle(webhookPath, door)
	s := &githubServer{
		addr: l.Addr(),
		done: make(chan error, 1),
		http: &http.Server{
			Handler:           mux,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      20 * time.Second,
			IdleTimeout:       time.Minute,
			MaxHeaderBytes:    16 << 10,
			ErrorLog:          slog.NewLogLogger(o.log.Handler(), slog.LevelDebug),
		},
	}
	o.health.Green(healthGitHub, "listens on "+s.addr.String())
	o.log.InfoContext(ctx, "the webhooks of GitHub are taken", "address", s.addr.String(), "path", webhookPath)
	go func() {
		err := s.http.Serve(l)
		if !errors.Is(err, http.ErrServerClosed) {
			o.health.Red(healthGitHub, "the door is shut: "+err.Error())
			o.log.ErrorContext(ctx, "the webhooks of GitHub are no longer taken; start the starter again", "error", err)
		}
		s.done <- err
	}()
	return s, nil
}

// close takes no more webhooks, and lets those that have begun finish (T6); ctx may have
// ended already.
func (s *githubServer) close(ctx context.Context) error {
	if s.http == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), webhookWork)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("close the door of GitHub's webhooks: %w", err)
	}
	return nil
}

// openGitHub opens the webhook door as the config says. orphan is told of a pull request
// whose thread has no operator (P2).
func openGitHub(ctx context.Context, cfg config.GitHub, ledger pullLedger, temporal signals.Client, orphan withoutOperator,
	health *telemetry.Health, metrics *telemetry.Metrics, log *slog.Logger) (*githubServer, error) {
	count, err := countWebhooks(metrics.Meter)
	if err != nil {
		return nil, err
	}
	door := newGitHubDoor(cfg.WebhookSecret.Reveal(), storedLinks{ledger}, taskClient{temporal}, orphan, count, log)
	return serveGitHub(ctx, door, githubOptions{listen: cfg.Listen, health: health, log: log})
}

// countWebhooks counts what becomes of webhooks.
func countWebhooks(meter metric.Meter) (func(outcome string), error) {
	counter, err := meter.Int64Counter("smith_github_webhooks", metric.WithDescription("Webhooks of GitHub, by what became of them."))
	if err != nil {
		return nil, fmt.Errorf("make the counter of webhooks: %w", err)
	}
	return func(outcome string) {
		counter.Add(context.Background(), 1, metric.WithAttributes(attribute.String("outcome", outcome)))
	}, nil
}
