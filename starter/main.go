// Command starter holds the doors of Smith: the Slack sockets of its seats and the
// schedules. It makes what arrives durable and brings it to the brains.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	temporallog "go.temporal.io/sdk/log"

	"agentsmith/internal/config"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/internal/telemetry"
)

type flags struct {
	Config string `help:"The config file." default:"smith.yaml" type:"path"`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Name("starter"), kong.Description("Holds the doors: Slack sockets and schedules."))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "starter:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags) error {
	cfg, err := config.Load(f.Config, os.Getenv)
	if err != nil {
		return err
	}
	logger, err := telemetry.NewLogger(os.Stderr, cfg.Log.Level, cfg.Log.Format)
	if err != nil {
		return err
	}
	health := &telemetry.Health{}
	health.Red("doors", "starting")
	metrics, err := telemetry.NewMetrics(logger)
	if err != nil {
		return err
	}
	server, err := telemetry.Serve(ctx, cfg.Listen.Starter, health, metrics)
	if err != nil {
		return err
	}
	defer server.Close(context.WithoutCancel(ctx))

	ledger, err := store.Open(ctx, cfg.DatabaseURL.Reveal(), store.WithLogger(logger))
	if err != nil {
		return err
	}
	defer ledger.Close()
	health.Probe("store", ledger.Ping)

	opts, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return fmt.Errorf("read the Temporal connection from the environment: %w", err)
	}
	opts.Logger, opts.MetricsHandler = temporallog.NewStructuredLogger(logger), metrics.Temporal
	temporal, err := client.DialContext(ctx, opts)
	if err != nil {
		return fmt.Errorf("connect to Temporal at %s: %w; check TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE", opts.HostPort, err)
	}
	defer temporal.Close()
	namespace := opts.Namespace
	if namespace == "" {
		namespace = client.DefaultNamespace
	}
	if err := checkTemporal(ctx, temporal, namespace); err != nil {
		return err
	}
	health.Probe("temporal", func(ctx context.Context) error {
		_, err := temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
		return err
	})

	seats, err := identify(ctx, cfg.Local(), func(s config.Seat) *slackapi.Client {
		return slackapi.New(slackapi.Options{Token: s.BotToken.Reveal(), APIURL: cfg.Slack.APIURL, Timeout: cfg.Slack.RequestTimeout, Log: logger})
	})
	if err != nil {
		return err
	}
	alarm := &telemetry.Loud{Log: logger, Health: health, Say: slackapi.SayTo(cfg.OpsChannel, speakers(seats))}
	defer alarm.Wait()
	h, err := newHouse(ctx, cfg, seats, ledger, temporal, alarms{alarm}, logger, func() { health.Green("doors", "") })
	if err != nil {
		return err
	}
	webhooks, err := openGitHub(ctx, cfg.GitHub, ledger, temporal, h.showPhases, health, metrics, logger)
	if err != nil {
		return errors.Join(err, h.close())
	}
	defer webhooks.close(ctx)
	return h.run(ctx)
}

// alarms is telemetry's loud voice for the doors, whose troubles outlive any one call.
type alarms struct{ loud *telemetry.Loud }

func (a alarms) Raise(key, text string) { a.loud.Alarm(context.Background(), key, text) }
func (a alarms) Clear(key, text string) { a.loud.Clear(context.Background(), key, text) }

// speakers are the seats that can say trouble in the ops channel, in the config's order.
func speakers(seats []identity) []slackapi.Speaker {
	var out []slackapi.Speaker
	for _, s := range seats {
		out = append(out, slackapi.Speaker{Name: s.Name, Slack: s.client})
	}
	return out
}
