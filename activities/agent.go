package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"agentsmith/internal/agent"
	"agentsmith/internal/failpoint"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// Seat is what the activities need to know of one seat.
type Seat struct {
	Name string
	// BotUser is its own uid.
	BotUser string
	// Slack is its client.
	Slack SlackClient
	// Model, SystemPrompt and the tools are the config's.
	Model           string
	SystemPrompt    string
	AllowedTools    []string
	DisallowedTools []string
	PermissionMode  string
}

// Seats are the seats of this worker, and the roster that a hand-off may name.
type Seats struct {
	ByName map[string]*Seat
	// BotUsers are the uids of all rostered seats by name, remote ones too.
	BotUsers map[string]string
}

func (s Seats) get(name string) (*Seat, error) {
	seat, ok := s.ByName[name]
	if !ok {
		return nil, temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("the seat %q is not in this worker's config", name), "UnknownSeat", nil)
	}
	return seat, nil
}

// siblings are the other seats of the roster.
func (s Seats) siblings(name string) []string {
	var out []string
	for n := range s.BotUsers {
		if n != name {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Runner runs the agent CLI.
type Runner interface {
	Run(ctx context.Context, spec agent.Spec, started func(agent.Process) error) (agent.Result, error)
}

// Agent runs the agent CLI for turns on one box, and ends it.
type Agent struct {
	Seats  Seats
	Ledger AgentLedger
	Runner Runner
	Kill   func(context.Context, agent.Process) (bool, error)
	Places *Places
	Dirs   Dirs
	Box    string
	// DailyCostUSD caps what agents may cost a day, MaxOutput what one may write (X6).
	DailyCostUSD float64
	MaxOutput    int64
	// Drain is how long a run may go on when the worker stops (T6).
	Drain time.Duration
	Now   func() time.Time
	Log   *slog.Logger
	// Tasks is told of lines that wait to be typed into an operator's session (O11).
	Tasks TaskWaker

	running running
	// beside are writes that no turn waits for.
	beside sync.WaitGroup
}

// HoldTurn registers a turn among those that KillAgent ends: by cancelling the context
// that it returns. end gives it back.
type HoldTurn func(ctx context.Context, t Turn) (held context.Context, end func(), err error)

// Hold lets the stops that an Agent carries out reach what another part does for a turn.
func Hold(a *Agent) HoldTurn {
	return func(ctx context.Context, t Turn) (context.Context, func(), error) {
		var lines []rules.Line
		for _, l := range t.Lines {
			lines = append(lines, l.Line)
		}
		ctx, run, err := a.running.add(ctx, t, lines)
		if err != nil {
			return ctx, nil, err
		}
		return ctx, run.end, nil
	}
}

// Finish waits for what is written beside the turns. A worker calls it last.
func Finish(a *Agent) { a.beside.Wait() }

//go:generate mockgen -source=agent.go -destination=mock_agent_test.go -package=activities_test

// AgentLedger is what Agent needs of the store.
type AgentLedger interface {
	TakeLines(ctx context.Context, turn store.Turn, lines []store.TakeLine) (store.TakeResult, error)
	LastTurnLine(ctx context.Context, seat string, t rules.Thread) (string, error)
	UnansweredSince(ctx context.Context, seat string, t rules.Thread, afterTS string, limit int) ([]store.LineAuthor, error)
	NewestStop(ctx context.Context, seat string, t rules.Thread) (string, error)
	RecordStop(ctx context.Context, seat string, t rules.Thread, ts string) (bool, error)
	SetProcess(ctx context.Context, turnID string, p store.Process) error
	ThreadProcesses(ctx context.Context, seat string, t rules.Thread) ([]store.TurnProcess, error)
	LiveProcesses(ctx context.Context, box string) ([]store.TurnProcess, error)
	ProcessDead(ctx context.Context, runID string) error
	KeepAnswer(ctx context.Context, turnID string, a store.Answer) error
	CostSince(ctx context.Context, t time.Time) (float64, error)
	ClaimOf(ctx context.Context, seat string, t rules.Thread) (store.Claim, error)
	QueueLines(ctx context.Context, session string, lines []store.SessionLine) (fresh int, err error)
	MoveLine(ctx context.Context, session string, key rules.LineKey, from, to store.LineState) (bool, error)
}

// RunAgent is one run of the agent CLI: it takes the turn's lines from the ledger (L3),
// shows the status, waits for a place, makes sure that the last agent of the thread is
// gone (B3), runs the agent and keeps its answer.
//
// Errors: ErrTypeStopped, ErrTypeAgent, ErrTypeDeclined; anything else is a fault of ours
// before the agent ran. None is retried: the workflow allows one attempt.
func (a *Agent) RunAgent(ctx context.Context, in RunAgentInput) (RunAgentResult, error) {
	failpoint.At(failpoint.AgentBefore)
	seat, err := a.Seats.get(in.Turn.Seat)
	if err != nil {
		return RunAgentResult{}, err
	}
	defer beat(ctx)()

	last, err := a.Ledger.LastTurnLine(ctx, in.Turn.Seat, in.Turn.Thread)
	if err != nil {
		return RunAgentResult{}, fmt.Errorf("find the thread's last turn: %w", err)
	}
	lines, err := a.take(ctx, in)
	if err != nil {
		return RunAgentResult{}, err
	}
	if len(lines) == 0 && len(in.Turn.Lines) > 0 {
		return RunAgentResult{Nothing: true}, nil
	}
	failpoint.At(failpoint.AgentTaken)
	if in.driverSaid, err = a.beginWork(ctx, seat, in); err != nil {
		return RunAgentResult{}, err
	}
	defer a.keepWorking(ctx, seat, in.Turn.Thread, in.Work)()
	gone, err := a.passOn(ctx, seat, in, lines)
	if err != nil {
		return RunAgentResult{}, err
	}

	ctx, run, err := a.running.add(ctx, in.Turn, lines)
	if err != nil {
		return RunAgentResult{}, err
	}
	defer run.end()
	defer a.endWithWorker(ctx, run)()
	result, err := a.run(ctx, seat, in, lines, last)
	result.OperatorGone = gone
	switch {
	case err == nil:
	case a.wasStopped(ctx, in, lines):
		// Whatever it looks like from here: another worker of the box may have ended it.
		err = stoppedError()
	case errors.Is(context.Cause(ctx), errWorkerStops):
		err = temporal.NewNonRetryableApplicationError("the worker stops", ErrTypeWorkerDied, nil)
	}
	return result, err
}

// endWithWorker ends the run when its worker stops and the time to drain is over (T6).
func (a *Agent) endWithWorker(ctx context.Context, run *turnRun) (unwatch func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
			return
		case <-activity.GetWorkerStopChannel(ctx):
		}
		drain := time.NewTimer(a.Drain)
		defer drain.Stop()
		select {
		case <-done:
		case <-drain.C:
			run.cancel(errWorkerStops)
		}
	}()
	return func() { close(done) }
}

// take moves the lines from owed to this turn.
func (a *Agent) take(ctx context.Context, in RunAgentInput) ([]rules.Line, error) {
	turn := store.Turn{ID: in.Turn.ID, Seat: in.Turn.Seat, Thread: in.Turn.Thread, Session: in.Session, Box: a.Box}
	taken, err := a.Ledger.TakeLines(ctx, turn, takeLines(in.Turn.Lines))
	if err != nil {
		return nil, fmt.Errorf("take the turn's lines: %w", err)
	}
	return taken.Taken, nil
}

// takeLines are a turn's lines as the ledger takes them.
func takeLines(lines []TurnLine) []store.TakeLine {
	out := make([]store.TakeLine, 0, len(lines))
	for _, l := range lines {
		line := l.Line
		if len(l.Raw) > 0 {
			line.Raw = l.Raw
		}
		out = append(out, store.TakeLine{Line: line, Author: l.Author, HasRow: len(l.Raw) == 0})
	}
	return out
}

func (a *Agent) run(ctx context.Context, seat *Seat, in RunAgentInput, lines []rules.Line, last string) (RunAgentResult, error) {
	status := showStatus(ctx, seat.Slack, in.Turn.Thread, a.Log)
	defer status.end()
	if err := a.withinBudget(ctx); err != nil {
		return RunAgentResult{}, err
	}
	giveBack, err := a.Places.Take(ctx, func(place int) { status.set(rules.WaitingStatus(place)) })
	if err != nil {
		return RunAgentResult{}, fmt.Errorf("wait for a place: %w", err)
	}
	defer giveBack()
	status.set(rules.ThinkingStatus)

	if err := a.endLeftovers(ctx, in.Turn); err != nil {
		return RunAgentResult{}, err
	}
	dir, err := a.Dirs.Prepare(ctx, in.Turn)
	if err != nil {
		return RunAgentResult{}, err
	}
	brief := a.brief(ctx, seat, in, lines, last, dir)
	got, err := a.Runner.Run(ctx, agent.Spec{
		RunID: runID(ctx), SessionID: in.Session, Dir: dir.Path, Prompt: brief.String(),
		SystemPrompt: rules.SystemPrompt(seat.Name, a.Seats.siblings(seat.Name), in.Drives > 0) + seat.SystemPrompt,
		Model:        seat.Model, AllowedTools: append(slices.Clone(seat.AllowedTools), outboxRule), DisallowedTools: seat.DisallowedTools,
		PermissionMode: seat.PermissionMode, Timeout: in.Timeout, MaxOutput: a.MaxOutput,
	}, func(p agent.Process) error { return a.started(ctx, in, lines, p) })
	failpoint.At(failpoint.AgentEnded)
	free := context.WithoutCancel(ctx)
	a.beside.Go(func() { a.markEnded(free, runID(ctx)) })
	if err != nil {
		return RunAgentResult{}, a.agentError(ctx, in, err)
	}
	result, err := a.keep(free, in, dir, got)
	result.PostID = postID(in.Turn, lines)
	return result, err
}

// markEnded notes that a run's processes are gone. Nothing waits for it: one that is not
// noted is looked for before the next run.
func (a *Agent) markEnded(ctx context.Context, runID string) {
	if err := a.Ledger.ProcessDead(ctx, runID); err != nil {
		a.Log.Warn("an ended agent could not be marked as such; it is looked for before the next run", "error", err)
	}
}

// runID names one run of the agent: the activity's own identity, so that a retry after a
// reset is another run.
func runID(ctx context.Context) string {
	info := activity.GetInfo(ctx)
	return fmt.Sprintf("%s.%s.%d", info.WorkflowExecution.RunID, info.ActivityID, info.Attempt)
}

// started records the agent's process before it may do anything. A stop that came
// between the taking of the lines and this moment ends it here.
func (a *Agent) started(ctx context.Context, in RunAgentInput, lines []rules.Line, p agent.Process) error {
	err := a.Ledger.SetProcess(ctx, in.Turn.ID, store.Process{
		RunID: p.RunID, PID: p.PID, PGID: p.PGID, Start: p.Start, BootID: p.BootID,
	})
	if err != nil {
		return fmt.Errorf("record the agent's process: %w", err)
	}
	failpoint.At(failpoint.AgentStarted)
	if a.wasStopped(ctx, in, lines) {
		return agent.ErrStopped
	}
	return nil
}

// wasStopped tells whether the newest stop is younger than one of the turn's lines.
func (a *Agent) wasStopped(ctx context.Context, in RunAgentInput, lines []rules.Line) bool {
	if errors.Is(context.Cause(ctx), errStopped) {
		return true
	}
	ts, err := a.Ledger.NewestStop(context.WithoutCancel(ctx), in.Turn.Seat, in.Turn.Thread)
	if err != nil {
		a.Log.Warn("the newest stop could not be read", "error", err)
		return false
	}
	for _, l := range lines {
		if rules.CompareTS(l.TS, ts) < 0 {
			return true
		}
	}
	return false
}

// withinBudget refuses a run when today's agents have cost the day's budget (X6).
func (a *Agent) withinBudget(ctx context.Context) error {
	if a.DailyCostUSD <= 0 {
		return nil
	}
	now := a.Now().UTC()
	cost, err := a.Ledger.CostSince(ctx, time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC))
	if err != nil {
		return fmt.Errorf("add up today's cost: %w", err)
	}
	if cost < a.DailyCostUSD {
		return nil
	}
	return temporal.NewNonRetryableApplicationError("today's budget is used up", ErrTypeDeclined, nil,
		FailureDetails{Reason: rules.ReasonBudget})
}

