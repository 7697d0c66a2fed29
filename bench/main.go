// Command bench measures Smith on a real Temporal server, each number beside its floor in
// the same run: one JSON object a line. What counts is the ratio; times drift with the machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"go.temporal.io/sdk/client"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/stack"
	"agentsmith/internal/tools"
	"agentsmith/workflows"
)

type flags struct {
	Run  runFlags `cmd:"" default:"withargs" help:"Measure."`
	Work struct{} `cmd:"" name:"floor-worker" hidden:""`
}

type runFlags struct {
	Only    []string      `help:"Measure these only: proof, latency, load, cost, memory, operators, relay." enum:"proof,latency,load,cost,memory,operators,relay"`
	Samples int           `help:"How many lines the latencies are taken from." default:"150"`
	Load    time.Duration `help:"How long each side is loaded." default:"15s"`
	Threads int           `help:"How many idle threads the memory is taken from." default:"1000"`
}

func main() {
	var f flags
	k := kong.Parse(&f, kong.Name("bench"), kong.Description("Measures Smith beside the floor: a bare workflow on the same server."))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	run := func() error { return measure(ctx, f.Run) }
	if k.Command() == "floor-worker" {
		run = func() error { return floorWorker(ctx) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

const seat = "smith"

// rig is the system that is measured, and the floor beside it.
type rig struct {
	*stack.Stack
	client client.Client
	clock  *clock
	floor  *exec.Cmd
	app    slackbox.App
	names  atomic.Int64
}

func measure(ctx context.Context, f runFlags) error {
	wanted := func(part string) bool { return len(f.Only) == 0 || slices.Contains(f.Only, part) }
	if wanted("proof") {
		if err := proofPart(ctx, f); err != nil {
			return fmt.Errorf("proof: %w", err)
		}
	}
	if slices.ContainsFunc([]string{"latency", "load", "cost", "memory"}, wanted) {
		if err := measureServer(ctx, f, wanted); err != nil {
			return err
		}
	}
	if wanted("operators") {
		if err := operatorsPart(ctx, f); err != nil {
			return fmt.Errorf("operators: %w", err)
		}
	}
	if wanted("relay") {
		if err := relayPart(ctx, f); err != nil {
			return fmt.Errorf("relay: %w", err)
		}
	}
	return nil
}

// measureServer measures what needs the real server.
func measureServer(ctx context.Context, f runFlags, wanted func(part string) bool) (err error) {
	dir, err := os.MkdirTemp("", "smith-bench-")
	if err != nil {
		return fmt.Errorf("make a place to run: %w", err)
	}
	defer os.RemoveAll(dir)
	r, err := newRig(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, part := range []struct {
		name string
		run  func(context.Context, runFlags) error
	}{
		{"latency", r.latency}, {"load", r.load}, {"cost", r.cost}, {"memory", r.memory},
	} {
		if !wanted(part.name) {
			continue
		}
		if err := part.run(ctx, f); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// newRig starts a system; alter may change what it is started with.
func newRig(ctx context.Context, dir string, alter ...func(*stack.Options)) (*rig, error) {
	temporal, err := tools.Temporal()
	if err != nil {
		return nil, err
	}
	worker, starter, err := stack.Build(ctx, filepath.Join(dir, "bin"))
	if err != nil {
		return nil, err
	}
	agent := filepath.Join(dir, "bin", "agent")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", agent, "agentsmith/bench/agent").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the agent: %w\n%s", err, out)
	}
	socket := filepath.Join(dir, "clock")
	clock, err := listen(socket)
	if err != nil {
		return nil, err
	}
	o := stack.Options{
		Dir: filepath.Join(dir, "run"), Temporal: temporal, Claude: agent, Worker: worker, Starter: starter, Seats: []string{seat},
		SearchAttributes: workflows.SearchSpecs(), Env: []string{"BENCH_SOCKET=" + socket},
		Config: map[string]any{
			"agent":  map[string]any{"command": agent, "pass_env": []string{"PATH", "BENCH_SOCKET"}, "home": filepath.Join(dir, "home")},
			"limits": map[string]any{"concurrent_turns": 64},
			"log":    map[string]any{"level": "warn", "format": "text"},
		},
	}
	for _, f := range alter {
		f(&o)
	}
	s, err := stack.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	r := &rig{Stack: s, clock: clock}
	for _, a := range s.Slack.State().Apps {
		if a.Name == seat {
			r.app = a.App
		}
	}
	if r.client, err = client.Dial(client.Options{HostPort: s.Temporal.Address}); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	self, err := os.Executable()
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	r.floor = exec.Command(self, "floor-worker")
	r.floor.Stderr = os.Stderr
	r.floor.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+s.Temporal.Address, "BENCH_AGENT="+agent, "BENCH_SOCKET="+socket,
		"BENCH_SLACK="+s.Slack.URL(), "BENCH_TOKEN="+r.app.BotToken,
		"BENCH_TMUX="+s.Tmux.Socket)
	r.floor.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.floor.Start(); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return r, nil
}

func (r *rig) close() error {
	r.client.Close()
	_ = r.floor.Process.Signal(syscall.SIGTERM)
	_ = r.floor.Wait()
	return r.Stop()
}

// name is new for each line; the agent finds it in its prompt.
func (r *rig) name(side string) string { return fmt.Sprintf("bench-%s-%d", side, r.names.Add(1)) }

// sample is one line's way: when it set out, the agent's moments, when its answer stood in Slack.
type sample struct {
	sent, posted time.Time
	agent        moments
}

func (s sample) toAgent() time.Duration { return s.agent.began.Sub(s.sent) }
func (s sample) toPost() time.Duration  { return s.posted.Sub(s.agent.ended) }

// product takes a line of ana's through the whole product. root "" starts a thread.
func (r *rig) product(ctx context.Context, root string) (string, sample, error) {
	return r.asks(ctx, "ana", root, "")
}

// bare takes a line through the floor: a signal with start, straight from here.
func (r *rig) bare(ctx context.Context, id, root string) (sample, error) {
	name := r.name("f")
	since := r.Slack.Log(0).Next
	s := sample{sent: time.Now()}
	_, err := r.client.SignalWithStartWorkflow(ctx, id, "line", floorLine{Channel: "general", Root: root, Text: name, Post: true},
		client.StartWorkflowOptions{ID: id, TaskQueue: floorQueue}, floorThread)
	if err != nil {
		return s, fmt.Errorf("signal the floor: %w", err)
	}
	if s.posted, err = r.posted(ctx, since, name); err != nil {
		return s, err
	}
	s.agent, err = r.clock.of(ctx, name)
	return s, err
}

// posted waits until the seat's answer stands in Slack.
func (r *rig) posted(ctx context.Context, since uint64, name string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var at time.Time
	err := r.Slack.Wait(ctx, func() bool {
		for _, m := range r.Slack.Log(since).Messages {
			if m.App == seat && strings.Contains(m.Text, name) {
				at = m.StoredAt
				return true
			}
		}
		return false
	})
	if err != nil {
		return at, fmt.Errorf("waiting for the answer to %s: %w", name, err)
	}
	return at, nil
}

// root is a message that the floor's answers stand under.
func (r *rig) root() (string, error) {
	return r.Slack.Person("ana").Say("general", "a thread of the floor")
}
