package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"agentsmith/activities"
	"agentsmith/rules"
)

// ReplyType is the name that Reply is registered under.
const ReplyType = "Reply"

// Reply is the brain of one seat for one thread: the thread's one voice. It answers
// the line that started it, then those that reach it by SignalAddContext, one turn at
// a time, and completes when the thread has been quiet for Settings.IdleAfter (B1-B6).
func Reply(ctx workflow.Context, in ReplyInput) error {
	b, err := newBrain(ctx, in)
	if err != nil {
		return err
	}
	return b.run(ctx)
}

// brain is the state of one run of Reply.
type brain struct {
	in ReplyInput
	Carried

	signals workflow.ReceiveChannel
	// takesAsks: the run takes part in asks (A4).
	takesAsks bool
	// turn is the turn that runs now, nil between turns.
	turn *turn
	// asides are posts beside the turns: refusals, checks, and stops that found no turn.
	asides   []aside
	asideRun bool
	// looking counts the looks at asks that are under way.
	looking int
	// hints counts what was said of asks; renewing: the run is about to continue as new.
	hints    int
	renewing bool
	// deposits are words of sessions on their way into the thread; the first is in hand.
	deposits []activities.DepositInput
	idle     workflow.Future
}

// Carried is what a run hands on when it continues as new (B2).
type Carried struct {
	// Waiting are lines owed a turn, in the order in which they came.
	Waiting []Trigger `json:"waiting,omitempty"`
	// Drive is a turn that the agent gave itself (D2).
	Drive *Trigger `json:"drive,omitempty"`
	// Edits are for the next turn to know (L4).
	Edits []activities.Edit `json:"edits,omitempty"`
	// Deleted are lines that were deleted while they waited.
	Deleted []Trigger `json:"deleted,omitempty"`
	// Seen are the names of the latest triggers, oldest first: a redelivery is dropped here
	// already. The ledger is the last word.
	Seen []string `json:"seen,omitempty"`
	// StopTS is the newest stop's ts. A waiting line that is older is dropped with it; one
	// that arrives later is declined by the ledger, which knows the stop too (D4).
	StopTS string `json:"stop_ts,omitempty"`
	Turns  int    `json:"turns,omitempty"`
	// Unbegun counts the turns in a row that were lost before they began (B3).
	Unbegun   int       `json:"unbegun,omitempty"`
	LastLine  time.Time `json:"last_line,omitzero"`
	LastDrive string    `json:"last_drive,omitempty"`
	// Operator is the one that a turn of this thread bound (O2): no later turn asks again.
	Operator *rules.Operator `json:"operator,omitempty"`
	// Asks are lines that ask every seat, for as long as it is open what this one does (A4).
	Asks []*ask `json:"asks,omitempty"`
}

// seenKept is how many names of triggers are carried: more than can be redelivered
// at one time.
const seenKept = 300

func newBrain(ctx workflow.Context, in ReplyInput) (*brain, error) {
	b := &brain{in: in, signals: workflow.GetSignalChannel(ctx, SignalAddContext)}
	b.takesAsks = takesAsks(ctx)
	if in.Carried != nil {
		b.Carried = *in.Carried
	}
	err := workflow.SetQueryHandler(ctx, QueryThread, func() (ThreadView, error) { return b.view(), nil })
	if err != nil {
		return nil, fmt.Errorf("set the query %s: %w", QueryThread, err)
	}
	workflow.Go(ctx, b.listen)
	workflow.Go(ctx, b.sayAsides)
	workflow.Go(ctx, b.sayDeposits)
	for _, a := range b.Asks {
		b.workOn(ctx, a)
	}
	if in.Carried == nil {
		b.accept(ctx, in.Trigger)
	}
	return b, nil
}

// run is the story of a thread: renew a long history, else answer what waits, else wait
// for the next line until the thread has been quiet for long enough.
func (b *brain) run(ctx workflow.Context) error {
	for {
		b.drain(ctx)
		switch {
		case ctx.Err() != nil:
			return b.leave(ctx)
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			return b.renew(ctx)
		case b.turnDue():
			b.takeTurn(ctx)
		case b.asidesDue():
			b.await(ctx, func() bool { return b.turnDue() || !b.asidesDue() })
		case len(b.Asks) > 0:
			b.await(ctx, func() bool { return b.turnDue() || b.asidesDue() || len(b.Asks) == 0 })
		case b.quiet(ctx):
			return nil
		default:
			b.await(ctx, func() bool { return b.turnDue() || b.asidesDue() || b.idle.IsReady() })
		}
	}
}