// endLeftovers makes sure that no earlier agent of the thread still runs (B3). Turns that
// have no thread yet share nothing with each other.
func (a *Agent) endLeftovers(ctx context.Context, t Turn) error {
	left, err := a.Ledger.ThreadProcesses(ctx, t.Seat, t.Thread)
	if err != nil {
		return fmt.Errorf("look for earlier agents of the thread: %w", err)
	}
	for _, p := range left {
		if t.Thread.Root == "" && p.TurnID != t.ID {
			continue
		}
		if err := a.endProcess(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (a *Agent) endProcess(ctx context.Context, p store.TurnProcess) error {
	killed, err := a.Kill(ctx, agent.Process{RunID: p.RunID, PID: p.PID, PGID: p.PGID, Start: p.Start, BootID: p.BootID})
	if err != nil {
		return fmt.Errorf("end an earlier agent: %w", err)
	}
	if killed {
		a.Log.Warn("an agent that was left running was ended", "turn", p.TurnID)
	}
	if err := a.Ledger.ProcessDead(ctx, p.RunID); err != nil {
		return fmt.Errorf("mark an earlier agent as ended: %w", err)
	}
	return nil
}

// EndLeftovers ends every agent that earlier workers of this box left running. A worker
// calls it before it takes work (B3). The agents of a worker that still lives are its own.
func EndLeftovers(ctx context.Context, a *Agent) error {
	left, err := a.Ledger.LiveProcesses(ctx, a.Box)
	if err != nil {
		return fmt.Errorf("look for agents of an earlier worker: %w", err)
	}
	for _, p := range left {
		if agent.Supervised(agent.Process{RunID: p.RunID, PID: p.PID, PGID: p.PGID, Start: p.Start, BootID: p.BootID}) {
			continue
		}
		if err := a.endProcess(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// keep stores the answer, and reads what the agent asks of the runtime. What the history
// cannot carry is stored before the activity reports it.
func (a *Agent) keep(ctx context.Context, in RunAgentInput, dir ThreadDir, got agent.Result) (RunAgentResult, error) {
	files, err := dir.Outgoing()
	if err != nil {
		a.Log.Warn("the agent's files could not be listed", "error", err)
	}
	read := rules.ParseAnswer(got.Text, a.Seats.siblings(in.Turn.Seat))
	kept := store.Answer{Text: read.Text, Model: got.Model, CostUSD: got.CostUSD, Duration: got.Duration, Files: files}
	if len(files) > 0 || len(read.Text) > rules.InlineText {
		if err := a.Ledger.KeepAnswer(ctx, in.Turn.ID, kept); err != nil {
			return RunAgentResult{}, fmt.Errorf("keep the answer: %w", err)
		}
	} else {
		// The history carries the whole of it: nothing waits for the copy.
		a.beside.Go(func() {
			if err := a.Ledger.KeepAnswer(ctx, in.Turn.ID, kept); err != nil {
				a.Log.Warn("an answer's copy, and what it cost, could not be kept", "turn", in.Turn.ID, "error", err)
			}
		})
	}
	failpoint.At(failpoint.AgentKept)
	out := RunAgentResult{
		Abstained: read.Abstained && len(files) == 0,
		Continue:  read.Continue,
		Answer: Answer{
			Text: read.Text, Files: len(files), Model: got.Model, Duration: got.Duration, CostUSD: got.CostUSD,
		},
	}
	if len(read.Text) > rules.InlineText {
		out.Answer.Text, out.Answer.Ref = "", true
	}
	if read.HandOffTo != "" {
		out.Answer.HandOff = &HandOff{Seat: read.HandOffTo, Text: read.HandOff, Hop: in.SiblingHop}
	}
	return out, nil
}

// agentError gives an agent's failure its type and its reason.
func (a *Agent) agentError(ctx context.Context, in RunAgentInput, err error) error {
	var exit *agent.ExitError
	var api *agent.APIError
	var reason rules.Reason
	switch {
	case errors.Is(context.Cause(ctx), errWorkerStops):
		return err
	case errors.Is(err, agent.ErrStopped) && ctx.Err() == nil, errors.Is(context.Cause(ctx), errStopped):
		return stoppedError()
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Canceled
	case errors.Is(err, agent.ErrTimeout):
		reason = rules.ReasonAgentTimeout
	case errors.Is(err, agent.ErrOutput):
		reason = rules.ReasonAgentOutput
	case errors.Is(err, agent.ErrUnreadable):
		reason = rules.ReasonAgentUnreadable
	case errors.Is(err, agent.ErrMissing):
		reason = rules.ReasonAgentMissing
	case errors.As(err, &api):
		reason = rules.ReasonAgentAPI
	case errors.As(err, &exit):
		reason = rules.ReasonAgentExit
	default:
		return err
	}
	a.Log.Error("the agent failed", "seat", in.Turn.Seat, "channel", in.Turn.Thread.Channel,
		"thread", in.Turn.Thread.Root, "turn", in.Turn.ID, "reason", reason, "error", err)
	return temporal.NewNonRetryableApplicationError(string(reason), ErrTypeAgent, nil, FailureDetails{Reason: reason})
}

// The causes of a run's context that was cancelled by us.
var (
	errStopped     = errors.New("stopped")
	errWorkerStops = errors.New("the worker stops")
)

func stoppedError() error {
	return temporal.NewNonRetryableApplicationError("stopped", ErrTypeStopped, nil)
}

// KillAgent ends running agents: those of this worker by cancelling their runs, others by
// the identity that the store has of them. It returns when they are gone (D4).
func (a *Agent) KillAgent(ctx context.Context, in KillAgentInput) (KillAgentResult, error) {
	scope := in.Thread
	if in.WholeChannel {
		scope.Root = ""
	}
	if in.StopTS != "" {
		if _, err := a.Ledger.RecordStop(ctx, in.Seat, scope, in.StopTS); err != nil {
			a.Log.Warn("a stop could not be recorded; running agents are ended all the same", "error", err)
		}
	}
	stopped := a.running.stop(ctx, in)
	left, err := a.Ledger.LiveProcesses(ctx, a.Box)
	if err != nil {
		return counted(stopped, fmt.Errorf("look for running agents: %w", err), a.Log)
	}
	for _, p := range left {
		if !in.covers(p.Seat, p.Thread, p.FirstTS) {
			continue
		}
		killed, err := a.Kill(ctx, agent.Process{RunID: p.RunID, PID: p.PID, PGID: p.PGID, Start: p.Start, BootID: p.BootID})
		if err != nil {
			return counted(stopped, fmt.Errorf("end a running agent: %w", err), a.Log)
		}
		if killed {
			stopped++
		}
	}
	return KillAgentResult{Stopped: stopped}, nil
}

// counted keeps the count of what was ended: a repeat would find nothing and say so.
func counted(n int, err error, log *slog.Logger) (KillAgentResult, error) {
	if err == nil || n == 0 {
		return KillAgentResult{Stopped: n}, err
	}
	log.Error("agents were ended, and others could not be looked for", "ended", n, "error", err)
	return KillAgentResult{Stopped: n}, nil
}

// covers tells whether a turn of this seat and thread, whose first line is firstTS, is to be ended.
func (in KillAgentInput) covers(seat string, t rules.Thread, firstTS string) bool {
	if seat != in.Seat || t.Team != in.Thread.Team || t.Channel != in.Thread.Channel {
		return false
	}
	if !in.WholeChannel && t.Root != in.Thread.Root {
		return false
	}
	return in.StopTS == "" || firstTS == "" || rules.CompareTS(firstTS, in.StopTS) < 0
}

// running are the turns that this worker has in hand.
type running struct {
	mu   sync.Mutex
	runs map[*turnRun]bool
}

type turnRun struct {
	of      *running
	turn    Turn
	firstTS string
	cancel  context.CancelCauseFunc
	done    chan struct{}
}

// add registers a run. An earlier run of the thread, whose worker lost its server for too
// long, is ended first: two agents never share a directory (B3, B9).
func (r *running) add(ctx context.Context, turn Turn, lines []rules.Line) (context.Context, *turnRun, error) {
	if turn.Thread.Root != "" {
		r.stop(ctx, KillAgentInput{Seat: turn.Seat, Thread: turn.Thread})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs == nil {
		r.runs = map[*turnRun]bool{}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	run := &turnRun{of: r, turn: turn, cancel: cancel, done: make(chan struct{})}
	for _, l := range lines {
		if run.firstTS == "" || rules.CompareTS(l.TS, run.firstTS) < 0 {
			run.firstTS = l.TS
		}
	}
	if err := ctx.Err(); err != nil {
		cancel(nil)
		return ctx, nil, err
	}
	r.runs[run] = true
	return ctx, run, nil
}

func (t *turnRun) end() {
	t.of.mu.Lock()
	delete(t.of.runs, t)
	t.of.mu.Unlock()
	t.cancel(nil)
	close(t.done)
}

// stop cancels the runs that in covers and waits until each has ended.
func (r *running) stop(ctx context.Context, in KillAgentInput) int {
	r.mu.Lock()
	var covered []*turnRun
	for run := range r.runs {
		if in.covers(run.turn.Seat, run.turn.Thread, run.firstTS) {
			covered = append(covered, run)
		}
	}
	r.mu.Unlock()
	n := 0
	for _, run := range covered {
		run.cancel(errStopped)
	}
	for _, run := range covered {
		select {
		case <-run.done:
			n++
		case <-ctx.Done():
		}
	}
	return n
}
