package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"agentsmith/activities"
	"agentsmith/rules"
)

// OperatorTask follows one operator's work until it is over: it has lines typed and
// words offered, looks at the session, the branch and the pull request, shows the phases,
// and says once each when the operator waits for a person, is dead, or is done (O10).
func OperatorTask(ctx workflow.Context, in TaskInput) error {
	t, err := newTask(ctx, in)
	if err != nil {
		return err
	}
	return t.run(ctx)
}

// task is the state of one run of OperatorTask.
type task struct {
	in TaskInput
	TaskCarried

	signals workflow.ReceiveChannel
	// due: something happened that has to be looked at; pull: GitHub too.
	due, pull bool
	net       safetyNet
	// next is an operator that was started while this task was ending.
	next *rules.Operator
}

// TaskCarried is what a run hands on when it continues as new.
type TaskCarried struct {
	// Facts are what was known at the last look, Shown those that the table shows.
	Facts rules.PhaseFacts `json:"facts"`
	Shown rules.PhaseFacts `json:"shown"`
	// Blocked: the thread knows that the operator waits for a person. Blocks counts how
	// often it did, which names the line that says so.
	Blocked bool `json:"blocked,omitempty"`
	Blocks  int  `json:"blocks,omitempty"`
	// Dead is since when the session is gone, zero while it lives.
	Dead time.Time `json:"dead,omitzero"`
	// Deaths counts the sessions of the task that died.
	Deaths int `json:"deaths,omitempty"`
	// Pulled is when GitHub was last asked, RetryAt until when it wants to be left alone.
	Pulled  time.Time `json:"pulled,omitzero"`
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Over is why the task ends, "" while it does not.
	Over  string `json:"over,omitempty"`
	Looks int    `json:"looks,omitempty"`
}

func newTask(ctx workflow.Context, in TaskInput) (*task, error) {
	t := &task{in: in, signals: workflow.GetSignalChannel(ctx, SignalOperatorTask), due: true, pull: true}
	if in.Carried != nil {
		t.TaskCarried = *in.Carried
		t.pull = false
	}
	err := workflow.SetQueryHandler(ctx, QueryTask, func() (TaskView, error) { return t.view(), nil })
	if err != nil {
		return nil, fmt.Errorf("set the query %s: %w", QueryTask, err)
	}
	return t, nil
}

// run is the story of a task: look when something happened, else wait for it, until it
// is over; then say so and let the thread go.
func (t *task) run(ctx workflow.Context) error {
	for {
		t.drain()
		t.describe(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case t.Over != "":
			return t.finish(ctx)
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			return t.renew(ctx)
		case t.due:
			t.look(ctx)
		default:
			t.wait(ctx)
		}
	}
}

// drain takes every signal that has arrived. It never yields.
func (t *task) drain() {
	for {
		var s TaskTrigger
		if !t.signals.ReceiveAsync(&s) {
			return
		}
		t.due = true
		switch s.Kind {
		case TaskGitHub:
			t.pull = true
		case TaskAdopt:
			t.adopt(s.Operator)
		case TaskStop:
			if s.Operator.Session == t.in.Operator.Session {
				t.Over = rules.OverStopped
			}
		}
	}
}

// adopt goes on with the session that the operator has now: a dead one is started again
// in its worktree (O9).
func (t *task) adopt(o rules.Operator) {
	if o.Session == "" || o.Session == t.in.Operator.Session {
		return
	}
	if t.Over != "" {
		t.next = &o
		return
	}
	t.in.Operator = o
	t.in.Settings = t.in.Settings.on(o)
	t.Dead, t.Blocked = time.Time{}, false
}

// look observes the operator and tells the thread what changed.
func (t *task) look(ctx workflow.Context) {
	now := workflow.Now(ctx)
	pull := (t.pull || now.Sub(t.Pulled) >= t.in.Settings.Poll) && !now.Before(t.RetryAt)
	t.due = false
	t.Looks++
	var a *activities.Task
	var seen activities.Observation
	err := workflow.ExecuteActivity(taskOptions(ctx, t.in.Settings.Box, "look"), a.ObserveTask, activities.ObserveInput{
		Operator: t.in.Operator, Pull: pull, Seen: t.Facts,
	}).Get(ctx, &seen)
	if err != nil {
		workflow.GetLogger(ctx).Error("the operator could not be looked at; the next tick looks again", "error", err)
		t.setTick(ctx, false)
		return
	}
	if pull {
		t.Pulled, t.pull = now, false
	}
	if t.Over != "" {
		return // it was ended meanwhile
	}
	t.Facts, t.RetryAt, t.Over = seen.Facts, seen.RetryAt, seen.Over
	if seen.Gone {
		t.Over = rules.OverGone
		return
	}
	t.tell(ctx, seen)
	if t.Facts != t.Shown {
		t.publish(ctx)
	}
	if !t.Dead.IsZero() && t.Over == "" && now.Sub(t.Dead) >= t.in.Settings.GiveUp {
		t.Over = rules.OverGaveUp
	}
	t.setTick(ctx, seen.Outstanding)
}

