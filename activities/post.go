package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// Poster says things in threads and settles what becomes of their lines.
type Poster struct {
	Seats  Seats
	Ledger PostLedger
	Dirs   Dirs
	Box    string
	// RequestTimeout is how long a request to Slack may take: what a repeat waits out
	// before it reads back (B5).
	RequestTimeout time.Duration
	Now            func() time.Time
	Wait           func(ctx context.Context, d time.Duration) error
	Log            *slog.Logger
	// Tasks is told when a session's word stands in its thread.
	Tasks TaskWaker
}

// TaskWaker has the task of an operator look. A task that runs no more is no error.
type TaskWaker interface {
	Wake(ctx context.Context, seat, slug string) error
}

//go:generate mockgen -source=post.go -destination=mock_post_test.go -package=activities_test

// PostLedger is what Poster needs of the store.
type PostLedger interface {
	TakeLines(ctx context.Context, turn store.Turn, lines []store.TakeLine) (store.TakeResult, error)
	FinishTurn(ctx context.Context, turnID, seat string, keys []rules.LineKey, state rules.State, reason rules.Reason) (int, error)
	OpenLines(ctx context.Context, turnID, seat string, keys []rules.LineKey) ([]rules.LineKey, error)
	RowOf(ctx context.Context, seat string, key rules.LineKey) (store.Row, error)
	TurnOf(ctx context.Context, turnID string) (store.TurnInfo, error)
	AnswerOf(ctx context.Context, turnID string) (store.Answer, error)
	BeginPost(ctx context.Context, p store.Post) (store.Post, error)
	PostsOf(ctx context.Context, id string) ([]store.Post, error)
	ConfirmPost(ctx context.Context, id string, part int, ts string) error
	KeepFileID(ctx context.Context, id string, part int, name, fileID string) error
	FileIDs(ctx context.Context, id string) ([]store.PostFile, error)
	ConfirmFile(ctx context.Context, id, fileID string) error
	Deposit(ctx context.Context, id string) (store.Deposit, error)
	DeliverDeposit(ctx context.Context, id, ts string) error
	NextDeposit(ctx context.Context, session string) (store.Deposit, error)
}

// Post says what is to be said, exactly once as the reader sees it, then writes the
// lines' outcomes (L3, B5), then clears the status: the last thing on every way out (B7).
// Temporal repeats it until all three are done.
func (p *Poster) Post(ctx context.Context, in PostInput) (PostResult, error) {
	failpoint.At(failpoint.PostBefore)
	seat, err := p.Seats.get(in.Turn.Seat)
	if err != nil {
		return PostResult{}, err
	}
	defer beat(ctx)()
	if begun, err := p.begun(ctx, in); err != nil || !begun {
		return PostResult{NotBegun: !begun}, err
	}
	if in, err = p.instead(ctx, in); err != nil {
		return PostResult{}, err
	}
	switch bound := bindingText(in.Binding); {
	case in.Say == SayNothing && bound != "":
		in.Say = SayBinding
	case in.Say == SayBinding && bound == "":
		in.Say = SayNothing // operators are switched off (O5)
	}
	if in, err = p.asDriver(ctx, seat, in); err != nil {
		return PostResult{}, retryLater(err)
	}
	postID, err := p.name(ctx, in)
	if err != nil {
		return PostResult{}, err
	}
	var ts string
	if postID != "" && in.Say != SayNothing {
		ts, err = p.say(ctx, seat, in, postID)
		switch {
		case errors.Is(err, slackapi.ErrParentGone):
			in.State, in.Reason = rules.Failed, rules.ReasonParentGone
		case errors.As(err, new(*slackapi.Rejected)):
			in.State, in.Reason = rules.Failed, rules.ReasonPostRejected
		case errors.Is(err, slackapi.ErrNoThread):
			// Ours to mend; no repeat would make it better.
			in.State, in.Reason = rules.Failed, rules.ReasonInternal
		case err != nil:
			return PostResult{}, retryLater(err)
		}
		if err != nil {
			p.log(in).Error("a post cannot be made", "error", err)
		}
	}
	if err := p.endClaim(ctx, seat, in, ts != ""); err != nil {
		return PostResult{}, retryLater(err)
	}
	if err := p.finish(ctx, in); err != nil {
		return PostResult{}, err
	}
	if in.Deposit != nil {
		return PostResult{TS: ts}, p.delivered(ctx, in, ts)
	}
	failpoint.At(failpoint.PostOutcome)
	if in.Turn.Thread.Root != "" {
		if err := seat.Slack.ClearStatus(ctx, in.Turn.Thread.Channel, in.Turn.Thread.Root); err != nil {
			p.log(in).Warn("the status could not be cleared; Slack takes it away by itself", "error", err)
		}
	}
	failpoint.At(failpoint.PostCleared)
	return PostResult{TS: ts}, nil
}

