package stack

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"go.temporal.io/sdk/client"
)

// Temporal is a real local Temporal server with a persistent file.
type Temporal struct {
	*Proc
	// Address is host:port of the frontend; UI an http address; Metrics host:port.
	Address, UI, Metrics string
	cmd                  command
	logDir               string
}

// TemporalOptions choose where the server listens and keeps its state.
type TemporalOptions struct {
	// Bin is the Temporal CLI. DB is the file of its state. LogDir takes its output.
	Bin, DB, LogDir string
	// Port and UIPort are tried first; a taken one is replaced by a free one. 0 takes any.
	Port, UIPort int
	// Dynamic are further values of the server's dynamic configuration.
	Dynamic []string
	// SearchAttributes are name=type pairs that are created with the namespace.
	SearchAttributes []string
}

// pollQuickly lets the server look at its queues 2000 times a second instead of 20: a
// minimal turn takes 18 ms instead of 195.
func pollQuickly() []string {
	return []string{
		"history.transferProcessorMaxPollRPS=2000",
		"history.timerProcessorMaxPollRPS=2000",
		"matching.numTaskqueueReadPartitions=1",
		"matching.numTaskqueueWritePartitions=1",
	}
}

// StartTemporal starts the server on loopback and returns when it answers.
func StartTemporal(ctx context.Context, o TemporalOptions) (*Temporal, error) {
	for try := 1; ; try++ {
		t, err := startTemporal(ctx, o)
		if err == nil || try == 3 || t == nil || t.Proc == nil {
			return t, err
		}
		if ended, _ := t.Proc.Ended(); !ended {
			return t, err
		}
		// It ended by itself: another program took one of its ports meanwhile.
	}
}

func startTemporal(ctx context.Context, o TemporalOptions) (*Temporal, error) {
	port, err := freePort(o.Port)
	if err != nil {
		return nil, err
	}
	ui, err := freePort(o.UIPort)
	if err != nil {
		return nil, err
	}
	metrics, err := freePort(0)
	if err != nil {
		return nil, err
	}
	args := []string{
		"server", "start-dev", "--ip", "127.0.0.1", "--ui-ip", "127.0.0.1",
		"--port", strconv.Itoa(port), "--ui-port", strconv.Itoa(ui), "--metrics-port", strconv.Itoa(metrics),
		"--db-filename", o.DB, "--log-level", "warn",
	}
	for _, v := range append(pollQuickly(), o.Dynamic...) {
		args = append(args, "--dynamic-config-value", v)
	}
	for _, a := range o.SearchAttributes {
		args = append(args, "--search-attribute", a)
	}
	t := &Temporal{
		Address: loopback(port), UI: "http://" + loopback(ui), Metrics: loopback(metrics),
		cmd: command{name: "temporal", path: o.Bin, args: args}, logDir: o.LogDir,
	}
	return t, t.Start(ctx)
}

// Start starts the server again after it was stopped or killed, on the same ports and
// with the same state.
func (t *Temporal) Start(ctx context.Context) error {
	p, err := start(t.logDir, t.cmd)
	if err != nil {
		return err
	}
	t.Proc = p
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return waitFor(ctx, "wait for the Temporal server", p, func(ctx context.Context) error {
		c, err := client.DialContext(ctx, client.Options{HostPort: t.Address, Logger: quiet{}})
		if err != nil {
			return fmt.Errorf("dial: %w", err)
		}
		c.Close()
		return nil
	})
}

// quiet is a logger for the attempts to reach a server that is still starting.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// The ports that freePort chooses from lie below those that the system gives to outgoing
// connections: one of those could take a port before the program that is to have it does.
const (
	firstPort = 15_000
	ports     = 17_000
)

// freePort returns the wanted port where it is free, else any that is; 0 wants any.
func freePort(want int) (int, error) {
	for try := range 100 {
		p := want
		if p == 0 || try > 0 {
			p = firstPort + rand.IntN(ports)
		}
		l, err := net.Listen("tcp", loopback(p))
		if err != nil {
			continue
		}
		return p, l.Close()
	}
	return 0, errors.New("no free port on loopback")
}
