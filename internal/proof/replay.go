package proof

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Specimen is the history of a real run, with a name to speak of it.
type Specimen struct {
	Name    string
	History *historypb.History
	// Commit is the code that the run was made by; "" where nobody knows.
	Commit string
}

// Workflow is the type of the specimen's run.
func (s Specimen) Workflow() string { return started(s.History).GetWorkflowType().GetName() }

// Code is the code under proof and how it is run.
type Code struct {
	// Register is the function that the worker registers its workflows with: the very same
	// one, or names differ.
	Register func(worker.WorkflowRegistry)
	// Activities are the names that the worker registers its activities under, when known.
	// With them an activity that the code names otherwise is told from one that it changed.
	Activities []string
	// DisableRegistrationAliasing, DataConverter and Interceptors are the worker's.
	DisableRegistrationAliasing bool
	DataConverter               converter.DataConverter
	Interceptors                []interceptor.WorkerInterceptor
	// Repeat is how often each specimen is replayed; some nondeterminism shows only sometimes. 0 is 1.
	Repeat int
	// Timeout ends a replay that hangs. 0 is 20 s, long enough for a busy machine.
	Timeout time.Duration
	// Execution overrides the run's own ids. Leave it empty: another id than the run's makes
	// other ids of what is derived from it, and is a false red.
	Execution workflow.Execution
	// Parallel is how many replays run at a time; 0 is one a processor.
	Parallel int
}

// Prover replays specimens on one code. It may be used by several goroutines.
type Prover struct {
	code    Code
	shapes  shapes
	benches chan *bench
	replays atomic.Int64 // so far, of all proofs
}

// bench is a replayer whose workflows are registered once; one replay at a time runs on it.
type bench struct {
	replayer worker.WorkflowReplayer
	run      *run
}

// New makes a prover. It fails when the registration does, and when there is none.
func New(code Code) (*Prover, error) {
	if code.Register == nil {
		return nil, errors.New("nothing to prove: no registration function")
	}
	code.Repeat = max(code.Repeat, 1)
	if code.Timeout == 0 {
		code.Timeout = 20 * time.Second
	}
	if code.Parallel == 0 {
		code.Parallel = runtime.GOMAXPROCS(0)
	}
	if code.DataConverter == nil {
		code.DataConverter = converter.GetDefaultDataConverter()
	}
	p := &Prover{code: code, shapes: newShapes(), benches: make(chan *bench, code.Parallel)}
	for range code.Parallel {
		b, err := p.newBench()
		if err != nil {
			return nil, err
		}
		p.benches <- b
	}
	return p, nil
}

func (p *Prover) newBench() (*bench, error) {
	b := &bench{}
	current := func() *run { return b.run }
	// The first interceptor stands nearest to the server, the last nearest to the code.
	chain := slices.Concat([]interceptor.WorkerInterceptor{&recorder{current: current}}, p.code.Interceptors,
		[]interceptor.WorkerInterceptor{&steering{current: current}})
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		DataConverter: p.code.DataConverter, Interceptors: chain,
		DisableRegistrationAliasing: p.code.DisableRegistrationAliasing,
		// A busy machine is no deadlock; Timeout ends what hangs.
		DisableDeadlockDetection: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make a replayer: %w", err)
	}
	p.code.Register(replayer)
	b.replayer = replayer
	return b, nil
}

func started(h *historypb.History) *historypb.WorkflowExecutionStartedEventAttributes {
	if len(h.GetEvents()) == 0 {
		return nil
	}
	return h.Events[0].GetWorkflowExecutionStartedEventAttributes()
}

// silent takes the SDK's complaints: a strand is told by its error.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

var _ log.Logger = silent{}

// setup is what one replay is asked to do.
type setup struct {
	controls []Control
	mutation *mutation
	sites    bool
}

// once replays a history once. The history is only read.
func (p *Prover) once(h *historypb.History, s setup, execution workflow.Execution) (*run, Outcome) {
	p.replays.Add(1)
	b := <-p.benches
	first := started(h)
	r := &run{
		conv: p.code.DataConverter, timeout: first.GetWorkflowRunTimeout().AsDuration(), queue: first.GetTaskQueue().GetName(),
		controls: s.controls, mutation: s.mutation, sites: s.sites, answered: map[string]bool{}, valued: map[string]bool{},
	}
	b.run = r
	done := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- fmt.Errorf("panic: %v", v)
			}
		}()
		done <- b.replayer.ReplayWorkflowHistoryWithOptions(silent{}, h, worker.ReplayWorkflowHistoryOptions{OriginalExecution: execution})
	}()
	timer := time.NewTimer(p.code.Timeout)
	defer timer.Stop()
	select {
	case err := <-done:
		r.end()
		p.benches <- b
		o := p.shapes.classify(err)
		if o.Verdict == Stranded {
			p.locate(&o, h, r)
		}
		return r, o
	case <-timer.C:
		r.end()
		fresh, err := p.newBench() // the other one is lost to the replay that hangs
		if err != nil {
			fresh = b
		}
		p.benches <- fresh
		return r, Outcome{Verdict: Hung, Runs: 1, Reason: fmt.Sprintf("no end after %s", p.code.Timeout)}
	}
}

