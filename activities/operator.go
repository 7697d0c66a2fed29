package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// Operator binds operators to threads, and ends them (O1-O9). It decides nothing by the
// store alone: whether an operator runs is asked of the launcher, which looks at the
// sessions themselves (O7).
type Operator struct {
	Seats      Seats
	Ledger     OperatorLedger
	Classifier WorkClassifier
	Launcher   Launcher
	Sessions   SessionEnder
	Tasks      TaskDoor
	// Checkouts is the closed set that O4 looks a repo up in.
	Checkouts func() []rules.Checkout
	Box       string
	// Off is the kill switch (O5).
	Off bool
	// Hold lets a stop reach the bind while it runs (D4); nil where none can.
	Hold HoldTurn
	// Link is a thread's permanent address, "" where unknown.
	Link func(seat string, t rules.Thread) string
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
	Log  *slog.Logger
}

// OperatorLedger is what Operator needs of the store.
type OperatorLedger interface {
	OpenLines(ctx context.Context, turnID, seat string, keys []rules.LineKey) ([]rules.LineKey, error)
	NewestStop(ctx context.Context, seat string, t rules.Thread) (string, error)
	Line(ctx context.Context, key rules.LineKey) (rules.Line, error)
	Claim(ctx context.Context, w store.Wish) (c store.Claim, won bool, err error)
	BindClaim(ctx context.Context, seat string, t rules.Thread, claimant string, b store.Bound) (store.Claim, error)
	ReleaseClaim(ctx context.Context, seat string, t rules.Thread, claimant string) (bool, error)
	LapseClaim(ctx context.Context, seat string, t rules.Thread, claimant string) (bool, error)
	TakeOverClaim(ctx context.Context, seat string, t rules.Thread, from, to string) (store.Claim, bool, error)
	EndClaim(ctx context.Context, seat string, t rules.Thread, session string) (bool, error)
	ClaimOf(ctx context.Context, seat string, t rules.Thread) (store.Claim, error)
	RegisterSession(ctx context.Context, s store.Session) (number int, err error)
	EndSession(ctx context.Context, id string) error
	SessionByID(ctx context.Context, id string) (store.Session, error)
	AskedForWork(ctx context.Context, seat string, t rules.Thread, slug, repo string) error
	WorkOf(ctx context.Context, seat string, t rules.Thread) (store.WorkThread, error)
}

// WorkClassifier tells what a thread asks for (O2). It has no error: what went wrong
// travels in the disposition.
type WorkClassifier interface {
	Classify(ctx context.Context, in ClassifyInput) rules.WorkDisposition
}

// SessionEnder ends a session by its identity, never by its name (X5). A session that is
// gone is no error.
type SessionEnder interface {
	Kill(ctx context.Context, id string) error
}

// TaskDoor reaches the workflow that follows an operator.
type TaskDoor interface {
	// Adopt starts the task of an operator, or tells the one that runs of its session.
	Adopt(ctx context.Context, o rules.Operator) error
	// Stop tells a running task that its operator was ended.
	Stop(ctx context.Context, o rules.Operator, eventTS string) error
	// Wake has a running task look.
	Wake(ctx context.Context, seat, slug string) error
}

const (
	// claimLease is how long a claimant on another box may be at it: longer than a Bind may
	// take. Of one that is older nobody is left (O6).
	claimLease = 6 * time.Minute
	// claimWait is how long a loser waits for the winner's session.
	claimWait = 30 * time.Second
	claimPoll = 500 * time.Millisecond
)

