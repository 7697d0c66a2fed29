package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// readBackPause lies between the two times that a thread is read back: a post may be
// committed late (B5).
const readBackPause = 5 * time.Second

// sendMargin is what an activity keeps of its time for what follows a send.
const sendMargin = 20 * time.Second

// message is one message of a post.
type message struct {
	id          string
	seat        *Seat
	thread      rules.Thread
	part, parts int
	// newThread: without a root it opens a thread of its own, and is not refused.
	newThread bool
	// kind is what the message says: a Say, or one of the kinds of say.go.
	kind    string
	request slackapi.PostRequest
}

// once sends a message that is not yet there (B5). The intent is in the ledger before
// anything is sent; a message that may have been sent before is looked for first. A
// send that leaves open whether Slack has it is an error: the repeat looks for it.
func (p *Poster) once(ctx context.Context, m message) (ts string, err error) {
	began, err := p.Ledger.BeginPost(ctx, store.Post{ID: m.id, Seat: m.seat.Name, Thread: m.thread, Part: m.part, Parts: m.parts, Kind: m.kind})
	if err != nil {
		return "", fmt.Errorf("record the intent to post: %w", err)
	}
	if began.TS != "" {
		return began.TS, nil
	}
	if began.Attempts > 1 {
		if err := p.Wait(ctx, p.RequestTimeout); err != nil {
			return "", fmt.Errorf("wait out an earlier send: %w", err)
		}
		ts, found, err := p.findTwice(ctx, m)
		if err != nil {
			return "", err
		}
		if found {
			return ts, p.confirm(ctx, m, ts)
		}
	}
	failpoint.At(failpoint.PostRecorded)
	ts, err = p.send(ctx, m)
	if err != nil {
		return "", err
	}
	failpoint.At(failpoint.PostSent)
	return ts, p.confirm(ctx, m, ts)
}

func (p *Poster) send(ctx context.Context, m message) (string, error) {
	r := m.request
	r.Channel, r.ThreadTS, r.NewThread = m.thread.Channel, m.thread.Root, m.newThread && m.thread.Root == ""
	r.PostID, r.Part, r.Parts = m.id, m.part, m.parts
	ctx, cancel, err := p.sending(ctx)
	if err != nil {
		return "", err
	}
	defer cancel()
	ts, err := m.seat.Slack.Post(ctx, r)
	if err != nil {
		return "", fmt.Errorf("post: %w", err)
	}
	return ts, nil
}

// sending bounds what is about to be sent: no send starts so late that the activity could
// be repeated while it is under way (B5).
func (p *Poster) sending(ctx context.Context) (context.Context, context.CancelFunc, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}, nil
	}
	last := deadline.Add(-p.RequestTimeout - sendMargin)
	if !p.Now().Before(last) {
		return nil, nil, errors.New("too late to send: the activity is about to be repeated")
	}
	ctx, cancel := context.WithDeadline(ctx, last.Add(p.RequestTimeout))
	return ctx, cancel, nil
}

func (p *Poster) confirm(ctx context.Context, m message, ts string) error {
	if err := p.Ledger.ConfirmPost(ctx, m.id, m.part, ts); err != nil {
		return fmt.Errorf("record the post: %w", err)
	}
	return nil
}

// findTwice reads the thread back twice, some seconds apart.
func (p *Poster) findTwice(ctx context.Context, m message) (ts string, found bool, err error) {
	for i := range 2 {
		if i > 0 {
			if err := p.Wait(ctx, readBackPause); err != nil {
				return "", false, fmt.Errorf("wait between two looks: %w", err)
			}
		}
		ts, found, err = m.seat.Slack.FindPost(ctx, m.thread.Channel, m.thread.Root, m.id, m.part)
		if err != nil {
			return "", false, fmt.Errorf("look for an earlier send: %w", err)
		}
		if found {
			return ts, true, nil
		}
	}
	return "", false, nil
}
