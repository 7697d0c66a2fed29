package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"

	"agentsmith/internal/config"
	"agentsmith/internal/store"
	"agentsmith/rules"
	"agentsmith/signals"
	"agentsmith/workflows"
)

// house is all doors of one starter.
type house struct {
	doors []*entrance
	drain time.Duration
	log   *slog.Logger
	// dispatch runs the dispatcher's door (A3).
	dispatch func(context.Context)
	// shut counts the doors that have not opened yet; ready is called when all have.
	shut  atomic.Int32
	ready func()
}

// entrance is what one seat has.
type entrance struct {
	*seat
	door       *door
	inbox      *inbox
	dispatcher *dispatcher
	backfill   *backfill
	// findAgain is how soon the dispatcher is looked for again; 0 is never.
	findAgain time.Duration
}

// newHouse builds the doors and brings the schedules up to date. No socket opens yet;
// ready is called when all are open.
func newHouse(ctx context.Context, cfg *config.Config, seats []identity, l ledger, temporal client.Client, loud loud, log *slog.Logger, ready func()) (*house, error) {
	h := &house{drain: cfg.Drain, log: log, ready: ready}
	settings := map[string]workflows.Settings{}
	for _, id := range seats {
		settings[id.Name] = signals.Settings(cfg, id.Box)
		h.shut.Add(1)
		e, err := newEntrance(ctx, cfg, id, seats, l, temporal, settings[id.Name], loud, log, h.opened)
		if err != nil {
			return nil, errors.Join(err, h.close())
		}
		h.doors = append(h.doors, e)
	}
	if len(seats) > 0 {
		base := forceBase(cfg, seats, loud, log)
		h.dispatch = func(ctx context.Context) {
			dispatch(ctx, cfg, base, func(ctx context.Context, in workflows.ForcePickInput) error {
				return signals.StartPick(ctx, temporal, in)
			}, func() { log.Info("the dispatcher is ready") })
		}
		s := &schedules{client: temporal.ScheduleClient(), team: seats[0].Team, settings: settings, log: log}
		if err := s.sync(ctx, cfg.Schedules); err != nil {
			return nil, errors.Join(fmt.Errorf("bring the schedules up to date: %w", err), h.close())
		}
	}
	return h, nil
}

// opened is called by every door when its first socket is open.
func (h *house) opened() {
	if h.shut.Add(-1) == 0 {
		h.log.Info("starter is ready", "seats", len(h.doors))
		h.ready()
	}
}

func newEntrance(ctx context.Context, cfg *config.Config, id identity, all []identity, l ledger, temporal client.Client,
	settings workflows.Settings, loud loud, log *slog.Logger, opened func()) (*entrance, error) {
	kept, err := openSpool(filepath.Join(cfg.DataDir, "spool"), id.Name)
	if err != nil {
		return nil, err
	}
	s := &seat{
		name:           id.Name,
		roster:         rosterOf(id, all, cfg),
		access:         rules.Access{Members: cfg.Access.Talk.Members, Users: cfg.Access.Talk.Users},
		spawn:          rules.Access{Members: cfg.Access.SpawnAllowed.Members, Users: cfg.Access.SpawnAllowed.Users},
		siblingHops:    cfg.Limits.SiblingHops,
		threadHandOffs: cfg.Limits.ThreadHandOffs,
		force:          newForceID(cfg.Dispatcher, pickSeats(cfg, all)),
		owners:         cfg.Access.Owners,
		owedTooLong:    cfg.OwedTooLong,
		connections:    1,
		ledger:         l,
		brains:         &seatBrains{client: temporal, seat: id.Name, settings: settings, workspace: id.URL},
		slack:          id.client,
		spool:          kept,
		loud:           loud,
		log:            log,
		now:            time.Now,
	}
	first, cancel := context.WithTimeout(ctx, forceFirst)
	defer cancel()
	again := s.findDispatcher(first)
	e := assemble(s, filepath.Join(cfg.DataDir, "backfill"))
	e.door = newDoor(s, e.inbox, doorOptions{
		appToken: id.AppToken.Reveal(), apiURL: cfg.Slack.APIURL, timeout: cfg.Slack.RequestTimeout, gap: e.backfill.opened,
		opened: opened,
	})
	e.findAgain = again
	if err := e.backfill.boot(ctx); err != nil {
		return nil, errors.Join(err, kept.close())
	}
	return e, nil
}

// assemble puts the parts of a seat together.
func assemble(s *seat, backfillDir string) *entrance {
	e := &entrance{seat: s}
	e.dispatcher = newDispatcher(s)
	s.dispatch = e.dispatcher.wake
	s.people = newPeople(s.access, s.spawn, s.slack, s.now, e.dispatcher.wake)
	e.inbox = newInbox(s)
	e.backfill = newBackfill(s, e.inbox, backfillDir)
	s.remember = e.backfill.comeLate
	return e
}

// run opens the doors and works until ctx ends. Then nothing more is read, what was read
// is dispatched, and it returns within the drain's time (T6).
func (h *house) run(ctx context.Context) error {
	behind, stopBehind := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBehind()
	var doors, others sync.WaitGroup
	if h.dispatch != nil {
		doors.Go(func() { h.dispatch(ctx) })
	}
	for _, e := range h.doors {
		doors.Go(func() { e.door.run(ctx) })
		others.Go(func() { e.dispatcher.run(behind) })
		for _, work := range []func(context.Context){e.inbox.mend, e.backfill.run, e.sweep} {
			others.Go(func() { work(ctx) })
		}
		others.Go(func() { e.lookForDispatcher(ctx, e.findAgain) })
	}
	<-ctx.Done()
	h.log.Info("starter drains", "limit", h.drain.String())
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.drain)
	defer cancel()
	err := within(limit, func() {
		doors.Wait()
		stopBehind()
		others.Wait()
		for _, e := range h.doors {
			e.inbox.tasks.Wait()
			e.dispatcher.finish(limit)
		}
	})
	if err != nil {
		h.log.Warn("the drain's time is over; what was not dispatched is at the next start", "error", err)
		return nil
	}
	h.log.Info("starter has stopped")
	return h.close()
}

// within waits for work, at most until ctx ends.
func within(ctx context.Context, work func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *house) close() error {
	var errs []error
	for _, e := range h.doors {
		errs = append(errs, e.spool.close())
	}
	return errors.Join(errs...)
}

// showPhases has the brain of a thread without an operator show what became of its pull
// request (P2). A seat that is not ours is left to whoever has it.
func (h *house) showPhases(ctx context.Context, thread rules.Thread, seat string, _ store.PullRequest) error {
	for _, e := range h.doors {
		if e.name == seat {
			t := workflows.Trigger{Kind: workflows.KindPhases, Author: rules.Webhook, Line: rules.Line{
				LineKey: rules.LineKey{Team: thread.Team, Channel: thread.Channel}, Root: thread.Root,
			}}
			return e.brains.wake(ctx, thread, t)
		}
	}
	return nil
}
