package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/github"
	"agentsmith/internal/outbox"
	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// Task is what the workflow of an operator's task asks of its box (O10, O11).
type Task struct {
	Ledger   TaskLedger
	Terminal Terminal
	Words    Words
	Brains   BrainDoor
	// Pulls reads GitHub; nil where no token is configured.
	Pulls Pulls
	Box   string
	// Clean removes the worktree of a task that is over, where the config says so.
	Clean bool
	Now   func() time.Time
	Log   *slog.Logger
}

// TaskLedger is what Task needs of the store.
type TaskLedger interface {
	ClaimOf(ctx context.Context, seat string, t rules.Thread) (store.Claim, error)
	EndClaim(ctx context.Context, seat string, t rules.Thread, session string) (bool, error)
	Sessions(ctx context.Context) ([]store.Session, error)
	SessionByID(ctx context.Context, id string) (store.Session, error)
	EndSession(ctx context.Context, id string) error
	QueueLines(ctx context.Context, session string, lines []store.SessionLine) (fresh int, err error)
	WaitingLines(ctx context.Context, session string, limit int) ([]store.SessionLine, error)
	MoveLine(ctx context.Context, session string, key rules.LineKey, from, to store.LineState) (bool, error)
	SpeechLedger
	LinkPull(ctx context.Context, p store.PullRequest) error
}

// Terminal is the box's tmux and git, as a task sees them.
type Terminal interface {
	// Live finds a session by its identity; ok is false where it is gone.
	Live(ctx context.Context, session string) (l terminal.Live, ok bool, err error)
	// Blocked tells whether the session waits for a person at a dialog.
	Blocked(ctx context.Context, l terminal.Live) (bool, error)
	// Type types a text into a session once, however often it is called with its id (R10).
	Type(ctx context.Context, l terminal.Live, t terminal.Text) (terminal.Arrival, error)
	// Progress is what the operator's branch holds.
	Progress(ctx context.Context, worktree, branch string) (terminal.Progress, error)
	// Kill ends a session by its identity (X5).
	Kill(ctx context.Context, session string) error
	// RemoveWorktree removes a worktree that holds nothing that is not elsewhere.
	RemoveWorktree(ctx context.Context, worktree, branch string) error
}

// Words are what sessions say, as files that wait to be taken (R11).
type Words interface {
	Words(session string) ([]outbox.Word, error)
	Remove(session, id string) error
}

// BrainDoor reaches the brains of threads.
type BrainDoor interface {
	// Offer brings a session's word to the brain of a thread, and starts it where none runs.
	Offer(ctx context.Context, seat string, t rules.Thread, d DepositInput) error
	// Operator tells a running brain which operator its thread has; nil for none.
	Operator(ctx context.Context, seat string, t rules.Thread, o *rules.Operator) error
}

// Pulls reads pull requests.
type Pulls interface {
	PullOfBranch(ctx context.Context, repo, branch string) (github.PullState, bool, error)
	Pull(ctx context.Context, repo string, number int) (github.PullState, error)
}

// typedAtOnce is how many lines one look types.
const typedAtOnce = 10

