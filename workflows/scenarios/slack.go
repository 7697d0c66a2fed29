package scenarios

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"agentsmith/internal/standin"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// ask starts a thread in general by mentioning the seat, and returns its root.
func (w *World) ask(text string) (root string, err error) {
	return w.Slack.Person("ana").Say("general", w.bot+text)
}

// reply adds a line to a thread in general.
func (w *World) reply(root, text string) (ts string, err error) {
	return w.Slack.Person("ana").Reply("general", root, text)
}

// direct types a line into Ana's DM with the seat.
func (w *World) direct(text string) (channel, ts string, err error) {
	ana := w.Slack.Person("ana")
	if channel, err = ana.DM(seat); err != nil {
		return "", "", err
	}
	ts, err = ana.Say(channel, text)
	return channel, ts, err
}

// posts counts what the seat has posted in a thread.
func (w *World) posts(root string) (n int) {
	for _, m := range w.Slack.Log(0).Messages {
		if m.ThreadTS == root && m.App == seat {
			n++
		}
	}
	return n
}

// answered waits until the seat has posted n messages in a thread.
func (w *World) answered(ctx context.Context, root string, n int) error {
	return w.until(ctx, fmt.Sprintf("%d answers in %s", n, root), func() (bool, error) { return w.posts(root) >= n, nil })
}

// asked waits until a line has reached the model: its agent runs.
func (w *World) asked(ctx context.Context, ts string) error {
	return w.until(ctx, "the agent to be at work on "+ts, func() (bool, error) {
		return slices.ContainsFunc(w.Model.Log(), func(e standin.Entry) bool { return slices.Contains(e.Lines, ts) }), nil
	})
}

// told starts a thread and waits for its first answer.
func (w *World) told(ctx context.Context, text string) (root string, err error) {
	if root, err = w.ask(text); err != nil {
		return "", err
	}
	return root, w.answered(ctx, root, 1)
}

// started starts a thread and waits until its agent is at work.
func (w *World) started(ctx context.Context, text string) (root string, err error) {
	if root, err = w.ask(text); err != nil {
		return "", err
	}
	return root, w.asked(ctx, root)
}

// hanging starts a thread whose agent hangs, with that many lines waiting behind it.
func (w *World) hanging(ctx context.Context, lines int) (root string, err error) {
	root, err = w.started(ctx, "[[hang]]")
	if err != nil {
		return "", err
	}
	for i := range lines {
		if _, err := w.reply(root, fmt.Sprintf("[[say waited %d]]", i+1)); err != nil {
			return "", err
		}
	}
	return root, w.waiting(ctx, w.brain(root), lines)
}

// lost starts a thread whose line no brain holds: its brain is ended by force, as by an
// operator, while the agent runs.
func (w *World) lost(ctx context.Context) (root string, err error) {
	if root, err = w.hanging(ctx, 0); err != nil {
		return "", err
	}
	if err := w.client.TerminateWorkflow(ctx, w.brain(root).ID, "", "a scenario loses its line"); err != nil {
		return "", fmt.Errorf("end the brain of %s: %w", root, err)
	}
	return root, nil
}

// brain is the brain of a thread in general.
func (w *World) brain(root string) Execution { return w.brainIn(channelID("general"), root) }

func (w *World) brainIn(channel, root string) Execution {
	return Execution{ID: workflows.ReplyID(seat, rules.Thread{Channel: channel, Root: root})}
}

func (w *World) options(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue}
}

func (w *World) settings() workflows.Settings {
	return workflows.Settings{Box: "main", IdleAfter: 3 * time.Second, TurnTimeout: 30 * time.Minute, SelfDriveHops: 3}
}
