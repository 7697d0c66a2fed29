package proof

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// run is one replay: what steers it, and what it left.
type run struct {
	conv     converter.DataConverter
	timeout  time.Duration // of the run, as the server knows it
	queue    string        // the run's own task queue
	controls []Control
	mutation *mutation
	sites    bool // look for the place of each call

	mu       sync.Mutex
	over     bool
	index    int // calls of the code so far
	quiet    bool
	mute     bool
	calls    []call
	consults []Consult
	answered map[string]bool // change IDs whose marker has been asked for
	valued   map[string]bool // mutable side effects that have had a value
	kept     any             // what a call returned that was made before its turn
	applied  bool            // whether the mutation took place
	cancel   workflow.CancelFunc
}

// end stops the recording: deferred calls of a run that is thrown away are none of its own.
func (r *run) end() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
}

func (r *run) add(ctx workflow.Context, c call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.mute {
		return
	}
	c.Task = int64(workflow.GetInfo(ctx).GetCurrentHistoryLength())
	c.index = r.index - 1
	if r.sites {
		c.site = site()
	}
	r.calls = append(r.calls, c)
}

// site is the nearest frame that belongs neither to the SDK nor to this package.
func site() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "go.temporal.io/sdk") && !strings.Contains(f.Function, "/proof.") {
			return f.File + ":" + strconv.Itoa(f.Line)
		}
		if !more {
			return ""
		}
	}
}

// recorder stands nearest to the SDK and records what it is really asked for, after every
// control and mutation.
type recorder struct {
	interceptor.WorkerInterceptorBase
	current func() *run
}

func (i *recorder) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &recorderIn{r: i.current()}
	in.Next = next
	return in
}

type recorderIn struct {
	interceptor.WorkflowInboundInterceptorBase
	r *run
}

func (i *recorderIn) Init(out interceptor.WorkflowOutboundInterceptor) error {
	o := &recorderOut{r: i.r}
	o.Next = out
	return i.Next.Init(o)
}

// ExecuteWorkflow records the end of the run as the server gets it.
func (i *recorderIn) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := i.Next.ExecuteWorkflow(ctx, in)
	i.r.add(ctx, call{Command: i.r.endCommand(result, err), recorded: true})
	return result, err
}

type recorderOut struct {
	interceptor.WorkflowOutboundInterceptorBase
	r *run
}

func (o *recorderOut) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	opts := workflow.GetActivityOptions(ctx)
	o.r.add(ctx, call{
		Command: Command{Kind: Activity, Name: name, fields: o.r.activityFields(opts, args)}, recorded: true,
		again: func(ctx workflow.Context) any {
			return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, opts), name, args...)
		},
	})
	return o.Next.ExecuteActivity(ctx, name, args...)
}

func (o *recorderOut) ExecuteLocalActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	o.r.add(ctx, call{Command: Command{Kind: LocalActivity, Name: name}, recorded: true})
	return o.Next.ExecuteLocalActivity(ctx, name, args...)
}

func (o *recorderOut) ExecuteChildWorkflow(ctx workflow.Context, name string, args ...any) workflow.ChildWorkflowFuture {
	opts := workflow.GetChildWorkflowOptions(ctx)
	o.r.add(ctx, call{
		Command: Command{Kind: Child, Name: name, fields: o.r.childFields(opts, args)}, recorded: true,
		again: func(ctx workflow.Context) any {
			return workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, opts), name, args...)
		},
	})
	return o.Next.ExecuteChildWorkflow(ctx, name, args...)
}

func (o *recorderOut) NewTimer(ctx workflow.Context, d time.Duration) workflow.Future {
	o.timer(ctx, d, workflow.TimerOptions{})
	return o.Next.NewTimer(ctx, d)
}

func (o *recorderOut) NewTimerWithOptions(ctx workflow.Context, d time.Duration, opts workflow.TimerOptions) workflow.Future {
	o.timer(ctx, d, opts)
	return o.Next.NewTimerWithOptions(ctx, d, opts)
}

func (o *recorderOut) timer(ctx workflow.Context, d time.Duration, opts workflow.TimerOptions) {
	o.r.add(ctx, call{
		Command: Command{Kind: Timer, fields: []field{
			{"duration", duration(d)}, {"summary", o.r.summary(opts.Summary)},
		}}, recorded: d > 0,
		again: func(ctx workflow.Context) any { return workflow.NewTimerWithOptions(ctx, d, opts) },
	})
}

func (o *recorderOut) GetVersion(ctx workflow.Context, id string, minV, maxV workflow.Version) workflow.Version {
	v := o.Next.GetVersion(ctx, id, minV, maxV)
	o.version(ctx, id, minV, maxV, v)
	return v
}

func (o *recorderOut) GetVersionWithOptions(ctx workflow.Context, id string, minV, maxV workflow.Version, opts workflow.GetVersionOptions) workflow.Version {
	v := o.Next.GetVersionWithOptions(ctx, id, minV, maxV, opts)
	o.version(ctx, id, minV, maxV, v)
	return v
}

