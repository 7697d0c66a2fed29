package proof

import (
	"errors"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// steering stands nearest to the code: it counts its calls and puts controls and mutations
// between them and the SDK.
type steering struct {
	interceptor.WorkerInterceptorBase
	current func() *run
}

func (i *steering) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &steeringIn{r: i.current()}
	in.Next = next
	return in
}

type steeringIn struct {
	interceptor.WorkflowInboundInterceptorBase
	r *run
}

func (i *steeringIn) Init(out interceptor.WorkflowOutboundInterceptor) error {
	o := &steeringOut{r: i.r}
	o.Next = out
	return i.Next.Init(o)
}

// ExecuteWorkflow counts the end of the run as its last call.
func (i *steeringIn) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := i.Next.ExecuteWorkflow(ctx, in)
	r := i.r
	r.index++
	if m := r.mutation; m != nil && m.at == r.index-1 {
		r.applied = true
		switch {
		case m.how == dropped:
			free, cancel := workflow.NewDisconnectedContext(ctx)
			defer cancel()
			_ = workflow.Await(free, func() bool { return false })
		case err == nil:
			result, err = nil, errors.New("proof: another end")
		default:
			result, err = nil, nil
		}
	}
	return result, err
}

type steeringOut struct {
	interceptor.WorkflowOutboundInterceptorBase
	r *run
}

// other is the type that a retyped command gets.
const other = "proof-another"

// act makes one call of the code, or what the mutation makes of it.
func act[T any](r *run, ctx workflow.Context, do, drop, retype func(workflow.Context) T) T {
	if r.quiet {
		return do(ctx)
	}
	r.index++
	m, at := r.mutation, r.index-1
	if m == nil || at != m.at && at != m.peer {
		return do(ctx)
	}
	switch m.how {
	case dropped:
		r.applied = true
		return drop(ctx)
	case retyped:
		r.applied = true
		return retype(ctx)
	case swapped:
		if at == m.at {
			r.applied = true
			r.quietly(func() { r.kept = m.again(ctx) })
			return do(ctx)
		}
		v, _ := r.kept.(T)
		return v
	}
	return actOnCancel(r, ctx, at, do)
}

// actOnCancel takes a call's context off its parent, so that a cancellation reaches the
// command later, otherwise, or not at all.
func actOnCancel[T any](r *run, ctx workflow.Context, at int, do func(workflow.Context) T) T {
	m := r.mutation
	if at != m.at { // the neighbour of a cancellation
		if r.cancel == nil {
			return do(ctx)
		}
		r.applied = true
		if m.first {
			r.cancel()
			return do(ctx)
		}
		defer r.cancel()
		return do(ctx)
	}
	free, cancel := workflow.NewDisconnectedContext(ctx)
	r.cancel = cancel
	if m.how == cancelSwapped {
		return do(free)
	}
	r.applied = true
	if m.how == cancelRetyped {
		workflow.Go(free, func(c workflow.Context) {
			ctx.Done().Receive(c, nil)
			r.quietly(func() { workflow.NewTimer(c, time.Hour) })
		})
	}
	return do(free)
}

func (r *run) quietly(f func()) {
	r.quiet = true
	defer func() { r.quiet = false }()
	f()
}

func (r *run) muted(f func()) {
	r.mute = true
	defer func() { r.mute = false }()
	f()
}

// ready is the future of a command that was dropped: code that never gave it goes on.
func ready(ctx workflow.Context) workflow.Future {
	f, s := workflow.NewFuture(ctx)
	s.Set(nil, nil)
	return f
}

// pending is the future of a timer that was dropped: it never fires. (One that has fired
// at once would send a loop round to set the same timer, which is no other code at all.)
func pending(ctx workflow.Context) workflow.Future {
	f, _ := workflow.NewFuture(ctx)
	return f
}

// foreign gives a command of quite another kind.
func (r *run) foreign(ctx workflow.Context) workflow.Future {
	var f workflow.Future
	r.quietly(func() {
		f = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Second}), other)
	})
	return f
}

func (o *steeringOut) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	return act(o.r, ctx, func(ctx workflow.Context) workflow.Future { return o.Next.ExecuteActivity(ctx, name, args...) }, ready,
		func(ctx workflow.Context) workflow.Future {
			return o.Next.ExecuteActivity(ctx, o.r.mutation.name(name), args...)
		})
}

func (o *steeringOut) ExecuteLocalActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	return act(o.r, ctx, func(ctx workflow.Context) workflow.Future { return o.Next.ExecuteLocalActivity(ctx, name, args...) }, ready,
		func(ctx workflow.Context) workflow.Future {
			return o.Next.ExecuteLocalActivity(ctx, o.r.mutation.name(name), args...)
		})
}

