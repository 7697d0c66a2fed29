package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/stack"
	"agentsmith/internal/tools"
)

// operatorsPart measures what operators cost a person's turn, beside the same turn on a
// system that has them switched off: its latency where an operator is bound already, and
// its billable actions in each disposition. In the terminals is the real agent CLI.
func operatorsPart(ctx context.Context, f runFlags) (err error) {
	dir, err := os.MkdirTemp("", "smith-bench-")
	if err != nil {
		return fmt.Errorf("make a place to run: %w", err)
	}
	defer os.RemoveAll(dir)
	off, err := newRig(ctx, filepath.Join(dir, "off"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, off.close()) }()
	with, err := operatorsOn(dir)
	if err != nil {
		return err
	}
	on, err := newRig(ctx, filepath.Join(dir, "on"), with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.close()) }()
	if err := boundLatency(ctx, on, off, min(f.Samples, 30)); err != nil {
		return fmt.Errorf("latency: %w", err)
	}
	return dispositionCost(ctx, on, off)
}

// operatorsOn lets threads get operators that work in a checkout named web; only ana may
// start one. The safety nets are slow: they would be counted with the turns.
func operatorsOn(dir string) (func(*stack.Options), error) {
	web := filepath.Join(dir, "web")
	if err := os.MkdirAll(web, 0o700); err != nil {
		return nil, fmt.Errorf("make a checkout: %w", err)
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"-c", "user.name=bench", "-c", "user.email=bench@example.com", "commit", "-q", "--allow-empty", "-m", "begin"},
	} {
		if out, err := exec.Command("git", append([]string{"-C", web}, args...)...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("make a checkout: %w: %s", err, out)
		}
	}
	claude, err := tools.Claude()
	if err != nil {
		return nil, err
	}
	return func(o *stack.Options) {
		// Whose terminal it is, is told by the program's name.
		named := filepath.Join(filepath.Dir(o.Claude), "claude")
		_ = os.Rename(o.Claude, named)
		_ = os.Symlink(named, o.Claude)
		o.Claude = named
		o.Env = append(o.Env, "BENCH_CLAUDE="+claude)
		o.Operators = &stack.Operators{Checkouts: []string{web}, Config: map[string]any{"skip_permissions": true, "limit": 40}}
		agent := o.Config["agent"].(map[string]any)
		agent["command"] = named
		agent["pass_env"] = []string{"PATH", "BENCH_SOCKET", "BENCH_CLAUDE", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"}
		o.Config["github"] = map[string]any{"poll": "1h"}
		o.Config["access"] = map[string]any{"spawn_allowed": []string{"U0ANA000001"}}
	}, nil
}

// asks takes somebody's line through the whole product; more stands at its end. root ""
// starts a thread.
func (r *rig) asks(ctx context.Context, who, root, more string) (string, sample, error) {
	name := r.name("p")
	since := r.Slack.Log(0).Next
	ts, err := r.Slack.Person(who).Reply("general", root, "<@"+r.app.BotUser+"> "+name+" "+more)
	if err != nil {
		return "", sample{}, err
	}
	if root == "" {
		root = ts
	}
	s := sample{}
	if s.posted, err = r.posted(ctx, since, name); err != nil {
		return root, s, err
	}
	if s.agent, err = r.clock.of(ctx, name); err != nil {
		return root, s, err
	}
	for _, d := range r.Slack.Log(since).Deliveries {
		if d.TS == ts && d.What == "sent" && d.App == seat {
			s.sent = d.At
			break
		}
	}
	return root, s, nil
}

// spoken waits until the operator has said something since a moment of the log.
func (r *rig) spoken(ctx context.Context, since uint64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := r.Slack.Wait(ctx, func() bool {
		return slices.ContainsFunc(r.Slack.Log(since).Messages, func(m slackbox.LoggedMessage) bool {
			return m.App == seat && strings.Contains(m.Text, "stand-in")
		})
	})
	if err != nil {
		return fmt.Errorf("waiting for the operator's word: %w", err)
	}
	return nil
}

// boundLatency takes lines in a thread that has its operator, and in one of the system
// without operators, in turn. Between two the operator has had its line and spoken.
func boundLatency(ctx context.Context, on, off *rig, samples int) error {
	since := on.Slack.Log(0).Next
	bound, _, err := on.asks(ctx, "ana", "", "kind=work repo=web")
	if err != nil {
		return err
	}
	if err := on.spoken(ctx, since); err != nil {
		return err
	}
	plain, _, err := off.asks(ctx, "ana", "", "kind=work repo=web")
	if err != nil {
		return err
	}
	var with, without []sample
	const warm = 3
	for i := range samples + warm {
		since := on.Slack.Log(0).Next
		_, a, err := on.asks(ctx, "ana", bound, "")
		if err != nil {
			return err
		}
		if err := on.spoken(ctx, since); err != nil {
			return err
		}
		if _, err := on.quiet(ctx, on.brain(bound)); err != nil {
			return err
		}
		_, b, err := off.asks(ctx, "ana", plain, "")
		if err != nil {
			return err
		}
		if i >= warm {
			with, without = append(with, a), append(without, b)
		}
	}
	whole := func(s sample) time.Duration { return s.posted.Sub(s.sent) }
	report("bound-turn-p50-ms", percentile(each(with, whole), 0.5), percentile(each(without, whole), 0.5))
	report("bound-line-to-agent-p50-ms", percentile(each(with, sample.toAgent), 0.5), percentile(each(without, sample.toAgent), 0.5))
	return nil
}

// dispositionCost counts the actions of one person's turn in each disposition, all that
// comes of it until the server is quiet included, so the operator's own words too. The floor is the same turn with
// operators switched off, which is the disposition "disabled".
func dispositionCost(ctx context.Context, on, off *rig) error {
	cost := func(r *rig, who, root, more string, operator bool) (string, float64, error) {
		got, err := r.spent(ctx, func() (string, error) {
			var err error
			since := r.Slack.Log(0).Next
			if root, _, err = r.asks(ctx, who, root, more); err == nil && operator {
				err = r.spoken(ctx, since)
			}
			return r.brain(root), err
		})
		return root, got.actions, err
	}
	plain, first, err := cost(off, "ana", "", "kind=work repo=web", false)
	if err != nil {
		return err
	}
	_, follow, err := cost(off, "ana", plain, "kind=work repo=web", false)
	if err != nil {
		return err
	}
	report("disabled-turn-actions", first, first)
	var root string
	for _, d := range []struct{ name, who, more string }{
		{"question", "ana", "kind=question"}, {"unbound", "ben", "kind=work repo=web"}, {"unscoped", "ana", "kind=work repo=none"},
		{"unavailable", "ana", "kind=broken"}, {"spawned", "ana", "kind=work repo=web"},
	} {
		var n float64
		if root, n, err = cost(on, d.who, "", d.more, d.name == "spawned"); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		report(d.name+"-turn-actions", n, first)
	}
	_, n, err := cost(on, "ana", root, "", true)
	if err != nil {
		return err
	}
	report("known-operator-turn-actions", n, follow)
	// A brain that begins anew asks for the operator and finds it.
	if err := on.client.TerminateWorkflow(ctx, on.brain(root), "", "bench"); err != nil {
		return fmt.Errorf("end a brain: %w", err)
	}
	if _, n, err = cost(on, "ana", root, "", true); err != nil {
		return err
	}
	report("bound-turn-actions", n, first)
	return nil
}
