// Command worker runs the workflows of Smith, and the activities of one box.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"golang.org/x/sys/unix"

	"agentsmith/activities"
	"agentsmith/internal/agent"
	"agentsmith/internal/config"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/internal/telemetry"
	"agentsmith/signals"
	"agentsmith/workflows"
)

type flags struct {
	Config string `help:"The config file." default:"smith.yaml" type:"path"`
}

func main() {
	agent.MaybeSupervise()
	// What an agent of ours may read of /proc must not be this process's tokens (X3).
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "worker: keep this process's memory to itself:", err)
		os.Exit(1)
	}
	var f flags
	kong.Parse(&f, kong.Name("worker"), kong.Description("Runs the brains' workflows, and the agents of this box."))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, f); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// maxReady bounds the supervisors that are kept warm for the next agents.
const maxReady = 4

// drainMargin is what is left, after running turns had their time, to interrupt the
// agents that are still at work and to report them.
const drainMargin = 10 * time.Second

// reportFor is how long a result is reported to a Temporal server that does not answer. The
// SDK's ten seconds are less than a restart takes; what is not reported by then counts as
// lost, and the thread waits for the heartbeat's timeout although its answer is there (B3).
const reportFor = time.Minute

func run(ctx context.Context, f flags) error {
	cfg, err := config.Load(f.Config, os.Getenv, config.ForWorker())
	if err != nil {
		return err
	}
	logger, err := telemetry.NewLogger(os.Stderr, cfg.Log.Level, cfg.Log.Format)
	if err != nil {
		return err
	}
	health := &telemetry.Health{}
	health.Red("work", "starting")
	metrics, err := telemetry.NewMetrics(logger)
	if err != nil {
		return err
	}
	server, err := telemetry.Serve(ctx, cfg.Listen.Worker, health, metrics)
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
	opts.Logger, opts.MetricsHandler = log.NewStructuredLogger(logger), metrics.Temporal
	opts.RPCTimeout = reportFor
	temporal, err := client.DialContext(ctx, opts)
	if err != nil {
		return fmt.Errorf("connect to Temporal at %s: %w; check TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE", opts.HostPort, err)
	}
	defer temporal.Close()
	health.Probe("temporal", func(ctx context.Context) error {
		_, err := temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
		return err
	})

	seats, workspaces, err := seatsOf(ctx, cfg, logger)
	if err != nil {
		return err
	}
	return serve(ctx, cfg, logger, health, ledger, temporal, seats, doorOf(cfg, temporal, workspaces))
}