// delivered notes that a session's word stands in the thread, or never will, and has the
// next one offered (R11). A word clears no status: it is not a turn.
func (p *Poster) delivered(ctx context.Context, in PostInput, ts string) error {
	if ts == "" {
		ts = in.Turn.Thread.Root // it never will; without a stamp it would be offered for ever
	}
	if err := p.Ledger.DeliverDeposit(ctx, in.Deposit.ID, ts); err != nil {
		return fmt.Errorf("note that a word is delivered: %w", err)
	}
	if in.Deposit.Relayed {
		if _, err := p.Ledger.NextDeposit(ctx, in.Deposit.Session); errors.Is(err, store.ErrNotFound) {
			return nil // no next one: that is two billable actions less for a relayed word
		}
	}
	if err := p.Tasks.Wake(ctx, in.Turn.Seat, in.Deposit.Slug); err != nil {
		p.log(in).Warn("the next word waits for a tick", "slug", in.Deposit.Slug, "error", err)
	}
	return nil
}

// begun tells whether the turn took its lines; what does not ask counts as begun.
func (p *Poster) begun(ctx context.Context, in PostInput) (bool, error) {
	if !in.IfBegun {
		return true, nil
	}
	turn, err := p.Ledger.TurnOf(ctx, in.Turn.ID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("look whether the turn began: %w", err)
	}
	if turn.EndedAt.IsZero() {
		return true, nil
	}
	// It has ended: by an earlier attempt of this very post, or long ago under the same id,
	// and then its lines are open still.
	open, err := p.Ledger.OpenLines(ctx, in.Turn.ID, in.Turn.Seat, lineKeys(in.Turn.Lines))
	if err != nil {
		return true, fmt.Errorf("look whether the turn began: %w", err)
	}
	return len(open) == 0, nil
}

// instead posts the answer of a run that was lost after it had kept one: its worker died
// before it could report it (B3).
func (p *Poster) instead(ctx context.Context, in PostInput) (PostInput, error) {
	if !in.IfBegun || in.Say != SayFailure {
		return in, nil
	}
	kept, err := p.Ledger.AnswerOf(ctx, in.Turn.ID)
	if errors.Is(err, store.ErrNotFound) || err == nil && kept.Text == "" && len(kept.Files) == 0 {
		return in, nil
	}
	if err != nil {
		return in, fmt.Errorf("look for a kept answer: %w", err)
	}
	in.Say, in.State, in.Reason = SayAnswer, rules.Answered, ""
	in.Answer = Answer{
		Ref: true, Files: len(kept.Files), Model: kept.Model, Duration: kept.Duration, CostUSD: kept.CostUSD,
	}
	return in, nil
}

// name takes the lines that no run has taken, so that nothing else may end them between
// two attempts, and returns the post's id: "" when no line is this turn's to answer.
func (p *Poster) name(ctx context.Context, in PostInput) (string, error) {
	if in.PostID != "" || len(in.Turn.Lines) == 0 {
		return in.PostID, nil
	}
	turn := store.Turn{ID: in.Turn.ID, Seat: in.Turn.Seat, Thread: in.Turn.Thread, Box: p.Box}
	got, err := p.Ledger.TakeLines(ctx, turn, takeLines(in.Turn.Lines))
	if err != nil {
		return "", fmt.Errorf("take the turn's lines: %w", err)
	}
	return postID(in.Turn, got.Taken), nil
}

// postID names the post of a turn by the first line that it took: no other turn ever
// takes that one.
func postID(t Turn, taken []rules.Line) string {
	if len(taken) == 0 {
		return ""
	}
	return rules.TurnID(t.Seat, t.Thread.Channel, taken[0].TS)
}

