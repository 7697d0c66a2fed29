package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// once executes the CLI once.
func (r *Runner) once(ctx context.Context, path string, spec Spec, resume bool, started func(Process) error) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, endOf(ctx)
	}
	s, err := r.takeSupervisor()
	if err != nil {
		return Result{}, err
	}
	defer s.release()
	begin := time.Now()
	s.order(order{Job: &job{RunID: spec.RunID, Argv: argv(path, spec, resume), Env: runEnv(r.env, spec), Dir: spec.Dir}})
	rep, ok := s.first(ctx)
	go r.Prepare()
	switch {
	case !ok: // it died with the job: the CLI may run, but it was given no prompt
		_, err := KillRun(context.WithoutCancel(ctx), spec.RunID)
		return Result{}, errors.Join(errNoSupervisor, err)
	case rep.Busy && ctx.Err() != nil:
		return Result{}, endOf(ctx)
	case rep.Busy:
		return Result{}, ErrBusy
	case rep.Started == nil:
		return Result{}, fmt.Errorf("start the agent: %s", r.secrets.scrub(rep.Failed))
	}
	_, _ = io.WriteString(s.stdin, hold)
	err = started(*rep.Started)
	if err == nil && ctx.Err() != nil {
		err = endOf(ctx)
	}
	if err != nil { // it was given no prompt, so there is nothing to end in good order
		s.order(order{Stop: true, Now: true})
		_, werr := r.await(ctx, s, *rep.Started, nil)
		return Result{}, errors.Join(err, werr)
	}
	return r.converse(ctx, s, spec, resume, *rep.Started, begin)
}

// first waits for what becomes of the job; false when the supervisor is gone.
func (s *supervisor) first(ctx context.Context) (report, bool) {
	done := ctx.Done()
	for {
		select {
		case rep, ok := <-s.reports:
			return rep, ok
		case <-done:
			s.order(order{Stop: true})
			done = nil
		}
	}
}

// converse gives the prompt, reads the answer, and waits for the end.
func (r *Runner) converse(ctx context.Context, s *supervisor, spec Spec, resume bool, p Process, begin time.Time) (Result, error) {
	limit := spec.MaxOutput
	if limit <= 0 {
		limit = DefaultMaxOutput
	}
	var (
		streams sync.WaitGroup
		out     output
		readErr error
		stderr  tail
	)
	tooMuch, ended := make(chan struct{}), make(chan struct{})
	late := time.AfterFunc(time.Hour, func() { s.order(order{Stop: true}) })
	late.Stop()
	defer late.Stop()
	streams.Go(func() {
		_, _ = io.WriteString(s.stdin, spec.Prompt) // a CLI that reads no more has its own reason
		_ = s.stdin.Close()
	})
	streams.Go(func() { _, _ = io.Copy(&stderr, s.stderr) })
	streams.Go(func() {
		out, readErr = readStream(&follow{file: s.stdout, ended: ended}, limit, func(result bool) {
			if result {
				late.Reset(r.linger)
			} else {
				late.Stop()
			}
		})
		if readErr != nil {
			close(tooMuch)
		}
	})
	end, err := r.await(ctx, s, p, tooMuch)
	close(ended)
	if err != nil {
		return Result{}, err // something may still hold the streams open
	}
	// Something that not even the marker led to may still hold a pipe.
	held := time.AfterFunc(time.Second, func() { _, _ = s.stdin.Close(), s.stderr.Close() })
	streams.Wait()
	held.Stop()
	return r.conclude(ctx, spec, resume, out, readErr, end, stderr.text(r.secrets), time.Since(begin))
}

// await waits until nothing of the run is alive, and returns how the CLI ended. It
// fails only if that cannot be had.
func (r *Runner) await(ctx context.Context, s *supervisor, p Process, tooMuch <-chan struct{}) (exit, error) {
	end := exit{Code: -1, Signal: "SIGKILL"} // what it is if the supervisor was killed
	done := ctx.Done()
	for {
		select {
		case rep, ok := <-s.reports:
			if !ok { // the supervisor was killed: do its work
				_, err := Kill(context.WithoutCancel(ctx), p)
				return end, err
			}
			if rep.Exited != nil {
				end = *rep.Exited
			}
			if rep.Clean {
				return end, nil
			}
			if rep.Failed != "" {
				return end, fmt.Errorf("end the agent's run %s: %s", p.RunID, rep.Failed)
			}
		case <-done:
			s.order(order{Stop: true})
			done = nil
		case <-tooMuch:
			s.order(order{Stop: true, Now: true})
			tooMuch = nil
		}
	}
}

// endOf says why a run's context ended.
func endOf(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrTimeout) {
		return ErrTimeout
	}
	return fmt.Errorf("%w: %w", ErrStopped, cause)
}

// conclude makes a run's result or error out of how it ended. An answer that is
// there counts, even if the CLI ended badly after it.
func (r *Runner) conclude(ctx context.Context, spec Spec, resume bool, out output, readErr error, end exit, stderr string, took time.Duration) (Result, error) {
	if out.result != nil && (!out.result.IsError || len(out.texts) > 0) && readErr == nil {
		if spec.Schema != "" && len(out.result.Structured) == 0 {
			return Result{}, fmt.Errorf("%w: it does not have the form that was asked for", ErrUnreadable)
		}
		res := Result{
			Text: r.secrets.scrub(strings.Join(out.texts, "\n\n")), SessionID: spec.SessionID, Model: out.model, Duration: took,
			CostUSD: out.result.TotalCostUSD, Turns: out.turns,
		}
		if spec.Schema != "" {
			res.Structured = json.RawMessage(r.secrets.scrub(string(out.result.Structured)))
		}
		return res, nil
	}
	if ctx.Err() != nil {
		return Result{}, endOf(ctx)
	}
	if end.Stopped {
		return Result{}, fmt.Errorf("%w: by Kill", ErrStopped)
	}
	if readErr != nil {
		return Result{}, fmt.Errorf("read the agent's output: %w", readErr)
	}
	if err := out.failure(); err != nil {
		var api *APIError
		if errors.As(err, &api) {
			api.Message = plain(r.secrets.scrub(api.Message))
		}
		return Result{}, err
	}
	if out.result != nil && len(out.result.Errors) > 0 {
		stderr = strings.TrimSpace(stderr + " " + plain(r.secrets.scrub(strings.Join(out.result.Errors, "; "))))
	}
	if end.Code != 0 || out.result != nil {
		if !out.begun {
			if wrong := asWrongSession(stderr, resume); wrong != nil {
				return Result{}, wrong
			}
		}
		return Result{}, &ExitError{Code: end.Code, Signal: end.Signal, Stderr: stderr}
	}
	return Result{}, fmt.Errorf("%w: %d bytes, no result", ErrUnreadable, out.bytes)
}
