package main

import (
	"context"
	"time"

	"agentsmith/internal/store"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// sweepEvery is how often lines that are owed for too long are looked for (L3).
const sweepEvery = time.Minute

// sweep asks the brains about lines that are owed for too long, until ctx ends.
func (s *seat) sweep(ctx context.Context) {
	for pause(ctx, sweepEvery) {
		s.sweepOnce(ctx)
		s.dispatch() // what a worker gave back, and could not tell its brain (R9)
	}
}

// sweepOnce sends one question a thread, and none to Temporal when nothing is owed. A
// line that was asked about counts as untouched from then on.
func (s *seat) sweepOnce(ctx context.Context) {
	rows, err := s.ledger.OverdueLines(ctx, s.name, s.owedTooLong, dispatchBatch)
	if err != nil {
		s.log.Error("the sweep cannot read the ledger", "seat", s.name, "error", err)
		return
	}
	var order []rules.Thread
	lines := map[rules.Thread][]rules.LineKey{}
	for _, r := range rows {
		if r.StandsDown() {
			s.checkRelay(ctx, r)
			continue
		}
		t := r.Thread()
		if len(lines[t]) == 0 {
			order = append(order, t)
		}
		lines[t] = append(lines[t], r.LineKey)
	}
	for _, t := range order {
		if err := s.check(ctx, t, lines[t]); err != nil {
			s.log.Error("the sweep could not ask a brain", "seat", s.name, "channel", t.Channel, "thread", t.Root, "error", err)
		}
	}
}

// checkRelay has a line looked at that waits for its session: no brain holds it.
func (s *seat) checkRelay(ctx context.Context, row store.Row) {
	r, _ := readRoute(row.Route)
	err := s.brains.tick(ctx, row.Team, row.Channel, workflows.TickTrigger{Box: r.Box, Relay: r.Relay, EventTS: row.TS})
	if err == nil {
		err = s.ledger.TouchLines(ctx, s.name, []rules.LineKey{row.LineKey})
	}
	if err != nil {
		s.log.Error("the sweep could not have a relay looked at", "seat", s.name, "channel", row.Channel, "line", row.TS, "error", err)
	}
}

func (s *seat) check(ctx context.Context, t rules.Thread, keys []rules.LineKey) error {
	trigger := workflows.Trigger{
		Kind: workflows.KindCheck,
		Line: rules.Line{LineKey: rules.LineKey{Team: t.Team, Channel: t.Channel}, Root: t.Root},
	}
	for _, k := range keys {
		trigger.Lines = append(trigger.Lines, k.TS)
	}
	if err := s.brains.wake(ctx, t, trigger); err != nil {
		return err
	}
	s.log.Warn("asked a brain about lines that are owed for too long", "seat", s.name, "channel", t.Channel, "thread", t.Root, "lines", trigger.Lines)
	return s.ledger.TouchLines(ctx, s.name, keys)
}