func (b *brain) turnDue() bool   { return len(b.Waiting) > 0 || b.Drive != nil }
func (b *brain) asidesDue() bool { return len(b.asides) > 0 || b.asideRun || len(b.deposits) > 0 }

// await blocks until done holds or the workflow is cancelled, which run looks at.
func (b *brain) await(ctx workflow.Context, done func() bool) {
	_ = workflow.Await(ctx, done)
}

// quiet tells whether nothing has been said for IdleAfter. The timer is lazy: a line
// does not restart it, it is set again for the rest when it fires early. That saves an
// action a turn (B6).
func (b *brain) quiet(ctx workflow.Context) bool {
	if b.in.Trigger.IsCron || b.in.Settings.IdleAfter <= 0 {
		return true
	}
	if b.idle != nil && !b.idle.IsReady() {
		return false
	}
	rest := b.in.Settings.IdleAfter - workflow.Now(ctx).Sub(b.LastLine)
	if rest <= 0 {
		return true
	}
	b.idle = workflow.NewTimerWithOptions(ctx, rest, workflow.TimerOptions{Summary: "idle"})
	return false
}

// renew continues as new between two turns, with every signal taken and no aside
// running, so that nothing is lost between the two runs. Lines may wait: they are
// carried, since a busy thread is never quiet.
func (b *brain) renew(ctx workflow.Context) error {
	b.renewing = true
	for b.drain(ctx); b.asidesDue() || b.looking > 0; b.drain(ctx) {
		b.await(ctx, func() bool { return !b.asidesDue() && b.looking == 0 })
		if ctx.Err() != nil {
			return b.leave(ctx)
		}
	}
	carried := b.Carried
	next := b.in
	next.Carried = &carried
	return workflow.NewContinueAsNewError(ctx, Reply, next)
}

// leave ends a run that somebody cancelled from outside. What waits is declined as
// stopped and the thread is told, on a context that is not cancelled.
func (b *brain) leave(ctx workflow.Context) error {
	cause := ctx.Err()
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	for b.drain(free); b.asidesDue() || b.turnDue() || len(b.Asks) > 0; b.drain(free) {
		for _, a := range b.Asks {
			b.Waiting = append(b.Waiting, a.Trigger)
		}
		b.Asks = nil
		if b.asidesDue() {
			b.await(free, func() bool { return !b.asidesDue() })
			continue
		}
		b.post(free, b.nextTurn(free), activities.PostInput{
			Say: activities.SayDecline, State: rules.Declined, Reason: rules.ReasonCancelled,
		})
	}
	return cause
}

func (b *brain) view() ThreadView {
	v := ThreadView{Seat: b.in.Seat, Thread: b.in.Thread, Turns: b.Turns, Doing: b.doing()}
	if b.turn != nil {
		v.Turn = b.turn.id
		v.Lines = stamps(b.turn.lines)
	}
	v.Waiting = stamps(b.Waiting)
	for _, a := range b.Asks {
		v.Asks = append(v.Asks, a.Line.TS)
	}
	if b.Operator != nil {
		v.Operator = rules.OperatorName(b.Operator.Slug)
	}
	return v
}

func (b *brain) doing() string {
	switch {
	case b.turn != nil && b.turn.posting:
		return "posting the answer"
	case b.turn != nil:
		return "running the agent"
	case len(b.Asks) > 0:
		return "waiting with an ask of all seats"
	default:
		return "waiting for a line"
	}
}

// describe shows the same in the Temporal UI and CLI (T2), at no cost: details are read, not recorded.
func (b *brain) describe(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("%s: %s; %d turns; waiting: %s",
		b.in.Seat, b.doing(), b.Turns, strings.Join(stamps(b.Waiting), " ")))
}

func stamps(ts []Trigger) []string {
	var out []string
	for _, t := range ts {
		out = append(out, t.Line.TS)
	}
	return out
}
