package signals

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"agentsmith/rules"
	"agentsmith/workflows"
)

// WakeTick has the relays of a conversation looked after on a box, and starts what looks
// after them where it does not run (R8). ctx bounds the call; the error is Temporal's own.
func WakeTick(ctx context.Context, c Client, seat, team, channel string, t workflows.TickTrigger) error {
	id := workflows.RelayTickID(seat, channel)
	_, err := c.SignalWithStartWorkflow(ctx, id, workflows.SignalRelayTick, t, client.StartWorkflowOptions{
		ID:                    id,
		TaskQueue:             workflows.TaskQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: workflows.SearchAttributes(seat, rules.Thread{Team: team, Channel: channel}),
		Memo:                  map[string]any{"seat": seat, "channel": channel},
		StaticSummary:         "relays of " + seat + " in " + channel,
	}, workflows.RelayTickType, workflows.TickStart{
		Seat: seat, Team: team, Channel: channel,
		Settings: workflows.TickSettings{Fast: workflows.FastTick, Slow: workflows.SlowTick},
	})
	return err
}

// WakeTick wakes the tick of a conversation for a box.
func (w *Worker) WakeTick(ctx context.Context, seat, team, channel, box, relay string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := WakeTick(ctx, w.Client, seat, team, channel, workflows.TickTrigger{Box: box, Relay: relay}); err != nil {
		return fmt.Errorf("signal with start the tick of %s: %w", channel, err)
	}
	return nil
}

// HandBack gives the brain of its thread a line that a relay could not carry (R9). The
// store has given it back before.
func (w *Worker) HandBack(ctx context.Context, seat string, line rules.Line, maySpawn bool) error {
	return w.wakeBrain(ctx, seat, line.Thread(), Lighten(workflows.Trigger{
		Kind: workflows.KindLine, Author: rules.Person, Line: line, MaySpawn: maySpawn, HandedBack: true,
	}))
}
