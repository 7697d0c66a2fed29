package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"agentsmith/internal/store"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// relayed decides the lines of a line's conversation that nobody has decided yet, in one
// transaction, by the relay that is in force for them (R4). It tells whether that decided
// this line: else it is decided as ever. Every uncertainty leaves a line to the brain (R7):
// an error decides nothing.
func (d *dispatcher) relayed(ctx context.Context, p store.Pending) (route, bool, error) {
	if p.Author != rules.Person || !p.Line.InDM() {
		return route{}, false, nil
	}
	spawn, known := d.people.maySpawn(ctx, p.Line.User)
	var mine route
	var found bool
	err := d.ledger.DecideConversation(ctx, conversation(d.name, p.Row.LineKey), func(s store.ConversationState) []store.ConversationDecision {
		mine, found = route{}, false
		var out []store.ConversationDecision
		for _, act := range rules.DecideRelay(d.facts(s)) {
			if act.Why == rules.RefuseNotOwner {
				continue // whether they may talk at all is asked first
			}
			r, decision := relayRoute(d.name, act, s, spawn && known)
			if decision.Route == nil {
				continue
			}
			out = append(out, decision)
			if act.Key == p.Row.LineKey {
				mine, found = r, true
			}
		}
		return out
	})
	if err != nil {
		return route{}, false, fmt.Errorf("decide a conversation: %w", err)
	}
	if found {
		return mine, true, nil
	}
	// An earlier look at the conversation may have decided it.
	row, err := d.ledger.RowOf(ctx, d.name, p.Row.LineKey)
	if err != nil {
		return route{}, false, fmt.Errorf("read a route: %w", err)
	}
	r, ok := readRoute(row.Route)
	return r, ok, nil
}

func conversation(seat string, k rules.LineKey) store.Conversation {
	return store.Conversation{Seat: seat, Team: k.Team, Channel: k.Channel}
}

// facts are what a conversation is decided by.
func (d *dispatcher) facts(s store.ConversationState) rules.ConversationFacts {
	f := rules.ConversationFacts{StopTS: s.StopTS, Owners: d.owners, Self: d.roster.Self}
	if s.Relay != nil {
		f.Relay = s.Relay.Relay
	}
	for _, r := range s.Rows {
		f.Rows = append(f.Rows, rules.RelayRow{Line: r.Line, Author: r.Author})
	}
	for _, x := range s.Sessions {
		f.Sessions = append(f.Sessions, x.Fact())
	}
	return f
}

// relayRoute is the route of an act, and what the store makes of it.
func relayRoute(seat string, act rules.RelayAct, s store.ConversationState, spawn bool) (route, store.ConversationDecision) {
	var line rules.Line
	for _, r := range s.Rows {
		if r.Row.LineKey == act.Key {
			line = r.Line
		}
	}
	r := doorRoute(seat, line, act)
	out := store.ConversationDecision{Key: act.Key}
	box := boxOf(act.Relay, s)
	switch act.What {
	case rules.RelayForward:
		r = route{Kind: workflows.KindLine, StandsDown: true, MaySpawn: spawn}
		out.Queue = &store.SessionLine{
			Session: act.Relay.Session, Key: act.Key, Seat: seat, From: line.User, Text: line.Text, Relay: act.Relay.ID,
		}
	case rules.RelayOpen:
		out.Open = &store.Relay{Relay: act.Relay, Box: box}
		if act.Switched != nil {
			out.CloseTS = act.Key.TS
			r.FormerBox = boxOf(*act.Switched, s)
		}
	case rules.RelayClose:
		out.CloseTS = act.Key.TS
	}
	r.Relay, r.Box = act.Relay.ID, box
	raw, err := json.Marshal(r)
	if err != nil {
		return r, out // decided as ever
	}
	out.Route = raw
	return r, out
}

// refusedDoor is the route of a door of somebody who may talk and is no owner (X1).
func (d *dispatcher) refusedDoor(p store.Pending) (route, bool) {
	for _, act := range rules.DecideRelay(d.facts(store.ConversationState{Rows: []store.Pending{p}})) {
		if act.Why == rules.RefuseNotOwner {
			return doorRoute(d.name, p.Line, act), true
		}
	}
	return route{}, false
}

func doorRoute(seat string, line rules.Line, act rules.RelayAct) route {
	return route{Kind: workflows.KindRelayDoor, Door: &workflows.DoorInput{Seat: seat, Thread: line.Thread(), User: line.User, Act: act}}
}

// boxOf is the box of a relay's session.
func boxOf(r rules.Relay, s store.ConversationState) string {
	for _, x := range s.Sessions {
		if x.ID == r.Session {
			return x.Box
		}
	}
	if s.Relay != nil && s.Relay.ID == r.ID {
		return s.Relay.Box // its session is none of the newest
	}
	return ""
}

// wakeTicks has the sessions' boxes look after what a route opened, closed or queued (R8).
func (d *dispatcher) wakeTicks(ctx context.Context, p store.Pending, r route) error {
	boxes := []string{r.Box}
	if r.FormerBox != r.Box {
		boxes = append(boxes, r.FormerBox)
	}
	for _, box := range boxes {
		if box == "" {
			continue
		}
		err := d.brains.tick(ctx, p.Row.Team, p.Row.Channel, workflows.TickTrigger{Box: box, Relay: r.Relay, EventTS: p.Row.TS})
		if err != nil {
			return err
		}
	}
	return nil
}

// relayStops tells whether a stop word ends a relay rather than turns (R6). What cannot be
// read is an ordinary stop.
func (x *inbox) relayStops(ctx context.Context, line rules.Line) bool {
	if !line.InDM() {
		return false
	}
	r, err := x.ledger.OpenRelay(ctx, conversation(x.name, line.LineKey))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		x.log.Warn("whether a relay is open could not be read; the stop is an ordinary one", "seat", x.name, "channel", line.Channel, "error", err)
	}
	return err == nil && r.Person == line.User && r.Covers(line.TS)
}
