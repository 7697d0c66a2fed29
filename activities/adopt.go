package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// errNotFollowed says that an operator is bound, and what follows its work does not know.
var errNotFollowed = errors.New("the operator's task was not told")

// adopt binds the thread of a turn to a session that runs for it.
func (o *Operator) adopt(ctx context.Context, in BindInput, live Launched, d rules.Disposition) Binding {
	op := live.Operator
	op.Thread = in.Turn.Thread
	op, err := o.follow(ctx, in.Turn.Seat, op, runID(ctx))
	switch {
	case errors.Is(err, errNotFollowed):
		return o.gap(in, rules.DispUnbound, rules.GapTask, err)
	case err != nil:
		return o.gap(in, rules.DispUnbound, rules.GapStore, err)
	}
	return Binding{Disposition: d, Operator: &op}
}

// follow brings the store, where seat has the thread, and the task in line with a session
// that runs. Each of its steps may be repeated; where one fails the next human turn finds the
// session and repeats it.
func (o *Operator) follow(ctx context.Context, seat string, op rules.Operator, claimant string) (rules.Operator, error) {
	op.Box = o.Box
	var err error
	if op.Number, err = o.register(ctx, op); err != nil {
		return op, fmt.Errorf("register a session: %w", err)
	}
	failpoint.At(failpoint.BindRegistered)
	if err := o.hold(ctx, seat, op, claimant); err != nil {
		return op, err
	}
	failpoint.At(failpoint.BindBound)
	if err := o.Tasks.Adopt(ctx, op); err != nil {
		return op, fmt.Errorf("%w: %w", errNotFollowed, err)
	}
	failpoint.At(failpoint.BindAdopted)
	return op, nil
}

// register gives an operator its number, the same one every time.
func (o *Operator) register(ctx context.Context, op rules.Operator) (number int, err error) {
	return o.Ledger.RegisterSession(ctx, store.Session{
		ID: op.Session, Name: rules.OperatorName(op.Slug), Kind: terminal.KindOperator, Box: o.Box,
		Seat: op.Seat, Slug: op.Slug, Repo: op.Repo, Thread: op.Thread,
	})
}

// hold binds the thread's claim to a session, whoever made the claim. Of several that found
// the same session at the same time one binds it, and for the others that is as good.
func (o *Operator) hold(ctx context.Context, seat string, op rules.Operator, claimant string) error {
	for deadline := o.Now().Add(claimWait); ; {
		held, err := o.tryHold(ctx, seat, op, claimant)
		if held || err != nil {
			return err
		}
		if o.Now().After(deadline) || o.Wait(ctx, claimPoll) != nil {
			return errors.New("the claim of a running operator changes hands right now")
		}
	}
}

// tryHold is false where somebody else was faster, who may have bound the same session.
func (o *Operator) tryHold(ctx context.Context, seat string, op rules.Operator, claimant string) (bool, error) {
	c, won, err := o.Ledger.Claim(ctx, store.Wish{
		Seat: seat, Thread: op.Thread, Slug: op.Slug, Repo: op.Repo, Box: o.Box, Claimant: claimant,
	})
	if err != nil {
		return false, fmt.Errorf("claim the thread of a running operator: %w", err)
	}
	if !won && c.State == store.ClaimBound && c.Session == op.Session {
		return true, nil
	}
	if !won && c.Claimant != claimant {
		_, won, err = o.Ledger.TakeOverClaim(ctx, seat, op.Thread, c.Claimant, claimant)
		if errors.Is(err, store.ErrNotFound) {
			return false, nil // it was released
		}
		if err != nil {
			return false, fmt.Errorf("take over the claim of a running operator: %w", err)
		}
		if !won {
			return false, nil
		}
	}
	_, err = o.Ledger.BindClaim(ctx, seat, op.Thread, claimant, store.Bound{
		Session: op.Session, Worktree: op.Worktree, Branch: op.Branch, Number: op.Number,
	})
	if errors.Is(err, store.ErrLostClaim) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("bind a claim to its session: %w", err)
	}
	return true, nil
}

// OrphanAge is how old a session must be before it is taken up: its launcher has ended by
// then, and would have ended it too, had it failed.
const OrphanAge = 3 * time.Minute

// AdoptOrphans takes up the operators among live that nobody follows: their bind died after
// its launcher had started them. They would work on unheard until somebody writes in their
// thread, and what they say would be lost with them (O8, R11). A bind that is still at it is
// not disturbed: it does the same. When the worker begins, no bind is: then all are taken
// up, and the tasks of those that are bound are told too, since their bind may have died
// before it told them.
func AdoptOrphans(ctx context.Context, o *Operator, live []terminal.Live, begins bool) {
	if o.Off {
		return
	}
	for _, l := range live {
		if l.Kind != terminal.KindOperator || !begins && o.Now().Sub(l.Created) < OrphanAge {
			continue
		}
		if _, err := o.Seats.get(l.Seat); err != nil || !rules.ValidSlug(l.Slug) {
			continue // another installation's
		}
		log := o.Log.With("seat", l.Seat, "channel", l.Thread.Channel, "thread", l.Thread.Root, "session", l.Name)
		followed, err := o.followed(ctx, l)
		if err == nil && followed && !begins {
			continue
		}
		if err == nil {
			_, err = o.follow(ctx, l.Seat, operatorOf(l), "adopted/"+l.ID)
		}
		switch {
		case errors.Is(err, errEnded):
		case err != nil:
			log.Error("an operator that runs could not be taken up; that is tried again", "error", err)
		case !followed:
			log.Warn("took up an operator whose bind had died")
		}
	}
}

// errEnded says that somebody ended a session, which may take a moment longer to be gone.
var errEnded = errors.New("the session was ended")

// followed tells whether the thread's claim is the session's.
func (o *Operator) followed(ctx context.Context, l terminal.Live) (bool, error) {
	s, err := o.Ledger.SessionByID(ctx, l.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look a session up: %w", err)
	case s.Ended:
		return false, errEnded
	}
	c, err := o.Ledger.ClaimOf(ctx, l.Seat, l.Thread)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("look up a session's claim: %w", err)
	}
	return err == nil && c.State == store.ClaimBound && c.Session == l.ID, nil
}

// operatorOf is the operator of a session, as far as the session itself tells.
func operatorOf(l terminal.Live) rules.Operator {
	return rules.Operator{
		Slug: l.Slug, Repo: l.Repo, Seat: l.Seat, Thread: l.Thread, Session: l.ID,
		Worktree: l.Worktree, Branch: l.Branch, Attach: l.Attach, Asked: l.Asked,
	}
}
