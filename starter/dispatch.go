package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/rules"
	"agentsmith/workflows"
)

const (
	// dispatchBatch is how many lines one look at the ledger brings.
	dispatchBatch = 500
	// dispatchThreads is how many threads are signalled at the same time.
	dispatchThreads = 16
	// dispatchAgain is how soon what failed is tried again.
	dispatchAgain = time.Second
)

// dispatcher brings the owed lines of one seat to their brains (L2): in ts order within
// a thread, threads beside each other, so that one that fails holds up no other.
type dispatcher struct {
	*seat
	handOffs *handOffs
	kick     chan struct{}
	places   chan struct{}

	tasks sync.WaitGroup

	mu sync.Mutex
	// looks counts the looks at the ledger.
	looks int
	// busy are the threads that are being signalled; true: there is more for them.
	busy map[rules.Thread]bool
	// ended is at which look a thread was last done with: what was read before is stale.
	ended map[rules.Thread]int
	// rest are the threads that failed, and until when they are left alone.
	rest map[rules.Thread]resting
}

type resting struct {
	until time.Time
	fails int
}

func newDispatcher(s *seat) *dispatcher {
	d := &dispatcher{
		seat: s, kick: make(chan struct{}, 1), places: make(chan struct{}, dispatchThreads),
		busy: map[rules.Thread]bool{}, ended: map[rules.Thread]int{}, rest: map[rules.Thread]resting{},
	}
	d.handOffs = newHandOffs(s.slack, s.now, d.wake)
	return d
}