// Bind finds the operator of a thread, or starts one where its people ask for work. One
// of the seven dispositions comes back (O3), or none where no line is open any more. An
// error is a fault of ours before anything was claimed.
func (o *Operator) Bind(ctx context.Context, in BindInput) (Binding, error) {
	failpoint.At(failpoint.BindBefore)
	seat, err := o.Seats.get(in.Turn.Seat)
	if err != nil {
		return Binding{}, err
	}
	defer beat(ctx)()
	status := showStatus(ctx, seat.Slack, in.Turn.Thread, o.Log)
	defer status.end()
	status.set(rules.ThinkingStatus)

	if o.Hold != nil {
		held, end, err := o.Hold(ctx, in.Turn)
		if err != nil {
			return Binding{}, err
		}
		defer end()
		ctx = held
	}
	b, err := o.bind(ctx, in)
	if errors.Is(context.Cause(ctx), errStopped) && b.Operator == nil {
		return Binding{}, nil // the stop says what became of the turn
	}
	if err != nil {
		return Binding{}, err
	}
	o.log(in).Info("operator", "disposition", b.Disposition, "why", b.Why)
	return b, nil
}

func (o *Operator) bind(ctx context.Context, in BindInput) (Binding, error) {
	if open, err := o.open(ctx, in); err != nil || !open {
		return Binding{}, err
	}
	if o.Off {
		return Binding{Disposition: rules.DispDisabled}, nil
	}
	live, err := o.Launcher.Check(ctx, Launch{Seat: in.Turn.Seat, Thread: in.Turn.Thread})
	if err != nil {
		return o.gap(in, rules.DispUnbound, rules.GapLauncher, err), nil
	}
	if live.Outcome == LaunchExists && live.ThisThread {
		return o.adopt(ctx, in, live, rules.DispBound), nil
	}
	// Before it is noted that these lines ask for work: then they are the earlier ones.
	earlier := ""
	if in.Asked == nil {
		earlier = o.earlier(ctx, in)
	}
	text := o.text(ctx, in)
	want := o.want(ctx, in, text, earlier)
	switch {
	case want.Unavailable:
		return Binding{Disposition: rules.DispUnavailable, Why: rules.GapClassifier}, nil
	case want.Kind != rules.KindWork:
		return Binding{Disposition: rules.DispQuestion}, nil
	}
	if err := o.Ledger.AskedForWork(ctx, in.Turn.Seat, in.Turn.Thread, want.Slug, want.Repo); err != nil {
		o.log(in).Warn("that a thread asks for work could not be noted; the sweep does not know it", "error", err)
	}
	if !in.MaySpawn {
		return Binding{Disposition: rules.DispUnbound, Why: rules.GapNotAllowed}, nil
	}
	checkout, ok := rules.ResolveCheckout(o.Checkouts(), want.Repo)
	if !ok {
		return Binding{Disposition: rules.DispUnscoped, Why: want.Repo}, nil
	}
	// A stop may have come while the classifier ran.
	if open, err := o.open(ctx, in); err != nil || !open {
		return Binding{}, err
	}
	ask := strings.TrimSpace(earlier + "\n" + text)
	return o.claim(ctx, in, want, checkout, ask), nil
}

// open tells whether a line of the turn is still this turn's to answer. What the sweep
// asks for has no open line.
func (o *Operator) open(ctx context.Context, in BindInput) (bool, error) {
	if in.Asked != nil {
		return true, nil
	}
	stop, err := o.Ledger.NewestStop(ctx, in.Turn.Seat, in.Turn.Thread)
	if err != nil {
		return false, fmt.Errorf("look for a stop: %w", err)
	}
	var keys []rules.LineKey
	for _, l := range in.Turn.Lines {
		if len(l.Raw) > 0 {
			return true, nil // its row is not written yet (L1)
		}
		if rules.CompareTS(l.Line.TS, stop) > 0 {
			keys = append(keys, l.Line.LineKey)
		}
	}
	if len(keys) == 0 {
		return false, nil
	}
	left, err := o.Ledger.OpenLines(ctx, in.Turn.ID, in.Turn.Seat, keys)
	if err != nil {
		return false, fmt.Errorf("look whether the lines are open: %w", err)
	}
	return len(left) > 0, nil
}

