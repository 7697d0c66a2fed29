package activities

import (
	"context"
	"errors"
	"fmt"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

// passOn has the lines of people typed into the session of the thread's operator (O11).
// They are on record before the agent runs; the task types them. Those that stand in
// the operator's brief it has. gone: the thread is that operator's no longer.
func (a *Agent) passOn(ctx context.Context, seat *Seat, in RunAgentInput, lines []rules.Line) (gone bool, err error) {
	if in.Operator == nil || in.Disposition == rules.DispSpawned {
		return false, nil
	}
	op := *in.Operator
	c, err := a.Ledger.ClaimOf(ctx, in.Turn.Seat, in.Turn.Thread)
	if errors.Is(err, store.ErrNotFound) || err == nil && c.Session != op.Session {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up the thread's operator: %w", err)
	}
	authors := map[string]rules.Author{}
	for _, l := range in.Turn.Lines {
		authors[l.Line.TS] = l.Author
	}
	w := briefing{agent: a, seat: seat, names: map[string]string{}}
	var queue []store.SessionLine
	for _, l := range lines {
		if authors[l.TS] == rules.Person && rules.CompareTS(l.TS, op.Asked) > 0 {
			queue = append(queue, store.SessionLine{
				Session: op.Session, Key: l.LineKey, Seat: in.Turn.Seat, From: l.User,
				Text: rules.TerminalLine(w.name(ctx, l.User), w.plain(ctx, l.Text)),
			})
		}
	}
	if len(queue) == 0 {
		return false, nil
	}
	if _, err := a.Ledger.QueueLines(ctx, op.Session, queue); err != nil {
		return false, fmt.Errorf("pass lines on to the operator: %w", err)
	}
	// Once more: the task may have ended since, and looked for lines before these were there.
	// Those that nobody has taken are the brain's alone.
	if c, err := a.Ledger.ClaimOf(ctx, in.Turn.Seat, in.Turn.Thread); errors.Is(err, store.ErrNotFound) || err == nil && c.Session != op.Session {
		return true, a.takeBack(ctx, queue)
	} else if err != nil {
		return false, fmt.Errorf("look up the thread's operator again: %w", err)
	}
	if err := a.Tasks.Wake(ctx, in.Turn.Seat, op.Slug); err != nil {
		a.Log.Warn("lines for an operator wait for its task's tick", "slug", op.Slug, "error", err)
	}
	return false, nil
}

// takeBack takes lines from the session that they wait for, where they still do.
func (a *Agent) takeBack(ctx context.Context, lines []store.SessionLine) error {
	for _, l := range lines {
		if _, err := a.Ledger.MoveLine(ctx, l.Session, l.Key, store.LineQueued, store.LineHandedBack); err != nil {
			return fmt.Errorf("take a line back: %w", err)
		}
	}
	return nil
}
