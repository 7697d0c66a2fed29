package terminal

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// leftOver is how long the input box may show a text after it has arrived, and lateOver
// how long it is watched for one that comes back when the CLI was busy.
const (
	leftOver = 300 * time.Millisecond
	lateOver = time.Second
)

// While a turn runs, or soon after a text was entered, the input box is only taken for
// empty when it has been so for steadyFor: the CLI still changes it by itself then, and a
// paste would be lost.
const (
	steadyFor = 250 * time.Millisecond
	soonAfter = 3 * time.Second
)

// ready returns a look at an input box that is empty, or why there is none.
func (y *typer) ready(ctx context.Context) (view, error) {
	begun, empty := time.Now(), time.Time{}
	for {
		v, err := y.look(ctx)
		if err != nil {
			return view{}, err
		}
		if v.held == "" && v.text == "" {
			if empty.IsZero() {
				empty = time.Now()
			}
			if time.Since(empty) >= steadyFor || !v.busy() && time.Since(y.j.Entered) > soonAfter {
				return v, nil
			}
		} else {
			empty = time.Time{}
		}
		if v.held == "" && y.j.arrived(v) {
			if _, err := y.tmux.clear(ctx, v); err != nil { // and look again
				return view{}, err
			}
		}
		if empty.IsZero() && time.Since(begun) > y.settle {
			switch {
			case v.held != "":
			case y.j.waits(v):
				v.held = reasonEarlier
			default:
				v.held = reasonDraft
			}
			return view{}, &HeldError{Reason: v.held}
		}
		select {
		case <-ctx.Done():
			return view{}, fmt.Errorf("type into a session: %w", ctx.Err())
		case <-time.After(y.poll):
		}
	}
}

// Sweep takes a text that has arrived out of the input box, where there is one: see
// sweep. Type does so by itself; this is for a session that nobody types into for a while.
// Where nothing can be done now, nothing is.
func (t Tmux) Sweep(ctx context.Context, target Target) error {
	y := newTyper(t)
	if err := y.open(ctx, target); err != nil {
		return err
	}
	defer y.close()
	v, err := y.look(ctx)
	if err != nil || v.held != "" || !y.j.arrived(v) {
		return err
	}
	_, err = y.tmux.clear(ctx, v)
	return err
}

// sweep takes a text that has arrived out of the input box. When a text is entered at the
// moment that a turn ends, the CLI now and then takes it and shows it in the box again;
// an Enter by anybody would send it twice.
func (y *typer) sweep(ctx context.Context, busy bool) {
	begun, shown := time.Now(), time.Time{}
	for ctx.Err() == nil && time.Since(begun) < y.settle {
		v, err := y.look(ctx)
		switch {
		case err != nil || v.held != "":
			return
		case !y.e.shows(v):
			if !busy || time.Since(begun) > lateOver {
				return
			}
			shown = time.Time{}
		case shown.IsZero():
			shown = time.Now()
		case time.Since(shown) > leftOver:
			if _, err := y.tmux.clear(ctx, v); err != nil {
				return
			}
		}
		time.Sleep(y.poll)
	}
}

// shows tells whether the input box shows the entry's text and nothing else. A long one
// is shown as a stand-in for it, which counts its rows.
func (e *entry) shows(v view) bool {
	if m := pastedText.FindStringSubmatch(v.text); m != nil && m[1] == e.Rows {
		return true
	}
	return v.text != "" && glyphSum(v.text) == e.Glyphs
}

var pastedText = regexp.MustCompile(`^\[Pasted text #[0-9]+(?: \+([0-9]+) lines)?\]$`)

// aboveGlyphs is how much of a text's end is looked for above the input box.
const aboveGlyphs = 60

// above counts how often the end of a text stands on the screen outside the input box:
// what the CLI took stands there, as a prompt or in its queue.
func (v view) above(text string) int {
	end := []rune(glyphs(text))
	return strings.Count(v.outside, string(end[max(len(end)-aboveGlyphs, 0):]))
}
