package activities_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"agentsmith/activities"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// base is a room with the part that binds operators. The launcher's sessions, the
// classifier and the door to the tasks are a test's own; the rest is real.
type base struct {
	*room
	op         *activities.Operator
	ledger     *operatorLedger
	launcher   *launches
	classifier *classified
	door       *taskDoor
	ahead      atomic.Int64 // how far Now is ahead of the clock
}

// trace is the order in which the parts were called.
type trace struct {
	mu    sync.Mutex
	names []string
}

func (t *trace) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names = append(t.names, name)
}

func (t *trace) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.names)
}

func newBase(r *room) *base {
	all := &trace{}
	b := &base{
		room: r, ledger: &operatorLedger{Store: r.store, p: r.points, trace: all, fail: map[string]error{}},
		launcher: &launches{trace: all, p: r.points}, classifier: &classified{trace: all}, door: &taskDoor{p: r.points},
	}
	b.classifier.says = rules.WorkDisposition{Kind: rules.KindWork, Slug: "fix-login", Repo: "shop"}
	now := func() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }
	b.op = &activities.Operator{
		Seats: r.seats, Ledger: b.ledger, Classifier: b.classifier, Launcher: b.launcher, Sessions: b.launcher, Tasks: b.door,
		Checkouts: func() []rules.Checkout { return []rules.Checkout{{Name: "shop", Path: "/srv/shop"}} }, Box: "main",
		Link: func(_ string, t rules.Thread) string { return "https://example.slack.com/archives/" + t.Channel },
		Now:  now, Log: r.poster.Log,
		Wait: func(ctx context.Context, d time.Duration) error {
			b.ahead.Add(int64(d))
			return activities.Wait(ctx, time.Millisecond)
		},
	}
	return b
}

// attempts gives each execution a name of its own, as a real worker does.
type attempts struct {
	interceptor.WorkerInterceptorBase
	id string
}

func (a *attempts) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &attemptIn{interceptor.ActivityInboundInterceptorBase{Next: next}, a.id}
}

type attemptIn struct {
	interceptor.ActivityInboundInterceptorBase
	id string
}

func (a *attemptIn) Init(out interceptor.ActivityOutboundInterceptor) error {
	return a.Next.Init(&attemptOut{interceptor.ActivityOutboundInterceptorBase{Next: out}, a.id})
}

type attemptOut struct {
	interceptor.ActivityOutboundInterceptorBase
	id string
}

func (a *attemptOut) GetInfo(ctx context.Context) activity.Info {
	info := a.Next.GetInfo(ctx)
	info.ActivityID = a.id
	return info
}

// perform is one execution of an activity, in a worker that dies where a crash was armed.
func perform[In, Out any](part any, do func(context.Context, In) (Out, error), in In) (out Out, err error) {
	v, err := execute(part, do, in)
	if err != nil {
		return out, err
	}
	return out, v.Get(&out)
}

func execute(part, do, in any) (converter.EncodedValue, error) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(discard()))
	env := suite.NewTestActivityEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&attempts{id: uuid.NewString()}}})
	env.SetTestTimeout(time.Minute)
	env.RegisterActivity(part)
	return env.ExecuteActivity(do, in)
}

func (b *base) bind(lines ...rules.Line) (activities.Binding, error) {
	return perform(b.op, b.op.Bind, activities.BindInput{Turn: turn(lines...), MaySpawn: true})
}

// mustBind wants this disposition, and that it was logged by its name (O3).
func (b *base) mustBind(want rules.Disposition, why string, lines ...rules.Line) activities.Binding {
	b.t.Helper()
	got, err := b.bind(lines...)
	require.NoError(b.t, err)
	b.requireDisposition(got, want, why)
	return got
}

func (b *base) requireDisposition(got activities.Binding, want rules.Disposition, why string) {
	b.t.Helper()
	require.Equal(b.t, [2]string{string(want), why}, [2]string{string(got.Disposition), got.Why})
	require.Equal(b.t, want == rules.DispBound || want == rules.DispSpawned, got.Operator != nil)
	if want != "" {
		require.Contains(b.t, b.log.String(), "msg=operator seat=smith", "logged")
		require.Contains(b.t, b.log.String(), "disposition="+string(want), "logged by its name (O3)")
	}
}

// claim is the thread's claim, and whether there is one.
func (b *base) claim(t rules.Thread) (store.Claim, bool) {
	b.t.Helper()
	c, err := b.store.ClaimOf(b.t.Context(), "smith", t)
	if err != nil {
		require.ErrorIs(b.t, err, store.ErrNotFound)
	}
	return c, err == nil
}

// requireOne wants that everything knows of one operator, the same one.
func (b *base) requireOne(got activities.Binding, line rules.Line) {
	b.t.Helper()
	b.requireOneOf(got, line, 1)
}