func (o *steeringOut) ExecuteChildWorkflow(ctx workflow.Context, name string, args ...any) workflow.ChildWorkflowFuture {
	return act(o.r, ctx, func(ctx workflow.Context) workflow.ChildWorkflowFuture {
		return o.Next.ExecuteChildWorkflow(ctx, name, args...)
	},
		func(ctx workflow.Context) (f workflow.ChildWorkflowFuture) {
			gone, cancel := workflow.WithCancel(ctx)
			cancel() // a child of a cancelled context is never started
			o.r.muted(func() { f = o.Next.ExecuteChildWorkflow(gone, name, args...) })
			return f
		},
		func(ctx workflow.Context) workflow.ChildWorkflowFuture {
			return o.Next.ExecuteChildWorkflow(ctx, o.r.mutation.name(name), args...)
		})
}

func (o *steeringOut) NewTimer(ctx workflow.Context, d time.Duration) workflow.Future {
	return act(o.r, ctx, func(ctx workflow.Context) workflow.Future { return o.Next.NewTimer(ctx, d) }, pending, o.r.foreign)
}

func (o *steeringOut) NewTimerWithOptions(ctx workflow.Context, d time.Duration, opts workflow.TimerOptions) workflow.Future {
	return act(o.r, ctx, func(ctx workflow.Context) workflow.Future { return o.Next.NewTimerWithOptions(ctx, d, opts) }, pending, o.r.foreign)
}

func (o *steeringOut) GetVersion(ctx workflow.Context, id string, minV, maxV workflow.Version) workflow.Version {
	return o.version(ctx, id, minV, maxV, func(ctx workflow.Context, id string, minV, maxV workflow.Version) workflow.Version {
		return o.Next.GetVersion(ctx, id, minV, maxV)
	})
}

func (o *steeringOut) GetVersionWithOptions(ctx workflow.Context, id string, minV, maxV workflow.Version, opts workflow.GetVersionOptions) workflow.Version {
	return o.version(ctx, id, minV, maxV, func(ctx workflow.Context, id string, minV, maxV workflow.Version) workflow.Version {
		return o.Next.GetVersionWithOptions(ctx, id, minV, maxV, opts)
	})
}

func (o *steeringOut) version(ctx workflow.Context, id string, minV, maxV workflow.Version,
	next func(ctx workflow.Context, id string, minV, maxV workflow.Version) workflow.Version) workflow.Version {
	before := o.r.index
	do := func(ctx workflow.Context) workflow.Version {
		return o.r.ask(gateAsk{id, minV, maxV, func(id string, minV, maxV workflow.Version) workflow.Version { return next(ctx, id, minV, maxV) }})
	}
	v := act(o.r, ctx, do,
		func(workflow.Context) workflow.Version { return o.r.mutation.version },
		func(ctx workflow.Context) workflow.Version {
			next(ctx, id+"-"+other, workflow.DefaultVersion, maxV)
			return o.r.mutation.version
		})
	if !o.r.quiet {
		o.r.consults = append(o.r.consults, Consult{ChangeID: id, Min: minV, Max: maxV, Answer: v, Calls: before,
			Task: int64(workflow.GetInfo(ctx).GetCurrentHistoryLength())})
	}
	return v
}

func (o *steeringOut) value(ctx workflow.Context, do func(workflow.Context) converter.EncodedValue) converter.EncodedValue {
	kept := func(workflow.Context) converter.EncodedValue { return client.NewValue(o.r.mutation.data) }
	return act(o.r, ctx, do, kept, func(ctx workflow.Context) converter.EncodedValue {
		o.r.foreign(ctx)
		return kept(ctx)
	})
}

func (o *steeringOut) SideEffect(ctx workflow.Context, f func(workflow.Context) any) converter.EncodedValue {
	return o.value(ctx, func(ctx workflow.Context) converter.EncodedValue { return o.Next.SideEffect(ctx, f) })
}

func (o *steeringOut) SideEffectWithOptions(ctx workflow.Context, opts workflow.SideEffectOptions, f func(workflow.Context) any) converter.EncodedValue {
	return o.value(ctx, func(ctx workflow.Context) converter.EncodedValue { return o.Next.SideEffectWithOptions(ctx, opts, f) })
}

func (o *steeringOut) MutableSideEffect(ctx workflow.Context, id string, f func(workflow.Context) any, equals func(a, b any) bool) converter.EncodedValue {
	return o.value(ctx, func(ctx workflow.Context) converter.EncodedValue { return o.Next.MutableSideEffect(ctx, id, f, equals) })
}

func (o *steeringOut) MutableSideEffectWithOptions(ctx workflow.Context, id string, opts workflow.MutableSideEffectOptions, f func(workflow.Context) any, equals func(a, b any) bool) converter.EncodedValue {
	return o.value(ctx, func(ctx workflow.Context) converter.EncodedValue {
		return o.Next.MutableSideEffectWithOptions(ctx, id, opts, f, equals)
	})
}