func (o *recorderOut) version(ctx workflow.Context, id string, minV, maxV, v workflow.Version) {
	first := v != workflow.DefaultVersion && !o.r.answered[id]
	if first && !o.r.mute {
		o.r.answered[id] = true
	}
	o.r.add(ctx, call{
		Command:  Command{Kind: Version, Name: id, fields: []field{{"version", strconv.Itoa(int(v))}}},
		recorded: first, must: first,
		again: func(ctx workflow.Context) any { return workflow.GetVersion(ctx, id, minV, maxV) },
	})
}

func (o *recorderOut) SideEffect(ctx workflow.Context, f func(workflow.Context) any) converter.EncodedValue {
	o.sideEffect(ctx)
	return o.Next.SideEffect(ctx, f)
}

func (o *recorderOut) SideEffectWithOptions(ctx workflow.Context, opts workflow.SideEffectOptions, f func(workflow.Context) any) converter.EncodedValue {
	o.sideEffect(ctx)
	return o.Next.SideEffectWithOptions(ctx, opts, f)
}

func (o *recorderOut) sideEffect(ctx workflow.Context) {
	o.r.add(ctx, call{
		Command: Command{Kind: SideEffect}, recorded: true,
		again: func(ctx workflow.Context) any {
			return workflow.SideEffect(ctx, func(workflow.Context) any { return nil })
		},
	})
}

func (o *recorderOut) MutableSideEffect(ctx workflow.Context, id string, f func(workflow.Context) any, equals func(a, b any) bool) converter.EncodedValue {
	o.mutable(ctx, id, f, equals)
	return o.Next.MutableSideEffect(ctx, id, f, equals)
}

func (o *recorderOut) MutableSideEffectWithOptions(ctx workflow.Context, id string, opts workflow.MutableSideEffectOptions, f func(workflow.Context) any, equals func(a, b any) bool) converter.EncodedValue {
	o.mutable(ctx, id, f, equals)
	return o.Next.MutableSideEffectWithOptions(ctx, id, opts, f, equals)
}

func (o *recorderOut) mutable(ctx workflow.Context, id string, f func(workflow.Context) any, equals func(a, b any) bool) {
	first := !o.r.valued[id]
	o.r.valued[id] = true
	o.r.add(ctx, call{
		Command: Command{Kind: MutableSideEffect, Name: id}, recorded: true, must: first,
		again: func(ctx workflow.Context) any { return workflow.MutableSideEffect(ctx, id, f, equals) },
	})
}

func (o *recorderOut) UpsertSearchAttributes(ctx workflow.Context, attributes map[string]any) error {
	o.r.add(ctx, call{
		Command:  Command{Kind: SearchAttributes, fields: o.r.untypedFields(attributes)},
		recorded: true,
		again: func(ctx workflow.Context) any {
			//lint:ignore SA1019 as the code did
			return workflow.UpsertSearchAttributes(ctx, attributes)
		},
	})
	return o.Next.UpsertSearchAttributes(ctx, attributes)
}

func (o *recorderOut) UpsertTypedSearchAttributes(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) error {
	o.typed(ctx, updates)
	return o.Next.UpsertTypedSearchAttributes(ctx, updates...)
}

func (o *recorderOut) UpsertTypedSearchAttributesWithOptions(ctx workflow.Context, updates []temporal.SearchAttributeUpdate, opts workflow.UpsertSearchAttributesOptions) error {
	o.typed(ctx, updates)
	return o.Next.UpsertTypedSearchAttributesWithOptions(ctx, updates, opts)
}

func (o *recorderOut) typed(ctx workflow.Context, updates []temporal.SearchAttributeUpdate) {
	o.r.add(ctx, call{
		Command:  Command{Kind: SearchAttributes, fields: o.r.typedFields(updates)},
		recorded: true,
		again:    func(ctx workflow.Context) any { return workflow.UpsertTypedSearchAttributes(ctx, updates...) },
	})
}

func (o *recorderOut) UpsertMemo(ctx workflow.Context, memo map[string]any) error {
	o.memo(ctx, memo)
	return o.Next.UpsertMemo(ctx, memo)
}

func (o *recorderOut) UpsertMemoWithOptions(ctx workflow.Context, memo map[string]any, opts workflow.UpsertMemoOptions) error {
	o.memo(ctx, memo)
	return o.Next.UpsertMemoWithOptions(ctx, memo, opts)
}

func (o *recorderOut) memo(ctx workflow.Context, memo map[string]any) {
	o.r.add(ctx, call{
		Command: Command{Kind: Memo, fields: []field{{"memo", o.r.payloadMap(memo)}}}, recorded: true,
		again: func(ctx workflow.Context) any { return workflow.UpsertMemo(ctx, memo) },
	})
}
