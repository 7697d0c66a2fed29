package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// Relay is what the workflows ask of a box about its relays: lines are typed there, and the
// words of sessions taken (R8-R11).
type Relay struct {
	Seats    Seats
	Ledger   RelayLedger
	Terminal Terminal
	Words    Words
	Brains   RelayBrains
	// Living are the identities of the sessions of this box that run now.
	Living func(ctx context.Context) ([]string, error)
	Box    string
	Now    func() time.Time
	Log    *slog.Logger

	mu sync.Mutex
	// offered is when a word was offered last.
	offered map[string]time.Time
	naming  sync.Mutex
	// names are those of people, by seat, as they were named since.
	names map[string]map[string]string
	named time.Time
}

// RelayLedger is what Relay needs of the store.
type RelayLedger interface {
	SpeechLedger
	RelaysDue(ctx context.Context, box string) ([]store.RelayDue, error)
	RelayBatch(ctx context.Context, r store.Relay) (rows []rules.RelayRow, waiting []store.SessionLine, err error)
	OrphanLines(ctx context.Context, c store.Conversation) ([]store.SessionLine, error)
	BeginTyping(ctx context.Context, l store.SessionLine) (bool, error)
	EndTyping(ctx context.Context, l store.SessionLine, to store.LineState) error
	HandBack(ctx context.Context, l store.SessionLine, route json.RawMessage) (bool, error)
	RowOf(ctx context.Context, seat string, key rules.LineKey) (store.Row, error)
	Line(ctx context.Context, key rules.LineKey) (rules.Line, error)
	MarkDispatched(ctx context.Context, seat string, key rules.LineKey) error
	CloseRelay(ctx context.Context, id, ts string) (bool, error)
	OpenRelay(ctx context.Context, c store.Conversation) (store.Relay, error)
	Sessions(ctx context.Context) ([]store.Session, error)
	SessionByID(ctx context.Context, id string) (store.Session, error)
	EndSession(ctx context.Context, id string) error
}

// RelayBrains reaches the brains of threads.
type RelayBrains interface {
	BrainDoor
	// HandBack gives a line to the brain of its thread, and starts it where none runs (R9).
	HandBack(ctx context.Context, seat string, line rules.Line, maySpawn bool) error
}

// Tick looks once at everything that a conversation's relays have to do on this box: it
// hands back what no session takes any more, types what waits, and brings words on their
// way. Each step is recorded where a repeat finds it (R8, R9).
func (r *Relay) Tick(ctx context.Context, in TickInput) (TickResult, error) {
	defer beat(ctx)()
	var out TickResult
	due, err := r.due(ctx)
	if err != nil {
		return out, err
	}
	c := store.Conversation{Seat: in.Seat, Team: in.Team, Channel: in.Channel}
	for _, d := range due {
		if d.Conversation != c {
			continue
		}
		open, outstanding, err := r.look(ctx, d.Relay)
		if err != nil {
			return out, err
		}
		out.Open = out.Open || open
		out.Outstanding = out.Outstanding || outstanding
	}
	return out, r.handBackOrphans(ctx, c)
}

// due are the relays that this box has something to do for.
func (r *Relay) due(ctx context.Context) ([]store.RelayDue, error) {
	due, err := r.Ledger.RelaysDue(ctx, r.Box)
	if err != nil {
		return nil, fmt.Errorf("look for relays: %w", err)
	}
	return due, nil
}

