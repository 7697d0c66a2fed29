package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/store"
	"agentsmith/rules"
	"agentsmith/workflows"
)

const (
	// storeTimeout is how long an envelope waits for the store. Slack waits 3 s for the
	// ack, and the two ways out behind the store need their time as well (L2).
	storeTimeout = 1500 * time.Millisecond
	// aroundTimeout is how long it then waits for Temporal.
	aroundTimeout = 800 * time.Millisecond
	// storeRetry is how often a store that is down is asked whether it is back, and
	// how often what the spool keeps is tried again.
	storeRetry = 500 * time.Millisecond
)

// inbox makes what arrives durable: in the store, or else as a signal, or else in the
// spool (L2). Its receive is called by one goroutine, the reader of the door's socket.
type inbox struct {
	*seat
	// due: a line was recorded that the dispatcher does not know of yet.
	due atomic.Bool
	// tasks are what was begun and does not hold up the reader.
	tasks sync.WaitGroup
	// spoolRetry wakes mend; stuck is mend's count of failures of one envelope.
	spoolRetry chan struct{}
	stuck      int

	mu sync.Mutex
	// down: the store did not answer; it is left alone until mend finds it back.
	down   bool
	warned map[string]bool
}

func newInbox(s *seat) *inbox {
	return &inbox{seat: s, spoolRetry: make(chan struct{}, 1), warned: map[string]bool{}}
}

// errStoreDown is returned without asking a store that is known to be down: one
// envelope that waits for it must not hold up the next (L2).
var errStoreDown = errors.New("the store is down")

// receive makes one envelope durable. nil means that it may be acked.
func (x *inbox) receive(ctx context.Context, in inbound) error {
	failpoint.At(failpoint.StarterReceived)
	if in.kind == isNothing || in.kind == isCommand {
		return nil
	}
	stored := x.storeOnce(ctx, in)
	if stored == nil {
		failpoint.At(failpoint.StarterRecorded)
		return nil
	}
	if x.around(ctx, in) {
		return nil
	}
	if err := x.spool.keep(in.raw); err != nil {
		x.loud.Raise("spool "+x.name, "An envelope for "+x.name+" could be kept nowhere; Slack was not told that it arrived, and sends it again: "+errors.Join(stored, err).Error())
		return errors.Join(stored, err)
	}
	x.log.Warn("kept in the spool", "seat", x.name, "envelope", in.envelope, "error", stored)
	x.wakeMend()
	return nil
}

// flush wakes the dispatcher if a line was recorded since: after its ack, which must not
// wait for the dispatcher.
func (x *inbox) flush() {
	if x.due.Swap(false) {
		x.dispatch()
	}
}

// storeOnce writes an envelope to the store, unless that is known to be down.
func (x *inbox) storeOnce(ctx context.Context, in inbound) error {
	if x.isDown() {
		return errStoreDown
	}
	tryCtx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := x.record(tryCtx, in)
	// A call that was cut off because the starter ends says nothing about the store.
	if err != nil && !errors.Is(err, errStopUnsaid) && ctx.Err() == nil {
		x.setDown(err)
	}
	return err
}

// record writes what an envelope brings. What can never be stored as what it is, is
// stored raw.
func (x *inbox) record(ctx context.Context, in inbound) error {
	var err error
	switch in.kind {
	case isLine:
		err = x.recordLine(ctx, in)
	case isEdit:
		err = x.recordEdit(ctx, in)
	case isDeletion:
		err = x.recordDeletion(ctx, in)
	case isReaction:
		err = x.recordReaction(ctx, in)
	default:
		return x.recordStrange(ctx, in)
	}
	if errors.Is(err, store.ErrInvalid) {
		in.name, in.why = string(in.kind), clip(err.Error())
		return x.recordStrange(ctx, in)
	}
	return err
}

func (x *inbox) recordLine(ctx context.Context, in inbound) error {
	author := rules.Who(in.line, x.who())
	var e rules.Engagement
	row, err := x.ledger.Record(ctx, x.name, in.line, author, func(f store.Facts) store.Verdict {
		e = x.engage(in.line, author, in.mentioned, f)
		return verdict(e)
	})
	if err != nil {
		return fmt.Errorf("record a line: %w", err)
	}
	x.hint(in.line, author)
	if !row.NeedsDispatch() {
		return nil
	}
	if e.Stop && !x.relayStops(ctx, in.line) {
		return x.stopByWord(ctx, in.line, row)
	}
	x.due.Store(true)
	return nil
}

