package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/stack"
	"agentsmith/internal/standin"
	"agentsmith/internal/tools"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// kind is what a scenario's system is set to.
type kind int

const (
	// quick brains complete soon after their last line.
	quick kind = iota
	// long brains wait for follow-ups as long as real ones.
	long
	// renewing brains continue as new after a few turns.
	renewing
)

const seat = "smith"

// world is a running system that scenarios act in.
type world struct {
	*stack.Stack
	client client.Client
	// bot is the seat's mention.
	bot string
}

func startWorld(ctx context.Context, dir string, k kind) (*world, error) {
	temporal, err := tools.Temporal()
	if err != nil {
		return nil, err
	}
	claude, err := tools.Claude()
	if err != nil {
		return nil, err
	}
	worker, starter, err := stack.Build(ctx, filepath.Join(dir, "bin"))
	if err != nil {
		return nil, err
	}
	o := stack.Options{
		Dir: dir, Temporal: temporal, Claude: claude, Worker: worker, Starter: starter, Seats: []string{seat},
		SearchAttributes: workflows.SearchSpecs(), Model: model,
		Config: map[string]any{
			"idle_after": "3s",
			"drain":      "1s",
			"schedules": []map[string]any{{
				"name": "standup", "seat": seat, "channel": channelID("random"), "cron": "0 9 1 1 *", "prompt": "[[say Good morning.]]",
			}},
		},
	}
	switch k {
	case long:
		o.Config["idle_after"] = "30m"
	case renewing:
		o.Dynamic = []string{"limit.historyCount.suggestContinueAsNew=30"}
	}
	s, err := stack.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	c, err := dial(s.Temporal.Address)
	if err != nil {
		return nil, err
	}
	w := &world{Stack: s, client: c}
	for _, app := range s.Slack.State().Apps {
		if app.Name == seat {
			w.bot = "<@" + app.BotUser + "> "
		}
	}
	return w, nil
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

// ask starts a thread in general by mentioning the seat, and returns its root.
func (w *world) ask(text string) (root string, err error) {
	return w.Slack.Person("ana").Say("general", w.bot+text)
}

// reply adds a line to a thread in general.
func (w *world) reply(root, text string) (ts string, err error) {
	return w.Slack.Person("ana").Reply("general", root, text)
}

func (w *world) brain(root string) execution { return w.brainIn(channelID("general"), root) }

func (w *world) brainIn(channel, root string) execution {
	return execution{ID: workflows.ReplyID(seat, rules.Thread{Channel: channel, Root: root})}
}

// answered waits until the seat has posted n messages in a thread.
func (w *world) answered(ctx context.Context, root string, n int) error {
	return w.until(ctx, fmt.Sprintf("%d answers in %s", n, root), func() (bool, error) {
		have := 0
		for _, m := range w.Slack.Log(0).Messages {
			if m.ThreadTS == root && m.App == seat {
				have++
			}
		}
		return have >= n, nil
	})
}

// asked waits until a line has reached the model: its agent runs.
func (w *world) asked(ctx context.Context, ts string) error {
	return w.until(ctx, "the agent to be at work on "+ts, func() (bool, error) {
		return slices.ContainsFunc(w.Model.Log(), func(e standin.Entry) bool { return slices.Contains(e.Lines, ts) }), nil
	})
}

// told starts a thread and waits for its first answer.
func (w *world) told(ctx context.Context, text string) (root string, err error) {
	if root, err = w.ask(text); err != nil {
		return "", err
	}
	return root, w.answered(ctx, root, 1)
}

// started starts a thread and waits until its agent is at work.
func (w *world) started(ctx context.Context, text string) (root string, err error) {
	if root, err = w.ask(text); err != nil {
		return "", err
	}
	return root, w.asked(ctx, root)
}

// waiting waits until n lines wait in a brain.
func (w *world) waiting(ctx context.Context, x execution, n int) error {
	return w.sees(ctx, fmt.Sprintf("%d lines to wait", n), x, func(v workflows.ThreadView) bool { return len(v.Waiting) >= n })
}

// idle waits until a brain has had that many turns and nothing to do.
func (w *world) idle(ctx context.Context, x execution, turns int) error {
	return w.sees(ctx, "the brain to idle", x, func(v workflows.ThreadView) bool {
		return v.Turns >= turns && v.Turn == "" && len(v.Waiting) == 0
	})
}

func (w *world) sees(ctx context.Context, what string, x execution, done func(workflows.ThreadView) bool) error {
	return w.until(ctx, what, func() (bool, error) {
		v, err := w.client.QueryWorkflow(ctx, x.ID, x.Run, workflows.QueryThread)
		if err != nil {
			return false, fmt.Errorf("query: %w", err)
		}
		var view workflows.ThreadView
		if err := v.Get(&view); err != nil {
			return false, fmt.Errorf("query: %w", err)
		}
		return done(view), nil
	})
}

// firstTrigger is the trigger that a brain was started with.
func (w *world) firstTrigger(ctx context.Context, x execution) (workflows.Trigger, error) {
	in, err := w.input(ctx, x)
	return in.Trigger, err
}

func (w *world) options(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue}
}

func (w *world) settings() workflows.Settings {
	return workflows.Settings{Box: "main", IdleAfter: 3 * time.Second, TurnTimeout: 30 * time.Minute, SelfDriveHops: 3}
}