// look looks after one relay. It stays known while words of lines that it forwarded may come.
func (r *Relay) look(ctx context.Context, relay store.Relay) (open, outstanding bool, err error) {
	v, err := r.voice(ctx, relay)
	if err != nil {
		return false, false, err
	}
	live, alive, err := r.Terminal.Live(ctx, relay.Session)
	if err != nil {
		return false, false, fmt.Errorf("look at a relay's session: %w", err)
	}
	waiting, err := r.carry(ctx, relay, v, live, alive)
	if err != nil {
		return false, false, err
	}
	if err := r.speech().collect(ctx, v, relay.OpenedAt); err != nil {
		return false, false, err
	}
	if !alive {
		answered, err := r.bury(ctx, relay, v)
		if err != nil {
			return false, false, err
		}
		waiting = waiting || !answered
	}
	words, err := r.speak(ctx, relay, v)
	if err != nil {
		return false, false, err
	}
	if relay.Awaiting && !words && (!alive || !relay.Open() && r.Now().Sub(relay.TypedAt) >= awaitTurn) {
		if err := r.Ledger.EndAwaiting(ctx, relay.ID); err != nil {
			return false, false, fmt.Errorf("note that a session has said its last: %w", err)
		}
		relay.Awaiting = false
	}
	return alive && (relay.Open() || relay.Awaiting), waiting || words, nil
}

// awaitTurn is how long a closed relay waits for the end of the turn that its last line
// began. The hook that tells of it may be missing, and looks cost.
const awaitTurn = 24 * time.Hour

// voice is the session that a relay leads to, as one that speaks.
func (r *Relay) voice(ctx context.Context, relay store.Relay) (voice, error) {
	session, err := r.Ledger.SessionByID(ctx, relay.Session)
	if err != nil {
		return voice{}, fmt.Errorf("look up a relay's session: %w", err)
	}
	return voiceOfSession(session), nil
}

func (r *Relay) speech() speech {
	return speech{ledger: r.Ledger, words: r.Words, brains: r.Brains, log: r.Log}
}

// bury closes the relay of a session that is gone, at its person's latest line, and has its
// conversation told (R9). The session's own words stand before that. While the door that
// opened it is not answered, it is the door that looks, and says what became of it.
func (r *Relay) bury(ctx context.Context, relay store.Relay, v voice) (answered bool, err error) {
	if relay.Open() {
		row, err := r.Ledger.RowOf(ctx, relay.Seat, rules.LineKey{Team: relay.Team, Channel: relay.Channel, TS: relay.OpenedTS})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, fmt.Errorf("read the line that opened a relay: %w", err)
		}
		if err == nil && !row.State.Ended() {
			return false, nil
		}
		if err := r.notice(ctx, relay, v, "relay-ended/"+relay.ID, rules.RelayEndedText(relay.Number)); err != nil {
			return false, err
		}
		failpoint.At(failpoint.RelayEnding)
	}
	return true, r.shut(ctx, relay, v.person)
}

// shut closes the relay of a session that is gone. The entry of an operator's session is its
// task's to end.
func (r *Relay) shut(ctx context.Context, relay store.Relay, person bool) error {
	if relay.Open() {
		if _, err := r.Ledger.CloseRelay(ctx, relay.ID, rules.NewerTS(relay.OpenedTS, r.latest(ctx, relay))); err != nil {
			return fmt.Errorf("close the relay of a session that is gone: %w", err)
		}
	}
	if !person {
		return nil
	}
	if err := r.Ledger.EndSession(ctx, relay.Session); err != nil {
		return fmt.Errorf("end the session's entry: %w", err)
	}
	return nil
}

// latest is the ts of the person's latest line, "" where it cannot be read.
func (r *Relay) latest(ctx context.Context, relay store.Relay) string {
	line, err := r.Ledger.LatestLine(ctx, relay.Conversation, relay.Person)
	if err != nil {
		return ""
	}
	return line.TS
}

// speak offers the session's oldest word, unless it was offered a moment ago, and tells
// whether one is under way.
func (r *Relay) speak(ctx context.Context, relay store.Relay, v voice) (bool, error) {
	id, offered, err := r.speech().offerUnless(ctx, v, r.lately)
	if err == nil && offered {
		r.mu.Lock()
		r.offered[id] = r.Now()
		r.mu.Unlock()
	}
	return id != "", err
}

