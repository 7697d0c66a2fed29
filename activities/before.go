package activities

import (
	"context"
	"errors"
	"fmt"

	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// before are the operators that this thread had before op and whose entries are open,
// oldest first: their sessions are gone, since a thread has one (O7).
func (a *Task) before(ctx context.Context, op rules.Operator) ([]rules.Operator, error) {
	all, err := a.Ledger.Sessions(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for the thread's sessions before: %w", err)
	}
	var out []rules.Operator
	for _, s := range all {
		// Numbers grow: one that is being bound right now is not one of them.
		if s.Number < op.Number && s.Kind == terminal.KindOperator && s.Seat == op.Seat && s.Thread == op.Thread {
			out = append(out, rules.Operator{
				Number: s.Number, Slug: s.Slug, Repo: s.Repo, Box: s.Box, Seat: s.Seat, Thread: s.Thread, Session: s.ID,
			})
		}
	}
	return out, nil
}

// inherit gives a session the lines that wait for the sessions before it, so that no
// person's line is lost because its session died first (O11, R9), and takes their last
// words. What may have been typed is not typed again (R10).
func (a *Task) inherit(ctx context.Context, op rules.Operator, before []rules.Operator) error {
	for _, gone := range before {
		if err := a.handOver(ctx, gone, op); err != nil {
			return err
		}
		if err := a.collect(ctx, gone); err != nil {
			return err
		}
		_, err := a.Ledger.NextDeposit(ctx, gone.Session)
		if err == nil {
			continue // its entry stays open until its words stand in the thread
		}
		if !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("look for words of a session before: %w", err)
		}
		if err := a.Ledger.EndSession(ctx, gone.Session); err != nil {
			return fmt.Errorf("end the entry of a session before: %w", err)
		}
	}
	return nil
}

// allLines is more than may ever wait for a session.
const allLines = 10_000

// handOver queues the lines of one session for another, in their order. A repeat queues
// none twice.
func (a *Task) handOver(ctx context.Context, from, to rules.Operator) error {
	queued, err := a.untyped(ctx, from, errors.New("the session is gone"))
	if err != nil || len(queued) == 0 {
		return err
	}
	if _, err := a.Ledger.QueueLines(ctx, to.Session, queued); err != nil {
		return fmt.Errorf("hand lines on to a session: %w", err)
	}
	return a.moveAll(ctx, from, queued)
}

// handBack ends the lines that no session takes any more, and says how many: the brain
// has answered them, and the operator never saw them (O11, R9).
func (a *Task) handBack(ctx context.Context, op rules.Operator) error {
	lost, err := a.untyped(ctx, op, errors.New("the task is over"))
	if err != nil || len(lost) == 0 {
		return err
	}
	// By its last line: a repeat that finds only some of them left says it no second time,
	// and lines that come later are told of by themselves.
	if err := a.say(ctx, op, "untyped/"+lineID(lost[len(lost)-1].Key), rules.UntypedText(op, len(lost))); err != nil {
		return err
	}
	return a.moveAll(ctx, op, lost)
}

// untyped are the lines of which it is sure that the session never had them. Of one that
// was being typed it is said that nobody knows.
func (a *Task) untyped(ctx context.Context, op rules.Operator, cause error) ([]store.SessionLine, error) {
	lines, err := a.Ledger.WaitingLines(ctx, op.Session, allLines)
	if err != nil {
		return nil, fmt.Errorf("look for lines that were not typed: %w", err)
	}
	var queued []store.SessionLine
	for _, l := range lines {
		if l.State == store.LineQueued {
			queued = append(queued, l)
			continue
		}
		if err := a.unsure(ctx, op, l, cause); err != nil {
			return nil, err
		}
	}
	return queued, nil
}

func (a *Task) moveAll(ctx context.Context, op rules.Operator, lines []store.SessionLine) error {
	for _, l := range lines {
		if err := a.move(ctx, op, l, store.LineQueued, store.LineHandedBack); err != nil {
			return err
		}
	}
	return nil
}
