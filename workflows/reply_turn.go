package workflows

import (
	"errors"
	"fmt"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"agentsmith/activities"
	"agentsmith/rules"
)

// turn is one run of the agent and its one answer.
type turn struct {
	id    string
	lines []Trigger
	drive *Trigger
	// dropped are lines deleted while the turn ran.
	dropped map[string]bool
	// edits are what its agent is told of.
	edits []activities.Edit
	// stop is the stop that ended it; killing is the activity that ends its agent.
	stop *Trigger
	// again are further stops, by somebody impatient: the one word is said for all.
	again   []Trigger
	killing workflow.Future
	posting bool
	// binding is what the turn found of the thread's operator (O3).
	binding activities.Binding
}

// drop notes that a line of the turn was deleted; false when it has no such line.
func (t *turn) drop(ts string) bool {
	for _, l := range t.lines {
		if l.Line.TS == ts {
			t.dropped[ts] = true
			return true
		}
	}
	return false
}

func (t *turn) allDropped() bool { return len(t.lines) > 0 && len(t.dropped) == len(t.lines) }

// olderThan tells whether a stop of this ts is meant for the turn: it was typed after
// one of its lines. A turn without lines is older than any stop.
func (t *turn) olderThan(stopTS string) bool {
	older := len(t.lines) == 0
	for _, l := range t.lines {
		older = older || rules.CompareTS(l.Line.TS, stopTS) < 0
	}
	return older
}

// siblingHop is the hop of the hand-off that the turn goes on with: a driven turn keeps
// that of the turn before it, or two seats could hand on for ever (D2).
func (t *turn) siblingHop() (hop int) {
	if t.drive != nil {
		hop = t.drive.SiblingHop
	}
	for _, l := range t.lines {
		hop = max(hop, l.SiblingHop)
	}
	return hop
}

// kill ends the turn's agent without waiting for a heartbeat to tell it (D4).
func (t *turn) kill(ctx workflow.Context, s Settings, in activities.KillAgentInput) {
	if t.killing == nil {
		var a *activities.Agent
		t.killing = workflow.ExecuteActivity(killOptions(ctx, s, "stop"), a.KillAgent, in)
	}
}

// killed waits for the kill and tells whether the box confirmed it.
func (t *turn) killed(ctx workflow.Context) bool {
	return t.killing == nil || t.killing.Get(ctx, nil) == nil
}

// nextTurn takes what waits: all lines are answered together (B2).
func (b *brain) nextTurn(ctx workflow.Context) *turn {
	t := &turn{lines: b.nextLines(), edits: b.Edits, dropped: map[string]bool{}}
	b.Edits = nil
	if t.work() == nil {
		t.drive, b.Drive = b.Drive, nil
	}
	switch {
	case len(t.lines) > 0 && t.lines[0].Line.TS != "":
		t.id = rules.TurnID(b.in.Seat, b.in.Thread.Channel, t.lines[0].Line.TS)
	case len(t.lines) > 0 && t.lines[0].EventTS != "":
		t.id = rules.TurnID(b.in.Seat, b.in.Thread.Channel, t.lines[0].EventTS)
	case t.drive != nil:
		t.id = fmt.Sprintf("%s/drive%d", b.LastDrive, t.drive.SelfDriveHop)
	default:
		// No line names this turn: a schedule does, by its workflow.
		t.id = b.in.Seat + "/" + workflow.GetInfo(ctx).WorkflowExecution.ID
	}
	return t
}

// takeTurn runs the agent on what waits and posts what comes of it (B2).
func (b *brain) takeTurn(ctx workflow.Context) {
	t := b.nextTurn(ctx)
	b.turn = t
	b.Turns++
	b.describe(ctx)
	defer func() { b.turn = nil; b.describe(ctx) }()

	b.bind(ctx, t)
	var result activities.RunAgentResult
	var err error
	if t.stop == nil { // one may have come while an operator was bound
		result, err = b.runAgent(ctx, t)
	}
	free, cancel := workflow.NewDisconnectedContext(ctx)
	defer cancel()
	killed := t.killed(free)
	if post, due := b.conclude(t, result, err, killed); due {
		t.posting = true
		b.again(t, b.post(free, t, post))
	}
	b.LastLine = workflow.Now(ctx)
}

// maxUnbegun is how often in a row a turn is begun anew whose run was lost before it had
// taken a line. After that the thread is told.
const maxUnbegun = 3

// again puts the lines of a turn that never began back: its worker, or its store, was lost
// before it had done anything, so nothing is repeated (B3). The post that found it out
// waited for both.
func (b *brain) again(t *turn, posted activities.PostResult) {
	if !posted.NotBegun {
		b.Unbegun = 0
		return
	}
	b.Unbegun++
	b.Waiting, b.Edits = append(t.lines, b.Waiting...), append(t.edits, b.Edits...)
	if b.Drive == nil {
		b.Drive = t.drive
	}
}

func (b *brain) runAgent(ctx workflow.Context, t *turn) (activities.RunAgentResult, error) {
	var a *activities.Agent
	in := activities.RunAgentInput{
		Turn:    b.activityTurn(t),
		Session: agentSession(ctx),
		Edits:   t.edits,
		Timeout: b.in.Settings.TurnTimeout,
		Drives:  b.in.Settings.SelfDriveHops,
	}
	in.SiblingHop = t.siblingHop()
	in.Work = t.work()
	in.Operator, in.Disposition = b.Operator, t.binding.Disposition
	for _, l := range t.lines {
		if l.Prompt != "" {
			in.Prompt, in.Author = l.Prompt, l.Author
		}
	}
	if t.drive != nil {
		in.Prompt, in.Author = t.drive.Prompt, rules.Self
		in.Drives -= t.drive.SelfDriveHop
	}
	var out activities.RunAgentResult
	err := workflow.ExecuteActivity(
		agentOptions(ctx, b.in.Settings, fmt.Sprintf("turn %d: %d lines", b.Turns, len(t.lines))),
		a.RunAgent, in).Get(ctx, &out)
	return out, err
}

