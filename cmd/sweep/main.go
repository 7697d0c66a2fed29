// Command sweep finds the threads that asked for work and have no operator, and binds one
// to each on --bind: those from before operators were switched on, and those that a gap
// left without one. Whether an operator runs is asked of start-operator alone (O7).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"agentsmith/activities"
	"agentsmith/internal/config"
	"agentsmith/internal/store"
	"agentsmith/rules"
	"agentsmith/signals"
)

const about = `Lists the threads that asked for work and have no operator, longest waiting first. With --bind each gets one, as if somebody who may start operators wrote there; the thread is told.

It runs on the box of the operators, as their user: start-operator, which looks at the terminals, is asked about each thread. What the store says of operators counts for nothing, but for this: a thread that another box has claimed is listed and not sent on, since its operator can be seen only there.

With --bind Temporal must be reachable: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_PROFILE and so on.

Exit codes:
  0  every thread was looked at, and with --bind every one that can have an operator was sent on
  1  something could not be looked at or sent on; the reason is on the standard error
  2  the flags or the config are wrong`

// The exit codes of about.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

type flags struct {
	Config  string `help:"The config file of worker and starter." default:"smith.yaml" type:"path"`
	Seat    string `help:"Look at this seat's threads only."`
	Bind    bool   `help:"Bind an operator to each. Who runs this answers for it: the people who wrote are not asked for their permission again."`
	Program string `help:"start-operator. Default: operators.command of the config, else the one beside this program." type:"path"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	var f flags
	done := false
	parser, err := kong.New(&f, kong.Name("sweep"), kong.Description(about), kong.Writers(out, errs), kong.Exit(func(int) { done = true }))
	if err == nil {
		_, err = parser.Parse(args)
	}
	if done {
		return exitDone
	}
	if err != nil {
		fmt.Fprintln(errs, "sweep:", rules.Visible(err.Error()))
		return exitUsage
	}
	cfg, err := config.Load(f.Config, os.Getenv, config.ForLauncher())
	if err != nil {
		fmt.Fprintln(errs, "sweep:", err)
		return exitUsage
	}
	if _, ok := cfg.Seat(f.Seat); f.Seat != "" && !ok {
		fmt.Fprintf(errs, "sweep: %q is no seat of %s\n", f.Seat, f.Config)
		return exitUsage
	}
	if err := f.sweep(ctx, cfg, out); err != nil {
		fmt.Fprintln(errs, "sweep:", err)
		return exitFailed
	}
	return exitDone
}

// sweep opens what is needed, and looks at the threads of each seat.
func (f flags) sweep(ctx context.Context, cfg *config.Config, out io.Writer) error {
	quiet := slog.New(slog.DiscardHandler)
	ledger, err := store.Open(ctx, cfg.DatabaseURL.Reveal(), store.WithLogger(quiet))
	if err != nil {
		return err
	}
	defer ledger.Close()
	launcher, err := activities.NewStartOperator(cfg, time.Minute)
	if err != nil {
		return err
	}
	if f.Program != "" {
		launcher.Program = f.Program
	}
	b := broom{
		work: ledger, checkouts: cfg.Checkouts(), out: out, now: time.Now,
		launcher: launcher, box: cfg.Box,
	}
	if f.Bind {
		if cfg.Operators.Off {
			return errors.New("SMITH_AUTO_OPERATOR is off here: nothing is bound")
		}
		temporal, err := dial(ctx, quiet)
		if err != nil {
			return err
		}
		defer temporal.Close()
		b.door = &signals.Worker{Client: temporal, Settings: signals.Settings(cfg, cfg.Box)}
	}
	var seats []string
	for _, s := range cfg.Local() {
		if f.Seat == "" || f.Seat == s.Name {
			seats = append(seats, s.Name)
		}
	}
	return b.sweep(ctx, seats)
}

func dial(ctx context.Context, logger *slog.Logger) (client.Client, error) {
	opts, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return nil, fmt.Errorf("read the Temporal connection from the environment: %w", err)
	}
	opts.Logger = log.NewStructuredLogger(logger)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := client.DialContext(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal: %w; check TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE", err)
	}
	return c, nil
}