// upsert is a call that gives a command and waits for nothing.
func (o *steeringOut) upsert(ctx workflow.Context, do func(workflow.Context) error) error {
	return act(o.r, ctx, do, func(workflow.Context) error { return nil }, func(ctx workflow.Context) error {
		o.r.foreign(ctx)
		return nil
	})
}

func (o *steeringOut) UpsertSearchAttributes(ctx workflow.Context, attributes map[string]any) error {
	return o.upsert(ctx, func(ctx workflow.Context) error { return o.Next.UpsertSearchAttributes(ctx, attributes) })
}

func (o *steeringOut) UpsertTypedSearchAttributes(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) error {
	return o.upsert(ctx, func(ctx workflow.Context) error { return o.Next.UpsertTypedSearchAttributes(ctx, updates...) })
}

func (o *steeringOut) UpsertTypedSearchAttributesWithOptions(ctx workflow.Context, updates []temporal.SearchAttributeUpdate, opts workflow.UpsertSearchAttributesOptions) error {
	return o.upsert(ctx, func(ctx workflow.Context) error {
		return o.Next.UpsertTypedSearchAttributesWithOptions(ctx, updates, opts)
	})
}

func (o *steeringOut) UpsertMemo(ctx workflow.Context, memo map[string]any) error {
	return o.upsert(ctx, func(ctx workflow.Context) error { return o.Next.UpsertMemo(ctx, memo) })
}

func (o *steeringOut) UpsertMemoWithOptions(ctx workflow.Context, memo map[string]any, opts workflow.UpsertMemoOptions) error {
	return o.upsert(ctx, func(ctx workflow.Context) error { return o.Next.UpsertMemoWithOptions(ctx, memo, opts) })
}

func (o *steeringOut) RequestCancelExternalWorkflow(ctx workflow.Context, id, runID string) workflow.Future {
	return act(o.r, ctx, func(ctx workflow.Context) workflow.Future {
		return o.Next.RequestCancelExternalWorkflow(ctx, id, runID)
	}, ready, o.r.foreign)
}

func (o *steeringOut) RequestCancelExternalWorkflowWithOptions(ctx workflow.Context, id, runID string, opts workflow.CancelExternalWorkflowOptions) workflow.Future {
	return act(o.r, ctx, func(ctx workflow.Context) workflow.Future {
		return o.Next.RequestCancelExternalWorkflowWithOptions(ctx, id, runID, opts)
	}, ready, o.r.foreign)
}

func (o *steeringOut) SignalExternalWorkflow(ctx workflow.Context, id, runID, name string, arg any) workflow.Future {
	return act(o.r, ctx, func(ctx workflow.Context) workflow.Future {
		return o.Next.SignalExternalWorkflow(ctx, id, runID, name, arg)
	}, ready,
		func(ctx workflow.Context) workflow.Future {
			return o.Next.SignalExternalWorkflow(ctx, id, runID, other, arg)
		})
}

func (o *steeringOut) SignalExternalWorkflowWithOptions(ctx workflow.Context, id, runID, name string, arg any, opts workflow.SignalExternalWorkflowOptions) workflow.Future {
	do := func(name string) func(ctx workflow.Context) workflow.Future {
		return func(ctx workflow.Context) workflow.Future {
			return o.Next.SignalExternalWorkflowWithOptions(ctx, id, runID, name, arg, opts)
		}
	}
	return act(o.r, ctx, do(name), ready, do(other))
}

func (o *steeringOut) SignalChildWorkflow(ctx workflow.Context, id, name string, arg any) workflow.Future {
	return act(o.r, ctx, func(ctx workflow.Context) workflow.Future { return o.Next.SignalChildWorkflow(ctx, id, name, arg) }, ready,
		func(ctx workflow.Context) workflow.Future { return o.Next.SignalChildWorkflow(ctx, id, other, arg) })
}

func (o *steeringOut) SignalChildWorkflowWithOptions(ctx workflow.Context, id, name string, arg any, opts workflow.SignalChildWorkflowOptions) workflow.Future {
	do := func(name string) func(ctx workflow.Context) workflow.Future {
		return func(ctx workflow.Context) workflow.Future {
			return o.Next.SignalChildWorkflowWithOptions(ctx, id, name, arg, opts)
		}
	}
	return act(o.r, ctx, do(name), ready, do(other))
}

func (o *steeringOut) ExecuteNexusOperation(ctx workflow.Context, in interceptor.ExecuteNexusOperationInput) workflow.NexusOperationFuture {
	do := func(ctx workflow.Context) workflow.NexusOperationFuture { return o.Next.ExecuteNexusOperation(ctx, in) }
	return act(o.r, ctx, do, do, do) // never mutated: see mutants
}
