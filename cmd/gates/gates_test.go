package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"agentsmith/internal/proof"
	"agentsmith/internal/tools"
)

// hostile is a change ID that no query gets right on every server.
const hostile = `it's "a" \ gate-1`

// flow is one workflow in the versions that its code has had. It passes the place of its
// gates after the signal "pass", and ends by the signal "end".
type flow struct {
	ids  []string // the gates that it asks
	max  workflow.Version
	wait time.Duration // of the new command; one of an hour is not waited for
	// ungated gives the new command and asks nobody, as after a gate was retired.
	ungated bool
}

func (f flow) run(ctx workflow.Context) error {
	var again bool
	workflow.GetSignalChannel(ctx, "pass").Receive(ctx, nil)
	added := f.ungated
	for _, id := range f.ids {
		added = workflow.GetVersion(ctx, id, workflow.DefaultVersion, f.max) >= 1 || added
	}
	if added {
		timer := workflow.NewTimer(ctx, f.wait)
		if f.wait < time.Hour {
			_ = timer.Get(ctx, nil)
		}
	}
	workflow.GetSignalChannel(ctx, "end").Receive(ctx, &again)
	if again {
		return workflow.NewContinueAsNewError(ctx, "Flow")
	}
	return nil
}

func (f flow) register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(f.run, workflow.RegisterOptions{Name: "Flow"})
	r.RegisterWorkflowWithOptions(f.run, workflow.RegisterOptions{Name: "Else"})
}

// source is the code of which f is a version, as reading takes it: Else asks no gate.
func (f flow) source(t *testing.T) *proof.Reading {
	t.Helper()
	text := `package p
import "go.temporal.io/sdk/workflow"
func Flow(ctx workflow.Context) {
`
	for _, id := range f.ids {
		text += fmt.Sprintf("\tworkflow.GetVersion(ctx, %q, workflow.DefaultVersion, %d)\n", id, f.max)
	}
	r, err := proof.ReadFiles(map[string][]byte{"p.go": []byte(text + `}
func Else(ctx workflow.Context) {}
func Register(r any) { r.RegisterWorkflow(Flow); r.RegisterWorkflow(Else) }
`)})
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	require.Len(t, r.Gates, len(f.ids))
	return r
}

// world is a real server with a worker for each version of the flow's code.
type world struct {
	client client.Client
	addr   string
}