// requireOneOf is requireOne for a thread that has had so many sessions.
func (b *base) requireOneOf(got activities.Binding, line rules.Line, had int) {
	b.t.Helper()
	require.NotNil(b.t, got.Operator)
	live := b.launcher.live()
	require.Len(b.t, live, 1, "one session")
	require.Equal(b.t, live[0].Session, got.Operator.Session)
	require.Equal(b.t, line.Thread(), got.Operator.Thread)
	c, ok := b.claim(line.Thread())
	require.True(b.t, ok)
	require.Equal(b.t, store.ClaimBound, c.State)
	require.Equal(b.t, got.Operator.Session, c.Session)
	require.Equal(b.t, got.Operator.Number, c.Number)
	sessions, err := b.store.Sessions(b.t.Context())
	require.NoError(b.t, err)
	require.Len(b.t, sessions, had, "one number each; the task ends those of the dead")
	require.Equal(b.t, got.Operator.Number, sessions[had-1].Number)
	require.Equal(b.t, got.Operator.Session, sessions[had-1].ID)
	told := b.door.told()
	require.NotEmpty(b.t, told, "the task was told")
	require.Equal(b.t, *got.Operator, told[len(told)-1])
}

// operatorLedger is the real store, where a call can crash or fail.
type operatorLedger struct {
	*store.Store
	p     *points
	trace *trace
	mu    sync.Mutex
	fail  map[string]error
}

func (l *operatorLedger) broken(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fail[name]
}

func (l *operatorLedger) breaks(name string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail[name] = err
}

// ledgered is a call of the store.
func ledgered[T any](l *operatorLedger, name string, call func() (T, error)) (T, error) {
	l.trace.add(name)
	if err := l.broken(name); err != nil {
		var none T
		return none, err
	}
	return around(l.p, name, call)
}

func (l *operatorLedger) NewestStop(ctx context.Context, seat string, t rules.Thread) (string, error) {
	return ledgered(l, "NewestStop", func() (string, error) { return l.Store.NewestStop(ctx, seat, t) })
}

func (l *operatorLedger) OpenLines(ctx context.Context, turnID, seat string, keys []rules.LineKey) ([]rules.LineKey, error) {
	return ledgered(l, "OpenLines", func() ([]rules.LineKey, error) { return l.Store.OpenLines(ctx, turnID, seat, keys) })
}

func (l *operatorLedger) AskedForWork(ctx context.Context, seat string, t rules.Thread, slug, repo string) error {
	_, err := ledgered(l, "AskedForWork", func() (struct{}, error) { return struct{}{}, l.Store.AskedForWork(ctx, seat, t, slug, repo) })
	return err
}

func (l *operatorLedger) Claim(ctx context.Context, w store.Wish) (c store.Claim, won bool, err error) {
	c, err = ledgered(l, "Claim", func() (c store.Claim, err error) {
		c, won, err = l.Store.Claim(ctx, w)
		return c, err
	})
	return c, won, err
}

func (l *operatorLedger) TakeOverClaim(ctx context.Context, seat string, t rules.Thread, from, to string) (c store.Claim, won bool, err error) {
	c, err = ledgered(l, "TakeOverClaim", func() (c store.Claim, err error) {
		c, won, err = l.Store.TakeOverClaim(ctx, seat, t, from, to)
		return c, err
	})
	return c, won, err
}

func (l *operatorLedger) BindClaim(ctx context.Context, seat string, t rules.Thread, claimant string, b store.Bound) (store.Claim, error) {
	return ledgered(l, "BindClaim", func() (store.Claim, error) { return l.Store.BindClaim(ctx, seat, t, claimant, b) })
}

func (l *operatorLedger) ReleaseClaim(ctx context.Context, seat string, t rules.Thread, claimant string) (bool, error) {
	return ledgered(l, "ReleaseClaim", func() (bool, error) { return l.Store.ReleaseClaim(ctx, seat, t, claimant) })
}

func (l *operatorLedger) RegisterSession(ctx context.Context, s store.Session) (int, error) {
	return ledgered(l, "RegisterSession", func() (int, error) { return l.Store.RegisterSession(ctx, s) })
}

func (l *operatorLedger) EndClaim(ctx context.Context, seat string, t rules.Thread, session string) (bool, error) {
	return ledgered(l, "EndClaim", func() (bool, error) { return l.Store.EndClaim(ctx, seat, t, session) })
}

func (l *operatorLedger) EndSession(ctx context.Context, id string) error {
	_, err := ledgered(l, "EndSession", func() (struct{}, error) { return struct{}{}, l.Store.EndSession(ctx, id) })
	return err
}

// launches is a launcher with sessions that it only names. It holds to O7: one session a
// thread and a slug.
type launches struct {
	trace *trace
	p     *points

	mu       sync.Mutex
	running  []rules.Operator
	starts   []activities.Launch
	killed   []string
	checkErr error
	killErr  error
	// start comes in the place of a start, where it is set.
	start func(activities.Launch) (activities.Launched, error)
}

func (l *launches) live() []rules.Operator {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.running)
}

func (l *launches) started() []activities.Launch {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.starts)
}

