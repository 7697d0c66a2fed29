package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentsmith/rules"
	"agentsmith/workflows"
)

// latency takes lines one at a time, the product's and the floor's in turn, so that what
// drifts drifts for both.
func (r *rig) latency(ctx context.Context, f runFlags) error {
	root, err := r.root()
	if err != nil {
		return err
	}
	var product, bare []sample
	const warm = 10
	for i := range f.Samples + warm {
		_, p, err := r.product(ctx, "")
		if err != nil {
			return err
		}
		b, err := r.bare(ctx, r.name("floor"), root)
		if err != nil {
			return err
		}
		if i >= warm {
			product, bare = append(product, p), append(bare, b)
		}
	}
	reportLatencies("", product, bare, 0.5)
	return nil
}

func reportLatencies(when string, product, bare []sample, p float64) {
	name := fmt.Sprintf("p%.0f", p*100)
	report("line-to-agent"+when+"-"+name+"-ms", percentile(each(product, sample.toAgent), p), percentile(each(bare, sample.toAgent), p))
	report("agent-to-post"+when+"-"+name+"-ms", percentile(each(product, sample.toPost), p), percentile(each(bare, sample.toPost), p))
}

func each(all []sample, of func(sample) time.Duration) []time.Duration {
	var out []time.Duration
	for _, s := range all {
		out = append(out, of(s))
	}
	return out
}

const concurrent = 32

// load keeps 32 threads busy, on one side and then on the other.
func (r *rig) load(ctx context.Context, f runFlags) error {
	roots := make([]string, concurrent)
	for i := range roots {
		root, _, err := r.product(ctx, "")
		if err != nil {
			return err
		}
		roots[i] = root
	}
	product, perSecond, err := r.busy(ctx, f.Load, func(ctx context.Context, i int) (sample, error) {
		_, s, err := r.product(ctx, roots[i])
		return s, err
	})
	if err != nil {
		return err
	}
	ids := make([]string, concurrent)
	for i := range ids {
		ids[i] = r.name("floor")
	}
	root, err := r.root()
	if err != nil {
		return err
	}
	bare, floorPerSecond, err := r.busy(ctx, f.Load, func(ctx context.Context, i int) (sample, error) {
		return r.bare(ctx, ids[i], root)
	})
	if err != nil {
		return err
	}
	report(fmt.Sprintf("turns-at-%d-per-s", concurrent), perSecond, floorPerSecond)
	reportLatencies(fmt.Sprintf("-at-%d", concurrent), product, bare, 0.99)
	return nil
}

func (r *rig) busy(ctx context.Context, d time.Duration, turn func(context.Context, int) (sample, error)) ([]sample, float64, error) {
	end := time.Now().Add(d)
	var mu sync.Mutex
	var all []sample
	var errs []error
	var wg sync.WaitGroup
	for i := range concurrent {
		wg.Go(func() {
			for time.Now().Before(end) {
				s, err := turn(ctx, i)
				mu.Lock()
				if err != nil {
					errs = append(errs, err)
					mu.Unlock()
					return
				}
				if s.posted.Before(end) {
					all = append(all, s)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return all, float64(len(all)) / d.Seconds(), errors.Join(errs...)
}

// cost counts what one first turn and one follow-up turn are billed and leave in the history.
func (r *rig) cost(ctx context.Context, _ runFlags) error {
	var root string
	first, err := r.spent(ctx, func() (id string, err error) {
		root, _, err = r.product(ctx, "")
		return r.brain(root), err
	})
	if err != nil {
		return err
	}
	follow, err := r.spent(ctx, func() (string, error) {
		_, _, err := r.product(ctx, root)
		return r.brain(root), err
	})
	if err != nil {
		return err
	}
	under, err := r.root()
	if err != nil {
		return err
	}
	id := r.name("floor")
	turn := func() (string, error) {
		_, err := r.bare(ctx, id, under)
		return id, err
	}
	floorFirst, err := r.spent(ctx, turn)
	if err != nil {
		return err
	}
	floorFollow, err := r.spent(ctx, turn)
	if err != nil {
		return err
	}
	report("first-turn-actions", first.actions, floorFirst.actions)
	report("follow-up-actions", follow.actions, floorFollow.actions)
	report("first-turn-events", first.events, floorFirst.events)
	report("follow-up-events", follow.events-first.events, floorFollow.events-floorFirst.events)
	report("first-turn-bytes", first.bytes, floorFirst.bytes)
	report("follow-up-bytes", follow.bytes-first.bytes, floorFollow.bytes-floorFirst.bytes)
	return nil
}

func (r *rig) brain(root string) string {
	channel := ""
	for _, c := range r.Slack.State().Channels {
		if c.Name == "general" {
			channel = c.ID
		}
	}
	return workflows.ReplyID(seat, rules.Thread{Channel: channel, Root: root})
}

type spending struct{ actions, events, bytes float64 }

// spent runs one turn and tells what the server counted for it, once the workflow is quiet.
func (r *rig) spent(ctx context.Context, turn func() (workflowID string, err error)) (spending, error) {
	before, err := r.quiet(ctx, "")
	if err != nil {
		return spending{}, err
	}
	id, err := turn()
	if err != nil {
		return spending{}, err
	}
	after, err := r.quiet(ctx, id)
	after.actions -= before.actions
	return after, err
}

// quiet waits until neither the count of actions nor the history has grown for a second.
func (r *rig) quiet(ctx context.Context, id string) (spending, error) {
	var last spending
	since := time.Now()
	for {
		var now spending
		var err error
		if now.actions, err = actions(ctx, r.Temporal.Metrics); err != nil {
			return now, err
		}
		if id != "" {
			d, err := r.client.DescribeWorkflow(ctx, id, "")
			if err != nil {
				return now, fmt.Errorf("describe %s: %w", id, err)
			}
			now.events = float64(d.RawResponse.WorkflowExecutionInfo.HistoryLength)
			now.bytes = float64(d.RawResponse.WorkflowExecutionInfo.HistorySizeBytes)
		}
		if now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) > time.Second {
			return now, nil
		}
		select {
		case <-ctx.Done():
			return now, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// memory is what an idle thread takes in its worker.
func (r *rig) memory(ctx context.Context, f runFlags) error {
	product, err := r.grown(ctx, f.Threads, r.Worker.PID(), func(ctx context.Context) error {
		_, _, err := r.product(ctx, "")
		return err
	})
	if err != nil {
		return err
	}
	root, err := r.root()
	if err != nil {
		return err
	}
	floor, err := r.grown(ctx, f.Threads, r.floor.Process.Pid, func(ctx context.Context) error {
		_, err := r.bare(ctx, r.name("floor"), root)
		return err
	})
	if err != nil {
		return err
	}
	report("idle-thread-KiB", product, floor)
	return nil
}

func (r *rig) grown(ctx context.Context, n, pid int, thread func(context.Context) error) (float64, error) {
	before, err := residentKiB(pid)
	if err != nil {
		return 0, err
	}
	const hands = 8
	var wg sync.WaitGroup
	errs := make([]error, hands)
	for h := range hands {
		wg.Go(func() {
			for range n / hands {
				if errs[h] = thread(ctx); errs[h] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	after, err := residentKiB(pid)
	return (after - before) / float64(n/hands*hands), err
}
