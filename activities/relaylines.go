package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// carry plans the relay's waiting lines again and types them in ts order; what is not to be
// forwarded any more, or has no session, goes back to the brain (R9). It tells whether lines
// still wait. One that cannot be typed now holds up those behind it.
func (r *Relay) carry(ctx context.Context, relay store.Relay, v voice, live terminal.Live, alive bool) (waiting bool, err error) {
	rows, lines, err := r.Ledger.RelayBatch(ctx, relay)
	if err != nil {
		return false, fmt.Errorf("read what waits for a session: %w", err)
	}
	seat, err := r.Seats.get(relay.Seat)
	if err != nil {
		return false, err
	}
	plan := rules.Plan(rows, relay.Relay, rules.SeatIdentity{Name: seat.Name, BotUser: seat.BotUser})
	held := false
	for _, l := range lines {
		switch {
		case l.State == store.LineTyping && !alive:
			err = r.unsure(ctx, relay, v, l, errors.New("the session is gone"))
		case l.State == store.LineQueued && (!alive || !carried(plan, l)):
			err = r.handBack(ctx, l)
		case held:
			waiting = true
		default:
			held, err = r.typeLine(ctx, relay, v, live, seat, l)
			waiting = waiting || held
		}
		if err != nil {
			return false, err
		}
	}
	return waiting, nil
}

// typeLine types one line once, and tells whether it is held.
func (r *Relay) typeLine(ctx context.Context, relay store.Relay, v voice, live terminal.Live, seat *Seat, l store.SessionLine) (held bool, err error) {
	begun, err := r.Ledger.BeginTyping(ctx, l)
	if errors.Is(err, store.ErrLineMoved) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("take a line to type: %w", err)
	}
	if !begun {
		return false, nil // it was deleted, or a turn has it
	}
	failpoint.At(failpoint.RelayTyping)
	defer r.showWay(ctx, seat, v, l)()
	body := r.terminalLine(ctx, seat, l)
	got, typeErr := r.Terminal.Type(ctx, live, terminal.Text{ID: lineID(l.Key), Body: body})
	failpoint.At(failpoint.RelayTyped)
	switch {
	case got == terminal.Arrived && typeErr == nil:
		return false, r.end(ctx, l, store.LineTyped)
	case got == terminal.NotTyped && untouched(typeErr):
		r.Log.Info("a line waits for its session", "session", relay.Session, "line", l.Key.TS, "error", typeErr)
		if err := r.sayHeld(ctx, relay, v, l, typeErr); err != nil {
			return true, err
		}
		return true, r.end(ctx, l, store.LineQueued)
	case got == terminal.NotTyped || typeErr != nil:
		// Cut short: the next look goes on from there.
		r.Log.Info("a line is not typed yet", "session", relay.Session, "line", l.Key.TS, "error", typeErr)
		return true, r.sayHeld(ctx, relay, v, l, typeErr)
	}
	return false, r.unsure(ctx, relay, v, l, typeErr)
}

// namesKept is how long the names of people are taken for known: Slack takes as long to tell
// one as all the rest of typing a line takes.
const namesKept = 10 * time.Minute

// terminalLine is a line as it is typed.
func (r *Relay) terminalLine(ctx context.Context, seat *Seat, l store.SessionLine) string {
	r.naming.Lock()
	defer r.naming.Unlock()
	if r.Now().Sub(r.named) > namesKept {
		r.names, r.named = map[string]map[string]string{}, r.Now()
	}
	if len(r.names[seat.Name]) >= maxNames/2 || r.names[seat.Name] == nil { // a full one would name nobody new
		r.names[seat.Name] = map[string]string{}
	}
	w := briefing{seat: seat, names: r.names[seat.Name]}
	body := rules.TerminalLine(w.name(ctx, l.From), w.plain(ctx, l.Text))
	maps.DeleteFunc(w.names, func(_, name string) bool { return name == "" }) // asked again
	return body
}

// showWay shows where a line goes until clear is called. It is taken away at once then: while
// a status stands, nobody can write there.
func (r *Relay) showWay(ctx context.Context, seat *Seat, v voice, l store.SessionLine) (clear func()) {
	line, err := r.Ledger.Line(ctx, l.Key)
	if err != nil {
		r.Log.Warn("where a line goes could not be shown", "line", l.Key.TS, "error", err)
		return func() {}
	}
	t := line.Thread()
	status := showStatus(ctx, seat.Slack, t, r.Log)
	status.set(rules.RelayStatus(v.fact()))
	return func() {
		status.end()
		if err := seat.Slack.ClearStatus(ctx, t.Channel, t.Root); err != nil {
			r.Log.Warn("a status stands until Slack takes it away", "channel", t.Channel, "thread", t.Root, "error", err)
		}
	}
}