// recordEdit carries out L4: a line that no turn has begun gets its new text, a begun one
// is told to its brain, and a mention that was added makes the line owed.
func (x *inbox) recordEdit(ctx context.Context, in inbound) error {
	author := rules.Who(in.line, x.who())
	res, err := x.ledger.RecordEdit(ctx, x.name, in.line, author, func(prev *rules.Line, f store.Facts) store.Verdict {
		if f.Prior != nil && author == rules.Sibling {
			return store.Verdict{State: rules.Noted}
		}
		return verdict(x.engage(in.line, author, in.mentioned, f))
	})
	if err != nil {
		return fmt.Errorf("record an edit: %w", err)
	}
	if res.TextChanged {
		x.hint(in.line, author)
	}
	if res.Row.NeedsDispatch() {
		x.due.Store(true)
	}
	if res.TextChanged && res.Row.Begun() {
		x.tellLater(res.Row.Thread(), workflows.Trigger{Kind: workflows.KindEdit, Author: author, Line: in.line, EventTS: in.line.EditedTS})
	}
	return nil
}

func (x *inbox) recordDeletion(ctx context.Context, in inbound) error {
	res, err := x.ledger.RecordDelete(ctx, x.name, in.line.LineKey, in.eventTS)
	if err != nil {
		return fmt.Errorf("record a deletion: %w", err)
	}
	if res.Row != nil && res.Begun && !res.Row.State.Ended() {
		line := rules.Line{LineKey: res.Row.LineKey, Root: res.Row.Root}
		x.tellLater(res.Row.Thread(), workflows.Trigger{Kind: workflows.KindDelete, Author: res.Row.Author, Line: line, EventTS: in.eventTS})
	}
	return nil
}

// recordStrange keeps raw what could not be read, and warns once a kind.
func (x *inbox) recordStrange(ctx context.Context, in inbound) error {
	if err := x.ledger.RecordRaw(ctx, x.name, in.envelope, in.why, in.raw); err != nil {
		return fmt.Errorf("record a raw envelope: %w", err)
	}
	x.mu.Lock()
	known := x.warned[in.name] || len(x.warned) > 1000
	if !known {
		x.warned[in.name] = true
	}
	x.mu.Unlock()
	if !known {
		x.log.Warn("kept raw: an envelope that is not read", "seat", x.name, "kind", in.name, "why", in.why, "envelope", clip(in.envelope))
	}
	return nil
}

// around signals the brain of a line that the store does not take (L1). Only a line that
// engages by itself may go around the ledger, and only one whose author is known to be
// allowed; a line whose raw event is too large waits in the spool like the others.
func (x *inbox) around(ctx context.Context, in inbound) bool {
	if in.kind != isLine {
		return false
	}
	author := rules.Who(in.line, x.who())
	e := rules.Engage(in.line, author, x.roster.Self, in.mentioned || x.asks(in.line, author), rules.ThreadFacts{})
	if author != rules.Person || e.State != rules.Owed {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, aroundTimeout)
	defer cancel()
	trigger := workflows.Trigger{Kind: workflows.KindLine, Author: author, Line: in.line, Raw: in.line.Raw, Ask: x.askOf(in.line, author)}
	if e.Stop {
		trigger = stopTrigger(in.line, author)
		trigger.Raw = in.line.Raw
	} else if ok, _, known := x.people.mayNow(ctx, in.line.User); !known || !ok {
		return false
	} else if rules.IsStopOperator(in.line.Text, x.roster.Self.BotUser) {
		trigger.Kind, trigger.EventTS = workflows.KindStopOperator, in.line.TS
	} else {
		spawn, known := x.people.maySpawn(ctx, in.line.User)
		trigger.MaySpawn = spawn && known
	}
	if err := x.brains.wake(ctx, in.line.Thread(), trigger); err != nil {
		x.log.Warn("the brain could not be signalled either", "seat", x.name, "channel", in.line.Channel, "line", in.line.TS, "error", err)
		return false
	}
	return true
}

// tellLater tells a running brain of what it should know, without holding up the reader.
// What the brain misses, the next turn finds in the ledger.
func (x *inbox) tellLater(t rules.Thread, trigger workflows.Trigger) {
	x.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		for wait := 200 * time.Millisecond; ; wait *= 2 {
			err := x.brains.tell(ctx, t, trigger)
			if err == nil || errors.Is(err, errNoBrain) {
				return
			}
			if errors.Is(err, errPoison) || !pause(ctx, wait) {
				x.log.Error("a brain was not told", "seat", x.name, "channel", t.Channel, "thread", t.Root, "what", trigger.Kind, "error", err)
				return
			}
		}
	})
}

// pause waits, and is false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
