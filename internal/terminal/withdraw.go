package terminal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentsmith/rules"
)

// Withdraw takes back a text that Type left in the input box (HeldError.Pasted), so that
// it can go elsewhere. NotTyped with no error: nothing of it is in the session, and it
// never was a prompt. Arrived or Unsure: it must not go elsewhere. With a *HeldError the
// input box cannot be reached now; call again.
func (t Tmux) Withdraw(ctx context.Context, target Target, text Text) (Arrival, error) {
	y := newTyper(t)
	text.Body = rules.PlainForTerminal(text.Body)
	y.text = text
	err := y.open(ctx, target)
	if errors.Is(err, errJournal) {
		y.close()
	}
	if err != nil {
		return Unsure, err
	}
	defer y.close()
	if y.e = y.j.find(y.text.ID); y.e == nil {
		return NotTyped, nil
	}
	y.proofs = y.newProofs()
	switch {
	case y.e.State == stateArrived || y.proofs.found(y.e):
		return y.end(stateArrived, Arrived)
	case y.e.State == stateUnsure || y.e.Enters > 0:
		return y.end(stateUnsure, Unsure)
	case y.e.State == stateLoaded:
		if there, err := y.tmux.loaded(ctx, y.e.Buffer); err == nil && there {
			return y.forget(ctx, nil)
		}
	}
	return y.takeBack(ctx)
}

// takeBack empties the input box while it holds the text, from its end.
func (y *typer) takeBack(ctx context.Context) (Arrival, error) {
	ours, begun := false, time.Now()
	for {
		v, err := y.look(ctx)
		switch {
		case errors.Is(err, ErrGone):
			return y.forget(ctx, nil)
		case err != nil:
			return Unsure, err
		case v.held == "" && ours && v.text == "":
			return y.forget(ctx, nil)
		case v.held == "" && (y.e.shows(v) || ours && strings.HasPrefix(glyphs(y.text.Body), glyphs(v.text))):
			ours = true
			if _, err := y.tmux.clear(ctx, v); err != nil {
				return Unsure, err
			}
		case time.Since(begun) > y.settle && v.held != "":
			return NotTyped, &HeldError{Reason: v.held, Pasted: true}
		case time.Since(begun) > y.settle && v.text != "":
			return NotTyped, &HeldError{Reason: reasonDraft, Pasted: true}
		case time.Since(begun) > y.settle:
			return y.end(stateUnsure, Unsure) // it was there, and somebody took it out or entered it
		}
		select {
		case <-ctx.Done():
			return Unsure, fmt.Errorf("withdraw a text: %w", ctx.Err())
		case <-time.After(y.poll):
		}
	}
}
