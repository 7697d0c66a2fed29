package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentsmith/internal/store"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// errWaits: a line cannot be routed yet; whoever has the answer wakes the dispatcher.
var errWaits = errors.New("the line waits for an answer")

// route is where a line goes. It stands on the line's row before anything is signalled,
// so that nothing is decided twice (L2).
type route struct {
	Kind   workflows.Kind `json:"kind,omitempty"`
	Reason rules.Reason   `json:"reason,omitempty"`
	// SiblingHop of a hand-off (D2).
	SiblingHop int `json:"sibling_hop,omitempty"`
	// MaySpawn: the line's author may cause a spawn (X1).
	MaySpawn bool `json:"may_spawn,omitempty"`
	// StandsDown: the relay carries the line to a session on the box, and its brain takes no
	// turn (R4).
	StandsDown bool   `json:"stands_down,omitempty"`
	Relay      string `json:"relay,omitempty"`
	Box        string `json:"box,omitempty"`
	// FormerBox is that of the relay whose place this one took.
	FormerBox string `json:"former_box,omitempty"`
	// Door is what a door line did (R1).
	Door *workflows.DoorInput `json:"door,omitempty"`
	// Ask: the line asks every seat (A1).
	Ask *rules.Ask `json:"ask,omitempty"`
	// Drop: the line is declined without a word, and reaches no brain.
	Drop bool `json:"drop,omitempty"`
}

// route returns where a line goes: what stands on its row, or what is decided now.
func (d *dispatcher) route(ctx context.Context, p store.Pending) (route, error) {
	if r, ok := readRoute(p.Row.Route); ok {
		return r, nil
	}
	r, ok, err := d.relayed(ctx, p)
	if ok {
		return r, nil
	}
	if err != nil {
		d.log.Warn("whether a relay carries a line could not be told; it is the brain's", "seat", d.name, "channel", p.Row.Channel, "line", p.Row.TS, "error", err)
	}
	r, err = d.decide(ctx, p)
	if err != nil {
		return route{}, err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return route{}, fmt.Errorf("write a route: %w", err)
	}
	stands, err := d.ledger.SetRoute(ctx, d.name, p.Row.LineKey, raw)
	if err != nil {
		return route{}, fmt.Errorf("record a route: %w", err)
	}
	if first, ok := readRoute(stands); ok {
		return first, nil
	}
	return r, nil
}

func readRoute(raw json.RawMessage) (route, bool) {
	var r route
	if len(raw) == 0 || json.Unmarshal(raw, &r) != nil {
		return route{}, false
	}
	switch r.Kind {
	case workflows.KindLine, workflows.KindDecline, workflows.KindStop, workflows.KindStopOperator:
		return r, true
	case workflows.KindRelayDoor:
		return r, r.Door != nil
	}
	return r, r.Drop
}

// decide asks who wrote an owed line and whether they may (D2, X1). It never waits: what
// is not known yet is errWaits.
func (d *dispatcher) decide(ctx context.Context, p store.Pending) (route, error) {
	switch p.Author {
	case rules.Outsider:
		return route{Kind: workflows.KindDecline, Reason: rules.ReasonOutsider}, nil
	case rules.Sibling:
		return d.decideHandOff(ctx, p)
	case rules.Person:
	default:
		// A fuller copy showed that no person wrote it.
		return route{Drop: true, Reason: rules.ReasonNotMember}, nil
	}
	if p.Line.EditedTS == "" && rules.IsStop(p.Line.Text, d.roster.Self.BotUser) {
		return route{Kind: workflows.KindStop}, nil
	}
	ok, reason, known := d.people.may(ctx, p.Line.User)
	switch {
	case !known:
		return route{}, errWaits
	case !ok:
		return route{Kind: workflows.KindDecline, Reason: reason}, nil
	}
	if p.Line.EditedTS == "" && rules.IsStopOperator(p.Line.Text, d.roster.Self.BotUser) {
		return route{Kind: workflows.KindStopOperator}, nil
	}
	if r, ok := d.refusedDoor(p); ok {
		return r, nil
	}
	spawn, known := d.people.maySpawn(ctx, p.Line.User)
	if !known {
		return route{}, errWaits
	}
	return route{Kind: workflows.KindLine, MaySpawn: spawn, Ask: d.askOf(p.Line, p.Author)}, nil
}