// run has a session run.
func (l *launches) run(ask activities.Launch) rules.Operator {
	l.mu.Lock()
	defer l.mu.Unlock()
	op := rules.Operator{
		Slug: ask.Slug, Repo: ask.Repo, Seat: ask.Seat, Thread: ask.Thread, Session: uuid.NewString(),
		Asked: ask.Asked, Worktree: "/srv/worktrees/" + ask.Slug, Branch: rules.BranchOf(ask.Slug), Attach: "tmux attach -t =" + rules.OperatorName(ask.Slug),
	}
	l.running = append(l.running, op)
	return op
}

// die ends a session behind everybody's back.
func (l *launches) die(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running = slices.DeleteFunc(l.running, func(o rules.Operator) bool { return o.Session == session })
}

func (l *launches) find(ask activities.Launch) (activities.Launched, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.running {
		if o.Thread == ask.Thread {
			return activities.Launched{Outcome: activities.LaunchExists, ThisThread: true, Operator: o}, true
		}
	}
	for _, o := range l.running {
		if o.Slug == ask.Slug {
			return activities.Launched{Outcome: activities.LaunchExists, Operator: o}, true
		}
	}
	return activities.Launched{Outcome: activities.LaunchNone}, false
}

func (l *launches) Check(_ context.Context, ask activities.Launch) (activities.Launched, error) {
	l.trace.add("Check")
	l.mu.Lock()
	err := l.checkErr
	l.mu.Unlock()
	if err != nil {
		return activities.Launched{}, err
	}
	got, _ := l.find(ask)
	return got, nil
}

func (l *launches) Start(_ context.Context, ask activities.Launch) (activities.Launched, error) {
	l.trace.add("Start")
	l.mu.Lock()
	l.starts = append(l.starts, ask)
	instead := l.start
	l.mu.Unlock()
	l.p.at("before Start")
	if instead != nil {
		return instead(ask)
	}
	if got, ok := l.find(ask); ok {
		return got, nil
	}
	op := l.run(ask)
	l.p.at("after Start")
	return activities.Launched{Outcome: activities.LaunchStarted, ThisThread: true, Operator: op}, nil
}

func (l *launches) Kill(_ context.Context, session string) error {
	l.p.at("before Kill")
	if l.killErr != nil {
		return l.killErr
	}
	l.die(session)
	l.mu.Lock()
	l.killed = append(l.killed, session)
	l.mu.Unlock()
	l.p.at("after Kill")
	return nil
}

// classified is a classifier that says one thing.
type classified struct {
	trace *trace
	mu    sync.Mutex
	says  rules.WorkDisposition
	asked []activities.ClassifyInput
	// meanwhile happens while it thinks.
	meanwhile func()
}

func (c *classified) Classify(_ context.Context, in activities.ClassifyInput) rules.WorkDisposition {
	c.trace.add("Classify")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, in)
	if c.meanwhile != nil {
		c.meanwhile()
	}
	return c.says
}

// taskDoor keeps what tasks and brains were told.
type taskDoor struct {
	p       *points
	mu      sync.Mutex
	adopted []rules.Operator
	stopped []string
	woken   []string
	err     error
}

func (d *taskDoor) told() []rules.Operator {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.adopted)
}

func (d *taskDoor) Adopt(_ context.Context, o rules.Operator) error {
	return around0(d.p, "Adopt", func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.err == nil {
			d.adopted = append(d.adopted, o)
		}
		return d.err
	})
}

func (d *taskDoor) Stop(_ context.Context, o rules.Operator, eventTS string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = append(d.stopped, o.Slug+" "+eventTS)
	return d.err
}

func (d *taskDoor) Wake(_ context.Context, seat, slug string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.woken = append(d.woken, seat+"/"+slug)
	return d.err
}

// later is a ts some seconds after a line's.
func later(l rules.Line, seconds int) string {
	return rules.TimeTS(rules.TSTime(l.TS).Add(time.Duration(seconds) * time.Second))
}

// only keeps the names that a test is about.
func only(all []string, names ...string) string {
	var out []string
	for _, n := range all {
		if slices.Contains(names, n) {
			out = append(out, n)
		}
	}
	return strings.Join(out, " ")
}

// errStore is a database that does not answer.
var errStore = fmt.Errorf("the database is away")

func (l *operatorLedger) MoveLine(ctx context.Context, session string, key rules.LineKey, from, to store.LineState) (bool, error) {
	return ledgered(l, "MoveLine", func() (bool, error) { return l.Store.MoveLine(ctx, session, key, from, to) })
}

func (l *operatorLedger) QueueLines(ctx context.Context, session string, lines []store.SessionLine) (int, error) {
	return ledgered(l, "QueueLines", func() (int, error) { return l.Store.QueueLines(ctx, session, lines) })
}

func (l *operatorLedger) AddDeposit(ctx context.Context, d store.Deposit) (bool, error) {
	return ledgered(l, "AddDeposit", func() (bool, error) { return l.Store.AddDeposit(ctx, d) })
}

func (l *operatorLedger) OwnDeposit(ctx context.Context, id, seat string, owner rules.Thread) (store.Deposit, error) {
	return ledgered(l, "OwnDeposit", func() (store.Deposit, error) { return l.Store.OwnDeposit(ctx, id, seat, owner) })
}