// wake has the ledger looked at soon; it never blocks.
func (d *dispatcher) wake() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// run looks at the ledger at boot and whenever it is woken, until ctx ends; then it
// finishes what is being signalled.
func (d *dispatcher) run(ctx context.Context) {
	defer d.tasks.Wait()
	for {
		again := d.pass(ctx)
		timer := time.NewTimer(dispatchAgain)
		if !again {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-d.kick:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pass starts what can be signalled now and tells whether to look again in a while
// without being woken.
func (d *dispatcher) pass(ctx context.Context) (again bool) {
	look := d.look()
	pending, err := d.ledger.Undispatched(ctx, d.name, dispatchBatch)
	if err != nil {
		if ctx.Err() == nil {
			d.log.Error("the ledger cannot be read", "seat", d.name, "error", err)
		}
		return true
	}
	threads, lines := byThread(pending)
	for _, t := range threads {
		if !d.begin(t, look) {
			again = true
			continue
		}
		select {
		case d.places <- struct{}{}:
		case <-ctx.Done():
			d.end(t, nil)
			return false
		}
		d.tasks.Go(func() {
			defer func() { <-d.places }()
			// What was begun is finished, also while the starter ends (T6).
			d.end(t, d.thread(context.WithoutCancel(ctx), lines[t]))
		})
	}
	return again || len(pending) == dispatchBatch
}

// finish dispatches what is owed while that goes on, at most until ctx ends. What is left
// is dispatched at the next start.
func (d *dispatcher) finish(ctx context.Context) {
	for left := -1; ; {
		pending, err := d.ledger.Undispatched(ctx, d.name, dispatchBatch)
		if err != nil || len(pending) == 0 || len(pending) == left {
			return
		}
		left = len(pending)
		d.pass(ctx)
		if within(ctx, d.tasks.Wait) != nil {
			return
		}
	}
}

func byThread(pending []store.Pending) ([]rules.Thread, map[rules.Thread][]store.Pending) {
	var order []rules.Thread
	lines := map[rules.Thread][]store.Pending{}
	for _, p := range pending {
		t := p.Row.Thread()
		if len(lines[t]) == 0 {
			order = append(order, t)
		}
		lines[t] = append(lines[t], p)
	}
	return order, lines
}

// look begins a look at the ledger.
func (d *dispatcher) look() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	maps.DeleteFunc(d.ended, func(_ rules.Thread, at int) bool { return at < d.looks-1 })
	return d.looks
}

// begin takes a thread that was read at a look, unless it is being signalled, was since,
// or rests after a failure.
func (d *dispatcher) begin(t rules.Thread, look int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, busy := d.busy[t]; busy {
		d.busy[t] = true
		return false
	}
	if at, stale := d.ended[t]; stale && at >= look {
		d.wake()
		return false
	}
	if d.now().Before(d.rest[t].until) {
		return false
	}
	d.busy[t] = false
	return true
}

// end gives a thread back.
func (d *dispatcher) end(t rules.Thread, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy[t] {
		d.wake()
	}
	delete(d.busy, t)
	d.ended[t] = d.looks
	switch {
	case err == nil:
		if len(d.rest) > 0 {
			delete(d.rest, t)
			d.wake() // Temporal may be back for the others as well
		}
		d.loud.Clear("dispatch "+d.name, "Lines for "+d.name+" reach Temporal again.")
	case errors.Is(err, errWaits):
	default:
		r := resting{fails: d.rest[t].fails + 1}
		r.until = d.now().Add(backoff(r.fails))
		d.rest[t] = r
		time.AfterFunc(backoff(r.fails), d.wake)
		d.log.Error("a thread is not dispatched; it is tried again", "seat", d.name, "channel", t.Channel, "thread", t.Root, "fails", r.fails, "error", err)
		if r.fails == loudFails {
			d.loud.Raise("dispatch "+d.name, "Lines for "+d.name+" do not reach Temporal; they wait in the store and are tried again: "+err.Error())
		}
	}
}

// loudFails is how many failures in a row are said aloud.
const loudFails = 3

// thread brings the lines of one thread to its brain, one after the other.
func (d *dispatcher) thread(ctx context.Context, lines []store.Pending) error {
	for _, p := range lines {
		if err := d.line(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// line records where one line goes, signals it, and then marks it: a crash in between
// signals it again, which the brain and the ledger drop (L3).
func (d *dispatcher) line(ctx context.Context, p store.Pending) error {
	r, err := d.route(ctx, p)
	if err != nil {
		return err
	}
	failpoint.At(failpoint.StarterRouted)
	if err := d.send(ctx, p, r); err != nil {
		if !errors.Is(err, errPoison) {
			return err
		}
		return d.fail(ctx, p, err)
	}
	if r.Drop {
		return nil
	}
	failpoint.At(failpoint.StarterSignalled)
	if err := d.ledger.MarkDispatched(ctx, d.name, p.Row.LineKey); err != nil {
		return fmt.Errorf("mark a line as dispatched: %w", err)
	}
	if r.Kind == workflows.KindLine {
		d.remember(p.Line)
	}
	return nil
}

// send carries out a route.
func (d *dispatcher) send(ctx context.Context, p store.Pending, r route) error {
	t := workflows.Trigger{Kind: r.Kind, Author: p.Author, Line: p.Line, Reason: r.Reason, SiblingHop: r.SiblingHop, MaySpawn: r.MaySpawn,
		RelayStandsDown: r.StandsDown, Door: r.Door, Ask: r.Ask}
	switch {
	case r.Drop:
		if _, err := d.ledger.EndLine(ctx, d.name, p.Row.LineKey, rules.Declined, r.Reason); err != nil {
			return fmt.Errorf("decline a line: %w", err)
		}
		return nil
	case r.Kind == workflows.KindStopOperator:
		t.EventTS = p.Line.TS
	case r.Kind == workflows.KindStop:
		t = stopTrigger(p.Line, p.Author)
		scope := p.Row.Thread()
		if t.WholeChannel {
			scope.Root = ""
		}
		if _, err := d.ledger.RecordStop(ctx, d.name, scope, p.Line.TS); err != nil {
			return fmt.Errorf("record a stop: %w", err)
		}
	}
	if err := d.brains.wake(ctx, p.Row.Thread(), t); err != nil {
		return err
	}
	if r.Relay == "" {
		return nil
	}
	failpoint.At(failpoint.StarterBrainWoken)
	return d.wakeTicks(ctx, p, r)
}

// fail ends a line that Temporal will never take, and says so in its thread, since no
// brain will (L3).
func (d *dispatcher) fail(ctx context.Context, p store.Pending, cause error) error {
	ended, err := d.ledger.EndLine(ctx, d.name, p.Row.LineKey, rules.Failed, rules.ReasonInternal)
	if err != nil {
		return fmt.Errorf("fail a line: %w", err)
	}
	if !ended {
		return nil
	}
	d.loud.Raise("poison "+d.name, "A line for "+d.name+" was failed, since Temporal refuses it: "+cause.Error())
	_, err = d.slack.Post(ctx, slackapi.PostRequest{
		Channel: p.Row.Channel, ThreadTS: p.Row.Root, Part: 1, Parts: 1,
		PostID: rules.TurnID(d.name, p.Row.Channel, p.Row.TS),
		Text:   "I could not take this line on: it does not fit into what carries it to me. Nothing was done. Please send it again in a shorter form.",
	})
	if err != nil {
		d.log.Error("a failed line could not be said in its thread", "seat", d.name, "channel", p.Row.Channel, "line", p.Row.TS, "error", err)
	}
	return nil
}