func (d *dispatcher) decideHandOff(ctx context.Context, p store.Pending) (route, error) {
	from, ok := d.roster.Seat(p.Line)
	if !ok {
		return route{Drop: true, Reason: rules.ReasonNoHandOff}, nil
	}
	hop, marked, known := d.handOffs.read(ctx, p.Line, from, d.roster.Self)
	switch {
	case !known:
		return route{}, errWaits
	case !marked:
		return route{Drop: true, Reason: rules.ReasonNoHandOff}, nil
	case rules.OverHops(hop, d.siblingHops):
		return route{Kind: workflows.KindDecline, Reason: rules.ReasonHops, SiblingHop: hop}, nil
	}
	taken, err := d.ledger.HandOffsTaken(ctx, d.name, p.Row.Thread())
	if err != nil {
		return route{}, fmt.Errorf("count the hand-offs of a thread: %w", err)
	}
	if taken > d.threadHandOffs { // this one is counted
		return route{Kind: workflows.KindDecline, Reason: rules.ReasonThreadCap, SiblingHop: hop}, nil
	}
	return route{Kind: workflows.KindLine, SiblingHop: hop}, nil
}

// handOffs reads lines of other seats back from Slack, since an event may strip the mark
// of a hand-off (D2).
type handOffs struct {
	slack    slackReader
	now      func() time.Time
	answered func()

	mu    sync.Mutex
	asked map[rules.LineKey]*handOffAsk
}

type handOffAsk struct {
	since  time.Time
	done   bool
	hop    int
	marked bool
}

func newHandOffs(slack slackReader, now func() time.Time, answered func()) *handOffs {
	return &handOffs{slack: slack, now: now, answered: answered, asked: map[rules.LineKey]*handOffAsk{}}
}

// read tells whether a line is a marked hand-off and which hop it has; known is false
// while Slack is being asked. After lookupFor in vain it counts as none.
func (h *handOffs) read(ctx context.Context, line rules.Line, from, self rules.SeatIdentity) (hop int, marked, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ask, ok := h.asked[line.LineKey]
	if !ok {
		ask = &handOffAsk{since: h.now()}
		h.asked[line.LineKey] = ask
		go h.ask(ctx, ask, line, from, self)
	}
	if !ask.done {
		return 0, false, false
	}
	delete(h.asked, line.LineKey)
	return ask.hop, ask.marked, true
}

func (h *handOffs) ask(ctx context.Context, ask *handOffAsk, line rules.Line, from, self rules.SeatIdentity) {
	for {
		hop, marked, err := h.readBack(ctx, line, from, self)
		if err == nil || h.now().Sub(ask.since) >= lookupFor || !pause(ctx, lookupAgain) {
			h.mu.Lock()
			ask.done, ask.hop, ask.marked = true, hop, marked
			h.mu.Unlock()
			h.answered()
			return
		}
	}
}

func (h *handOffs) readBack(ctx context.Context, line rules.Line, from, self rules.SeatIdentity) (int, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*lookupTry)
	defer cancel()
	before := rules.TimeTS(rules.TSTime(line.TS).Add(-time.Microsecond))
	for got, err := range h.slack.Replies(ctx, line.Channel, line.Root, before) {
		if err != nil {
			return 0, false, fmt.Errorf("read a hand-off back: %w", err)
		}
		if got.TS == line.TS {
			hop, ok := rules.HandOff(got, from, self)
			return hop, ok, nil
		}
		if rules.CompareTS(got.TS, line.TS) > 0 {
			break
		}
	}
	return 0, false, nil
}
