package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/slack-go/slack"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"agentsmith/internal/terminal"
)

// The floor is the least that could do the same on the same server: a workflow that runs
// the agent and posts what it said, with no ledger, no status, no read-back, no repeat
// that is safe. What the product costs more is what its promises cost.

const floorQueue = "floor"

// floorLine is what reaches the floor's workflow.
type floorLine struct {
	Channel, Root, Text string
	// Post: post the answer too.
	Post bool
	// Said: post Text, and run no agent.
	Said bool
	// Paste is the tmux session that Text is pasted into, with no agent run.
	Paste string
}

// floorThread answers the lines that are signalled to it, one turn each, until it is
// cancelled.
func floorThread(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	lines := workflow.GetSignalChannel(ctx, "line")
	var f *floor
	for {
		var l floorLine
		if !lines.Receive(ctx, &l) || ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case l.Paste != "":
			if err := workflow.ExecuteActivity(ctx, f.PasteFloor, l).Get(ctx, nil); err != nil {
				return err
			}
			continue
		case l.Said:
			if err := workflow.ExecuteActivity(ctx, f.PostFloor, l).Get(ctx, nil); err != nil {
				return err
			}
			continue
		}
		var answer string
		if err := workflow.ExecuteActivity(ctx, f.RunFloor, l.Text).Get(ctx, &answer); err != nil {
			return err
		}
		if !l.Post {
			continue
		}
		l.Text = answer
		if err := workflow.ExecuteActivity(ctx, f.PostFloor, l).Get(ctx, nil); err != nil {
			return err
		}
	}
}

// floor are the floor's activities.
type floor struct {
	agent string
	slack *slack.Client
	tmux  terminal.Tmux
}

// RunFloor runs the agent and returns what it printed last.
func (f *floor) RunFloor(ctx context.Context, prompt string) (string, error) {
	cmd := exec.CommandContext(ctx, f.agent)
	cmd.Stdin = strings.NewReader(prompt)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run the agent: %w", err)
	}
	rows := strings.Split(strings.TrimSpace(string(out)), "\n")
	return rows[len(rows)-1], nil
}

// PostFloor posts it.
func (f *floor) PostFloor(ctx context.Context, l floorLine) error {
	_, _, err := f.slack.PostMessageContext(ctx, l.Channel, slack.MsgOptionText(l.Text, false), slack.MsgOptionTS(l.Root))
	if err != nil {
		return fmt.Errorf("post: %w", err)
	}
	return nil
}

// PasteFloor types a text into a terminal.
func (f *floor) PasteFloor(ctx context.Context, l floorLine) error {
	pane := "=" + l.Paste + ":"
	for _, c := range [][]string{
		{"load-buffer", "-b", "floor", "-"}, {"paste-buffer", "-b", "floor", "-p", "-d", "-t", pane}, {"send-keys", "-t", pane, "Enter"},
	} {
		if _, err := f.tmux.Run(ctx, []byte(l.Text), c...); err != nil {
			return fmt.Errorf("paste: %w", err)
		}
	}
	return nil
}

// floorWorker is the floor's worker, in a process of its own as the product's is.
func floorWorker(ctx context.Context) error {
	c, err := client.Dial(client.Options{HostPort: os.Getenv("TEMPORAL_ADDRESS")})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer c.Close()
	w := worker.New(c, floorQueue, worker.Options{MaxConcurrentWorkflowTaskPollers: 16})
	w.RegisterWorkflow(floorThread)
	w.RegisterActivity(&floor{
		agent: os.Getenv("BENCH_AGENT"),
		tmux:  terminal.Tmux{Command: "tmux", Socket: os.Getenv("BENCH_TMUX")},
		slack: slack.New(os.Getenv("BENCH_TOKEN"), slack.OptionAPIURL(os.Getenv("BENCH_SLACK"))),
	})
	if err := w.Start(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	<-ctx.Done()
	w.Stop()
	return nil
}
