package activities

import (
	"context"
	"sync"
)

// Places caps how many agents run at once on a box and keeps the order of those that
// wait (X6).
type Places struct {
	mu      sync.Mutex
	free    int
	waiting []*waiter
}

type waiter struct {
	ready chan struct{}
	moved func(place int)
}

// NewPlaces makes n places.
func NewPlaces(n int) *Places { return &Places{free: n} }

// Take waits for a place. moved is told the place in the line, 1 for the next, at once
// and whenever it changes; it must not block. The returned func gives the place back.
func (p *Places) Take(ctx context.Context, moved func(place int)) (giveBack func(), err error) {
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return p.give, nil
	}
	w := &waiter{ready: make(chan struct{}), moved: moved}
	p.waiting = append(p.waiting, w)
	moved(len(p.waiting))
	p.mu.Unlock()

	select {
	case <-w.ready:
		return p.give, nil
	case <-ctx.Done():
		p.leave(w)
		return nil, context.Cause(ctx)
	}
}

// give hands a place to the first in line, or keeps it free.
func (p *Places) give() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.free++
		return
	}
	first := p.waiting[0]
	p.waiting = p.waiting[1:]
	close(first.ready)
	p.tell()
}

// leave takes a waiter out of the line; one that was given a place meanwhile passes it on.
func (p *Places) leave(w *waiter) {
	p.mu.Lock()
	for i, x := range p.waiting {
		if x == w {
			p.waiting = append(p.waiting[:i:i], p.waiting[i+1:]...)
			p.tell()
			p.mu.Unlock()
			return
		}
	}
	p.mu.Unlock()
	p.give()
}

func (p *Places) tell() {
	for i, w := range p.waiting {
		w.moved(i + 1)
	}
}