func (r *Relay) end(ctx context.Context, l store.SessionLine, to store.LineState) error {
	if err := r.Ledger.EndTyping(ctx, l, to); err != nil {
		return fmt.Errorf("note that a line is %s: %w", to, err)
	}
	return nil
}

// sayHeld says once a line what it waits for, where the session itself is what holds it.
func (r *Relay) sayHeld(ctx context.Context, relay store.Relay, v voice, l store.SessionLine, cause error) error {
	var held *terminal.HeldError
	if !errors.As(cause, &held) {
		return nil
	}
	return r.notice(ctx, relay, v, "held/"+lineID(l.Key), rules.RelayHeldText(relay.Number, held.Reason))
}

// unsure says that a line may or may not have been typed, and leaves it at that (R10). It is
// said before the line is moved, so that a repeat says it and not nobody.
func (r *Relay) unsure(ctx context.Context, relay store.Relay, v voice, l store.SessionLine, cause error) error {
	r.Log.Error("whether a line reached its session is unknown; it is not typed again", "session", relay.Session, "line", l.Key.TS, "error", cause)
	if err := r.notice(ctx, relay, v, "unsure/"+lineID(l.Key), rules.RelayUnsureText(relay.Number, l.Text)); err != nil {
		return err
	}
	return r.end(ctx, l, store.LineUnsure)
}

// notice says a line of Smith's own in the relay's conversation, in the session's order.
func (r *Relay) notice(ctx context.Context, relay store.Relay, v voice, name, text string) error {
	to, err := r.speech().conversation(ctx, relay)
	if err != nil {
		return err
	}
	if err := r.speech().say(ctx, v, name, text, r.Now()); err != nil {
		return err
	}
	if _, err := r.Ledger.OwnDeposit(ctx, v.id(name), to.seat, to.thread); err != nil {
		return fmt.Errorf("give a notice its owner: %w", err)
	}
	return nil
}

// brainRoute is the route of a line that is the brain's.
type brainRoute struct {
	Kind     string `json:"kind"`
	MaySpawn bool   `json:"may_spawn,omitempty"`
}

// handBack gives a line to the brain after all. Once the store has given it back, the brain
// is told; the starter tells it where this ends in between (R9).
func (r *Relay) handBack(ctx context.Context, l store.SessionLine) error {
	row, err := r.Ledger.RowOf(ctx, l.Seat, l.Key)
	if err != nil {
		return fmt.Errorf("read the route of a line: %w", err)
	}
	route := brainRoute{}
	_ = json.Unmarshal(row.Route, &route) // an unreadable one lets nobody spawn
	route.Kind = "line"
	raw, err := json.Marshal(route)
	if err != nil {
		return fmt.Errorf("write a route: %w", err)
	}
	back, err := r.Ledger.HandBack(ctx, l, raw)
	if err != nil {
		return fmt.Errorf("hand a line back: %w", err)
	}
	if !back {
		return nil
	}
	failpoint.At(failpoint.RelayHandedBack)
	line, err := r.Ledger.Line(ctx, l.Key)
	if err != nil {
		return fmt.Errorf("read a line to hand back: %w", err)
	}
	if err := r.Brains.HandBack(ctx, l.Seat, line, route.MaySpawn); err != nil {
		return err
	}
	if err := r.Ledger.MarkDispatched(ctx, l.Seat, l.Key); err != nil {
		return fmt.Errorf("mark a line as dispatched: %w", err)
	}
	return nil
}

// handBackOrphans hands back the lines of relays that are no longer on record (R9).
func (r *Relay) handBackOrphans(ctx context.Context, c store.Conversation) error {
	orphans, err := r.Ledger.OrphanLines(ctx, c)
	if err != nil {
		return fmt.Errorf("look for lines without a relay: %w", err)
	}
	for _, l := range orphans {
		if l.State == store.LineTyping {
			err = r.unsureOrphan(ctx, c, l)
		} else {
			err = r.handBack(ctx, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unsureOrphan tells whoever wrote a line that was being typed when its relay was lost.
func (r *Relay) unsureOrphan(ctx context.Context, c store.Conversation, l store.SessionLine) error {
	session, err := r.Ledger.SessionByID(ctx, l.Session)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("look up a relay's session: %w", err)
	}
	session.ID = l.Session
	relay := store.Relay{Conversation: c, Relay: rules.Relay{ID: l.Relay, Person: l.From, Session: l.Session, Number: session.Number, OpenedTS: l.Key.TS}}
	return r.unsure(ctx, relay, voiceOfSession(session), l, errors.New("the relay is no longer on record"))
}
