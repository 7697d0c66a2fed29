package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"agentsmith/rules"
	"agentsmith/workflows"
)

// scenario is something that happens to a brain. Its run returns which run to keep.
type scenario struct {
	name, purpose string
	kind          kind
	// open: the run is kept while it is still open.
	open bool
	run  func(ctx context.Context, w *world) (execution, error)
}

func scenarios() []scenario {
	return []scenario{
		{name: "mention", purpose: "A person's mention, one turn, then idle until it completes.", run: turn("[[say Four.]]")},
		{name: "dm", purpose: "A person's line in a DM, one turn.", run: dm},
		{name: "lines-during-turn", purpose: "Three lines arrive during a turn and are answered together.", run: linesDuringTurn},
		{name: "follow-up", purpose: "A line in the follow-up loop; the lazy idle timer is set again for the rest.", run: followUp},
		{name: "stop", purpose: "A stop in the middle of a turn, with a line waiting.", run: stopMidTurn},
		{name: "stop-nothing-running", purpose: "A stop in a thread where nothing runs.", run: stopIdle},
		{name: "stop-whole-dm", purpose: "A stop at a DM's top level: the brain of the stop itself.", run: stopDM(false)},
		{name: "stopped-from-elsewhere", purpose: "A turn that a stop at the DM's top level ended.", run: stopDM(true)},
		{name: "agent-failure", purpose: "The agent ends with an error.", run: turn("[[error 400]]")},
		{name: "worker-killed", purpose: "The worker is killed while the agent runs.", run: workerKilled},
		{name: "abstain", purpose: "The agent has nothing to add.", run: turn("[[abstain]]")},
		{name: "self-drive", purpose: "The agent gives itself a second turn.", run: turn("answer in two parts")},
		{name: "redelivered", purpose: "The same line is signalled again, during the turn and after it.", run: redelivered},
		{name: "edit", purpose: "A waiting line is edited, then one that was answered.", run: edited},
		{name: "delete-waiting", purpose: "A line is deleted while it waits.", run: deletedWaiting},
		{name: "delete-running", purpose: "The only line of a running turn is deleted.", run: deletedRunning},
		{name: "outsider", purpose: "An outsider's line is refused without an agent.", run: outsider},
		{name: "check", purpose: "The sweep asks about lines that the brain does not hold.", run: checked},
		{name: "cancelled", purpose: "The workflow is cancelled from outside during a turn.", run: cancelled},
		{name: "webhook", purpose: "A webhook sender's trigger, by start input only.", run: webhook},
		{name: "schedule", purpose: "A schedule's trigger, by start input only.", run: scheduled},
		{name: "open-in-loop", purpose: "Still open in the follow-up loop.", kind: long, open: true, run: openInLoop},
		{name: "open-in-turn", purpose: "Still open while the agent runs, with lines waiting.", kind: long, open: true, run: openInTurn},
		{name: "continued-as-new", purpose: "Continues as new between two turns with lines waiting.", kind: renewing, run: renewed(false)},
		{name: "renewed", purpose: "The run that such a continuation started.", kind: renewing, run: renewed(true)},
	}
}

// turn is one line and its turn.
func turn(text string) func(context.Context, *world) (execution, error) {
	return func(_ context.Context, w *world) (execution, error) {
		root, err := w.ask(text)
		return w.brain(root), err
	}
}

func dm(_ context.Context, w *world) (execution, error) {
	channel, ts, err := w.direct("[[say Hello, Ana.]]")
	return w.brainIn(channel, ts), err
}

// direct types a line into Ana's DM with the seat.
func (w *world) direct(text string) (channel, ts string, err error) {
	ana := w.Slack.Person("ana")
	if channel, err = ana.DM(seat); err != nil {
		return "", "", err
	}
	ts, err = ana.Say(channel, text)
	return channel, ts, err
}

func linesDuringTurn(ctx context.Context, w *world) (execution, error) {
	root, err := w.started(ctx, "[[sleep 3s]] [[say One.]]")
	if err != nil {
		return execution{}, err
	}
	for _, text := range []string{"and two?", "and three?", "[[say Two, three, four.]]"} {
		if _, err := w.reply(root, text); err != nil {
			return execution{}, err
		}
	}
	return w.brain(root), nil
}

func followUp(ctx context.Context, w *world) (execution, error) {
	root, err := w.told(ctx, "[[say First.]]")
	if err != nil {
		return execution{}, err
	}
	_, err = w.reply(root, "[[say Second.]]")
	return w.brain(root), err
}