func serve(t *testing.T, versions map[string]flow) world {
	t.Helper()
	path, err := tools.Temporal()
	require.NoError(t, err)
	server, err := testsuite.StartDevServer(t.Context(), testsuite.DevServerOptions{
		ExistingPath: path, LogLevel: "error", Stdout: t.Output(), Stderr: t.Output(), ClientOptions: &client.Options{Logger: quiet{}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	for queue, f := range versions {
		w := worker.New(server.Client(), queue, worker.Options{DisableRegistrationAliasing: true})
		f.register(w)
		w.RegisterWorkflowWithOptions(f.run, workflow.RegisterOptions{Name: "Stranger"})
		require.NoError(t, w.Start())
		t.Cleanup(w.Stop)
	}
	return world{server.Client(), server.FrontendHostPort()}
}

func (w world) start(t *testing.T, queue, workflowType, id string, signals ...string) {
	t.Helper()
	_, err := w.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, workflowType)
	require.NoError(t, err)
	for _, s := range signals {
		require.NoError(t, w.client.SignalWorkflow(t.Context(), id, "", s, false))
	}
}

// answer asks until the answer has what is wanted: what can be searched comes a moment later.
func (w world) answer(t *testing.T, f flow, want ...string) (string, error) {
	t.Helper()
	reading := f.source(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		var b strings.Builder
		err := report(ctx, w.client, code{reading: reading, register: f.register}, &b)
		out := regexp.MustCompile(` +`).ReplaceAllString(b.String(), " ")
		missing := ""
		for _, line := range want {
			if !regexp.MustCompile(`(?m)` + line).MatchString(out) {
				missing = line
				break
			}
		}
		if missing == "" {
			return out, err
		}
		select {
		case <-ctx.Done():
			require.Fail(t, "the answer never came", "missing: %s\nlast: %v\n%s", missing, err, out)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

const when = `20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`

func TestReport_CountsOpenRunsByVersionAndRetiresAGateWhenTheOldOnesEnded(t *testing.T) {
	first, second := flow{ids: []string{"ask-1", hostile}, max: 1}, flow{ids: []string{"ask-1", hostile}, max: 2}
	w := serve(t, map[string]flow{"old": {}, "one": first, "two": second})
	w.start(t, "old", "Flow", "old-passed", "pass")
	w.start(t, "old", "Flow", "old-waits")
	w.start(t, "one", "Flow", "one-passed", "pass")
	w.start(t, "two", "Flow", "two-waits")
	for n := range 3 {
		w.start(t, "two", "Flow", fmt.Sprint("two-passed-", n), "pass")
	}
	w.start(t, "old", "Else", "else") // asks no gate: its runs stand in nobody's way
	w.start(t, "old", "Stranger", "nobody")
	w.start(t, "two", "Stranger", "stranger", "pass")
	w.start(t, "two", "Flow", "ended", "pass", "end")

	id := regexp.QuoteMeta(hostile)
	out, err := w.answer(t, second,
		`^ask-1 Flow 2, newest 3 `+when+` two-passed-0 no$`, `^ask-1 Flow 1 1 `+when+` one-passed $`,
		`^ask-1 Flow old or not reached 3 `+when+` old-passed $`,
		`^`+id+` Flow 2, newest 3 .*no$`, `^`+id+` Flow 1 1 `, `^`+id+` Flow old or not reached 3 `,
		`^of other code: 1 open run of workflow types`)
	require.NoError(t, err)
	require.Contains(t, out, "The server cannot tell the two apart")
	require.NotContains(t, out, "unknown to this code")
	require.True(t, strings.HasSuffix(out, "\ngates: 2, retirable: 0\n"), out)

	// The version before the newest is as much in the way as none.
	require.NoError(t, w.client.TerminateWorkflow(t.Context(), "old-passed", "", ""))
	require.NoError(t, w.client.TerminateWorkflow(t.Context(), "old-waits", "", ""))
	require.NoError(t, w.client.TerminateWorkflow(t.Context(), "two-waits", "", ""))
	out, err = w.answer(t, second, `^ask-1 Flow old or not reached 0 - - $`)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(out, "\ngates: 2, retirable: 0\n"), out)
	require.NotContains(t, out, "The server cannot tell the two apart")

	require.NoError(t, w.client.SignalWorkflow(t.Context(), "one-passed", "", "end", false))
	_, err = w.answer(t, second, `^ask-1 Flow 2, newest 3 `+when+` two-passed-0 yes$`, `^gates: 2, retirable: 2$`)
	require.NoError(t, err)
}

// A run that passed a gate's place before the gate was there, and then came to another
// gate, is known to be on the old path: its list of versions has the old one, as -1.
func TestReport_KnowsARunThatIsOldForSure(t *testing.T) {
	w := serve(t, nil)
	code := func(gated bool) func(ctx workflow.Context) error {
		return func(ctx workflow.Context) error {
			ask := func(id string) {
				if gated {
					workflow.GetVersion(ctx, id, workflow.DefaultVersion, 1)
				}
			}
			ask("ask")
			workflow.GetSignalChannel(ctx, "pass").Receive(ctx, nil)
			ask("later")
			workflow.GetSignalChannel(ctx, "end").Receive(ctx, nil)
			return nil
		}
	}
	for _, gated := range []bool{false, true} {
		worker := worker.New(w.client, "q", worker.Options{DisableRegistrationAliasing: true})
		worker.RegisterWorkflowWithOptions(code(gated), workflow.RegisterOptions{Name: "Flow"})
		require.NoError(t, worker.Start())
		if !gated {
			w.start(t, "q", "Flow", "old")
			_, err := w.client.QueryWorkflow(t.Context(), "old", "", client.QueryTypeStackTrace) // it waits for the signal
			require.NoError(t, err)
			worker.Stop()
			continue
		}
		defer worker.Stop()
	}
	require.NoError(t, w.client.SignalWorkflow(t.Context(), "old", "", "pass", nil))
	out, err := w.answer(t, flow{ids: []string{"ask", "later"}, max: 1}, `^ask Flow old, for sure 1 `+when+` old $`, `^later Flow 1, newest 1 .* yes$`)
	require.NoError(t, err)
	require.Contains(t, out, "ask Flow old or not reached 0 ")
	require.Contains(t, out, "\ngates: 2, retirable: 1\n")
}

func TestReport_NamesWhatTheCodeDoesNotKnowAndReplaysIt(t *testing.T) {
	for name, wait := range map[string]time.Duration{"behind it": time.Millisecond, "at it": time.Hour} {
		t.Run("a run "+name, func(t *testing.T) { namesUnknown(t, wait) })
	}
}

func namesUnknown(t *testing.T, wait time.Duration) {
	gated := flow{ids: []string{"ask"}, max: 2, wait: wait}
	w := serve(t, map[string]flow{"two": gated})
	w.start(t, "two", "Flow", "gated", "pass")
	w.start(t, "two", "Flow", "waits")
	_, err := w.answer(t, gated, `^ask Flow 2, newest 1 `)
	require.NoError(t, err)

	for name, c := range map[string]struct {
		now  flow
		line string
		red  bool
	}{
		"renamed":    {flow{ids: []string{"asked"}, max: 2}, `^unknown to this code: ask-2: 1 open run, the oldest gated since ` + when + `; gated does not go on with this code: stranded at event \d`, true},
		"older code": {flow{}, `^unknown to this code: ask-2: .*gated does not go on with this code: stranded at event \d`, true},
		"lower":      {flow{ids: []string{"ask"}, max: 1}, `^unknown to this code: ask-2: .*gated does not go on with this code: stranded at event \d`, true},
		"retired":    {flow{ungated: true}, `^unknown to this code: ask-2: 1 open run, .*; 1 replayed on this code and went on`, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.now.wait = wait
			out, err := w.answer(t, c.now, c.line)
			if c.red {
				require.ErrorContains(t, err, "do not go on with it")
			} else {
				require.NoError(t, err)
			}
			require.Regexp(t, `\ngates: \d, retirable: 0\n$`, out)
			if name == "lower" {
				require.Regexp(t, `(?m)^ask Flow 2, not known here 1 .* no$`, out)
			}
		})
	}

	// What a run hands on when it continues as new is an unknown value as well, and harmless.
	require.NoError(t, w.client.SignalWorkflow(t.Context(), "gated", "", "end", true))
	_, err = w.answer(t, flow{ids: []string{"asked"}, max: 2}, `^unknown to this code: ask-2: .*1 replayed on this code and went on`)
	require.NoError(t, err)
}

// No gate in the code: a plain line, and the end of it. With a server, and without one.
func TestRun_SaysPlainlyThatThereIsNoGate(t *testing.T) {
	w := serve(t, nil)
	t.Chdir(t.TempDir())
	writeSource(t, "package workflows\n")
	for _, addr := range []string{w.addr, closedPort(t)} {
		t.Setenv("TEMPORAL_ADDRESS", addr)
		var b strings.Builder
		require.NoError(t, run(t.Context(), &b))
		require.True(t, strings.HasPrefix(b.String(), "There is no gate in workflows/."), b.String())
		require.True(t, strings.HasSuffix(b.String(), "\ngates: 0, retirable: 0\n"), b.String())
	}
}

func TestRun_SaysInOneLineWhatIsWrong(t *testing.T) {
	w := serve(t, nil)
	t.Chdir(t.TempDir())
	fails := func(want string) {
		t.Helper()
		err := run(t.Context(), &strings.Builder{})
		require.Error(t, err)
		require.Regexp(t, want, oneLine(err))
		require.NotContains(t, oneLine(err), "\n")
	}
	t.Setenv("TEMPORAL_ADDRESS", w.addr)
	fails("there is no Go source to read gates from; run it at the top of the checkout")
	writeSource(t, "package workflows\nimport \"go.temporal.io/sdk/workflow\"\nfunc W(ctx workflow.Context) { workflow.GetVersion(ctx, \"g\", 1, 2) }\n")
	require.NoError(t, run(t.Context(), &strings.Builder{}))
	t.Setenv("TEMPORAL_NAMESPACE", "nowhere")
	fails("has no namespace nowhere; check TEMPORAL_NAMESPACE")
	t.Setenv("TEMPORAL_ADDRESS", closedPort(t))
	fails("ask Temporal at 127.0.0.1:.*check TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE$")
	t.Setenv("TEMPORAL_PROFILE", "nobody")
	fails("read the Temporal connection from the environment: .*nobody")

	// What cannot be read is red, though the server has nothing against it.
	t.Setenv("TEMPORAL_PROFILE", "")
	t.Setenv("TEMPORAL_ADDRESS", w.addr)
	t.Setenv("TEMPORAL_NAMESPACE", "default")
	writeSource(t, "package workflows\nimport \"go.temporal.io/sdk/workflow\"\nfunc W(ctx workflow.Context, id string) { workflow.GetVersion(ctx, id, 1, 2) }\n")
	fails("not every gate could be read")
	var own *ownError
	require.True(t, errors.As(run(t.Context(), &strings.Builder{}), &own))
}