// tell says once each that the operator waits for a person, or is dead (O10).
func (t *task) tell(ctx workflow.Context, seen activities.Observation) {
	if seen.Over == "" && !seen.Alive && t.Dead.IsZero() {
		t.Dead = workflow.Now(ctx)
		t.Deaths++
		t.notice(ctx, activities.NoticeDead, fmt.Sprintf("dead-%d", t.Deaths))
	}
	if seen.Blocked && !t.Blocked {
		t.Blocks++
		t.notice(ctx, activities.NoticeBlocked, fmt.Sprintf("blocked-%d", t.Blocks))
	}
	t.Blocked = seen.Blocked
}

func (t *task) notice(ctx workflow.Context, what, name string) {
	var a *activities.Task
	err := workflow.ExecuteActivity(taskOptions(ctx, t.in.Settings.Box, what), a.SayNotice, activities.NoticeInput{
		Operator: t.in.Operator, What: what, Name: name,
	}).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Error("a notice was given up", "what", what, "error", err)
	}
}

func (t *task) publish(ctx workflow.Context) {
	var p *activities.Phases
	err := workflow.ExecuteActivity(publishOptions(ctx, t.in.Settings.Box, "phases"), p.PublishPhases, activities.PublishInput{
		Seat: t.in.Operator.Seat, Thread: t.in.Operator.Thread, Facts: t.Facts,
	}).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Error("the phases could not be shown; they are with the next change", "error", err)
		return
	}
	t.Shown = t.Facts
}

// setTick sets the safety net, the short one while something is under way.
func (t *task) setTick(ctx workflow.Context, outstanding bool) {
	t.net.set(ctx, outstanding, t.in.Settings.Tick, FastTick)
}

// wait blocks until something happens or the tick is due.
func (t *task) wait(ctx workflow.Context) {
	if !t.net.isSet() {
		t.setTick(ctx, false)
	}
	_ = workflow.Await(ctx, func() bool { return t.signals.Len() > 0 || t.net.fired() })
	if t.net.take() {
		t.due = true
	}
}

// renew continues as new at a quiet point, with every signal taken.
func (t *task) renew(ctx workflow.Context) error {
	t.drain()
	carried := t.TaskCarried
	next := t.in
	next.Carried = &carried
	return workflow.NewContinueAsNewError(ctx, OperatorTask, next)
}

// finish says the final line, lets the thread go and cleans as the config says. The last
// words are offered until they stand in the thread.
func (t *task) finish(ctx workflow.Context) error {
	var a *activities.Task
	err := workflow.ExecuteActivity(taskOptions(ctx, t.in.Settings.Box, "finish"), a.FinishTask, activities.FinishInput{
		Operator: t.in.Operator, Facts: t.Facts, Why: t.Over,
	}).Get(ctx, nil)
	if err != nil {
		return fmt.Errorf("finish the task of %s: %w", rules.OperatorName(t.in.Operator.Slug), err)
	}
	if t.Facts != t.Shown {
		t.publish(ctx)
	}
	t.offerRest(ctx)
	t.drain()
	if t.next != nil {
		next := TaskInput{Operator: *t.next, Settings: t.in.Settings.on(*t.next)}
		return workflow.NewContinueAsNewError(ctx, OperatorTask, next)
	}
	return nil
}

// maxOffers is how often the last words are offered, one tick apart: for a day, as long
// as posts are tried.
const maxOffers = int(24 * time.Hour / FastTick)

// offerRest offers the words that still wait, until all stand in the thread (R11).
func (t *task) offerRest(ctx workflow.Context) {
	var a *activities.Task
	for range maxOffers {
		var left activities.Offered
		err := workflow.ExecuteActivity(taskOptions(ctx, t.in.Settings.Box, "last words"), a.OfferWords, activities.OfferInput{
			Operator: t.in.Operator,
		}).Get(ctx, &left)
		if err == nil && !left.Outstanding || ctx.Err() != nil {
			return
		}
		t.setTick(ctx, true)
		t.wait(ctx)
		t.drain()
	}
	workflow.GetLogger(ctx).Error("the last words of an operator were given up")
}

// TaskView is the answer to QueryTask (T2).
type TaskView struct {
	Operator rules.Operator   `json:"operator"`
	Doing    string           `json:"doing"`
	Facts    rules.PhaseFacts `json:"facts"`
	Looks    int              `json:"looks"`
}

func (t *task) view() TaskView {
	return TaskView{Operator: t.in.Operator, Doing: t.doing(), Facts: t.Facts, Looks: t.Looks}
}

func (t *task) doing() string {
	switch {
	case t.Over != "":
		return "over: " + t.Over
	case !t.Dead.IsZero():
		return "the session is gone; waiting to be started again"
	case t.Blocked:
		return "the operator waits for a person"
	default:
		return "the operator works"
	}
}

// describe shows the same in the Temporal UI and CLI, at no cost (T2).
func (t *task) describe(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("#%d %s in %s: %s",
		t.in.Operator.Number, rules.OperatorName(t.in.Operator.Slug), t.in.Operator.Repo, t.doing()))
}
