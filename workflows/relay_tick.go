package workflows

import (
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"agentsmith/activities"
)

// RelayTick looks after the relays of one conversation while one is open or lines or words
// of one are under way: on a wake at once, and now and then as the safety net. Each look is
// the box's: lines are typed there and words taken. With no relay it ends, and costs
// nothing (R8).
func RelayTick(ctx workflow.Context, in TickStart) error {
	t, err := newTick(ctx, in)
	if err != nil {
		return err
	}
	return t.run(ctx)
}

// tick is the state of one run of RelayTick.
type tick struct {
	in      TickStart
	signals workflow.ReceiveChannel
	boxes   []*tickBox
	looks   int
	net     safetyNet
}

// tickBox is a box with a session of this conversation's relays.
type tickBox struct {
	name string
	// due: it has to be looked at. look is the look that runs now.
	due  bool
	look workflow.Future
	// open and outstanding are what the last look found.
	open, outstanding bool
}

func newTick(ctx workflow.Context, in TickStart) (*tick, error) {
	t := &tick{in: in, signals: workflow.GetSignalChannel(ctx, SignalRelayTick)}
	for _, name := range in.Boxes {
		t.wake(name)
	}
	err := workflow.SetQueryHandler(ctx, QueryRelay, func() (TickView, error) { return t.view(), nil })
	if err != nil {
		return nil, fmt.Errorf("set the query %s: %w", QueryRelay, err)
	}
	return t, nil
}

// run is the story of a conversation's relays: look where something is due, else wait,
// until nothing is open or under way on any box.
func (t *tick) run(ctx workflow.Context) error {
	for {
		t.drain()
		t.begin(ctx)
		t.describe(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case len(t.boxes) == 0:
			return nil
		case t.renewing(ctx) && !t.looking():
			return t.renew(ctx)
		default:
			t.wait(ctx)
		}
	}
}

// drain takes every wake that has arrived. It never yields.
func (t *tick) drain() {
	for {
		var s TickTrigger
		if !t.signals.ReceiveAsync(&s) {
			return
		}
		t.wake(s.Box)
	}
}

// wake has a box looked at.
func (t *tick) wake(name string) {
	if name == "" {
		return
	}
	i := slices.IndexFunc(t.boxes, func(b *tickBox) bool { return b.name == name })
	if i < 0 {
		t.boxes = append(t.boxes, &tickBox{name: name})
		i = len(t.boxes) - 1
	}
	t.boxes[i].due = true
}

// begin starts the looks that are due, each box for itself: one that is away holds up no
// other.
func (t *tick) begin(ctx workflow.Context) {
	for _, b := range t.boxes {
		if !b.due || b.look != nil || t.renewing(ctx) {
			continue
		}
		var r *activities.Relay
		b.due = false
		t.looks++
		b.look = workflow.ExecuteActivity(taskOptions(ctx, b.name, "look"), r.Tick, activities.TickInput{
			Seat: t.in.Seat, Team: t.in.Team, Channel: t.in.Channel, Box: b.name,
		})
	}
}

// renewing: what is due is left to the next run.
func (t *tick) renewing(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// take takes what the looks found. A box with nothing open or under way is done with.
func (t *tick) take(ctx workflow.Context) {
	for _, b := range t.boxes {
		if b.look == nil || !b.look.IsReady() {
			continue
		}
		var found activities.TickResult
		if err := b.look.Get(ctx, &found); err != nil {
			workflow.GetLogger(ctx).Error("a box could not be looked at; the slow tick looks again", "box", b.name, "error", err)
			found = activities.TickResult{Open: true}
		}
		b.look, b.open, b.outstanding = nil, found.Open, found.Outstanding
	}
	t.boxes = slices.DeleteFunc(t.boxes, func(b *tickBox) bool {
		return b.look == nil && !b.due && !b.open && !b.outstanding
	})
}

// wait blocks until something happens or the tick is due.
func (t *tick) wait(ctx workflow.Context) {
	outstanding := slices.ContainsFunc(t.boxes, func(b *tickBox) bool { return b.outstanding })
	if !t.looking() {
		t.net.set(ctx, outstanding, t.in.Settings.Slow, t.in.Settings.Fast)
	}
	_ = workflow.Await(ctx, func() bool {
		return t.signals.Len() > 0 || t.net.fired() || slices.ContainsFunc(t.boxes, func(b *tickBox) bool {
			return b.look != nil && b.look.IsReady()
		})
	})
	if ctx.Err() != nil {
		return
	}
	if t.net.take() {
		for _, b := range t.boxes {
			b.due = true
		}
	}
	t.drain()
	t.take(ctx)
}

func (t *tick) looking() bool {
	return slices.ContainsFunc(t.boxes, func(b *tickBox) bool { return b.look != nil })
}

// renew continues as new with every wake taken and no look running: each box is looked at
// again by the next run.
func (t *tick) renew(ctx workflow.Context) error {
	t.drain()
	next := t.in
	next.Boxes = t.names()
	return workflow.NewContinueAsNewError(ctx, RelayTick, next)
}

func (t *tick) names() []string {
	var out []string
	for _, b := range t.boxes {
		out = append(out, b.name)
	}
	return out
}

// QueryRelay returns a TickView: what a conversation's relays are doing (T2).
const QueryRelay = "relay"

// TickView is the answer to QueryRelay.
type TickView struct {
	Seat    string    `json:"seat"`
	Channel string    `json:"channel"`
	Boxes   []BoxView `json:"boxes"`
	Looks   int       `json:"looks"`
}

// BoxView is a box in a TickView.
type BoxView struct {
	Box         string `json:"box"`
	Open        bool   `json:"open,omitempty"`
	Outstanding bool   `json:"outstanding,omitempty"`
	Looking     bool   `json:"looking,omitempty"`
}

func (t *tick) view() TickView {
	v := TickView{Seat: t.in.Seat, Channel: t.in.Channel, Looks: t.looks}
	for _, b := range t.boxes {
		v.Boxes = append(v.Boxes, BoxView{Box: b.name, Open: b.open, Outstanding: b.outstanding, Looking: b.look != nil})
	}
	return v
}

// describe shows the same in the Temporal UI and CLI, at no cost (T2).
func (t *tick) describe(ctx workflow.Context) {
	doing := "nothing is under way"
	if slices.ContainsFunc(t.boxes, func(b *tickBox) bool { return b.outstanding }) {
		doing = "lines or words are under way"
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("%s relays in %s: %s; sessions on: %s",
		t.in.Seat, t.in.Channel, doing, strings.Join(t.names(), " ")))
}
