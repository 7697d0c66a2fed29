package telemetry

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Check is one thing that is well or is not.
type Check struct {
	Name  string    `json:"name"`
	OK    bool      `json:"ok"`
	Text  string    `json:"text,omitempty"`
	Since time.Time `json:"since"` // when it became so
}

// Report is what /healthz says.
type Report struct {
	OK     bool    `json:"ok"` // every check is
	Checks []Check `json:"checks"`
}

// Health holds the named checks of a process. The zero value has none, and is well.
type Health struct {
	// Now is a test's clock; time.Now where nil.
	Now func() time.Time

	mu     sync.Mutex
	checks map[string]Check
	probes map[string]func(context.Context) error
}

// probeTimeout is how long a probe may take before it counts as red.
const probeTimeout = 2 * time.Second

// Green says that a thing is well. It returns true when it was not known to be.
func (h *Health) Green(name, text string) (changed bool) { return h.set(name, true, text) }

// Red says that a thing is not well, and why. It returns true when it was not
// known to be red.
func (h *Health) Red(name, text string) (changed bool) { return h.set(name, false, text) }

// Probe adds a check that is made when it is asked for, such as a ping of the
// store. It is given 2 s.
func (h *Health) Probe(name string, probe func(context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.probes == nil {
		h.probes = map[string]func(context.Context) error{}
	}
	h.probes[name] = probe
}

func (h *Health) set(name string, ok bool, text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.checks == nil {
		h.checks = map[string]Check{}
	}
	old, known := h.checks[name]
	changed := !known || old.OK != ok
	since := old.Since
	if changed {
		since = h.now()
	}
	h.checks[name] = Check{Name: name, OK: ok, Text: text, Since: since}
	return changed
}

func (h *Health) now() time.Time {
	if h.Now != nil {
		return h.Now()
	}
	return time.Now()
}

// Report makes the probes and returns every check, sorted by name.
func (h *Health) Report(ctx context.Context) Report {
	h.probe(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	r := Report{OK: true, Checks: []Check{}}
	for _, c := range h.checks {
		r.OK = r.OK && c.OK
		r.Checks = append(r.Checks, c)
	}
	slices.SortFunc(r.Checks, func(a, b Check) int { return cmp.Compare(a.Name, b.Name) })
	return r
}

// probe makes all probes at once: one that hangs holds up nothing but itself.
func (h *Health) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	type result struct {
		name string
		err  error
	}
	h.mu.Lock()
	left := map[string]bool{}
	results := make(chan result, len(h.probes))
	for name, probe := range h.probes {
		left[name] = true
		go func() { results <- result{name, probe(ctx)} }()
	}
	h.mu.Unlock()
	for len(left) > 0 {
		select {
		case r := <-results:
			delete(left, r.name)
			if r.err != nil {
				h.Red(r.name, r.err.Error())
			} else {
				h.Green(r.name, "")
			}
		case <-ctx.Done():
			for name := range left {
				h.Red(name, "no answer within "+probeTimeout.String())
			}
			return
		}
	}
}
