package terminal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentsmith/internal/failpoint"
)

// submit presses Enter until the text has arrived. It only does so while the input box
// holds the text and nothing else.
func (y *typer) submit(ctx context.Context) (Arrival, error) {
	begun, lastEnter, heldSince, entered, busy := time.Now(), time.Time{}, time.Time{}, 0, false
	held := func() bool {
		if heldSince.IsZero() {
			heldSince = time.Now()
		}
		return time.Since(heldSince) > y.settle
	}
	if y.e.State == stateEntered { // an Enter of the last call may still be on its way
		lastEnter, busy = begun, true
	}
	for {
		if y.proofs.found(y.e) {
			y.sweep(ctx, busy)
			return y.end(stateArrived, Arrived)
		}
		v, err := y.look(ctx)
		switch {
		case ctx.Err() != nil:
			return Unsure, fmt.Errorf("type into a session: %w", ctx.Err())
		case errors.Is(err, ErrGone):
			if y.e.Enters == 0 || held() { // its hook may still tell
				return y.gone()
			}
		case err != nil:
			return Unsure, err
		case v.held != "":
			if held() && y.e.Enters == 0 {
				return NotTyped, &HeldError{Reason: v.held, Pasted: true}
			}
		case y.e.shows(v):
			heldSince = time.Time{}
			// A text that stands above the box as well was taken, whatever the box shows.
			first := y.e.Enters == 0
			if first || entered < y.maxEnters && time.Since(lastEnter) > y.enterEvery && v.above(y.text.Body) <= y.e.Above {
				busy = busy || v.busy()
				sent, err := y.enter(ctx, v)
				if err != nil {
					return Unsure, err
				}
				if sent {
					lastEnter = time.Now()
					entered++
					y.at(failpoint.TypeEntered)
				} else if first && time.Since(begun) > y.show {
					return NotTyped, &HeldError{Reason: reasonBusy, Pasted: true}
				}
			}
		default:
			heldSince = time.Time{}
			if y.e.Enters == 0 && time.Since(begun) > y.show {
				if v.text == "" { // a dialog swallowed it, or a person entered it
					return y.end(stateUnsure, Unsure)
				}
				return NotTyped, &HeldError{Reason: reasonDraft, Pasted: true}
			}
		}
		if y.e.Enters > 0 && time.Since(lastEnter) > y.prove {
			return y.end(stateUnsure, Unsure)
		}
		select {
		case <-ctx.Done():
		case <-time.After(y.poll):
		}
	}
}

// enter presses Enter once. That it was pressed is written down before it is.
func (y *typer) enter(ctx context.Context, v view) (bool, error) {
	y.e.Enters++
	y.j.Entered = time.Now().UTC()
	if err := y.record(stateEntered); err != nil {
		return false, err
	}
	sent, err := y.tmux.enter(ctx, v)
	if err != nil || sent {
		return sent, err
	}
	y.e.Enters--
	if y.e.Enters > 0 {
		return false, y.record(stateEntered)
	}
	return false, y.record(statePasted)
}

// gone tells of a text whose session ended. Without an Enter nobody took it.
func (y *typer) gone() (Arrival, error) {
	if y.e.Enters > 0 {
		return y.end(stateUnsure, Unsure)
	}
	y.j.drop(y.e.ID)
	return NotTyped, errors.Join(fmt.Errorf("type into %s: %w", y.target.Session, ErrGone), y.j.save())
}

// end records the last that is known of a text.
func (y *typer) end(s typingState, a Arrival) (Arrival, error) {
	if err := y.record(s); err != nil && a != Arrived {
		return a, err
	}
	return a, nil
}

func (y *typer) record(s typingState) error {
	y.e.State = s
	y.j.put(y.e)
	if err := y.j.save(); err != nil {
		return fmt.Errorf("write down what is typed: %w", err)
	}
	return nil
}
