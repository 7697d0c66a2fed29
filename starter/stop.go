package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"agentsmith/internal/store"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// errStopUnsaid: a stop is on record, and its brain could not be told. The store is
// not to blame.
var errStopUnsaid = errors.New("the stop's brain could not be told")

// stopTimeout ends the one try that a stop's reaction has while its envelope waits.
const stopTimeout = time.Second

// stopTrigger is the stop word on its way to the brain of its own thread; at a DM's top
// level that is a brain of the stop's own, which stops all others (D4).
func stopTrigger(line rules.Line, author rules.Author) workflows.Trigger {
	return workflows.Trigger{
		Kind: workflows.KindStop, Author: author, Line: line, EventTS: line.TS,
		WholeChannel: rules.StopsWholeChannel(line),
	}
}

// stopByWord records a stop and tells the brain at once, before any queue (D4). The row
// is owed until the brain has it, so a stop that could not be told is dispatched like
// any line.
func (x *inbox) stopByWord(ctx context.Context, line rules.Line, row store.Row) error {
	scope := line.Thread()
	if rules.StopsWholeChannel(line) {
		scope.Root = ""
	}
	if _, err := x.ledger.RecordStop(ctx, x.name, scope, line.TS); err != nil {
		return fmt.Errorf("record a stop: %w", err)
	}
	x.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*signalTimeout)
		defer cancel()
		if err := x.brains.wake(ctx, line.Thread(), stopTrigger(line, row.Author)); err != nil {
			x.log.Warn("a stop waits for its brain", "seat", x.name, "channel", line.Channel, "thread", line.Root, "error", err)
			x.dispatch()
			return
		}
		x.markStop(ctx, row)
	})
	return nil
}

// markStop notes that the brain has the stop. Its route says what it was, should the
// mark fail and the row be looked at again.
func (x *inbox) markStop(ctx context.Context, row store.Row) {
	raw, err := json.Marshal(route{Kind: workflows.KindStop})
	if err == nil {
		_, err = x.ledger.SetRoute(ctx, x.name, row.LineKey, raw)
	}
	if err == nil {
		err = x.ledger.MarkDispatched(ctx, x.name, row.LineKey)
	}
	if err != nil {
		x.log.Warn("a stop could not be marked as told; it is told again", "seat", x.name, "channel", row.Channel, "line", row.TS, "error", err)
		x.dispatch()
	}
}

// recordReaction keeps a reaction, and carries out `:x:` on a line that is being answered
// (D4). A reaction has no row that waits for its dispatch: one whose brain cannot be told
// is kept in the spool until it can.
func (x *inbox) recordReaction(ctx context.Context, in inbound) error {
	fresh, err := x.ledger.RecordReaction(ctx, store.Reaction{
		LineKey: in.line.LineKey, User: in.user, Name: in.reaction, EventTS: in.eventTS, Removed: in.removed,
	})
	if err != nil {
		return fmt.Errorf("record a reaction: %w", err)
	}
	if !fresh || in.removed || in.reaction != rules.StopReaction {
		return nil
	}
	row, err := x.ledger.RowOf(ctx, x.name, in.line.LineKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up the line of a reaction: %w", err)
	}
	if row.State.Ended() || row.State == rules.Noted || !x.personReacts(ctx, in.user) {
		return nil
	}
	if row.StandsDown() {
		// What waits for its session is not typed any more; what was typed is the session's.
		if _, err := x.ledger.Withdraw(ctx, x.name, row.LineKey, rules.Declined, rules.ReasonStopped); err != nil {
			return fmt.Errorf("withdraw a line: %w", err)
		}
		return nil
	}
	return x.stopByReaction(ctx, in, row)
}

func (x *inbox) stopByReaction(ctx context.Context, in inbound, row store.Row) error {
	thread := row.Thread()
	if _, err := x.ledger.RecordStop(ctx, x.name, thread, in.eventTS); err != nil {
		return fmt.Errorf("record a stop: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := x.brains.wake(ctx, thread, workflows.Trigger{
		Kind: workflows.KindStop, Author: rules.Person, EventTS: in.eventTS,
		// No ts: the stop is no line, and has no row that wants an outcome.
		Line: rules.Line{LineKey: rules.LineKey{Team: thread.Team, Channel: thread.Channel}, Root: thread.Root, User: in.user},
	})
	if errors.Is(err, errPoison) {
		x.loud.Raise("stop "+x.name, "A stop by reaction for "+x.name+" cannot be delivered: "+err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errStopUnsaid, err)
	}
	return nil
}

// personReacts tells whether a reaction is a person's. A reaction says only the user's id:
// one that Slack will not tell of counts as a person, since stopping harms nothing.
func (x *inbox) personReacts(ctx context.Context, user string) bool {
	if rules.Who(rules.Line{User: user}, x.roster) != rules.Person {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	p, err := x.slack.User(ctx, user)
	return err != nil || (!p.Bot && !p.Stranger)
}
