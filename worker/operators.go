package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"agentsmith/activities"
	"agentsmith/internal/config"
	"agentsmith/internal/github"
	"agentsmith/internal/outbox"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
	"agentsmith/signals"
	"agentsmith/workflows"
)

const (
	// taskTick is a task's safety net: what happens wakes it.
	taskTick = 5 * time.Minute
	// taskGivesUp is how long a task waits for a dead session to be started again.
	taskGivesUp = 7 * 24 * time.Hour
	// launchTimeout ends a launcher that hangs: git may have to write a large worktree.
	launchTimeout = 2 * time.Minute
	// watchEvery is how often the box is looked at, watchAgain the time between two wakes
	// for words that still wait.
	watchEvery, watchAgain = time.Second, 10 * time.Second
	// orphansEvery is the time between two looks for operators that nobody knows.
	orphansEvery = 30 * time.Second
)

// operators are the parts of a worker that bind operators and follow their tasks.
type operators struct {
	bind    *activities.Operator
	task    *activities.Task
	phases  *activities.Phases
	relay   *activities.Relay
	watcher *activities.Watcher
	tmux    terminal.Tmux
}

// newOperators puts them together. door reaches the workflows of threads.
func newOperators(cfg *config.Config, logger *slog.Logger, ledger *store.Store, door *signals.Worker, seats activities.Seats,
	poster *activities.Poster, agents *activities.Agent, runner activities.Runner, loud github.Loud) (*operators, error) {
	launcher, err := activities.NewStartOperator(cfg, launchTimeout)
	if err != nil {
		return nil, err
	}
	box := newTerminals(cfg, ledger, logger)
	var pulls activities.Pulls
	if token := cfg.GitHub.Token.Reveal(); token != "" {
		if pulls, err = github.New(github.Options{APIURL: cfg.GitHub.APIURL, Token: token, Loud: loud}); err != nil {
			return nil, fmt.Errorf("reach GitHub: %w", err)
		}
	} else {
		logger.Info("pull requests are not read: SMITH_GITHUB_TOKEN is not set")
	}
	words := outboxOf(cfg, logger)
	relay := &activities.Relay{
		Seats: seats, Ledger: ledger, Terminal: box, Words: words, Brains: door, Living: box.livingNow, Box: cfg.Box, Now: time.Now, Log: logger,
	}
	return &operators{
		relay: relay, tmux: box.tmux,
		bind: &activities.Operator{
			Seats: seats, Ledger: ledger, Sessions: box.tmux, Tasks: door, Checkouts: cfg.Checkouts, Box: cfg.Box, Off: cfg.Operators.Off,
			Classifier: &activities.Classifier{
				Runner: runner, Model: cfg.Classifier.Model, Timeout: cfg.Classifier.Timeout, Log: logger,
			},
			Launcher: launcher,
			Hold:     activities.Hold(agents),
			Link:     func(seat string, t rules.Thread) string { return signals.Link(door.Workspaces[seat], t) },
			Now:      time.Now, Wait: activities.Wait, Log: logger,
		},
		task: &activities.Task{
			Ledger: ledger, Terminal: box, Words: words, Brains: door, Pulls: pulls, Box: cfg.Box,
			Clean: cfg.Operators.Cleanup == config.CleanupWorktree, Now: time.Now, Log: logger,
		},
		phases: &activities.Phases{Seats: seats, Ledger: ledger, Poster: poster, Pulls: pulls, Log: logger},
		watcher: &activities.Watcher{
			Ledger: ledger, Waiting: func(context.Context) ([]string, error) { return words.Sessions() },
			Living: box.living, Tasks: door, Relays: activities.Listener{Relay: relay}, Ticks: door, Box: cfg.Box, Every: watchEvery, Again: watchAgain, Now: time.Now, Log: logger,
		},
	}, nil
}

// outboxOf is the folder that the box's sessions speak through.
func outboxOf(cfg *config.Config, logger *slog.Logger) outbox.Box {
	return outbox.Box{Dir: filepath.Join(cfg.DataDir, "outbox"), Log: logger}
}

// watch looks after them until ctx ends.
func (o *operators) watch(ctx context.Context, cfg *config.Config, logger *slog.Logger) {
	changed, err := outboxOf(cfg, logger).Changes(ctx)
	if err != nil {
		logger.Warn("words of sessions are seen a little later", "error", err)
	}
	o.watcher.Changed = changed
	var all sync.WaitGroup
	all.Go(func() { o.adopt(ctx, cfg, logger) })
	o.watcher.Run(ctx)
	all.Wait()
}

// adopt looks now and then for operators that nobody knows, the first time at once.
func (o *operators) adopt(ctx context.Context, cfg *config.Config, logger *slog.Logger) {
	tick := time.NewTicker(orphansEvery)
	defer tick.Stop()
	for begins := true; ; begins = false {
		live, err := o.tmux.Sessions(ctx)
		if err != nil && ctx.Err() == nil {
			logger.Warn("operators that nobody knows could not be looked for", "error", err)
		}
		// A tmux server may be another installation's too.
		live = slices.DeleteFunc(live, func(l terminal.Live) bool { return l.Outbox != outboxOf(cfg, logger).Dir })
		activities.AdoptOrphans(ctx, o.bind, live, begins)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// register registers their activities.
func (o *operators) register(w worker.Worker) {
	w.RegisterActivity(o.bind)
	w.RegisterActivity(o.task)
	w.RegisterActivity(o.phases)
	w.RegisterActivity(o.relay)
}

// doorOf reaches the workflows of threads from this worker.
func doorOf(cfg *config.Config, temporal client.Client, workspaces map[string]string) *signals.Worker {
	return &signals.Worker{
		Client: temporal, Workspaces: workspaces, Settings: signals.Settings(cfg, cfg.Box),
		Task: workflows.TaskSettings{Box: cfg.Box, Poll: cfg.GitHub.Poll, Tick: min(taskTick, cfg.GitHub.Poll), GiveUp: taskGivesUp},
	}
}

// speakers are the seats that can say trouble in the ops channel, by name.
func speakers(seats activities.Seats) []slackapi.Speaker {
	var out []slackapi.Speaker
	for _, name := range slices.Sorted(maps.Keys(seats.ByName)) {
		out = append(out, slackapi.Speaker{Name: name, Slack: seats.ByName[name].Slack})
	}
	return out
}