// finish writes the outcomes: the turn's own, then those of the lines that end with it.
func (p *Poster) finish(ctx context.Context, in PostInput) error {
	if len(in.Turn.Lines) > 0 && in.State != "" {
		_, err := p.Ledger.FinishTurn(ctx, in.Turn.ID, in.Turn.Seat, lineKeys(in.Turn.Lines), in.State, in.Reason)
		if err != nil {
			return fmt.Errorf("write the turn's outcomes: %w", err)
		}
	}
	for _, o := range in.Others {
		key := o.Line.Line.LineKey
		if len(o.Line.Raw) > 0 {
			turn := store.Turn{ID: rules.TurnID(in.Turn.Seat, key.Channel, key.TS), Seat: in.Turn.Seat, Thread: in.Turn.Thread, Box: p.Box}
			if _, err := p.Ledger.TakeLines(ctx, turn, takeLines([]TurnLine{o.Line})); err != nil {
				return fmt.Errorf("write the row of a line that had none: %w", err)
			}
		}
		_, err := p.Ledger.FinishTurn(ctx, rules.TurnID(in.Turn.Seat, key.Channel, key.TS), in.Turn.Seat, []rules.LineKey{key}, o.State, o.Reason)
		if err != nil {
			return fmt.Errorf("write the outcome of a line that waited: %w", err)
		}
	}
	return nil
}

func lineKeys(lines []TurnLine) []rules.LineKey {
	out := make([]rules.LineKey, 0, len(lines))
	for _, l := range lines {
		out = append(out, l.Line.LineKey)
	}
	return out
}

func (p *Poster) log(in PostInput) *slog.Logger {
	return p.Log.With("seat", in.Turn.Seat, "channel", in.Turn.Thread.Channel, "thread", in.Turn.Thread.Root, "turn", in.Turn.ID)
}

// retryLater lets Temporal wait as long as Slack asks.
func retryLater(err error) error {
	var limited *slackapi.RateLimited
	if errors.As(err, &limited) {
		return temporal.NewApplicationErrorWithOptions("slack asks to wait", "RateLimited",
			temporal.ApplicationErrorOptions{NextRetryDelay: limited.After, Cause: err})
	}
	return err
}

// Settle ends lines that are owed for too long and that no brain holds. A turn that was
// posted after all is answered; of any other the thread is told, once (L3).
func (p *Poster) Settle(ctx context.Context, in SettleInput) (SettleResult, error) {
	seat, err := p.Seats.get(in.Seat)
	if err != nil {
		return SettleResult{}, err
	}
	defer beat(ctx)()
	turns, err := p.lostTurns(ctx, in)
	if err != nil {
		return SettleResult{}, err
	}
	var out SettleResult
	for _, t := range turns {
		posted, err := p.settleTurn(ctx, seat, in.Thread, t)
		if err != nil {
			return out, retryLater(err)
		}
		if posted {
			out.Posted += len(t.keys)
		} else {
			out.Failed += len(t.keys)
		}
	}
	return out, nil
}

// lostTurn is a turn that took lines and came to no end, or a line that no turn took.
type lostTurn struct {
	id string
	// postID names its post, keys are those of its lines that were asked about.
	postID string
	keys   []rules.LineKey
}

// lostTurns are the turns of the lines that are still open, oldest first.
func (p *Poster) lostTurns(ctx context.Context, in SettleInput) ([]*lostTurn, error) {
	var out []*lostTurn
	for _, ts := range slices.SortedFunc(slices.Values(in.Lines), rules.CompareTS) {
		key := rules.LineKey{Team: in.Thread.Team, Channel: in.Thread.Channel, TS: ts}
		row, err := p.Ledger.RowOf(ctx, in.Seat, key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look a line up: %w", err)
		}
		if row.State != rules.Owed && row.State != rules.Taken {
			continue
		}
		id := row.Turn
		if id == "" {
			id = rules.TurnID(in.Seat, key.Channel, ts)
		}
		if i := slices.IndexFunc(out, func(t *lostTurn) bool { return t.id == id }); i >= 0 {
			out[i].keys = append(out[i].keys, key)
			continue
		}
		postID, err := p.postIDOf(ctx, in.Seat, id, key)
		if err != nil {
			return nil, err
		}
		out = append(out, &lostTurn{id: id, postID: postID, keys: []rules.LineKey{key}})
	}
	return out, nil
}