// ObserveTask looks once at everything that is an operator's: it types the lines that
// wait, takes the words that were said and offers the next one, and reads the session,
// the branch and the pull request. Each step is recorded where a repeat finds it.
func (a *Task) ObserveTask(ctx context.Context, in ObserveInput) (Observation, error) {
	defer beat(ctx)()
	op := in.Operator
	c, err := a.Ledger.ClaimOf(ctx, op.Seat, op.Thread)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Observation{}, fmt.Errorf("look up the claim: %w", err)
	}
	out := Observation{Facts: in.Seen}
	if err != nil || c.Session != op.Session {
		out.Gone = true
		return out, nil
	}
	f := &out.Facts
	f.Bound, f.Slug, f.Repo, f.Number = true, op.Slug, op.Repo, op.Number

	live, alive, err := a.Terminal.Live(ctx, op.Session)
	if err != nil {
		return Observation{}, fmt.Errorf("look at the session: %w", err)
	}
	out.Alive, f.Alive, f.Dead = alive, alive, !alive
	if alive {
		if out.Blocked, err = a.Terminal.Blocked(ctx, live); err != nil {
			a.log(op).Warn("whether the operator waits for a person could not be seen", "error", err)
		}
		f.Blocked = out.Blocked
	} else {
		f.Blocked = false
	}
	before, err := a.before(ctx, op)
	if err != nil {
		return Observation{}, err
	}
	if err := a.inherit(ctx, op, before); err != nil {
		return Observation{}, err
	}
	lines, err := a.typeLines(ctx, op, live, alive)
	if err != nil {
		return Observation{}, err
	}
	if err := a.collect(ctx, op); err != nil {
		return Observation{}, err
	}
	words, err := a.offerFirst(ctx, append(before, op))
	if err != nil {
		return Observation{}, err
	}
	out.Outstanding = lines || words
	if p, err := a.Terminal.Progress(ctx, op.Worktree, op.Branch); err != nil {
		a.log(op).Warn("the operator's branch could not be read", "error", err)
	} else {
		f.Commits = p.Commits
		if p.Exists {
			f.Branch = op.Branch
		}
		if in.Pull {
			a.pull(ctx, op, p.Remote, &out)
		}
	}
	return out, nil
}

// typeLines types what waits for the session, oldest first, and tells whether any still
// waits. One that cannot be typed now holds up those behind it: they stay in order.
func (a *Task) typeLines(ctx context.Context, op rules.Operator, live terminal.Live, alive bool) (waiting bool, err error) {
	lines, err := a.Ledger.WaitingLines(ctx, op.Session, typedAtOnce)
	if err != nil {
		return false, fmt.Errorf("look for lines to type: %w", err)
	}
	for _, l := range lines {
		if !alive {
			// What is queued waits for the session that is started next in its place.
			if l.State == store.LineTyping {
				if err := a.unsure(ctx, op, l, errors.New("the session is gone")); err != nil {
					return false, err
				}
			}
			continue
		}
		// A line that is marked as being typed was left by a crash: Type looks there first.
		if l.State == store.LineQueued {
			if err := a.move(ctx, op, l, store.LineQueued, store.LineTyping); err != nil {
				return false, err
			}
		}
		failpoint.At(failpoint.TaskTyping)
		got, err := a.Terminal.Type(ctx, live, terminal.Text{ID: lineID(l.Key), Body: l.Text})
		failpoint.At(failpoint.TaskTyped)
		switch {
		case got == terminal.Arrived && err == nil:
			err = a.move(ctx, op, l, store.LineTyping, store.LineTyped)
		case got == terminal.NotTyped || err != nil:
			// Held, gone, or cut short: the next look goes on from there.
			a.log(op).Info("a line is not typed yet", "line", l.Key.TS, "error", err)
			if got == terminal.NotTyped && untouched(err) {
				// If this session dies, the next one gets it.
				return true, a.move(ctx, op, l, store.LineTyping, store.LineQueued)
			}
			return true, nil
		default:
			err = a.unsure(ctx, op, l, err)
		}
		if err != nil {
			return true, err
		}
	}
	return alive && len(lines) == typedAtOnce, nil
}

// untouched tells whether an error of Type means that nothing of the text is in the session.
func untouched(err error) bool {
	var held *terminal.HeldError
	return errors.As(err, &held) && !held.Pasted || errors.Is(err, terminal.ErrGone)
}

