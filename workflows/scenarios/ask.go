package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"agentsmith/rules"
	"agentsmith/workflows"
)

// replyAsk are the scenarios of a brain that asks of every seat reach (A1). Its lines are
// Ben's, which the starter leaves alone: what the brain hears of them is said here.
func replyAsk() []Scenario {
	return of(workflows.ReplyType, []Scenario{
		{Name: "ask", Purpose: "An ask starts the brain; then the pick.", Run: asked(true)},
		{Name: "ask-without-pick", Purpose: "An ask that nobody picks a driver for.", Run: asked(false)},
		{Name: "ask-follow-up", Purpose: "An ask in the follow-up loop of a thread.", Run: askedLater("[[say First.]]")},
		{Name: "ask-during-turn", Purpose: "An ask, and its pick, wait behind a turn.", Run: askedLater("[[sleep 3s]] [[say First.]]")},
		{Name: "ask-stopped", Purpose: "A stop while an ask is answered.", Run: askStopped},
		{Name: "ask-open", Purpose: "Still open while an ask is answered, with another waiting.", Kind: Long, Open: true, Run: askOpen},
		{Name: "ask-work", Purpose: "An ask that asks for work.", Kind: Working, Run: askWork},
	})
}

// dispatcher is the bot user that the asks of these scenarios mention.
const dispatcher = "U0FORCE0001"

// everyone has Ben ask every seat, under root or, where that is "", in a thread of its own.
// The row of his line is the brain's to write: the event comes with the trigger.
func (w *World) everyone(root, text string) (workflows.Trigger, error) {
	ben := w.Slack.Person("ben")
	ts, err := ben.Reply("general", root, text)
	if err != nil {
		return workflows.Trigger{}, fmt.Errorf("ask everyone: %w", err)
	}
	if root == "" {
		root = ts
	}
	user := ""
	for _, u := range w.Slack.State().Users {
		if u.Name == "ben" {
			user = u.ID
		}
	}
	key := rules.LineKey{Team: w.Slack.State().Team.ID, Channel: channelID("general"), TS: ts}
	event := map[string]string{"type": "message", "channel": key.Channel, "channel_type": "channel", "user": user, "team": key.Team, "text": text, "ts": ts}
	if root != ts {
		event["thread_ts"] = root
	}
	raw, err := json.Marshal(event)
	if err != nil {
		return workflows.Trigger{}, fmt.Errorf("write an event: %w", err)
	}
	return workflows.Trigger{
		Kind: workflows.KindLine, Author: rules.Person, MaySpawn: true, Raw: raw, Ask: &rules.Ask{Dispatcher: dispatcher},
		Line: rules.Line{LineKey: key, Root: root, ChannelType: "channel", User: user, UserTeam: key.Team, Text: text},
	}, nil
}

// picked is the dispatcher's line under an ask, as the starter will tell of it.
func picked(ask workflows.Trigger) workflows.Trigger {
	ts := rules.TimeTS(rules.TSTime(ask.Line.TS).Add(1_000_000_000))
	return workflows.Trigger{
		Kind: "pick", Author: rules.Dispatcher, EventTS: ts,
		Line: rules.Line{LineKey: rules.LineKey{Team: ask.Line.Team, Channel: ask.Line.Channel, TS: ts}, Root: ask.Line.Root, User: dispatcher},
		Pick: &rules.DispatchLine{AskTS: ask.Line.TS, Asker: ask.Line.User, Driver: "U0SMITH0001"},
	}
}

// begin starts a brain with an ask.
func (w *World) begin(ctx context.Context, ask workflows.Trigger) (Execution, error) {
	thread := ask.Line.Thread()
	x := w.brainIn(thread.Channel, thread.Root)
	_, err := w.client.SignalWithStartWorkflow(ctx, x.ID, workflows.SignalAddContext, ask, w.options(x.ID), workflows.ReplyType, workflows.ReplyInput{
		Seat: seat, Thread: thread, Settings: w.settings(), Trigger: ask,
	})
	if err != nil {
		return x, fmt.Errorf("start %s: %w", x.ID, err)
	}
	return x, nil
}

func asked(pick bool) func(context.Context, *World) (Execution, error) {
	return func(ctx context.Context, w *World) (Execution, error) {
		ask, err := w.everyone("", "[[sleep 2s]] [[say It is so.]]")
		if err != nil {
			return Execution{}, err
		}
		x, err := w.begin(ctx, ask)
		if err != nil || !pick {
			return x, err
		}
		return x, w.signal(ctx, x.ID, picked(ask))
	}
}

func askedLater(first string) func(context.Context, *World) (Execution, error) {
	return func(ctx context.Context, w *World) (Execution, error) {
		root, err := w.started(ctx, first)
		if err != nil {
			return Execution{}, err
		}
		x := w.brain(root)
		if first == "[[say First.]]" {
			if err := w.idle(ctx, x, 1); err != nil {
				return x, err
			}
		}
		ask, err := w.everyone(root, "[[say And so.]]")
		if err != nil {
			return x, err
		}
		return x, errors.Join(w.signal(ctx, x.ID, ask), w.signal(ctx, x.ID, picked(ask)), w.answered(ctx, root, 2))
	}
}

// askHanging starts a brain with an ask whose agent hangs.
func (w *World) askHanging(ctx context.Context) (ask workflows.Trigger, x Execution, err error) {
	if ask, err = w.everyone("", "[[hang]]"); err != nil {
		return ask, x, err
	}
	if x, err = w.begin(ctx, ask); err != nil {
		return ask, x, err
	}
	return ask, x, w.asked(ctx, ask.Line.TS)
}

func askStopped(ctx context.Context, w *World) (Execution, error) {
	ask, x, err := w.askHanging(ctx)
	if err != nil {
		return x, err
	}
	stop := ask.Line
	stop.TS, stop.Text = rules.TimeTS(rules.TSTime(stop.TS).Add(60_000_000_000)), "stop"
	return x, w.signal(ctx, x.ID, workflows.Trigger{Kind: workflows.KindStop, Author: rules.Person, Line: stop, EventTS: stop.TS})
}

func askOpen(ctx context.Context, w *World) (Execution, error) {
	ask, x, err := w.askHanging(ctx)
	if err != nil {
		return x, err
	}
	again, err := w.everyone(ask.Line.Root, "[[say Another.]]")
	if err != nil {
		return x, err
	}
	return x, errors.Join(w.signal(ctx, x.ID, picked(ask)), w.signal(ctx, x.ID, again), w.waiting(ctx, x, 1))
}

func askWork(ctx context.Context, w *World) (Execution, error) {
	ask, err := w.everyone("", "[[classify work asked-of-all web]] [[say Handed on.]] [[terminal]] [[say At work.]]")
	if err != nil {
		return Execution{}, err
	}
	x, err := w.begin(ctx, ask)
	if err != nil {
		return x, err
	}
	return x, errors.Join(w.signal(ctx, x.ID, picked(ask)), w.answered(ctx, ask.Line.Root, 1))
}