// want is what the thread asks for, as the classifier or the sweep says.
func (o *Operator) want(ctx context.Context, in BindInput, text, earlier string) rules.WorkDisposition {
	want := rules.WorkDisposition{}
	if in.Asked != nil {
		want = *in.Asked
	} else {
		var repos []string
		for _, c := range o.Checkouts() {
			repos = append(repos, c.Name)
		}
		want = o.Classifier.Classify(ctx, ClassifyInput{Seat: in.Turn.Seat, Text: text, Earlier: earlier, Repos: repos})
	}
	if want.Kind == rules.KindWork && !rules.ValidSlug(want.Slug) {
		want.Slug = rules.SlugFor(text)
	}
	return want
}

// earlier is what the thread asked for before and got no operator for: an answer to "which
// repository?" is no work by itself.
func (o *Operator) earlier(ctx context.Context, in BindInput) string {
	w, err := o.Ledger.WorkOf(ctx, in.Turn.Seat, in.Turn.Thread)
	if errors.Is(err, store.ErrNotFound) {
		return ""
	}
	if err != nil {
		o.log(in).Warn("what the thread asked for before could not be read", "error", err)
		return ""
	}
	return o.plain(in.Turn.Seat, w.Line.Text)
}

// text is what the people wrote, one line after the other.
func (o *Operator) text(ctx context.Context, in BindInput) string {
	var parts []string
	for _, l := range in.Turn.Lines {
		text := l.Line.Text
		if l.TextRef {
			if line, err := o.Ledger.Line(ctx, l.Line.LineKey); err == nil {
				text = line.Text
			}
		}
		parts = append(parts, o.plain(in.Turn.Seat, text))
	}
	return strings.Join(parts, "\n")
}

// plain is a line as a reader sees it.
func (o *Operator) plain(seat, text string) string {
	return rules.PlainText(text, func(user string) string {
		for name, id := range o.Seats.BotUsers {
			if id == user {
				return name
			}
		}
		return ""
	})
}

// claim takes the thread before anything is started (O6): of all that ask at the same
// time one starts, and the others learn of it.
func (o *Operator) claim(ctx context.Context, in BindInput, want rules.WorkDisposition, checkout rules.Checkout, ask string) Binding {
	claimant := runID(ctx)
	c, won, err := o.Ledger.Claim(ctx, store.Wish{
		Seat: in.Turn.Seat, Thread: in.Turn.Thread, Slug: want.Slug, Repo: checkout.Name, Box: o.Box, Claimant: claimant,
	})
	if err != nil {
		return o.gap(in, rules.DispUnbound, rules.GapStore, err)
	}
	failpoint.At(failpoint.BindClaimed)
	if !won {
		return o.lost(ctx, in, c, claimant, ask)
	}
	return o.spawn(ctx, in, c, ask)
}

// lost goes on where somebody else holds the claim. A claim whose session is gone, or
// whose claimant died, is taken over: the search for a live session came before (O6, O7).
func (o *Operator) lost(ctx context.Context, in BindInput, c store.Claim, claimant, ask string) Binding {
	lease := claimLease
	if c.Box == o.Box {
		// The launcher's lock is this box's: whoever comes second finds the first one's session.
		lease = claimWait
	}
	for deadline := o.Now().Add(claimWait); c.State == store.ClaimClaiming && o.Now().Sub(c.ClaimedAt) < lease; {
		if o.Now().After(deadline) || o.Wait(ctx, claimPoll) != nil {
			return Binding{Disposition: rules.DispUnbound, Why: rules.GapBusy}
		}
		again, err := o.Ledger.ClaimOf(ctx, in.Turn.Seat, in.Turn.Thread)
		if errors.Is(err, store.ErrNotFound) {
			return Binding{Disposition: rules.DispUnbound, Why: rules.GapLauncher}
		}
		if err != nil {
			return o.gap(in, rules.DispUnbound, rules.GapStore, err)
		}
		c = again
	}
	if c.Box != o.Box {
		// O7's search sees this box only: there may be a session of this thread there.
		return o.gap(in, rules.DispUnbound, rules.GapElsewhere, fmt.Errorf("box %q has the thread's claim", c.Box))
	}
	live, err := o.Launcher.Check(ctx, Launch{Seat: in.Turn.Seat, Thread: in.Turn.Thread})
	if err != nil {
		return o.gap(in, rules.DispUnbound, rules.GapLauncher, err)
	}
	if live.Outcome == LaunchExists && live.ThisThread {
		return o.adopt(ctx, in, live, rules.DispBound)
	}
	c, won, err := o.Ledger.TakeOverClaim(ctx, in.Turn.Seat, in.Turn.Thread, c.Claimant, claimant)
	if err != nil {
		return o.gap(in, rules.DispUnbound, rules.GapStore, err)
	}
	if !won {
		return Binding{Disposition: rules.DispUnbound, Why: rules.GapBusy}
	}
	return o.spawn(ctx, in, c, ask)
}

