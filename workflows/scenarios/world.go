package scenarios

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/stack"
	"agentsmith/internal/standin"
	"agentsmith/internal/tools"
	"agentsmith/workflows"
)

// Kind is what a scenario's system is set to.
type Kind int

// The kinds of system. Each is started once for all of its scenarios.
const (
	// Quick brains complete soon after their last line.
	Quick Kind = iota
	// Long brains wait for follow-ups as long as real ones.
	Long
	// Renewing brains continue as new after a few turns.
	Renewing
	// Owing is a system whose sweep asks about lines after seconds. It looks once a minute.
	Owing
	// Working is a system whose threads get operators. Those of the kinds before get none.
	Working
	// Cautious operators ask a person before they use a tool.
	Cautious
	// Patient tasks look at their operators when something happens, and seldom else.
	Patient
	// Relaying is a system with operators whose runs all continue as new after a few looks.
	Relaying
	// Asking is a system of both seats and the dispatcher.
	Asking
	// Alone is a system whose other seat and whose dispatcher are down. Its runs continue as
	// new after a few turns.
	Alone
)

// Kinds are all kinds, in the order in which a capture goes through them.
func Kinds() []Kind {
	return []Kind{Quick, Long, Renewing, Owing, Working, Cautious, Patient, Relaying, Asking, Alone}
}

// set changes the options of a system to what a kind asks for.
func (k Kind) set(ctx context.Context, o *stack.Options) error {
	switch k {
	case Quick:
	case Long:
		o.Config["idle_after"] = "30m"
	case Renewing:
		o.Dynamic = append(o.Dynamic, "limit.historyCount.suggestContinueAsNew=30")
	case Owing:
		o.Config["owed_too_long"] = "5s"
	case Working:
		return operators(ctx, o, true)
	case Cautious:
		return operators(ctx, o, false)
	case Patient:
		o.Config["github"] = map[string]any{"poll": "5m"}
		return operators(ctx, o, true)
	case Relaying:
		o.Dynamic = append(o.Dynamic, "limit.historyCount.suggestContinueAsNew=20")
		return operators(ctx, o, true)
	case Asking:
		o.Seats, o.Dispatcher = nil, true
	case Alone:
		o.Remote = []string{"trinity"}
		o.Dynamic = append(o.Dynamic, "limit.historyCount.suggestContinueAsNew=55")
	}
	return nil
}

const seat = "smith"

// World is a running system that scenarios act in: the real server, worker, starter and
// agent CLI, with the local Slack and a stand-in of the model.
type World struct {
	*stack.Stack
	client client.Client
	// bot is the seat's mention.
	bot string
}

// Programs are the worker and the starter that were built from the code to capture.
type Programs struct{ Worker, Starter string }

// Start starts a system of a kind. Dir holds its state and its logs.
func Start(ctx context.Context, dir string, programs Programs, k Kind) (*World, error) {
	temporal, err := tools.Temporal()
	if err != nil {
		return nil, err
	}
	claude, err := tools.Claude()
	if err != nil {
		return nil, err
	}
	o := stack.Options{
		Dir: dir, Temporal: temporal, Claude: claude, Worker: programs.Worker, Starter: programs.Starter, Seats: []string{seat},
		SearchAttributes: workflows.SearchSpecs(), Model: model,
		Config: map[string]any{
			"idle_after": "3s",
			"drain":      "1s",
			"schedules": []map[string]any{{
				"name": "standup", "seat": seat, "channel": channelID("random"), "cron": "0 9 1 1 *", "prompt": "[[say Good morning.]]",
			}},
		},
	}
	if err := k.set(ctx, &o); err != nil {
		return nil, err
	}
	s, err := stack.Start(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("start the system: %w", err)
	}
	c, err := client.Dial(client.Options{HostPort: s.Temporal.Address})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the Temporal server: %w", err), s.Stop())
	}
	w := &World{Stack: s, client: c}
	for _, app := range s.Slack.State().Apps {
		if app.Name == seat {
			w.bot = "<@" + app.BotUser + "> "
		}
	}
	return w, nil
}

// Stop stops the system and leaves no process behind.
func (w *World) Stop() error {
	w.client.Close()
	return w.Stack.Stop()
}

// ServerVersion is the version that the Temporal server says it has.
func (w *World) ServerVersion(ctx context.Context) (string, error) {
	info, err := w.client.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return "", fmt.Errorf("ask the server for its version: %w", err)
	}
	return info.GetServerVersion(), nil
}

// until waits for a condition and says, when the context ends first, what it waited for.
func (w *World) until(ctx context.Context, what string, done func() (bool, error)) error {
	var last error
	for {
		ok, err := done()
		if ok {
			return nil
		}
		if err != nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for %s: %w; logs in %s", what, ctx.Err(), filepath.Join(w.Dir, "logs")), last)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// channelID is a channel's id in the local Slack: the same in every one of the default world.
func channelID(name string) string {
	s := slackbox.New(slackbox.Options{})
	defer s.Close()
	for _, c := range s.State().Channels {
		if c.Name == name {
			return c.ID
		}
	}
	return ""
}

// model is the stand-in's script, and answers that no directive can spell.
func model(req standin.Request) standin.Reply {
	switch {
	case strings.Contains(req.Section, "in two parts"):
		return standin.Reply{Text: "The first part.\n[continue: the second part]"}
	case strings.Contains(req.Section, "the second part"):
		return standin.Reply{Text: "The second part."}
	}
	return standin.Script(standin.Directives{})(req)
}
