package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"

	"agentsmith/rules"
	"agentsmith/signals"
	"agentsmith/workflows"
)

// brains reaches the workflows of the threads. The errors that callers tell apart are
// errNoBrain and errPoison; any other may pass.
type brains interface {
	// wake sends a trigger to the brain of a thread, and starts it where none runs.
	wake(ctx context.Context, t rules.Thread, trigger workflows.Trigger) error
	// tell sends a trigger to a running brain only; errNoBrain where none runs.
	tell(ctx context.Context, t rules.Thread, trigger workflows.Trigger) error
	// tick wakes what looks after the relays of a conversation, and starts it where it does
	// not run (R8).
	tick(ctx context.Context, team, channel string, trigger workflows.TickTrigger) error
}

var (
	// errNoBrain: no brain runs for that thread.
	errNoBrain = errors.New("no brain runs for this thread")
	// errPoison: Temporal will never take this trigger.
	errPoison = errors.New("this trigger is refused by Temporal")
)

// signalTimeout ends one call to Temporal.
const signalTimeout = 5 * time.Second

// triggerBytes is the largest trigger that is sent, as JSON. Temporal refuses one of 2 MiB.
const triggerBytes = 1 << 20

// seatBrains are the brains of one seat on a Temporal server.
type seatBrains struct {
	client   signals.Client
	seat     string
	settings workflows.Settings
	// workspace is the address of the team's Slack, for links; "" where unknown.
	workspace string
}

func (b *seatBrains) wake(ctx context.Context, t rules.Thread, trigger workflows.Trigger) error {
	trigger, err := lighten(trigger)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, signalTimeout)
	defer cancel()
	in := workflows.ReplyInput{Seat: b.seat, Thread: t, Trigger: trigger, Settings: b.settings}
	return signalled("signal with start", t, signals.WakeBrain(ctx, b.client, b.workspace, in))
}

func (b *seatBrains) tell(ctx context.Context, t rules.Thread, trigger workflows.Trigger) error {
	trigger, err := lighten(trigger)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, signalTimeout)
	defer cancel()
	err = b.client.SignalWorkflow(ctx, workflows.ReplyID(b.seat, t), "", workflows.SignalAddContext, trigger)
	return signalled("signal", t, err)
}

func (b *seatBrains) tick(ctx context.Context, team, channel string, trigger workflows.TickTrigger) error {
	ctx, cancel := context.WithTimeout(ctx, signalTimeout)
	defer cancel()
	if err := signals.WakeTick(ctx, b.client, b.seat, team, channel, trigger); err != nil {
		return fmt.Errorf("signal with start the tick of %s: %w", channel, err)
	}
	return nil
}

// lighten makes a trigger fit for a history: the raw event stays in the store, and so
// does a long text. Raw is set only where there is no row.
func lighten(t workflows.Trigger) (workflows.Trigger, error) {
	t = signals.Lighten(t)
	size, err := weigh(t)
	if err == nil && size > triggerBytes && t.Raw == nil {
		t.Line.Text, t.Line.Files, t.TextRef = "", nil, true
		size, err = weigh(t)
	}
	if err != nil {
		return t, fmt.Errorf("weigh a trigger: %w: %w", errPoison, err)
	}
	if size > triggerBytes {
		return t, fmt.Errorf("a trigger of %d bytes: %w", size, errPoison)
	}
	return t, nil
}

func weigh(t workflows.Trigger) (int, error) {
	raw, err := json.Marshal(t)
	return len(raw), err
}

// signalled names the errors of Temporal that callers tell apart.
func signalled(what string, t rules.Thread, err error) error {
	if err == nil {
		return nil
	}
	var notFound *serviceerror.NotFound
	var invalid *serviceerror.InvalidArgument
	switch {
	case what == "signal" && errors.As(err, &notFound):
		err = fmt.Errorf("%w: %w", errNoBrain, err)
	case errors.As(err, &invalid), strings.Contains(err.Error(), "larger than max"):
		err = fmt.Errorf("%w: %w", errPoison, err)
	}
	return fmt.Errorf("%s the brain of %s in %s: %w", what, t.Root, t.Channel, err)
}
