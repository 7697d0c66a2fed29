package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"agentsmith/internal/config"
	"agentsmith/internal/failpoint"
	"agentsmith/internal/slackapi"
	"agentsmith/rules"
	"agentsmith/workflows"
)

const (
	// forceAgain is how soon Slack is asked again who the dispatcher is, forceUnknown how
	// soon where it said that there is none.
	forceAgain   = time.Minute
	forceUnknown = 10 * time.Minute
	// forceFirst bounds the first question, which the door waits for.
	forceFirst = 10 * time.Second
)

// forceID is what a seat knows of the dispatcher: its bot user, "" while that is not found,
// and the seats that it picks among.
type forceID struct {
	name  string
	seats []rules.PickSeat
	user  atomic.Pointer[string]
}

func newForceID(d config.Dispatcher, seats []rules.PickSeat) *forceID {
	f := &forceID{name: d.Name, seats: seats}
	f.user.Store(&d.BotUser)
	return f
}

func (f *forceID) dispatcher() string {
	if f == nil {
		return ""
	}
	return *f.user.Load()
}

// who is the roster as it is known now.
func (s *seat) who() rules.Roster {
	r := s.roster
	if user := s.force.dispatcher(); user != "" {
		r.Dispatcher = user
	}
	return r
}

// asks tells whether a line asks every seat of its channel (A1).
func (s *seat) asks(line rules.Line, author rules.Author) bool {
	if author == rules.Outsider {
		author = rules.Person // they are refused with a word
	}
	_, ok := rules.Question(line, author, s.force.dispatcher())
	return ok
}

// askOf is what goes with an ask to the brain, nil for any other line.
func (s *seat) askOf(line rules.Line, author rules.Author) *rules.Ask {
	if author != rules.Person || !s.asks(line, author) {
		return nil
	}
	return &rules.Ask{Dispatcher: s.force.dispatcher(), Seats: s.force.seats}
}

// findDispatcher looks for the dispatcher's bot user by name, with the seat's own token, and
// tells how soon to look again; 0 is never (A1).
func (s *seat) findDispatcher(ctx context.Context) time.Duration {
	if s.force.dispatcher() != "" {
		return 0
	}
	user, err := s.slack.BotUserNamed(ctx, s.force.name)
	switch {
	case err == nil && user == s.roster.Self.BotUser:
		s.log.Warn("the bot user of the dispatcher's name is this seat; it is not taken for the dispatcher", "seat", s.name)
		return forceUnknown
	case err == nil:
		s.force.user.Store(&user)
		s.log.Info("the dispatcher is known", "seat", s.name, "dispatcher", user)
		return 0
	case errors.Is(err, slackapi.ErrNoBot):
		s.log.Info("no dispatcher: mentioning it means nothing yet", "seat", s.name, "name", s.force.name)
		return forceUnknown
	case slackapi.IsRejected(err, "missing_scope"):
		s.log.Warn("the dispatcher cannot be looked for without users:read; set AGENT_FORCE_USER_ID", "seat", s.name)
		return forceUnknown
	case ctx.Err() == nil:
		s.log.Warn("the dispatcher was not found; it is looked for again", "seat", s.name, "error", err)
	}
	return forceAgain
}

// lookForDispatcher goes on looking until it is found.
func (s *seat) lookForDispatcher(ctx context.Context, again time.Duration) {
	for again > 0 && pause(ctx, again) {
		again = s.findDispatcher(ctx)
	}
}

// hint tells a running brain that the dispatcher or another seat has said something of an
// ask in its thread. It reads it back: an event may come stripped, or forged (A4).
func (x *inbox) hint(line rules.Line, author rules.Author) {
	switch author {
	case rules.Dispatcher:
	case rules.Sibling:
		meta, _ := rules.ParseMetadata(line.Raw)
		if m, ok := rules.ReadForce(line); meta.EventType != rules.EventForce || ok && m.State == rules.ForceWorking {
			return
		}
	default:
		return
	}
	x.tellLater(line.Thread(), workflows.Trigger{
		Kind: workflows.KindPick, Author: author, EventTS: rules.NewerTS(line.TS, line.EditedTS),
		Line: rules.Line{LineKey: line.LineKey, Root: line.Root, User: line.User},
	})
}

