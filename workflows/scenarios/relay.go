package scenarios

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentsmith/internal/terminal"
	"agentsmith/workflows"
)

// replyRelay are the scenarios of a brain whose conversation has a relay.
func replyRelay() []Scenario {
	return of(workflows.ReplyType, []Scenario{
		{Name: "stands-down", Purpose: "A relay carries its line: it takes no turn, and speaks the session's word.", Kind: Working, Run: standsDown},
		{Name: "door", Purpose: "The line that opened a relay.", Kind: Working, Run: door("work on %d", "#")},
		{Name: "door-refused", Purpose: "A line that asked for a session that there never was.", Kind: Working, Run: door("work on 9%d", "#")},
		{Name: "handed-back", Purpose: "The session died before its line was typed: the brain answers after all.", Kind: Working, Run: handedBack},
		{Name: "stands-down-open", Purpose: "Still open while a relay carries its lines.", Kind: Working, Open: true, Run: standsDownOpen},
	})
}

// relayTick are the scenarios of the tick of a conversation's relays.
func relayTick() []Scenario {
	return of(workflows.RelayTickType, []Scenario{
		{Name: "conversation", Purpose: "Opened, two lines and their words, stopped.", Kind: Working, Run: conversation},
		{Name: "switched", Purpose: "A second session takes the first one's place.", Kind: Working, Run: switched},
		{Name: "session-died", Purpose: "The session dies while the relay is open.", Kind: Working, Run: sessionDied},
		{Name: "cancelled", Purpose: "The workflow is cancelled from outside.", Kind: Working, Run: tickCancelled},
		{Name: "worker-killed", Purpose: "The worker is killed; a line comes in between.", Kind: Working, Run: tickWorkerKilled},
		{Name: "open", Purpose: "Still open, with a relay and nothing under way.", Kind: Working, Open: true, Run: tickOpen},
		{Name: "continued-as-new", Purpose: "Continues as new between two looks.", Kind: Relaying, Run: ticked(false)},
		{Name: "renewed", Purpose: "The run that such a continuation started.", Kind: Relaying, Run: ticked(true)},
	})
}

// talk is a conversation with an open relay.
type talk struct {
	*World
	channel string
	op      terminal.Live
}

// relayTo starts an operator and opens a relay to it in Ana's DM.
func (w *World) relayTo(ctx context.Context, slug string) (*talk, error) {
	_, op, err := w.hired(ctx, slug, "[[say At work.]]")
	if err != nil {
		return nil, err
	}
	d := &talk{World: w, op: op}
	return d, d.open(ctx, "work on "+slug)
}

// open types a door and waits for its answer.
func (d *talk) open(ctx context.Context, line string) error {
	root, err := d.typed(line)
	if err != nil {
		return err
	}
	return d.answered(ctx, root, 1)
}

// typed types a line at the top level of the DM.
func (d *talk) typed(text string) (root string, err error) {
	d.channel, root, err = d.direct(text)
	return root, err
}

// tell types a line for the session and waits for its word.
func (d *talk) tell(ctx context.Context, word string) (root string, err error) {
	if root, err = d.typed("[[terminal]] [[say " + word + "]]"); err != nil {
		return "", err
	}
	return root, d.said(ctx, root, word)
}

// tick names the tick of this conversation.
func (d *talk) tick() Execution { return Execution{ID: workflows.RelayTickID(seat, d.channel)} }

// close ends the relay and waits until its tick has ended.
func (d *talk) close(ctx context.Context) error {
	root, err := d.typed("stop")
	if err != nil {
		return err
	}
	return errors.Join(d.answered(ctx, root, 1), d.Closed(ctx, d.tick()))
}

func standsDown(ctx context.Context, w *World) (Execution, error) {
	d, err := w.relayTo(ctx, "carried")
	if err != nil {
		return Execution{}, err
	}
	root, err := d.tell(ctx, "Carried it.")
	if err != nil {
		return Execution{}, err
	}
	return w.brainIn(d.channel, root), d.close(ctx)
}

// door keeps the brain of a line that names a session by its number.
func door(line, want string) func(context.Context, *World) (Execution, error) {
	return func(ctx context.Context, w *World) (Execution, error) {
		d, err := w.relayTo(ctx, fmt.Sprintf("named-%d", len(line)))
		if err != nil {
			return Execution{}, err
		}
		n, err := w.numberOf(ctx, d.op)
		if err != nil {
			return Execution{}, err
		}
		root, err := d.typed(fmt.Sprintf(line, n))
		if err := errors.Join(err, w.said(ctx, root, want)); err != nil {
			return Execution{}, err
		}
		return w.brainIn(d.channel, root), d.close(ctx)
	}
}

// numberOf is the number of an operator, as its task knows it.
func (w *World) numberOf(ctx context.Context, op terminal.Live) (n int, err error) {
	err = w.knows(ctx, op.Slug, "its number", func(v workflows.TaskView) bool { n = v.Operator.Number; return n > 0 })
	return n, err
}

