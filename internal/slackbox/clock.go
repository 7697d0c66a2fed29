package slackbox

import (
	"container/heap"
	"sync"
	"time"
)

// Clock is the time that the local Slack lives by: message ts, the 3 s for an ack
// and the redelivery ladder, expiring statuses, rate limits, late commits and
// lagging reads. Only the websocket pings run on the machine's own time.
type Clock interface {
	Now() time.Time
	// AfterFunc runs f once d has passed, in a goroutine of the clock's choosing.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending AfterFunc.
type Timer interface {
	// Stop keeps the function from running; it tells whether it was in time.
	Stop() bool
}

// MovableClock is a Clock that tests move: Advance runs everything that falls due,
// in order, before it returns.
type MovableClock struct {
	moving sync.Mutex // one Advance at a time

	mu     sync.Mutex
	frozen bool
	at     time.Time     // now, of a frozen clock
	offset time.Duration // ahead of the machine, of a running one
	timers timerHeap
	seq    uint64
	wake   *time.Timer
	closed bool
}

// NewClock returns a clock that runs with the machine and can be moved forward.
func NewClock() *MovableClock { return &MovableClock{} }

// NewFrozenClock returns a clock that stands at start until it is moved.
func NewFrozenClock(start time.Time) *MovableClock {
	return &MovableClock{frozen: true, at: start}
}

// Now returns the clock's time.
func (c *MovableClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *MovableClock) now() time.Time {
	if c.frozen {
		return c.at
	}
	return time.Now().Add(c.offset)
}

// AfterFunc implements Clock.
func (c *MovableClock) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	t := &clockTimer{clock: c, when: c.now().Add(d), seq: c.seq, f: f}
	heap.Push(&c.timers, t)
	c.arm()
	return t
}

// Advance moves the clock forward by d and runs what falls due on the way, each at
// its own moment. A negative d does nothing: Slack's time never goes back.
func (c *MovableClock) Advance(d time.Duration) {
	if d < 0 {
		return
	}
	c.moving.Lock()
	defer c.moving.Unlock()
	c.mu.Lock()
	target := c.now().Add(d)
	for len(c.timers) > 0 && !c.timers[0].when.After(target) {
		t := heap.Pop(&c.timers).(*clockTimer)
		c.moveTo(t.when)
		c.mu.Unlock()
		t.f()
		c.mu.Lock()
	}
	c.moveTo(target)
	c.arm()
	c.mu.Unlock()
}

func (c *MovableClock) moveTo(t time.Time) {
	now := c.now()
	if !t.After(now) {
		return
	}
	if c.frozen {
		c.at = t
		return
	}
	c.offset += t.Sub(now)
}

// arm sets the machine's timer to the next due moment; a frozen clock has none.
func (c *MovableClock) arm() {
	if c.frozen || c.closed || len(c.timers) == 0 {
		return
	}
	d := max(c.timers[0].when.Sub(c.now()), 0)
	if c.wake == nil {
		c.wake = time.AfterFunc(d, c.tick)
		return
	}
	c.wake.Reset(d)
}

func (c *MovableClock) tick() {
	c.moving.Lock()
	defer c.moving.Unlock()
	c.mu.Lock()
	for len(c.timers) > 0 && !c.timers[0].when.After(c.now()) && !c.closed {
		t := heap.Pop(&c.timers).(*clockTimer)
		c.mu.Unlock()
		t.f()
		c.mu.Lock()
	}
	c.arm()
	c.mu.Unlock()
}

// Close stops the clock: nothing falls due any more by itself.
func (c *MovableClock) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.wake != nil {
		c.wake.Stop()
	}
}

type clockTimer struct {
	clock *MovableClock
	when  time.Time
	seq   uint64
	f     func()
	index int
}

// Stop implements Timer.
func (t *clockTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if t.index < 0 {
		return false
	}
	heap.Remove(&t.clock.timers, t.index)
	return true
}

type timerHeap []*clockTimer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].when.Equal(h[j].when) {
		return h[i].seq < h[j].seq
	}
	return h[i].when.Before(h[j].when)
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*clockTimer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = -1
	return t
}