// unsure says that a line may or may not have been typed, and leaves it at that (R10).
// It is said before the line is moved, so that a repeat says it and not nobody.
func (a *Task) unsure(ctx context.Context, op rules.Operator, l store.SessionLine, cause error) error {
	a.log(op).Error("whether a line reached the operator is unknown; it is not typed again", "line", l.Key.TS, "error", cause)
	if err := a.say(ctx, op, "unsure/"+lineID(l.Key), rules.UnsureText(op, l.Text)); err != nil {
		return err
	}
	return a.move(ctx, op, l, store.LineTyping, store.LineUnsure)
}

func (a *Task) move(ctx context.Context, op rules.Operator, l store.SessionLine, from, to store.LineState) error {
	if _, err := a.Ledger.MoveLine(ctx, op.Session, l.Key, from, to); err != nil {
		return fmt.Errorf("move a line from %s to %s: %w", from, to, err)
	}
	return nil
}

func lineID(k rules.LineKey) string { return k.Channel + "/" + k.TS }

// collect takes the words that the session left, in their order.
func (a *Task) collect(ctx context.Context, op rules.Operator) error {
	return a.speech(op).collect(ctx, voiceOf(op), time.Time{})
}

func (a *Task) speech(op rules.Operator) speech {
	return speech{ledger: a.Ledger, words: a.Words, brains: a.Brains, log: a.log(op)}
}

// offer brings the oldest word that does not stand in the thread yet to the thread's
// brain; the next one waits for it (R11). Words of the sessions before come first. It
// tells whether a word is under way.
func (a *Task) offer(ctx context.Context, op rules.Operator) (bool, error) {
	before, err := a.before(ctx, op)
	if err != nil {
		return false, err
	}
	return a.offerFirst(ctx, append(before, op))
}

// offerFirst offers the oldest word of the first of these sessions that has one.
func (a *Task) offerFirst(ctx context.Context, sessions []rules.Operator) (bool, error) {
	for _, of := range sessions {
		if offered, err := a.offerOf(ctx, of); offered || err != nil {
			return offered, err
		}
	}
	return false, nil
}

func (a *Task) offerOf(ctx context.Context, op rules.Operator) (bool, error) {
	return a.speech(op).offer(ctx, voiceOf(op))
}

// OfferWords offers what a task that is over still has to say.
func (a *Task) OfferWords(ctx context.Context, in OfferInput) (Offered, error) {
	if err := a.collect(ctx, in.Operator); err != nil {
		return Offered{}, err
	}
	left, err := a.offer(ctx, in.Operator)
	return Offered{Outstanding: left}, err
}

// pull reads the pull request of the branch, and keeps which thread it belongs to (P2).
// What GitHub does not say now stands as it was.
func (a *Task) pull(ctx context.Context, op rules.Operator, repo string, out *Observation) {
	if a.Pulls == nil || repo == "" {
		return
	}
	f := &out.Facts
	var state github.PullState
	var err error
	found := true
	if f.Pull != 0 {
		state, err = a.Pulls.Pull(ctx, repo, f.Pull)
	} else {
		state, found, err = a.Pulls.PullOfBranch(ctx, repo, op.Branch)
	}
	var limited *github.RateLimitError
	switch {
	case errors.As(err, &limited):
		out.RetryAt = limited.Until
		return
	case err != nil:
		a.log(op).Warn("GitHub could not be read", "repo", repo, "error", err)
		return
	case !found:
		return
	}
	if err := a.Ledger.LinkPull(ctx, store.PullRequest{
		Repo: repo, Number: state.Number, URL: state.URL, Branch: op.Branch, Seat: op.Seat, Thread: op.Thread,
	}); err != nil {
		a.log(op).Warn("which thread a pull request belongs to could not be kept", "error", err)
	}
	takePull(f, state)
	switch state.State {
	case rules.PullMerged:
		out.Over = rules.OverMerged
	case rules.PullClosed:
		out.Over = rules.OverClosed
	}
}

// takePull puts what GitHub said among the facts.
func takePull(f *rules.PhaseFacts, p github.PullState) {
	f.Pull, f.PullURL, f.Draft = p.Number, p.URL, p.Draft
	f.Checks, f.Review, f.State = p.Checks, p.Review, p.State
}