// hanging starts a thread whose agent hangs, with that many lines waiting behind it.
func (w *world) hanging(ctx context.Context, lines int) (root string, err error) {
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

func stopMidTurn(ctx context.Context, w *world) (execution, error) {
	root, err := w.hanging(ctx, 1)
	if err != nil {
		return execution{}, err
	}
	_, err = w.reply(root, "stop")
	return w.brain(root), err
}

func stopIdle(ctx context.Context, w *world) (execution, error) {
	root, err := w.told(ctx, "[[say Done.]]")
	if err != nil {
		return execution{}, err
	}
	_, err = w.reply(root, "Stop!")
	return w.brain(root), err
}

// stopDM hangs a turn in a DM and stops it at the top level.
func stopDM(stopped bool) func(context.Context, *world) (execution, error) {
	return func(ctx context.Context, w *world) (execution, error) {
		channel, ts, err := w.direct("[[hang]]")
		if err != nil {
			return execution{}, err
		}
		if err := w.asked(ctx, ts); err != nil {
			return execution{}, err
		}
		_, stop, err := w.direct("stop")
		if stopped {
			return w.brainIn(channel, ts), err
		}
		return w.brainIn(channel, stop), err
	}
}

func workerKilled(ctx context.Context, w *world) (execution, error) {
	root, err := w.hanging(ctx, 0)
	if err != nil {
		return execution{}, err
	}
	w.Worker.Kill()
	return w.brain(root), w.StartWorker(ctx)
}

func redelivered(ctx context.Context, w *world) (execution, error) {
	root, err := w.ask("[[sleep 2s]] [[say Once.]]")
	if err != nil {
		return execution{}, err
	}
	x := w.brain(root)
	if err := w.asked(ctx, root); err != nil {
		return execution{}, err
	}
	again, err := w.firstTrigger(ctx, x)
	if err != nil {
		return execution{}, err
	}
	if err := w.signal(ctx, x.ID, again); err != nil {
		return execution{}, err
	}
	if err := w.answered(ctx, root, 1); err != nil {
		return execution{}, err
	}
	return x, w.signal(ctx, x.ID, again)
}

func edited(ctx context.Context, w *world) (execution, error) {
	root, err := w.started(ctx, "[[sleep 3s]] [[say One.]]")
	if err != nil {
		return execution{}, err
	}
	x := w.brain(root)
	ts, err := w.reply(root, "[[say Tpyo.]]")
	if err != nil {
		return execution{}, err
	}
	if err := w.waiting(ctx, x, 1); err != nil {
		return execution{}, err
	}
	ana := w.Slack.Person("ana")
	if err := ana.Edit("general", ts, "[[say Typo.]]"); err != nil {
		return execution{}, err
	}
	if err := w.answered(ctx, root, 2); err != nil {
		return execution{}, err
	}
	if err := ana.Edit("general", ts, "[[say Typo, mended.]]"); err != nil {
		return execution{}, err
	}
	_, err = w.reply(root, "[[say Third.]]")
	return x, err
}

func deletedWaiting(ctx context.Context, w *world) (execution, error) {
	root, err := w.started(ctx, "[[sleep 4s]] [[say One.]]")
	if err != nil {
		return execution{}, err
	}
	x := w.brain(root)
	ts, err := w.reply(root, "oops")
	if err != nil {
		return execution{}, err
	}
	if err := w.waiting(ctx, x, 1); err != nil {
		return execution{}, err
	}
	// The starter ends a line that still waits in the ledger itself; the brain is told by
	// the same signal as of a line whose turn has begun.
	first, err := w.firstTrigger(ctx, x)
	if err != nil {
		return execution{}, err
	}
	gone := first
	gone.Kind, gone.Line.TS, gone.EventTS = workflows.KindDelete, ts, rules.TimeTS(time.Now())
	return x, errors.Join(w.Slack.Person("ana").Delete("general", ts), w.signal(ctx, x.ID, gone))
}

func deletedRunning(ctx context.Context, w *world) (execution, error) {
	root, err := w.told(ctx, "[[say Here.]]")
	if err != nil {
		return execution{}, err
	}
	ts, err := w.reply(root, "[[hang]]")
	if err != nil {
		return execution{}, err
	}
	if err := w.asked(ctx, ts); err != nil {
		return execution{}, err
	}
	return w.brain(root), w.Slack.Person("ana").Delete("general", ts)
}

func outsider(_ context.Context, w *world) (execution, error) {
	root, err := w.Slack.Person("olga").Say("general", w.bot+"let me in")
	return w.brain(root), err
}

func checked(ctx context.Context, w *world) (execution, error) {
	root, err := w.told(ctx, "[[say Done.]]")
	if err != nil {
		return execution{}, err
	}
	x := w.brain(root)
	return x, w.signal(ctx, x.ID, workflows.Trigger{Kind: workflows.KindCheck, Lines: []string{root}})
}

func cancelled(ctx context.Context, w *world) (execution, error) {
	root, err := w.hanging(ctx, 1)
	if err != nil {
		return execution{}, err
	}
	x := w.brain(root)
	return x, w.client.CancelWorkflow(ctx, x.ID, "")
}

// webhook starts a brain as a webhook door will: by its input, without a line of Slack's.
func webhook(ctx context.Context, w *world) (execution, error) {
	root, err := w.Slack.Person("ana").Say("random", "the build")
	if err != nil {
		return execution{}, err
	}
	thread := rules.Thread{Team: w.Slack.State().Team.ID, Channel: channelID("random"), Root: root}
	x := w.brainIn(thread.Channel, root)
	_, err = w.client.ExecuteWorkflow(ctx, w.options(x.ID), workflows.ReplyType, workflows.ReplyInput{
		Seat: seat, Thread: thread, Settings: w.settings(),
		Trigger: workflows.Trigger{
			Kind: workflows.KindLine, Author: rules.Webhook, Prompt: "[[say The build is green.]]", EventTS: rules.TimeTS(time.Now()),
			Line: rules.Line{LineKey: rules.LineKey{Team: thread.Team, Channel: thread.Channel}, Root: root},
		},
	})
	return x, err
}

// scheduled has the configured Schedule start a brain now.
func scheduled(ctx context.Context, w *world) (execution, error) {
	handle := w.client.ScheduleClient().GetHandle(ctx, "smith-standup")
	if err := handle.Trigger(ctx, client.ScheduleTriggerOptions{}); err != nil {
		return execution{}, fmt.Errorf("trigger the schedule: %w", err)
	}
	var x execution
	err := w.until(ctx, "the schedule to start a brain", func() (bool, error) {
		d, err := handle.Describe(ctx)
		if err != nil {
			return false, err
		}
		for _, a := range d.Info.RecentActions {
			if r := a.StartWorkflowResult; r != nil {
				x = execution{ID: r.WorkflowID, Run: r.FirstExecutionRunID}
				return true, nil
			}
		}
		return false, nil
	})
	return x, err
}

func openInLoop(ctx context.Context, w *world) (execution, error) {
	root, err := w.told(ctx, "[[say First.]]")
	if err != nil {
		return execution{}, err
	}
	x := w.brain(root)
	if err := w.idle(ctx, x, 1); err != nil {
		return execution{}, err
	}
	if _, err := w.reply(root, "[[say Second.]]"); err != nil {
		return execution{}, err
	}
	if err := w.idle(ctx, x, 2); err != nil {
		return execution{}, err
	}
	// A redelivery gives the loop one more task, at whose start the history is cut.
	again, err := w.firstTrigger(ctx, x)
	if err != nil {
		return execution{}, err
	}
	if err := w.signal(ctx, x.ID, again); err != nil {
		return execution{}, err
	}
	return x, w.settled(ctx, x)
}

func openInTurn(ctx context.Context, w *world) (execution, error) {
	root, err := w.hanging(ctx, 2)
	return w.brain(root), err
}

// renewed keeps a thread busy until its brain continues as new with a line waiting.
func renewed(next bool) func(context.Context, *world) (execution, error) {
	return func(ctx context.Context, w *world) (execution, error) {
		root, err := w.ask("[[say Turn 1.]]")
		if err != nil {
			return execution{}, err
		}
		x := w.brain(root)
		first, err := w.latestRun(ctx, x)
		if err != nil {
			return execution{}, err
		}
		for n := 1; ; n++ {
			if err := w.answered(ctx, root, n); err != nil {
				return execution{}, err
			}
			now, err := w.latestRun(ctx, x)
			if err != nil {
				return execution{}, err
			}
			if now != first {
				break
			}
			ts, err := w.reply(root, fmt.Sprintf("[[sleep 2s]] [[say Turn %d.]]", n+1))
			if err != nil {
				return execution{}, err
			}
			if err := w.asked(ctx, ts); err != nil {
				return execution{}, err
			}
			// A second line waits behind this turn, to be carried if the brain renews after it.
			if _, err := w.reply(root, "[[say And this.]]"); err != nil {
				return execution{}, err
			}
			if err := w.answered(ctx, root, n+2); err != nil {
				return execution{}, err
			}
			n++
		}
		if next {
			x.Run, err = w.latestRun(ctx, x)
			return x, err
		}
		x.Run = first
		return x, nil
	}
}

// latestRun is the run id of a brain's newest run.
func (w *world) latestRun(ctx context.Context, x execution) (string, error) {
	var run string
	err := w.until(ctx, "the brain to start", func() (bool, error) {
		d, err := w.client.DescribeWorkflow(ctx, x.ID, "")
		if err != nil {
			return false, err
		}
		run = d.RawResponse.GetWorkflowExecutionInfo().GetExecution().GetRunId()
		return true, nil
	})
	return run, err
}

// input is what a brain's latest run was started with.
func (w *world) input(ctx context.Context, x execution) (workflows.ReplyInput, error) {
	var in workflows.ReplyInput
	err := w.until(ctx, "the brain to start", func() (bool, error) {
		h, err := w.history(ctx, x)
		if err != nil || len(h.Events) == 0 {
			return false, err
		}
		a := h.Events[0].GetWorkflowExecutionStartedEventAttributes()
		return true, converter.GetDefaultDataConverter().FromPayloads(a.GetInput(), &in)
	})
	return in, err
}

// settled waits until the brain has taken in its latest signal.
func (w *world) settled(ctx context.Context, x execution) error {
	return w.until(ctx, "the brain to take the signal in", func() (bool, error) {
		h, err := w.history(ctx, x)
		if err != nil {
			return false, err
		}
		last := h.Events[len(h.Events)-1]
		return last.GetWorkflowTaskCompletedEventAttributes() != nil, nil
	})
}
