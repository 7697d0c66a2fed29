package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/outbox"
	"agentsmith/rules"
)

// Target is the session that a text is typed into.
type Target struct {
	// Session is the tmux session's name, and ID the identity in its environment: a
	// session of that name with another identity is left alone (X5).
	Session, ID string
	// Command is what must run in the foreground, a program's name; "" is "claude".
	Command string
	// Outbox is the folder of all outboxes (outbox.Box.Dir): there the CLI's hook writes
	// what arrived, and there a journal of what was typed is kept.
	Outbox string
}

// Text is one line for a session. ID tells it from every other text for that session;
// Body is made safe as rules.PlainForTerminal does.
type Text struct{ ID, Body string }

// maxPastes bounds how often a screen that moves is looked at again before a paste.
const maxPastes = 20

// lockTyping is the kind of the lock under which one text is typed at a time.
const lockTyping = "typing"

// Arrival is what is known of a text after Type.
type Arrival string

// The arrivals.
const (
	// Arrived: the CLI took the text, or holds it in its queue.
	Arrived Arrival = "arrived"
	// NotTyped: the CLI has not got the text. The error says why.
	NotTyped Arrival = "not_typed"
	// Unsure: it may have got it. It is never typed again.
	Unsure Arrival = "unsure"
)

// HeldError says that a text waits, since it cannot be typed now.
type HeldError struct {
	// Reason is plain words for the person whose line it is.
	Reason string
	// Pasted: the text stands in the input box, not entered. Call Type again with it:
	// it goes nowhere else.
	Pasted bool
}

// Error is the reason.
func (e *HeldError) Error() string { return "the text is held: " + e.Reason }

// ErrGone says that there is no session of that name and identity.
var ErrGone = errors.New("the session is gone")

// Type types a text into a session, so that it becomes exactly one prompt of the agent
// CLI there, or none (R10). It may be called again with the same Text.ID, in another
// process too, whatever became of the last call: it looks for what that did, goes on from
// there, and never pastes a text twice.
//
// Arrived and Unsure with no error are final. NotTyped comes with a *HeldError, with
// ErrGone, or with what went wrong before anything was typed. Unsure with an error was
// cut short: call again. A call takes a fifth of a second, and never more than two minutes.
func (t Tmux) Type(ctx context.Context, target Target, text Text) (Arrival, error) {
	return newTyper(t).do(ctx, target, text)
}

// typer is one call of Type. Its times are what the CLI needs on a machine that is busy.
type typer struct {
	tmux Tmux
	// settle is how long the screen must be without an input box to be held, show how long
	// a paste may take to be seen, enterEvery the time between two Enters, maxEnters how
	// many one call sends, and prove how long the proof may take after the last.
	settle, show, enterEvery, prove, poll time.Duration
	maxEnters                             int
	// at is called between two effects.
	at func(failpoint.Point)

	target Target
	text   Text
	box    outbox.Box
	held   *os.File // the session's lock
	j      *journal
	e      *entry
	proofs *proofs
}

func newTyper(t Tmux) *typer {
	return &typer{tmux: t, settle: 3 * time.Second, show: 20 * time.Second, enterEvery: 10 * time.Second,
		prove: 30 * time.Second, poll: 30 * time.Millisecond, maxEnters: 3, at: failpoint.At}
}

func (y *typer) do(ctx context.Context, target Target, text Text) (Arrival, error) {
	if text.ID == "" || len(text.ID) > 200 {
		return NotTyped, errors.New("type into a session: the text has no id, or too long a one")
	}
	text.Body = rules.PlainForTerminal(text.Body)
	y.text = text
	err := y.open(ctx, target)
	if errors.Is(err, errJournal) { // what had been typed is not known any more
		defer y.close()
		y.e = y.newEntry()
		return y.end(stateUnsure, Unsure)
	}
	if err != nil {
		return NotTyped, err
	}
	defer y.close()
	if y.e = y.j.find(text.ID); y.e == nil {
		return y.begin(ctx)
	}
	return y.resume(ctx)
}

