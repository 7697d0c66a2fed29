// Setup installs the pinned programs that Smith and its tests run, where they are
// missing. It is what "task setup" runs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"agentsmith/internal/tools"
)

type flags struct {
	Quiet bool     `short:"q" help:"Say nothing when everything is there."`
	Names []string `arg:"" optional:"" help:"What to install: node, tmux, chromium, postgresql, temporal, claude, bolt, or the groups dev and all (default)."`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Name("setup"), kong.Description("Install the pinned programs that are missing."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := &tools.Setup{Out: os.Stderr}
	if err := s.Install(ctx, f.Names...); err != nil {
		fmt.Fprintln(os.Stderr, "setup:", err)
		stop()
		os.Exit(1)
	}
	if !f.Quiet {
		fmt.Fprintln(os.Stderr, "setup: everything is there")
	}
}