// offerAgain is the time between two offers of a word whose post is not confirmed.
const offerAgain = 10 * time.Second

// lately tells whether a word was offered a moment ago, and forgets the others.
func (r *Relay) lately(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.offered == nil {
		r.offered = map[string]time.Time{}
	}
	for known, at := range r.offered {
		if r.Now().Sub(at) >= offerAgain {
			delete(r.offered, known)
		}
	}
	_, found := r.offered[id]
	return found
}

// AnswerDoor tells what is to be said to a line that opened, closed or listed relays. A
// session that the registry believes to live is looked at before it is promised (R1).
func (r *Relay) AnswerDoor(ctx context.Context, in DoorInput) (DoorAnswer, error) {
	act := in.Act
	switch act.What {
	case rules.RelayOpen:
		return r.answerOpen(ctx, in)
	case rules.RelayClose:
		return DoorAnswer{Text: rules.RelayClosedText(act.Relay.Number)}, nil
	case rules.RelayList:
		list, err := r.list(ctx)
		if err != nil {
			return DoorAnswer{}, err
		}
		open := 0
		relay, err := r.Ledger.OpenRelay(ctx, store.Conversation{Seat: in.Seat, Team: in.Thread.Team, Channel: in.Thread.Channel})
		if err == nil {
			open = relay.Number
		} else if !errors.Is(err, store.ErrNotFound) {
			return DoorAnswer{}, fmt.Errorf("look for the open relay: %w", err)
		}
		return DoorAnswer{Text: rules.SessionsText(list, open)}, nil
	case rules.RelayRefuse:
		return r.refuse(ctx, in, act.Why)
	}
	return DoorAnswer{}, fmt.Errorf("a door that did %q is unknown", act.What)
}

func (r *Relay) answerOpen(ctx context.Context, in DoorInput) (DoorAnswer, error) {
	relay, err := r.Ledger.RelayByID(ctx, in.Act.Relay.ID)
	if err != nil {
		return DoorAnswer{}, fmt.Errorf("read the relay: %w", err)
	}
	_, alive, err := r.Terminal.Live(ctx, relay.Session)
	if err != nil {
		return DoorAnswer{}, fmt.Errorf("look at the session: %w", err)
	}
	if alive {
		return DoorAnswer{Text: rules.RelayOpenedText(in.Act.Session)}, nil
	}
	// The lines that came meanwhile are handed back by the tick.
	if err := r.shut(ctx, relay, in.Act.Session.Kind == terminal.KindPerson); err != nil {
		return DoorAnswer{}, err
	}
	return r.refuse(ctx, in, rules.RefuseEnded)
}

func (r *Relay) refuse(ctx context.Context, in DoorInput, why rules.RelayRefusal) (DoorAnswer, error) {
	var list []rules.SessionRow
	if why != rules.RefuseNotOwner {
		var err error
		if list, err = r.list(ctx); err != nil {
			return DoorAnswer{}, err
		}
	}
	return DoorAnswer{Text: rules.RelayRefusedText(why, in.Act.Door, list), Refused: true}, nil
}

// list are the sessions that have not ended. Those of this box are looked at, and one that is
// gone is left out.
func (r *Relay) list(ctx context.Context) ([]rules.SessionRow, error) {
	all, err := r.Ledger.Sessions(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the sessions: %w", err)
	}
	living, err := r.Living(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the sessions: %w", err)
	}
	var out []rules.SessionRow
	for _, s := range all {
		row := rules.SessionRow{SessionFact: s.Fact(), Unseen: s.Box != r.Box}
		if row.Unseen || slices.Contains(living, s.ID) {
			out = append(out, row)
		}
	}
	return out, nil
}

// carried tells whether Plan forwards a line.
func carried(p rules.RelayPlan, l store.SessionLine) bool {
	return slices.ContainsFunc(p.Forward, func(row rules.RelayRow) bool { return row.Line.LineKey == l.Key })
}