// locate finds the event where a stranded replay parts from its history: the first one
// that the code's calls do not lead to.
func (p *Prover) locate(o *Outcome, h *historypb.History, r *run) {
	if o.Event != 0 {
		return
	}
	past := readPast(h, p.code.DataConverter)
	o.Event = divergence(past, r.calls)
	if o.Event == 0 && len(h.Events) > 0 {
		o.Event = h.Events[len(h.Events)-1].GetEventId()
	}
}

func divergence(past *past, calls []call) int64 {
	at := map[int64][]call{}
	for _, c := range calls {
		if c.recorded && c.Kind != LocalActivity {
			at[c.Task] = append(at[c.Task], c)
		}
	}
	for _, t := range past.tasks {
		given, events := at[t.started], withoutCancels(t.commands)
		for i, e := range events {
			if i >= len(given) || given[i].Kind != e.Kind || lastPart(given[i].Name) != lastPart(e.Name) {
				return e.Event
			}
		}
		if len(given) > len(events) {
			// One more than the history has: what follows the task is where they part.
			return past.after(t)
		}
	}
	return 0
}

// own is the execution that a history is of.
func own(h *historypb.History) workflow.Execution {
	first := started(h)
	return workflow.Execution{ID: first.GetWorkflowId(), RunID: first.GetOriginalExecutionRunId()}
}

// Replay replays a specimen as often as the code asks for, under its own ids, and tells a
// false red from a strand by replaying it once more as it should be.
func (p *Prover) Replay(s Specimen, controls ...Control) Outcome {
	o, _ := p.replay(s, setup{controls: controls}, p.code.Repeat)
	return o
}

func (p *Prover) replay(s Specimen, how setup, times int) (worst Outcome, runs []*run) {
	execution := own(s.History)
	if p.code.Execution != (workflow.Execution{}) {
		execution = p.code.Execution
	}
	for i := range times {
		again := how
		again.sites = how.sites && i == 0 // where calls stand is asked of the first replay only
		r, o := p.once(s.History, again, execution)
		runs = append(runs, r)
		if worst.Runs == 0 || o.Verdict.rank() > worst.Verdict.rank() {
			o.Runs, o.Greens = worst.Runs, worst.Greens
			if o.Verdict == Green {
				o.Greens++
			}
			worst = o
		} else if o.Verdict == Green {
			worst.Greens++
		}
		worst.Runs++
	}
	if worst.Verdict != Green && worst.Verdict != FalseRed {
		p.doubt(s, how, execution, &worst)
	}
	return worst, runs
}

// doubt asks of a failed replay whether its set-up is to blame.
func (p *Prover) doubt(s Specimen, how setup, execution workflow.Execution, o *Outcome) {
	falseRed := func(format string, args ...any) {
		o.Verdict, o.Reason = FalseRed, fmt.Sprintf(format, args...)
	}
	if real := own(s.History); execution != real {
		if _, again := p.once(s.History, how, real); again.Verdict == Green {
			falseRed("replayed as %q, the history is of %q", execution.ID, real.ID)
			return
		}
	}
	if cut := startedCut(s.History); cut != nil {
		if _, again := p.once(cut, how, execution); again.Verdict == Green {
			falseRed("the history ends at event %d, behind a task that was completed; cut it at event %d, where a task has only started",
				len(s.History.Events), len(cut.Events))
			return
		}
	}
	if o.Verdict == Stranded && len(p.code.Activities) > 0 {
		if is, want := p.alias(s, how, execution); is != "" {
			falseRed("the code names an activity %q that no worker registers; the history has %q: register methods without a name of their own", is, want)
		}
	}
}

// alias finds an activity that the code calls by a name under which none is registered,
// where the history has one that is.
func (p *Prover) alias(s Specimen, how setup, execution workflow.Execution) (is, want string) {
	r, _ := p.once(s.History, how, execution)
	for _, pair := range match(readPast(s.History, p.code.DataConverter), r.calls) {
		if pair.call == nil || pair.event.Kind != Activity || lastPart(pair.event.Name) == lastPart(pair.call.Name) {
			continue
		}
		if slices.Contains(p.code.Activities, pair.event.Name) && !slices.Contains(p.code.Activities, pair.call.Name) {
			return pair.call.Name, pair.event.Name
		}
		return "", ""
	}
	return "", ""
}

// startedCut is an open run's history up to the last task that has started, nil when it
// ends there already or is closed.
func startedCut(h *historypb.History) *historypb.History {
	for i := len(h.GetEvents()) - 1; i >= 0; i-- {
		t := h.Events[i].GetEventType()
		if Closes(t) {
			return nil
		}
		if t == enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED {
			if i == len(h.Events)-1 {
				return nil
			}
			return &historypb.History{Events: h.Events[:i+1]}
		}
	}
	return nil
}
