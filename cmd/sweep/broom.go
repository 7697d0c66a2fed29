package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"agentsmith/activities"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// broom looks at threads one after the other.
type broom struct {
	work      workLedger
	launcher  checker
	checkouts []rules.Checkout
	// box is this one: the launcher sees no other's sessions.
	box string
	// door is nil where nothing is to be bound.
	door binder
	out  io.Writer
	now  func() time.Time
}

// workLedger knows which threads asked for work, and which box has a thread's claim.
type workLedger interface {
	ClaimOf(ctx context.Context, seat string, t rules.Thread) (store.Claim, error)
	WorkThreads(ctx context.Context, seat string) ([]store.WorkThread, error)
}

// checker is start-operator --check (O7).
type checker interface {
	Check(ctx context.Context, l activities.Launch) (activities.Launched, error)
}

// binder has a thread's brain bind an operator.
type binder interface {
	Bind(ctx context.Context, seat string, line rules.Line, asked rules.WorkDisposition, eventTS string) error
}

// sweep prints a row for each thread without an operator, and a last line that counts
// them. What fails for one thread holds up none of the others.
func (b *broom) sweep(ctx context.Context, seats []string) error {
	var errs []error
	found, bound := 0, 0
	for _, seat := range seats {
		threads, err := b.work.WorkThreads(ctx, seat)
		if err != nil {
			errs = append(errs, fmt.Errorf("read the threads of %s: %w", seat, err))
			continue
		}
		for _, w := range threads {
			missing, sent, err := b.one(ctx, seat, w)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s in %s, thread %s: %w", seat, w.Thread.Channel, w.Thread.Root, err))
			}
			if missing {
				found++
			}
			if sent {
				bound++
			}
		}
	}
	if found > 0 || len(errs) == 0 {
		b.count(found, bound)
	}
	return errors.Join(errs...)
}

func (b *broom) count(found, bound int) {
	threads := "threads have"
	if found == 1 {
		threads = "thread has"
	}
	switch {
	case found == 0:
		fmt.Fprintln(b.out, "Every thread that asked for work has its operator.")
	case b.door == nil:
		fmt.Fprintf(b.out, "%d %s no operator. --bind binds one to each.\n", found, threads)
	default:
		fmt.Fprintf(b.out, "%d %s no operator; %d sent on. What became of it is said there.\n", found, threads, bound)
	}
}

// one looks at a thread. A session that holds the task's name for another thread does not
// make this one's work looked after.
func (b *broom) one(ctx context.Context, seat string, w store.WorkThread) (missing, sent bool, err error) {
	ask := activities.Launch{Seat: seat, Thread: w.Thread}
	if rules.ValidSlug(w.Slug) {
		ask.Slug = w.Slug
	}
	got, err := b.launcher.Check(ctx, ask)
	if err != nil {
		return false, false, fmt.Errorf("ask whether an operator runs: %w", err)
	}
	if got.Outcome == activities.LaunchExists && got.ThisThread {
		return false, false, nil
	}
	state := "no operator"
	if got.Outcome == activities.LaunchExists {
		state = "no operator; " + rules.OperatorName(ask.Slug) + " is another thread's"
	}
	if box, err := b.elsewhere(ctx, seat, w.Thread); err != nil || box != "" {
		if err == nil {
			b.print(seat, w, "none on this box; box "+named(box)+" has its claim")
		}
		return err == nil, false, err
	}
	if b.door != nil {
		var why string
		if why, err = b.bind(ctx, seat, w); err == nil && why == "" {
			sent, state = true, state+"; sent on"
		} else {
			state += "; not sent on: " + reason(why, err)
		}
	}
	b.print(seat, w, state)
	return true, sent, err
}

// elsewhere is the other box that has the thread's claim, "" for none: its session may run
// there, out of this launcher's sight.
func (b *broom) elsewhere(ctx context.Context, seat string, t rules.Thread) (string, error) {
	c, err := b.work.ClaimOf(ctx, seat, t)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && c.Box == b.box:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("look up the thread's claim: %w", err)
	}
	return c.Box, nil
}

func reason(why string, err error) string {
	if err != nil {
		return "failed"
	}
	return why
}

// bind has the thread bind an operator, or says why that would come to nothing: its people
// were told of that when they wrote, and are not told again.
func (b *broom) bind(ctx context.Context, seat string, w store.WorkThread) (why string, err error) {
	if w.Line.TS == "" {
		return "its line is not on record", nil
	}
	if _, ok := rules.ResolveCheckout(b.checkouts, w.Repo); !ok {
		if w.Repo == "" {
			return "it names no repository", nil
		}
		return rules.Visible(w.Repo) + " is no checkout here", nil
	}
	return "", b.door.Bind(ctx, seat, w.Line, rules.WorkDisposition{Kind: rules.KindWork, Slug: w.Slug, Repo: w.Repo}, rules.TimeTS(b.now()))
}

// print writes a thread's row: seat, channel and root, slug, repo, when it asked, state.
func (b *broom) print(seat string, w store.WorkThread, state string) {
	fmt.Fprintf(b.out, "%s  %s  %s  %s  %s  asked %s  %s\n", seat, w.Thread.Channel, w.Thread.Root, named(w.Slug), named(w.Repo),
		w.AskedAt.UTC().Format("2006-01-02 15:04"), state)
}

// named is a name that somebody else chose, in one column.
func named(s string) string {
	if s = rules.Visible(s); s == "" {
		return "-"
	}
	return s
}
