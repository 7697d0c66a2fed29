package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"agentsmith/internal/stack"
	"agentsmith/internal/standin"
	"agentsmith/internal/store/storetest"
	"agentsmith/workflows"
)

// patience is how long a condition may take on a busy machine. Nothing ever waits that
// long where things go well.
const patience = 3 * time.Minute

// requestTimeout is how long the programs wait for a request to Slack: what a repeat of a
// post waits out before it reads back (B5).
const requestTimeout = 2 * time.Second

// system is one whole running system under test.
type system struct {
	*stack.Stack
	temporalClient client.Client
	excuses        *excuses
	// deaf: its envelopes wait for a socket that will not come.
	deaf bool
	// database is the PostgreSQL server of a system that has one.
	database *storetest.Postgres
}

// settings change what a system starts with.
type settings func(*stack.Options)

// withConfig lays fields over the config.
func withConfig(fields map[string]any) settings {
	return func(o *stack.Options) {
		for k, v := range fields {
			o.Config[k] = v
		}
	}
}

// withSeats runs these seats only.
func withSeats(names ...string) settings { return func(o *stack.Options) { o.Seats = names } }

// begin starts a system in dir.
func begin(dir string, changes ...settings) (*system, error) {
	p := inCommon.programs()
	if p.err != nil {
		return nil, p.err
	}
	o := stack.Options{
		Dir: dir, Temporal: p.temporal, Claude: p.claude, Worker: p.worker, Starter: p.starter,
		SearchAttributes: workflows.SearchSpecs(),
		Failpoints:       filepath.Join(dir, "failpoints"),
		Model:            model(),
		Log:              slog.New(slog.DiscardHandler),
		Config: map[string]any{
			"idle_after": "30m", "owed_too_long": "5m", "drain": "5s",
			"slack":  map[string]any{"request_timeout": requestTimeout.String()},
			"limits": map[string]any{"concurrent_turns": 6, "turn_timeout": "2m", "sibling_hops": 2, "self_drive_hops": 2},
		},
	}
	for _, change := range changes {
		change(&o)
	}
	if err := os.MkdirAll(o.Failpoints, 0o700); err != nil {
		return nil, err
	}
	// The context is the system's life: it ends with Stop. Each part has its own limit to start.
	st, err := stack.Start(context.Background(), o)
	if err != nil {
		for _, name := range []string{"worker", "starter"} {
			text, _ := os.ReadFile(filepath.Join(dir, "logs", name+".log"))
			err = fmt.Errorf("%w\n%s.log ends: %s", err, name, text[max(0, len(text)-1000):])
		}
		return nil, err
	}
	s := &system{Stack: st, excuses: newExcuses()}
	s.temporalClient, err = client.Dial(client.Options{
		HostPort: st.Temporal.Address, Namespace: stack.Namespace,
		Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return nil, errors.Join(err, st.Stop())
	}
	return s, s.connected()
}

// connected waits until every seat has a socket.
func (s *system) connected() error {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		open := 0
		for _, a := range s.Slack.State().Apps {
			if slices.Contains(s.seatNames(), a.Name) && len(a.Sockets) > 0 {
				open++
			}
		}
		if open == len(s.seatNames()) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("a seat has no socket")
}

// start starts a system for one test alone. When the test ends the system is looked at
// as a whole, stopped, and must leave nothing behind.
func start(t *testing.T, changes ...settings) *system {
	t.Helper()
	s, err := begin(t.TempDir(), changes...)
	require.NoError(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			s.settle(t)
		}
		for _, problem := range s.close() {
			t.Errorf("after the test: %s", problem)
		}
		if t.Failed() {
			s.tails(t)
		}
	})
	return s
}

// shared returns the system of that name, which many cases use at the same time; each
// has a room of its own in it. It is looked at as a whole after all tests.
func shared(t *testing.T, name string, changes ...settings) *system {
	t.Helper()
	inCommon.mu.Lock()
	defer inCommon.mu.Unlock()
	if s := inCommon.shared[name]; s != nil {
		return s
	}
	s, err := begin(filepath.Join(inCommon.dir, name), changes...)
	require.NoError(t, err)
	inCommon.shared[name] = s
	return s
}

// home is the system for cases that need nothing special.
func home(t *testing.T) *system { return shared(t, "home") }

