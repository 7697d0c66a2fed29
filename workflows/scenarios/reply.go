package scenarios

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	"agentsmith/rules"
	"agentsmith/workflows"
)

// reply are the scenarios of a thread's brain.
func reply() []Scenario {
	return of(workflows.ReplyType, []Scenario{
		{Name: "mention", Purpose: "A person's mention, one turn, then idle until it completes.", Run: turn("[[say Four.]]")},
		{Name: "dm", Purpose: "A person's line in a DM, one turn.", Run: dm},
		{Name: "lines-during-turn", Purpose: "Three lines arrive during a turn and are answered together.", Run: linesDuringTurn},
		{Name: "follow-up", Purpose: "A line in the follow-up loop; the lazy idle timer is set again for the rest.", Run: followUp},
		{Name: "stop", Purpose: "A stop in the middle of a turn, with a line waiting.", Run: stopMidTurn},
		{Name: "stop-nothing-running", Purpose: "A stop in a thread where nothing runs.", Run: stopIdle},
		{Name: "stop-whole-dm", Purpose: "A stop at a DM's top level: the brain of the stop itself.", Run: stopDM(false)},
		{Name: "stopped-from-elsewhere", Purpose: "A turn that a stop at the DM's top level ended.", Run: stopDM(true)},
		{Name: "agent-failure", Purpose: "The agent ends with an error.", Run: turn("[[error 400]]")},
		{Name: "worker-killed", Purpose: "The worker is killed while the agent runs.", Run: workerKilled},
		{Name: "abstain", Purpose: "The agent has nothing to add.", Run: turn("[[abstain]]")},
		{Name: "self-drive", Purpose: "The agent gives itself a second turn.", Run: turn("answer in two parts")},
		{Name: "redelivered", Purpose: "The same line is signalled again, during the turn and after it.", Run: redelivered},
		{Name: "edit", Purpose: "A waiting line is edited, then one that was answered.", Run: edited},
		{Name: "delete-waiting", Purpose: "A line is deleted while it waits.", Run: deletedWaiting},
		{Name: "delete-running", Purpose: "The only line of a running turn is deleted.", Run: deletedRunning},
		{Name: "outsider", Purpose: "An outsider's line is refused without an agent.", Run: outsider},
		{Name: "check", Purpose: "The sweep asks about lines that the brain does not hold.", Run: checkedNothing},
		{Name: "checked", Purpose: "The sweep wakes a brain for a line that none holds; Settle tells the thread.", Kind: Owing, Run: checked},
		{Name: "checked-during-turn", Purpose: "The sweep asks about a lost line while a turn with another runs; then a stop.", Kind: Owing, Run: checkedDuringTurn},
		{Name: "cancelled", Purpose: "The workflow is cancelled from outside during a turn.", Run: cancelled},
		{Name: "webhook", Purpose: "A webhook sender's trigger, by start input only.", Run: webhook},
		{Name: "schedule", Purpose: "A schedule's trigger, by start input only.", Run: scheduled},
		{Name: "open-in-loop", Purpose: "Still open in the follow-up loop.", Kind: Long, Open: true, Run: openInLoop},
		{Name: "open-in-turn", Purpose: "Still open while the agent runs, with lines waiting.", Kind: Long, Open: true, Run: openInTurn},
		{Name: "continued-as-new", Purpose: "Continues as new between two turns with lines waiting.", Kind: Renewing, Run: renewed(false)},
		{Name: "renewed", Purpose: "The run that such a continuation started.", Kind: Renewing, Run: renewed(true)},
	})
}

// turn is one line and its turn.
func turn(text string) func(context.Context, *World) (Execution, error) {
	return func(_ context.Context, w *World) (Execution, error) {
		root, err := w.ask(text)
		return w.brain(root), err
	}
}

func dm(_ context.Context, w *World) (Execution, error) {
	channel, ts, err := w.direct("[[say Hello, Ana.]]")
	return w.brainIn(channel, ts), err
}

func linesDuringTurn(ctx context.Context, w *World) (Execution, error) {
	root, err := w.started(ctx, "[[sleep 3s]] [[say One.]]")
	if err != nil {
		return Execution{}, err
	}
	for _, text := range []string{"and two?", "and three?", "[[say Two, three, four.]]"} {
		if _, err := w.reply(root, text); err != nil {
			return Execution{}, err
		}
	}
	return w.brain(root), nil
}

func followUp(ctx context.Context, w *World) (Execution, error) {
	root, err := w.told(ctx, "[[say First.]]")
	if err != nil {
		return Execution{}, err
	}
	_, err = w.reply(root, "[[say Second.]]")
	return w.brain(root), err
}

func workerKilled(ctx context.Context, w *World) (Execution, error) {
	root, err := w.hanging(ctx, 0)
	if err != nil {
		return Execution{}, err
	}
	w.Worker.Kill()
	return w.brain(root), w.StartWorker(ctx)
}

func redelivered(ctx context.Context, w *World) (Execution, error) {
	root, err := w.ask("[[sleep 2s]] [[say Once.]]")
	if err != nil {
		return Execution{}, err
	}
	x := w.brain(root)
	if err := w.asked(ctx, root); err != nil {
		return Execution{}, err
	}
	again, err := w.firstTrigger(ctx, x)
	if err != nil {
		return Execution{}, err
	}
	if err := w.signal(ctx, x.ID, again); err != nil {
		return Execution{}, err
	}
	if err := w.answered(ctx, root, 1); err != nil {
		return Execution{}, err
	}
	return x, w.signal(ctx, x.ID, again)
}

func outsider(_ context.Context, w *World) (Execution, error) {
	root, err := w.Slack.Person("olga").Say("general", w.bot+"let me in")
	return w.brain(root), err
}

func cancelled(ctx context.Context, w *World) (Execution, error) {
	root, err := w.hanging(ctx, 1)
	if err != nil {
		return Execution{}, err
	}
	x := w.brain(root)
	return x, w.client.CancelWorkflow(ctx, x.ID, "")
}

// webhook starts a brain as a webhook door will: by its input, without a line of Slack's.
func webhook(ctx context.Context, w *World) (Execution, error) {
	root, err := w.Slack.Person("ana").Say("random", "the build")
	if err != nil {
		return Execution{}, err
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
func scheduled(ctx context.Context, w *World) (Execution, error) {
	handle := w.client.ScheduleClient().GetHandle(ctx, "smith-standup")
	if err := handle.Trigger(ctx, client.ScheduleTriggerOptions{}); err != nil {
		return Execution{}, fmt.Errorf("trigger the schedule: %w", err)
	}
	var x Execution
	err := w.until(ctx, "the schedule to start a brain", func() (bool, error) {
		d, err := handle.Describe(ctx)
		if err != nil {
			return false, err
		}
		for _, a := range d.Info.RecentActions {
			if r := a.StartWorkflowResult; r != nil {
				x = Execution{ID: r.WorkflowID, Run: r.FirstExecutionRunID}
				return true, nil
			}
		}
		return false, nil
	})
	return x, err
}
