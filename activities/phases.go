package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// Phases renders the phases of a thread's work and shows them in one message (P1-P3).
type Phases struct {
	Seats  Seats
	Ledger PhaseLedger
	// Poster posts the message the first time, as any other: once (B5).
	Poster *Poster
	// Pulls reads GitHub for a thread without a task; nil where no token is configured.
	Pulls Pulls
	Log   *slog.Logger
}

// PhaseLedger is what Phases needs of the store.
type PhaseLedger interface {
	PhaseMessage(ctx context.Context, seat string, t rules.Thread) (ts, shown string, err error)
	SetPhaseMessage(ctx context.Context, seat string, t rules.Thread, ts, shown string) error
	PullsOf(ctx context.Context, seat string, t rules.Thread) ([]store.PullRequest, error)
	ClaimOf(ctx context.Context, seat string, t rules.Thread) (store.Claim, error)
}

// PublishPhases renders the table and returns its states. The message is withheld while
// every row is a gap; then one is posted, and edited in place from then on (P2, P3).
func (p *Phases) PublishPhases(ctx context.Context, in PublishInput) (Published, error) {
	seat, err := p.Seats.get(in.Seat)
	if err != nil {
		return Published{}, err
	}
	defer beat(ctx)()
	if in.Read {
		if in.Facts, err = p.read(ctx, in); err != nil {
			return Published{}, err
		}
	}
	rows := rules.Phases(in.Facts)
	out := Published{States: map[string]rules.PhaseState{}, PRURL: in.Facts.PullURL}
	for _, r := range rows {
		out.States[r.Name] = r.State
		if r.State == rules.PhaseDone {
			out.Done++
		}
	}
	ts, shown, err := p.Ledger.PhaseMessage(ctx, in.Seat, in.Thread)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return out, fmt.Errorf("look up the table's message: %w", err)
	}
	out.TS = ts
	text := rules.RenderPhases(rows)
	if !rules.HasAnySignal(rows) || text == shown {
		return out, nil
	}
	if ts == "" {
		if ts, err = p.Poster.postPhases(ctx, seat, in.Thread, text); err != nil {
			return out, err
		}
		out.TS = ts
		// Before the edit: what stands there is the text of the first attempt to post it.
		if err := p.Ledger.SetPhaseMessage(ctx, in.Seat, in.Thread, ts, ""); err != nil {
			return out, fmt.Errorf("keep the table's message: %w", err)
		}
	}
	err = seat.Slack.Edit(ctx, ts, phasesPost(seat, in.Thread, text))
	switch {
	case errors.As(err, new(*slackapi.Rejected)):
		// Somebody deleted it, or Slack takes no edit: the next change tries again.
		p.Log.Warn("the table's message cannot be edited", "channel", in.Thread.Channel, "thread", in.Thread.Root, "error", err)
		return out, nil
	case err != nil:
		return out, retryLater(fmt.Errorf("edit the table's message: %w", err))
	}
	if err := p.Ledger.SetPhaseMessage(ctx, in.Seat, in.Thread, ts, text); err != nil {
		return out, fmt.Errorf("keep the table's message: %w", err)
	}
	return out, nil
}

// read finds out what is known of a thread without a task: its pull request, by the store
// and GitHub (P2).
func (p *Phases) read(ctx context.Context, in PublishInput) (rules.PhaseFacts, error) {
	var f rules.PhaseFacts
	pulls, err := p.Ledger.PullsOf(ctx, in.Seat, in.Thread)
	if err != nil {
		return f, fmt.Errorf("look up the thread's pull request: %w", err)
	}
	if len(pulls) == 0 {
		return f, nil
	}
	link := pulls[len(pulls)-1]
	f.Branch = link.Branch
	if p.Pulls == nil {
		f.Pull, f.PullURL = link.Number, link.URL
		return f, nil
	}
	state, err := p.Pulls.Pull(ctx, link.Repo, link.Number)
	if err != nil {
		return f, fmt.Errorf("read the thread's pull request: %w", err)
	}
	takePull(&f, state)
	return f, nil
}

// postPhases posts the table's message once, under a name of its own.
func (p *Poster) postPhases(ctx context.Context, seat *Seat, t rules.Thread, text string) (string, error) {
	m := message{
		id: rules.PhasesID(seat.Name, t.Channel, t.Root), seat: seat, thread: t, part: 1, parts: 1, kind: "phases",
		request: slackapi.PostRequest{Text: text},
	}
	ts, err := p.once(ctx, m)
	if err != nil {
		return "", retryLater(err)
	}
	return ts, nil
}

// phasesPost is the table's message, as it is posted and edited.
func phasesPost(seat *Seat, t rules.Thread, text string) slackapi.PostRequest {
	return slackapi.PostRequest{
		Channel: t.Channel, ThreadTS: t.Root, Text: text,
		PostID: rules.PhasesID(seat.Name, t.Channel, t.Root), Part: 1, Parts: 1,
	}
}