// close looks at the whole system, stops it, and looks for what it left behind.
func (s *system) close() (problems []string) {
	s.takeEnvelopes()
	problems = s.audit(everywhere)
	s.temporalClient.Close()
	if err := s.Stop(); err != nil {
		problems = append(problems, "stop: "+err.Error())
	}
	problems = append(problems, s.leakedSecrets()...)
	deadline := time.Now().Add(10 * time.Second)
	left := s.processes()
	for len(left) > 0 && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
		left = s.processes()
	}
	for _, p := range left {
		problems = append(problems, "left behind by the system: "+p.String())
	}
	return problems
}

// takeEnvelopes waits until no envelope is under way. One that was sent to a starter that
// was killed comes again after a minute or five of Slack's time, which need not be waited for.
func (s *system) takeEnvelopes() {
	began, moved := time.Now(), time.Now()
	for !s.deaf && !s.Slack.Quiet(s.seatNames()...) && time.Since(began) < patience {
		if time.Since(moved) > 4*time.Second {
			_ = s.Slack.Advance(5 * time.Minute)
			moved = time.Now()
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// restartWorker starts the worker again after it was killed or stopped.
func (s *system) restartWorker(t *testing.T) {
	t.Helper()
	require.NoError(t, s.StartWorker(t.Context()))
}

// restartStarter starts the starter again after it was killed or stopped.
func (s *system) restartStarter(t *testing.T) {
	t.Helper()
	require.NoError(t, s.StartStarter(t.Context()))
}

// restartTemporal starts the Temporal server again, with the same state.
func (s *system) restartTemporal(t *testing.T) {
	t.Helper()
	require.NoError(t, s.Stack.Temporal.Start(t.Context()))
}

// log is what a program has written so far.
func (s *system) log(name string) string {
	text, _ := os.ReadFile(filepath.Join(s.Dir, "logs", name+".log"))
	return string(text)
}

// tails prints the ends of all logs, where a test failed.
func (s *system) tails(t testing.TB) {
	t.Helper()
	for _, name := range []string{"starter", "worker", "temporal"} {
		lines := strings.Split(strings.TrimSpace(s.log(name)), "\n")
		t.Logf("the end of %s.log:\n%s", name, strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
	for _, e := range s.Model.Log() {
		t.Logf("model: %s lines=%v prompts=%d step=%d %s answer=%.60q", e.Time.Format("05.000"), e.Lines, e.Prompts, e.Step, e.Outcome, e.Answer)
	}
}

// wait waits until done holds, which says what it sees. It fails the test after patience.
func wait(t testing.TB, what string, done func() (ok bool, seen string)) {
	t.Helper()
	waitFor(t, patience, what, done)
}

func waitFor(t testing.TB, limit time.Duration, what string, done func() (ok bool, seen string)) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		ok, seen := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			require.FailNow(t, "waited in vain", "%s, for %s; seen last: %s", what, limit, seen)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

// settle waits until nothing is under way any more.
func (s *system) settle(t testing.TB) {
	t.Helper()
	wait(t, "until nothing is under way", func() (bool, string) {
		busy := s.busy(everywhere)
		return len(busy) == 0, strings.Join(busy, "; ")
	})
}

// outbox is where a brief says that an agent's files go.
var outbox = regexp.MustCompile(`Files that you write into (\S+) are posted`)

// model answers for the model: the stand-in's own script, with the marks of an agent that
// goes on or hands on spelled so that they can stand inside a directive, and two words
// that never stop doing so.
func model() func(standin.Request) standin.Reply {
	script := standin.Script(standin.Directives{})
	marks := strings.NewReplacer("⏎", "\n", "⟦", "[", "⟧", "]")
	return func(r standin.Request) standin.Reply {
		switch {
		case strings.Contains(r.Section, "drive-for-ever"):
			return standin.Reply{Text: "a part\n[continue: drive-for-ever]"}
		case strings.Contains(r.Section, "ping-pong"):
			other := "trinity"
			if strings.Contains(r.User, "You are @trinity") {
				other = "smith"
			}
			return standin.Reply{Text: fmt.Sprintf("over to you\n[hand off to %s: ping-pong]", other)}
		}
		if m := outbox.FindStringSubmatch(r.User); m != nil {
			r.Said = strings.ReplaceAll(r.Said, "OUTBOX", m[1])
		}
		reply := script(r)
		reply.Text = marks.Replace(reply.Text)
		return reply
	}
}