func handedBack(ctx context.Context, w *World) (Execution, error) {
	d, err := w.relayTo(ctx, "too-late")
	if err != nil {
		return Execution{}, err
	}
	w.Worker.Kill()
	root, err := d.typed("[[say I take it.]]")
	if err := errors.Join(err, w.Tmux.Kill(ctx, d.op.ID), w.StartWorker(ctx), d.said(ctx, root, "I take it.")); err != nil {
		return Execution{}, err
	}
	return w.brainIn(d.channel, root), w.Closed(ctx, d.tick())
}

func standsDownOpen(ctx context.Context, w *World) (Execution, error) {
	d, err := w.relayTo(ctx, "still-on")
	if err != nil {
		return Execution{}, err
	}
	root, err := d.tell(ctx, "One.")
	if err != nil {
		return Execution{}, err
	}
	_, err = w.Slack.Person("ana").Reply(d.channel, root, "[[terminal]] [[say Two.]]")
	return w.brainIn(d.channel, root), errors.Join(err, d.said(ctx, root, "Two."))
}

func conversation(ctx context.Context, w *World) (Execution, error) {
	d, err := w.relayTo(ctx, "talked-to")
	if err != nil {
		return Execution{}, err
	}
	x, err := w.pinned(ctx, d.tick())
	if err != nil {
		return Execution{}, err
	}
	for _, word := range []string{"First.", "Second."} {
		if _, err := d.tell(ctx, word); err != nil {
			return Execution{}, err
		}
	}
	return x, d.close(ctx)
}

func switched(ctx context.Context, w *World) (Execution, error) {
	d, err := w.relayTo(ctx, "one-side")
	if err != nil {
		return Execution{}, err
	}
	x, err := w.pinned(ctx, d.tick())
	if err != nil {
		return Execution{}, err
	}
	if _, err := d.tell(ctx, "From the one."); err != nil {
		return Execution{}, err
	}
	if _, _, err := w.hired(ctx, "other-side", "[[say At work.]]"); err != nil {
		return Execution{}, err
	}
	if err := d.open(ctx, "work on other-side"); err != nil {
		return Execution{}, err
	}
	if _, err := d.tell(ctx, "From the other."); err != nil {
		return Execution{}, err
	}
	return x, d.close(ctx)
}

func sessionDied(ctx context.Context, w *World) (Execution, error) {
	d, err := w.relayTo(ctx, "short-lived")
	if err != nil {
		return Execution{}, err
	}
	x, err := w.pinned(ctx, d.tick())
	if err != nil {
		return Execution{}, err
	}
	if _, err := d.tell(ctx, "Alive."); err != nil {
		return Execution{}, err
	}
	return x, w.Tmux.Kill(ctx, d.op.ID)
}

func tickCancelled(ctx context.Context, w *World) (Execution, error) {
	d, err := w.relayTo(ctx, "called-off-relay")
	if err != nil {
		return Execution{}, err
	}
	x, err := w.pinned(ctx, d.tick())
	if err := errors.Join(err, w.client.CancelWorkflow(ctx, x.ID, x.Run), w.Closed(ctx, x)); err != nil {
		return Execution{}, err
	}
	return x, d.close(ctx)
}

func tickWorkerKilled(ctx context.Context, w *World) (Execution, error) {
	d, err := w.relayTo(ctx, "outlived")
	if err != nil {
		return Execution{}, err
	}
	x, err := w.pinned(ctx, d.tick())
	if err != nil {
		return Execution{}, err
	}
	w.Worker.Kill()
	root, err := d.typed("[[terminal]] [[say Typed after all.]]")
	if err := errors.Join(err, w.StartWorker(ctx), d.said(ctx, root, "Typed after all.")); err != nil {
		return Execution{}, err
	}
	return x, d.close(ctx)
}

func tickOpen(ctx context.Context, w *World) (Execution, error) {
	d, err := w.relayTo(ctx, "left-open")
	if err != nil {
		return Execution{}, err
	}
	if _, err := d.tell(ctx, "Here."); err != nil {
		return Execution{}, err
	}
	return w.pinned(ctx, d.tick())
}

// ticked keeps the run that continues as new, or the one after it.
func ticked(next bool) func(context.Context, *World) (Execution, error) {
	return func(ctx context.Context, w *World) (Execution, error) {
		slug := "long-talk"
		if next {
			slug = "longer-talk"
		}
		d, err := w.relayTo(ctx, slug)
		if err != nil {
			return Execution{}, err
		}
		x, err := w.pinned(ctx, d.tick())
		if err != nil {
			return Execution{}, err
		}
		first := x.Run
		for i := 0; ; i++ {
			if _, err := d.tell(ctx, fmt.Sprintf("Word %d.", i)); err != nil {
				return Execution{}, err
			}
			latest, err := w.latestRun(ctx, d.tick())
			if err != nil {
				return Execution{}, err
			}
			if latest != first {
				if next {
					x.Run = latest
				}
				return x, d.close(ctx)
			}
			select {
			case <-ctx.Done():
				return Execution{}, ctx.Err()
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}