// pickSeats are the seats that a pick is made among (A2).
func pickSeats(cfg *config.Config, all []identity) []rules.PickSeat {
	var out []rules.PickSeat
	for i, s := range cfg.Seats {
		p := rules.PickSeat{Name: s.Name, BotUser: s.BotUser, Rank: i, Area: s.Area, Stickers: s.Stickers}
		for _, id := range all {
			if id.Name == s.Name {
				p.BotUser = id.UserID
			}
		}
		out = append(out, p)
	}
	return out
}

// picker is the dispatcher's door: each ask that reaches its own socket is one pick (A3).
// It reads and writes no ledger. An ask is durable once its pick has begun; where that
// cannot be, the envelope is not acked and Slack sends it again.
type picker struct {
	*seat
	box   string
	start func(ctx context.Context, in workflows.ForcePickInput) error
}

func (p *picker) receive(ctx context.Context, in inbound) error {
	if in.kind != isLine {
		return nil
	}
	roster := p.roster
	author := rules.Who(in.line, roster)
	if author == rules.Self {
		return nil
	}
	if _, ok := rules.Question(in.line, author, roster.Dispatcher); !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	failpoint.At(failpoint.ForcePicking)
	ask := rules.Ask{Dispatcher: roster.Dispatcher, Seats: p.force.seats}
	if err := p.start(ctx, workflows.ForcePickInput{Box: p.box, Line: in.line, Ask: ask}); err != nil {
		return fmt.Errorf("begin a pick: %w", err)
	}
	return nil
}

func (p *picker) flush() {}

// tokenAgain is how often the dispatcher's tokens are looked for.
const tokenAgain = 10 * time.Second

// dispatch runs the dispatcher's door until ctx ends. Without tokens it idles, which is said
// once, and begins when they are there (A3).
func dispatch(ctx context.Context, cfg *config.Config, base seat, start func(context.Context, workflows.ForcePickInput) error, opened func()) {
	said := ""
	for {
		p, appToken, err := newPicker(ctx, cfg, base, start)
		if err == nil {
			base.log.Info("the dispatcher has its tokens", "dispatcher", p.roster.Dispatcher)
			newDoor(p.seat, p, doorOptions{
				appToken: appToken, apiURL: cfg.Slack.APIURL, timeout: cfg.Slack.RequestTimeout, gap: func(time.Time) {}, opened: opened,
			}).run(ctx)
			return
		}
		if text := err.Error(); text != said && ctx.Err() == nil {
			said = text
			base.log.Info("the dispatcher idles; the seats pick by themselves", "why", text)
		}
		if !pause(ctx, tokenAgain) {
			return
		}
	}
}

func newPicker(ctx context.Context, cfg *config.Config, base seat, start func(context.Context, workflows.ForcePickInput) error) (*picker, string, error) {
	bot, app, err := cfg.Dispatcher.Tokens(os.Getenv)
	switch {
	case err != nil:
		return nil, "", err
	case bot == "" || app == "":
		return nil, "", fmt.Errorf("no token in %s and %s", cfg.Dispatcher.BotTokenEnv, cfg.Dispatcher.AppTokenEnv)
	}
	client := slackapi.New(slackapi.Options{Token: bot.Reveal(), APIURL: cfg.Slack.APIURL, Timeout: cfg.Slack.RequestTimeout, Log: base.log})
	who, err := client.AuthTest(ctx)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("ask Slack who the dispatcher is: %w", err)
	case who.Team != base.roster.Team:
		return nil, "", errors.New("the dispatcher's app is in another workspace than the seats")
	}
	for _, s := range base.roster.Seats {
		if s.BotUser == who.UserID {
			return nil, "", fmt.Errorf("the dispatcher's token is that of seat %s: it needs an app of its own", s.Name)
		}
	}
	s := base
	s.name = rules.DispatcherName
	s.roster.Dispatcher = who.UserID
	s.roster.Self = rules.SeatIdentity{Name: rules.DispatcherName, BotUser: who.UserID, BotID: who.BotID}
	s.connections = 1
	s.slack = client
	return &picker{seat: &s, box: cfg.Dispatcher.Box, start: start}, app.Reveal(), nil
}

// forceBase is what the dispatcher's door shares with the seats'.
func forceBase(cfg *config.Config, seats []identity, loud loud, log *slog.Logger) seat {
	roster := rosterOf(seats[0], seats, cfg)
	return seat{
		roster: rules.Roster{Team: roster.Team, Seats: roster.Seats}, force: newForceID(cfg.Dispatcher, pickSeats(cfg, seats)),
		loud: loud, log: log, now: time.Now,
	}
}