// open takes the session's lock and reads its journal. After errJournal there is a new
// one, and the lock is held.
func (y *typer) open(ctx context.Context, target Target) error {
	if target.Command == "" {
		target.Command = "claude"
	}
	y.target, y.box = target, outbox.Box{Dir: target.Outbox}
	dir, err := y.box.SessionDir(target.ID)
	if err != nil {
		return fmt.Errorf("type into a session: %w", err)
	}
	if y.held, err = (locks{dir: dir}).take(ctx, lockTyping, target.ID); err != nil {
		return fmt.Errorf("type into a session: %w", err)
	}
	if y.j, err = openJournal(dir); err != nil {
		if !errors.Is(err, errJournal) {
			y.close()
		}
		return fmt.Errorf("type into a session: %w", err)
	}
	return nil
}

func (y *typer) close() { _ = y.held.Close() }

// begin types a text that nobody has begun to type.
func (y *typer) begin(ctx context.Context) (Arrival, error) {
	pane, err := y.ready(ctx)
	if err != nil {
		return NotTyped, err
	}
	y.e = y.newEntry()
	y.proofs = y.newProofs()
	y.e.Above = pane.above(y.text.Body)
	if err := y.proofs.mark(); err != nil {
		return NotTyped, fmt.Errorf("type into a session: %w", err)
	}
	// The buffer is there before the journal says so, and is gone once it is pasted: a
	// buffer that is there after a crash was not pasted.
	if err := y.tmux.load(ctx, y.e.Buffer, y.text.Body); err != nil {
		return NotTyped, err
	}
	if err := y.record(stateLoaded); err != nil {
		return NotTyped, err
	}
	y.at(failpoint.TypeLoaded)
	return y.paste(ctx, pane)
}

// resume goes on where another call ended, or was ended.
func (y *typer) resume(ctx context.Context) (Arrival, error) {
	y.proofs = y.newProofs()
	switch y.e.State {
	case stateArrived:
		return Arrived, nil
	case stateUnsure:
		if y.proofs.found(y.e) {
			return y.end(stateArrived, Arrived)
		}
		return Unsure, nil
	case stateLoaded:
		there, err := y.tmux.loaded(ctx, y.e.Buffer)
		if err != nil && !noServer(err) {
			return Unsure, err
		}
		if there {
			pane, err := y.ready(ctx)
			if err != nil {
				return y.forget(ctx, err)
			}
			return y.paste(ctx, pane)
		}
	}
	return y.submit(ctx)
}

// paste puts the text into the input box, if that is there and empty at that moment. Where
// the screen moved on since the look, it looks again.
func (y *typer) paste(ctx context.Context, pane view) (Arrival, error) {
	for range maxPastes {
		pasted, err := y.tmux.paste(ctx, pane, y.e.Buffer)
		if err != nil {
			if there, e := y.tmux.loaded(ctx, y.e.Buffer); e != nil || !there {
				return y.submit(ctx) // it may have been done: see
			}
			return y.forget(ctx, err)
		}
		if pasted {
			if err := y.record(statePasted); err != nil {
				return Unsure, err
			}
			y.at(failpoint.TypePasted)
			return y.submit(ctx)
		}
		if pane, err = y.ready(ctx); err != nil {
			return y.forget(ctx, err)
		}
	}
	return y.forget(ctx, &HeldError{Reason: reasonBusy})
}

// forget gives up a text of which nothing was pasted.
func (y *typer) forget(ctx context.Context, why error) (Arrival, error) {
	y.tmux.unload(ctx, y.e.Buffer)
	y.j.drop(y.e.ID)
	if err := y.j.save(); err != nil {
		return NotTyped, errors.Join(why, err)
	}
	return NotTyped, why
}