// spawn starts the operator of a claim that is ours. A failed spawn releases it, or the
// thread would be without an operator for ever because of the claim that is to give it one.
func (o *Operator) spawn(ctx context.Context, in BindInput, c store.Claim, ask string) Binding {
	if c.Repo == "" {
		panic("a spawn needs a resolved checkout; see rules.ResolveCheckout (O4)")
	}
	got, err := o.Launcher.Start(ctx, Launch{
		Seat: in.Turn.Seat, Thread: in.Turn.Thread, Slug: c.Slug, Repo: c.Repo,
		Brief: rules.OperatorBrief(ask, o.Link(in.Turn.Seat, in.Turn.Thread)), Asked: newest(in.Turn.Lines),
	})
	failpoint.At(failpoint.BindStarted)
	free := context.WithoutCancel(ctx)
	if err != nil {
		// The launcher's group is ended; whether it had come as far as a session is asked (O7).
		if live, again := o.Launcher.Check(free, Launch{Seat: in.Turn.Seat, Thread: in.Turn.Thread}); again == nil &&
			live.Outcome == LaunchExists && live.ThisThread {
			return o.adopt(free, in, live, rules.DispSpawned)
		}
		o.giveUp(free, in, c)
		return o.gap(in, rules.DispUnbound, rules.GapLauncher, err)
	}
	switch {
	case got.Outcome == LaunchStarted:
		return o.adopt(free, in, got, rules.DispSpawned)
	case got.Outcome == LaunchExists && got.ThisThread:
		return o.adopt(free, in, got, rules.DispBound)
	case got.Outcome == LaunchExists:
		o.release(free, in, c)
		return o.gap(in, rules.DispUnbound, rules.GapTaken, fmt.Errorf("%s belongs to another thread", rules.OperatorName(c.Slug)))
	case got.Outcome == LaunchFull:
		o.giveUp(free, in, c)
		return Binding{Disposition: rules.DispUnbound, Why: rules.GapLimit}
	}
	o.giveUp(free, in, c)
	return o.gap(in, rules.DispUnbound, rules.GapLauncher, fmt.Errorf("the launcher said %q", got.Outcome))
}

// newest is the ts of the newest of the lines.
func newest(lines []TurnLine) (ts string) {
	for _, l := range lines {
		ts = rules.NewerTS(ts, l.Line.TS)
	}
	return ts
}

// giveUp gives up a claim whose operator did not start. One that was bound before keeps its
// name and worktree, and the lines that wait for its next session: the next turn takes it over.
func (o *Operator) giveUp(ctx context.Context, in BindInput, c store.Claim) {
	if c.Worktree == "" {
		o.release(ctx, in, c)
		return
	}
	if _, err := o.Ledger.LapseClaim(ctx, in.Turn.Seat, in.Turn.Thread, c.Claimant); err != nil {
		o.log(in).Error("a claim's lease could not be ended; it ends in a while", "slug", c.Slug, "error", err)
	}
}

func (o *Operator) release(ctx context.Context, in BindInput, c store.Claim) {
	if _, err := o.Ledger.ReleaseClaim(ctx, in.Turn.Seat, in.Turn.Thread, c.Claimant); err != nil {
		// It is a lease: the next turn after it ends takes it over.
		o.log(in).Error("a claim could not be released; it is taken over in a while", "slug", c.Slug, "error", err)
	}
}

