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
		f.Sessions = append(f.Sessions, sessionFact(x))
	}
	return f
}

func sessionFact(x store.Session) rules.SessionFact {
	return rules.SessionFact{Number: x.Number, ID: x.ID, Slug: x.Slug, Name: x.Name, Repo: x.Repo, Kind: x.Kind, Box: x.Box, Ended: x.Ended}
}

// relayRoute is the route of an act, and what the store makes of it.
func relayRoute(seat string, act rules.RelayAct, s store.ConversationState, spawn bool) (route, store.ConversationDecision) {
	var line rules.Line
	for _, r := range s.Rows {
		if r.Row.LineKey == act.Key {
			line = r.Line
		}
	}
	r := route{Relay: act.Relay.ID}
	if s.Relay != nil {
		r.Box = s.Relay.Box
	}
	for _, x := range s.Sessions {
		if x.ID == act.Relay.Session {
			r.Box = x.Box
		}
	}
	out := store.ConversationDecision{Key: act.Key}
	switch act.What {
	case rules.RelayForward:
		r.Kind, r.StandsDown, r.MaySpawn = workflows.KindLine, true, spawn
		out.Queue = &store.SessionLine{
			Session: act.Relay.Session, Key: act.Key, Seat: seat, From: line.User, Text: line.Text, Relay: act.Relay.ID,
		}
	case rules.RelayOpen:
		out.Open = &store.Relay{Relay: act.Relay, Box: r.Box}
		if act.Switched != nil {
			out.CloseTS = act.Key.TS
		}
	case rules.RelayClose:
		out.CloseTS = act.Key.TS
	}
	if r.Kind == "" {
		r.Kind = workflows.KindRelayDoor
		r.Door = &workflows.DoorInput{Seat: seat, Thread: line.Thread(), User: line.User, Act: act}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return r, out // decided as ever
	}
	out.Route = raw
	return r, out
}

// refusedDoor is the route of a door of somebody who may talk and is no owner (X1).
func (d *dispatcher) refusedDoor(p store.Pending) (route, bool) {
	door, ok := rules.ReadDoor(p.Line.Text, d.roster.Self.BotUser)
	if !ok || door.Kind == rules.DoorStop || p.Line.EditedTS != "" || !p.Line.InDM() {
		return route{}, false
	}
	return route{Kind: workflows.KindRelayDoor, Door: &workflows.DoorInput{
		Seat: d.name, Thread: p.Line.Thread(), User: p.Line.User,
		Act: rules.RelayAct{Key: p.Row.LineKey, What: rules.RelayRefuse, Door: door, Why: rules.RefuseNotOwner},
	}}, true
}

// wakeTicks has the sessions' boxes look after what a route opened, closed or queued (R8).
func (d *dispatcher) wakeTicks(ctx context.Context, p store.Pending, r route) error {
	boxes := []string{r.Box}
	if r.Door != nil && r.Door.Act.Switched != nil {
		before, err := d.ledger.RelayByID(ctx, r.Door.Act.Switched.ID)
		if err == nil && before.Box != r.Box {
			boxes = append(boxes, before.Box)
		}
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