// serve cleans up after an earlier worker, then takes work until the context ends.
func serve(ctx context.Context, cfg *config.Config, logger *slog.Logger, health *telemetry.Health, ledger *store.Store, temporal client.Client, seats activities.Seats, door *signals.Worker) error {
	runner := agent.New(agent.Options{
		Command: cfg.Agent.Command, Home: cfg.Agent.Home,
		Env: agent.BuildEnv(os.Environ(), cfg.Agent.PassEnv, cfg.Agent.Home), Log: logger,
		Ready: min(cfg.Limits.ConcurrentTurns, maxReady),
	})
	defer runner.Close()
	runner.Prepare()
	dirs := activities.Dirs{Root: filepath.Join(cfg.DataDir, "threads"), Checkouts: cfg.WritableRoots, Operators: filepath.Join(cfg.DataDir, "operators")}
	agents := &activities.Agent{
		Seats: seats, Ledger: ledger, Runner: runner, Kill: agent.Kill, Dirs: dirs, Box: cfg.Box, Now: time.Now, Log: logger,
		Places:       activities.NewPlaces(cfg.Limits.ConcurrentTurns),
		DailyCostUSD: cfg.Limits.DailyCostUSD, MaxOutput: cfg.Limits.TurnOutputBytes, Drain: cfg.Drain,
		Tasks: door,
	}
	poster := &activities.Poster{
		Seats: seats, Ledger: ledger, Dirs: dirs, Box: cfg.Box, RequestTimeout: cfg.Slack.RequestTimeout,
		Now: time.Now, Wait: activities.Wait, Log: logger, Tasks: door,
	}
	loud := &telemetry.Loud{Log: logger, Health: health, Say: slackapi.SayTo(cfg.OpsChannel, speakers(seats))}
	defer loud.Wait()
	ops, err := newOperators(cfg, logger, ledger, door, seats, poster, agents, runner, loud)
	if err != nil {
		return err
	}
	self, err := agent.Self()
	if err != nil {
		return fmt.Errorf("learn this worker's identity: %w", err)
	}
	noted := &attempts{ledger: ledger, box: cfg.Box, self: self, log: logger}
	if err := activities.EndLeftovers(ctx, agents); err != nil {
		return err
	}
	if err := noted.reportDead(ctx, temporal); err != nil {
		return err
	}

	fatal := make(chan error, 2)
	brains := worker.New(temporal, workflows.TaskQueue, worker.Options{
		OnFatalError: func(err error) { fatal <- err },
		// Two pollers, the default, prefer threads that they know while new ones starve.
		MaxConcurrentWorkflowTaskPollers: 16,
		DisableRegistrationAliasing:      true,
		WorkerStopTimeout:                drainMargin,
	})
	workflows.Register(brains)
	box := worker.New(temporal, workflows.BoxTaskQueue(cfg.Box), worker.Options{
		OnFatalError:                func(err error) { fatal <- err },
		Interceptors:                []interceptor.WorkerInterceptor{noted},
		DisableWorkflowWorker:       true,
		DisableRegistrationAliasing: true,
		WorkerStopTimeout:           cfg.Drain + drainMargin,
	})
	box.RegisterActivity(agents)
	box.RegisterActivity(poster)
	box.RegisterActivity(&activities.Force{Poster: poster, Ledger: ledger, Now: time.Now, Wait: activities.Wait, Log: logger})
	box.RegisterActivity(&activities.Dispatcher{Poster: poster, Self: dispatcherOf(cfg, logger), Log: logger})
	ops.register(box)

	if err := errors.Join(brains.Start(), box.Start()); err != nil {
		return fmt.Errorf("start to work: %w", err)
	}
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	go ops.watch(watching, cfg, logger)
	health.Green("work", "")
	logger.Info("worker is ready", "box", cfg.Box, "seats", len(seats.ByName))
	select {
	case err := <-fatal:
		// The SDK has stopped by itself, and nothing would take work any more.
		health.Red("work", "the connection to Temporal is refused for good")
		return fmt.Errorf("work no more: %w", err)
	case <-ctx.Done():
	}
	logger.Info("worker drains", "limit", cfg.Drain.String())
	box.Stop()
	brains.Stop()
	activities.Finish(agents)
	noted.finish()
	return nil
}

// seatsOf makes the clients of the seats that work here, and asks Slack who each is (D5).
func seatsOf(ctx context.Context, cfg *config.Config, logger *slog.Logger) (activities.Seats, map[string]string, error) {
	seats := activities.Seats{ByName: map[string]*activities.Seat{}, BotUsers: map[string]string{}}
	workspaces := map[string]string{}
	for _, s := range cfg.Seats {
		if s.Remote || s.Box != cfg.Box {
			if s.BotUser != "" {
				seats.BotUsers[s.Name] = s.BotUser
			}
			continue
		}
		slack := slackapi.New(slackapi.Options{
			Token: s.BotToken.Reveal(), APIURL: cfg.Slack.APIURL, Timeout: cfg.Slack.RequestTimeout, Log: logger,
		})
		who, err := slack.AuthTest(ctx)
		if err != nil {
			return seats, nil, fmt.Errorf("ask Slack who the seat %s is: %w; check its bot token in %s", s.Name, err, s.BotTokenEnv)
		}
		seats.BotUsers[s.Name], workspaces[s.Name] = who.UserID, who.URL
		seats.ByName[s.Name] = &activities.Seat{
			Name: s.Name, BotUser: who.UserID, Slack: slack, Model: s.Model, SystemPrompt: s.SystemPrompt,
			AllowedTools: s.AllowedTools, DisallowedTools: s.DisallowedTools, PermissionMode: s.PermissionMode,
		}
	}
	return seats, workspaces, nil
}