// gap is a disposition that is said, with its cause in the log.
func (o *Operator) gap(in BindInput, d rules.Disposition, why string, cause error) Binding {
	o.log(in).Error("an operator could not be bound", "disposition", d, "why", why, "error", cause)
	return Binding{Disposition: d, Why: why}
}

// StopOperator ends the session of a thread's operator and frees the thread (O11). Its
// worktree stays: what it holds is for people to see.
func (o *Operator) StopOperator(ctx context.Context, in StopOperatorInput) (StopOperatorResult, error) {
	live, err := o.Launcher.Check(ctx, Launch{Seat: in.Seat, Thread: in.Thread})
	if err != nil {
		return StopOperatorResult{}, fmt.Errorf("look for the operator: %w", err)
	}
	c, err := o.Ledger.ClaimOf(ctx, in.Seat, in.Thread)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return StopOperatorResult{}, fmt.Errorf("look the operator up: %w", err)
	}
	running := live.Outcome == LaunchExists && live.ThisThread
	if !running && c.Session == "" {
		return o.endedBefore(ctx), nil
	}
	op := rules.Operator{
		Number: c.Number, Slug: c.Slug, Repo: c.Repo, Box: c.Box, Seat: in.Seat, Thread: in.Thread,
		Session: c.Session, Worktree: c.Worktree, Branch: c.Branch,
	}
	if running {
		if op.Session != live.Operator.Session {
			op = live.Operator
		}
		op.Box = o.Box
	}
	// What an attempt ends, a repeat tells of: its task may have freed the thread by then.
	activity.RecordHeartbeat(ctx, op)
	// First: whoever sees that the session is gone must know that it was stopped.
	if err := o.Ledger.EndSession(ctx, op.Session); err != nil {
		return StopOperatorResult{}, fmt.Errorf("end the session's entry: %w", err)
	}
	if running {
		if err := o.Sessions.Kill(ctx, op.Session); err != nil {
			o.reopen(context.WithoutCancel(ctx), op)
			return StopOperatorResult{}, fmt.Errorf("end the operator: %w", err)
		}
	}
	failpoint.At(failpoint.StopKilled)
	if err := o.Tasks.Stop(ctx, op, in.EventTS); err != nil {
		o.Log.Warn("a stopped operator's task could not be told; it finds out at its next look", "slug", op.Slug, "error", err)
	}
	// Last: while the claim stands, a repeat knows what it ended. The task ends it too; a
	// thread must not wait for that. It may be a bind's that
	// died before it knew the session, or that of a session before this one.
	if _, err := o.Ledger.EndClaim(ctx, in.Seat, in.Thread, c.Session); err != nil {
		return StopOperatorResult{}, fmt.Errorf("free the thread: %w", err)
	}
	if _, err := o.Ledger.ReleaseClaim(ctx, in.Seat, in.Thread, c.Claimant); err != nil {
		return StopOperatorResult{}, fmt.Errorf("free the thread: %w", err)
	}
	return StopOperatorResult{Operator: &op, Elsewhere: op.Box != o.Box}, nil
}

// endedBefore is what an earlier attempt of this stop has ended, nothing where there was none.
func (o *Operator) endedBefore(ctx context.Context) StopOperatorResult {
	var op rules.Operator
	if !activity.HasHeartbeatDetails(ctx) || activity.GetHeartbeatDetails(ctx, &op) != nil {
		return StopOperatorResult{}
	}
	return StopOperatorResult{Operator: &op, Elsewhere: op.Box != o.Box}
}

// reopen has an operator that could not be ended among the sessions again.
func (o *Operator) reopen(ctx context.Context, op rules.Operator) {
	if _, err := o.register(ctx, op); err != nil {
		o.Log.Error("an operator that could not be ended is not among the sessions; the next line of its thread mends that", "slug", op.Slug, "error", err)
	}
}

func (o *Operator) log(in BindInput) *slog.Logger {
	return o.Log.With("seat", in.Turn.Seat, "channel", in.Turn.Thread.Channel, "thread", in.Turn.Thread.Root, "turn", in.Turn.ID)
}