// postIDOf names the post of a turn of which one line is known, as postID did: by the line
// that the turn itself is named by, unless that was not the turn's to take.
func (p *Poster) postIDOf(ctx context.Context, seat, turnID string, known rules.LineKey) (string, error) {
	own := rules.TurnID(seat, known.Channel, known.TS)
	first, ok := strings.CutPrefix(turnID, rules.TurnID(seat, known.Channel, ""))
	if turnID == own || !ok || !rules.ValidTS(first) {
		return own, nil
	}
	row, err := p.Ledger.RowOf(ctx, seat, rules.LineKey{Team: known.Team, Channel: known.Channel, TS: first})
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return "", fmt.Errorf("look a turn's first line up: %w", err)
	case err == nil && row.Turn == turnID:
		return turnID, nil
	}
	return own, nil
}

func (p *Poster) settleTurn(ctx context.Context, seat *Seat, thread rules.Thread, t *lostTurn) (posted bool, err error) {
	posted, err = p.sayLost(ctx, seat, thread, t)
	state, reason := rules.Failed, rules.ReasonLost
	switch {
	case errors.Is(err, slackapi.ErrParentGone):
		reason = rules.ReasonParentGone
	case errors.As(err, new(*slackapi.Rejected)):
		reason = rules.ReasonPostRejected
	case err != nil:
		return false, err
	case posted:
		state, reason = rules.Answered, ""
	}
	if err != nil {
		p.Log.Error("a lost line cannot be told of", "channel", thread.Channel, "thread", thread.Root, "error", err)
	}
	if _, err := p.Ledger.FinishTurn(ctx, t.id, seat.Name, t.keys, state, reason); err != nil {
		return false, fmt.Errorf("write the outcome of a lost line: %w", err)
	}
	return state == rules.Answered, nil
}

// sayLost posts the answer that a turn kept and did not get into the thread, rather late
// than never. Of any other turn it looks for the post, and tells the thread that the line
// is lost where there is none. posted: an answer stands in the thread.
func (p *Poster) sayLost(ctx context.Context, seat *Seat, thread rules.Thread, t *lostTurn) (posted bool, err error) {
	answer, err := p.Ledger.AnswerOf(ctx, t.id)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, fmt.Errorf("look for a kept answer: %w", err)
	}
	m := message{id: t.postID, seat: seat, thread: thread, kind: string(SayAnswer)}
	requests := answerParts(answer.Text, footer(Answer{Model: answer.Model, Duration: answer.Duration, CostUSD: answer.CostUSD}))
	switch {
	case len(requests) == 0 && len(answer.Files) > 0:
		requests = noWords(answer.Files)
	case len(requests) == 0:
		return p.sayNothingKept(ctx, m)
	}
	if _, err := p.inParts(ctx, &m, requests); err != nil {
		return false, err
	}
	return true, p.sayFiles(ctx, m, Turn{ID: t.id, Seat: seat.Name, Thread: thread}, answer.Files)
}

// sayNothingKept looks for the post of a turn that kept no answer: it can still stand, as
// an answer, or as the line that tells of a failure. Where there is none the thread is
// told that the line is lost.
func (p *Poster) sayNothingKept(ctx context.Context, m message) (posted bool, err error) {
	begun, err := p.Ledger.PostsOf(ctx, m.id)
	if err != nil {
		return false, fmt.Errorf("look up the post: %w", err)
	}
	m.part, m.parts = 1, 1
	_, found, err := p.findTwice(ctx, m)
	if err != nil || found {
		failure := slices.ContainsFunc(begun, func(b store.Post) bool { return b.Kind == string(SayFailure) })
		return found && !failure, err
	}
	// A part of its own: a repeat must not find it in the place of the post.
	m.part, m.parts, m.kind = 2, 2, kindLost
	m.request = slackapi.PostRequest{Text: rules.FailureText(rules.ReasonLost)}
	_, err = p.once(ctx, m)
	return false, err
}
