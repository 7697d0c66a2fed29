package terminal

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// leftOver is how long the input box may show a text after it has arrived.
const leftOver = 300 * time.Millisecond

// ready returns a look at an input box that is empty, or why there is none.
func (y *typer) ready(ctx context.Context) (view, error) {
	begun := time.Now()
	for {
		v, err := y.look(ctx)
		if err != nil {
			return view{}, err
		}
		if v.held == "" && v.text == "" {
			return v, nil
		}
		if v.held == "" && y.j.arrived(v) {
			_, _ = y.tmux.clear(ctx, v) // looked at again
		}
		if time.Since(begun) > y.settle {
			if v.held == "" {
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

// sweep takes a text that has arrived out of the input box. The CLI now and then leaves
// it there when it took it at the moment another turn ended, and an Enter by anybody
// would send it again.
func (y *typer) sweep(ctx context.Context) {
	for begun := time.Now(); time.Since(begun) < y.settle && ctx.Err() == nil; time.Sleep(y.poll) {
		v, err := y.look(ctx)
		if err != nil || v.held != "" || !y.e.shows(v) {
			return
		}
		if time.Since(begun) > leftOver {
			if _, err := y.tmux.clear(ctx, v); err != nil {
				return
			}
		}
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