// agentSession is the thread's agent session: derived, so that a run years later
// resumes the same one (B3).
func agentSession(ctx workflow.Context) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("smith:"+workflow.GetInfo(ctx).WorkflowExecution.ID)).String()
}

// conclude decides what a turn's end is said to be, and whether anything is due: a turn
// whose every line was somebody else's has no end of its own.
func (b *brain) conclude(t *turn, r activities.RunAgentResult, err error, killed bool) (activities.PostInput, bool) {
	switch {
	case t.stop != nil:
		return b.stopPost(t, killed), true
	case t.allDropped():
		return activities.PostInput{Say: activities.SayNothing, State: rules.Declined, Reason: rules.ReasonDeleted}, true
	case err != nil:
		post := failurePost(err)
		lost := post.Reason == rules.ReasonWorkerDied || post.Reason == rules.ReasonInternal
		post.IfBegun = lost && b.Unbegun < maxUnbegun
		return post, true
	case r.Nothing:
		return activities.PostInput{}, false
	case r.Abstained:
		return activities.PostInput{Say: activities.SayNothing, State: rules.Declined, Reason: rules.ReasonAbstained}, true
	}
	post := activities.PostInput{Say: activities.SayAnswer, State: rules.Answered, Answer: r.Answer, PostID: r.PostID}
	if r.OperatorGone {
		b.Operator = nil
	}
	if r.Continue != "" {
		post.DrivesUsedUp = !b.drive(t, r.Continue)
	}
	return post, true
}

// failurePost tells by the error's type what a person is told. An error that no type
// explains says so too: silence is never an end.
func failurePost(err error) activities.PostInput {
	post := activities.PostInput{Say: activities.SayFailure, State: rules.Failed, Reason: rules.ReasonInternal}
	var app *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	switch {
	case temporal.IsCanceledError(err):
		post.Say, post.State, post.Reason = activities.SayDecline, rules.Declined, rules.ReasonCancelled
	case errors.As(err, &timeout):
		post.Reason = rules.ReasonWorkerDied
	case errors.As(err, &app):
		var details activities.FailureDetails
		_ = app.Details(&details)
		switch app.Type() {
		case activities.ErrTypeStopped:
			// Somebody else said so: a stop of the whole DM.
			post.Say, post.State, post.Reason = activities.SayNothing, rules.Declined, rules.ReasonStopped
		case activities.ErrTypeDeclined:
			post.Say, post.State, post.Reason = activities.SayDecline, rules.Declined, details.Reason
			if details.Reason == rules.ReasonCovered || details.Reason == rules.ReasonNoFinal {
				post.Say = activities.SayNothing // another seat has the word (A6)
			}
		case activities.ErrTypeWorkerDied:
			post.Reason = rules.ReasonWorkerDied
		case activities.ErrTypeAgent:
			post.Reason = details.Reason
		}
	}
	return post
}

// drive plans the turn that the agent gave itself, false when its hops are used up (D2).
func (b *brain) drive(t *turn, prompt string) bool {
	hop := 1
	if t.drive != nil {
		hop = t.drive.SelfDriveHop + 1
	} else {
		b.LastDrive = t.id
	}
	if hop > b.in.Settings.SelfDriveHops || b.in.Trigger.IsCron {
		return false
	}
	b.Drive = &Trigger{Kind: KindLine, Author: rules.Self, Prompt: prompt, SelfDriveHop: hop, SiblingHop: t.siblingHop()}
	return true
}

// post writes outcomes and says what is to be said. It is repeated by Temporal until it
// is done; a thread that cannot be reached for a day is left to the sweep (L3).
func (b *brain) post(ctx workflow.Context, t *turn, in activities.PostInput) activities.PostResult {
	in.Turn = b.activityTurn(t)
	if len(in.Turn.Lines) == 0 && in.PostID == "" {
		in.PostID = t.id
	}
	in.NewThread = b.in.Thread.Root == ""
	in.Work = t.work()
	if t.binding.Disposition != "" {
		in.Binding = &t.binding
	}
	for _, d := range b.Deleted {
		in.Others = append(in.Others, activities.Outcome{Line: d.turnLine(), State: rules.Declined, Reason: rules.ReasonDeleted})
	}
	deleted := len(b.Deleted)
	out := b.sendPost(ctx, string(in.Say), in)
	if !out.NotBegun {
		b.Deleted = b.Deleted[deleted:]
	}
	return out
}

func (b *brain) sendPost(ctx workflow.Context, summary string, in activities.PostInput) activities.PostResult {
	var p *activities.Poster
	var out activities.PostResult
	if err := workflow.ExecuteActivity(postOptions(ctx, b.in.Settings, summary), p.Post, in).Get(ctx, &out); err != nil {
		workflow.GetLogger(ctx).Error("a post was given up; the sweep will ask about its lines", "error", err)
	}
	return out
}

func (b *brain) activityTurn(t *turn) activities.Turn {
	out := activities.Turn{ID: t.id, Seat: b.in.Seat, Thread: b.in.Thread}
	for _, l := range t.lines {
		if l.Line.TS != "" {
			out.Lines = append(out.Lines, l.turnLine())
		}
	}
	return out
}

func (t Trigger) turnLine() activities.TurnLine {
	return activities.TurnLine{Line: t.Line, Author: t.Author, TextRef: t.TextRef, Raw: t.Raw}
}
