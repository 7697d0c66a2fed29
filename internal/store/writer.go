package store

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// writer runs every write of this process on one connection, one after the other.
// Writes that wait together share one commit, and so one sync to the disk: each is
// answered only after that commit, so nothing is acknowledged early. A write that
// fails is undone alone, by its savepoint.
type writer struct {
	open func(context.Context) (session, error)
	dialect
	ops  chan *op
	quit chan struct{}
	done chan struct{}
	ses  session // owned by run
	down bool    // owned by run: the last batch found no database
}

// dialect is what the writer has to know of its database.
type dialect struct {
	// busy: another process has the write lock.
	busy func(error) bool
	// again: for sure nothing was written, and another try may succeed.
	again func(error) bool
	// limit ends a transaction that hangs; 0 for a database that cannot.
	limit time.Duration
}

// session is the connection of the writer.
type session interface {
	query
	// begin takes the database's write lock or fails soon.
	begin(context.Context) error
	commit(context.Context) error
	close() error
}

type op struct {
	ctx   context.Context
	fn    func(context.Context, query) error
	reply chan error
}

// batchMax bounds how many writes share a commit, so that the first of them need
// not wait long for the last.
const batchMax = 64

// outage is how long a batch is tried again while the database cannot be reached: a
// restart is to be sat out, and whoever waits is to learn soon of anything longer (L2).
const outage = time.Second

func newWriter(open func(context.Context) (session, error), d dialect) *writer {
	w := &writer{open: open, dialect: d, ops: make(chan *op), quit: make(chan struct{}), done: make(chan struct{})}
	go w.run()
	return w
}

// do hands fn to the writer and waits for its commit, at most until ctx ends: what
// became of fn is then unknown, as with any database.
func (w *writer) do(ctx context.Context, fn func(context.Context, query) error) error {
	o := &op{ctx: ctx, fn: fn, reply: make(chan error, 1)}
	select {
	case <-w.quit:
		return ErrClosed
	default:
	}
	select {
	case w.ops <- o:
	case <-w.quit:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("waiting for the writes before it: %w", ctx.Err())
	}
	select {
	case err := <-o.reply:
		return err
	case <-ctx.Done():
		return fmt.Errorf("waiting for the disk: %w", ctx.Err())
	}
}

func (w *writer) close() error {
	close(w.quit)
	<-w.done
	return nil
}

func (w *writer) run() {
	defer close(w.done)
	defer w.drop()
	for {
		select {
		case <-w.quit:
			return
		case o := <-w.ops:
			w.batch(w.gather(o))
		}
	}
}

// gather returns first and every write that waits right now.
func (w *writer) gather(first *op) []*op {
	ops := []*op{first}
	for len(ops) < batchMax {
		select {
		case o := <-w.ops:
			ops = append(ops, o)
		default:
			return ops
		}
	}
	return ops
}

func (w *writer) batch(ops []*op) {
	var until time.Time
	pause := 5 * time.Millisecond
	for first := true; ; first = false {
		var err error
		if ops, err = w.begin(ops); err == nil && len(ops) > 0 {
			ops, err = w.commit(ops)
		}
		if err == nil {
			w.down = false
			return
		}
		again := w.again(err)
		if first && !w.down {
			until = time.Now().Add(outage)
		}
		if !again || time.Now().After(until) {
			w.down = again
			for _, o := range ops {
				o.reply <- err
			}
			return
		}
		select {
		case <-w.quit:
			until = time.Time{}
		case <-time.After(pause):
		}
		pause = min(pause*2, 100*time.Millisecond)
	}
}

// begin takes the write lock for those of ops that still wait for it. Another process
// holds the lock for about one commit, so it is asked for often.
func (w *writer) begin(ops []*op) ([]*op, error) {
	pause := 200 * time.Microsecond
	for {
		waiting := ops[:0]
		for _, o := range ops {
			if err := o.ctx.Err(); err != nil {
				o.reply <- fmt.Errorf("waiting for the write lock: %w", err)
				continue
			}
			waiting = append(waiting, o)
		}
		ops = waiting
		if len(ops) == 0 {
			return nil, nil
		}
		err := w.tryBegin(ops[0].ctx)
		if err == nil {
			return ops, nil
		}
		if !w.busy(err) {
			w.drop()
			return ops, err
		}
		select {
		case <-w.quit:
			return ops, errors.Join(ErrClosed, err)
		case <-time.After(pause):
		}
		pause = min(pause*3/2, 5*time.Millisecond)
	}
}

func (w *writer) tryBegin(ctx context.Context) error {
	if w.ses == nil {
		ses, err := w.open(ctx)
		if err != nil {
			return err
		}
		w.ses = ses
	}
	return w.ses.begin(ctx)
}

// commit runs ops and commits them. Inside the transaction nothing is cancelled: it
// is short, and a cancelled one would take the others of the batch with it. It returns
// the ops that it has not answered, which is those that its error is for.
func (w *writer) commit(ops []*op) ([]*op, error) {
	ctx := context.Background()
	if w.limit > 0 {
		limited, cancel := context.WithTimeout(ctx, w.limit)
		defer cancel()
		ctx = limited
	}
	alone := len(ops) == 1
	ok := ops[:0:0]
	for i, o := range ops {
		if !alone {
			if _, err := w.ses.exec(ctx, `SAVEPOINT op`); err != nil {
				return append(ok, ops[i:]...), w.abort(ctx, err)
			}
		}
		err := call(ctx, o.fn, w.ses)
		if alone && err != nil {
			return ops, w.abort(ctx, err)
		}
		if alone {
			ok = ops
			break
		}
		if err != nil {
			if _, undo := w.ses.exec(ctx, `ROLLBACK TO op`); undo != nil {
				return append(ok, ops[i:]...), w.abort(ctx, errors.Join(err, undo))
			}
		}
		if _, rel := w.ses.exec(ctx, `RELEASE op`); rel != nil {
			return append(ok, ops[i:]...), w.abort(ctx, errors.Join(err, rel))
		}
		if err != nil {
			o.reply <- err
			continue
		}
		ok = append(ok, o)
	}
	if err := w.ses.commit(ctx); err != nil {
		return ok, w.abort(ctx, fmt.Errorf("commit: %w", err))
	}
	for _, o := range ok {
		o.reply <- nil
	}
	return nil, nil
}

// abort undoes the transaction and returns err. A connection that cannot even undo
// is given up; the next write opens another.
func (w *writer) abort(ctx context.Context, err error) error {
	if _, undo := w.ses.exec(ctx, `ROLLBACK`); undo != nil {
		w.drop()
	}
	return err
}

func (w *writer) drop() {
	if w.ses != nil {
		_ = w.ses.close() // it is given up: its error is of no use to anyone
		w.ses = nil
	}
}

// call runs fn; a panic in it (a caller's decision) is that write's error, not the
// end of the writer.
func call(ctx context.Context, fn func(context.Context, query) error, q query) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn(ctx, q)
}