// SayNotice says a line of Smith's own about a session, as a word in the session's order,
// and tells the brain when the session is gone (O10).
func (a *Task) SayNotice(ctx context.Context, in NoticeInput) error {
	var text string
	switch in.What {
	case NoticeBlocked:
		text = rules.BlockedText(in.Operator)
	case NoticeDead:
		if s, err := a.Ledger.SessionByID(ctx, in.Operator.Session); err == nil && s.Ended {
			return nil // a person ended it, and that is said (O11)
		}
		waiting, err := a.Ledger.WaitingLines(ctx, in.Operator.Session, allLines)
		if err != nil {
			return fmt.Errorf("count the lines that wait: %w", err)
		}
		text = rules.DeadText(in.Operator, len(waiting))
	default:
		return fmt.Errorf("a notice that says %q is unknown", in.What)
	}
	if err := a.say(ctx, in.Operator, in.Name, text); err != nil {
		return err
	}
	if in.What == NoticeDead {
		a.tellBrain(ctx, in.Operator)
	}
	_, err := a.offer(ctx, in.Operator)
	return err
}

func (a *Task) say(ctx context.Context, op rules.Operator, name, text string) error {
	return a.speech(op).say(ctx, voiceOf(op), name, text, a.Now())
}

// tellBrain has a running brain forget its operator: the next human turn asks anew.
func (a *Task) tellBrain(ctx context.Context, op rules.Operator) {
	if err := a.Brains.Operator(ctx, op.Seat, op.Thread, nil); err != nil {
		a.log(op).Warn("a brain does not know yet that its operator is gone", "error", err)
	}
}

// FinishTask ends a task: the final line, the session, the claim, and the worktree where
// the config says so (O10). Each step may be repeated.
func (a *Task) FinishTask(ctx context.Context, in FinishInput) error {
	defer beat(ctx)()
	op := in.Operator
	c, err := a.Ledger.ClaimOf(ctx, op.Seat, op.Thread)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("look up the claim: %w", err)
	}
	ours := err == nil && c.Session == op.Session
	if in.Why == rules.OverGone {
		if err := a.collect(ctx, op); err != nil || c.Claimant != "" {
			return err // the thread is another session's, and so are the lines that wait
		}
		return a.handBack(ctx, op)
	}
	if err := a.Terminal.Kill(ctx, op.Session); err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	failpoint.At(failpoint.TaskKilled)
	// The session has said all that it will: the final line is the last one (O10).
	if err := a.collect(ctx, op); err != nil {
		return err
	}
	if err := a.handBack(ctx, op); err != nil {
		return err
	}
	if text := rules.TaskOverText(op, in.Why, in.Facts); text != "" {
		if err := a.say(ctx, op, "over", text); err != nil {
			return err
		}
	}
	if err := a.Ledger.EndSession(ctx, op.Session); err != nil {
		return fmt.Errorf("end the session's entry: %w", err)
	}
	if ours {
		if a.Clean && in.Why == rules.OverMerged {
			if err := a.Terminal.RemoveWorktree(ctx, op.Worktree, op.Branch); err != nil {
				a.log(op).Warn("a worktree stays", "error", err)
			}
		}
		a.tellBrain(ctx, op)
		// Last: while the claim stands, a repeat knows that all of this is still to be done.
		if _, err := a.Ledger.EndClaim(ctx, op.Seat, op.Thread, op.Session); err != nil {
			return fmt.Errorf("free the thread: %w", err)
		}
	}
	// Once more: a brain that saw the claim stand may have passed a line on since.
	return a.handBack(ctx, op)
}

func (a *Task) log(op rules.Operator) *slog.Logger {
	return a.Log.With("seat", op.Seat, "channel", op.Thread.Channel, "thread", op.Thread.Root, "operator", rules.SessionName(op.Number, op.Slug))
}
