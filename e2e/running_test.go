package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/stack"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// T2: what a thread is doing shows in Temporal alone: search attributes, memo, summaries,
// current details and a query.
func TestT2_TemporalAloneTellsWhatAThreadDoes(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[hang]]")
	r.running(root)
	id := r.brain("smith", root)
	wait(t, "for visibility", func() (bool, string) {
		list, err := r.temporalClient.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: stack.Namespace, Query: fmt.Sprintf("SmithSeat = 'smith' AND SmithChannel = '%s' AND SmithThread = '%s'", r.id, root),
		})
		require.NoError(t, err)
		return len(list.GetExecutions()) == 1 && list.GetExecutions()[0].GetExecution().GetWorkflowId() == id, fmt.Sprint(list.GetExecutions())
	})
	value, err := r.temporalClient.QueryWorkflow(t.Context(), id, "", workflows.QueryThread)
	require.NoError(t, err)
	var view workflows.ThreadView
	require.NoError(t, value.Get(&view))
	require.Equal(t, "running the agent", view.Doing)
	require.Equal(t, []string{root}, view.Lines)
	d, err := r.temporalClient.DescribeWorkflow(t.Context(), id, "")
	require.NoError(t, err)
	require.Contains(t, string(d.RawResponse.GetWorkflowExecutionInfo().GetMemo().GetFields()["link"].GetData()), strings.ReplaceAll(root, ".", ""))
	value, err = r.temporalClient.QueryWorkflow(t.Context(), id, "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var meta sdkpb.WorkflowMetadata
	require.NoError(t, value.Get(&meta))
	require.Contains(t, meta.GetCurrentDetails(), "running the agent")
	stop := r.reply("ana", root, "stop")
	r.post("smith/" + r.id + "/" + stop + "/stop")
}

// T2: boot checks the search attributes and prints the command that creates them.
func TestT2_BootPrintsTheCommandThatCreatesWhatIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := begin(dir, withSeats("smith"), func(o *stack.Options) { o.SearchAttributes = nil })
	require.Error(t, err)
	log, _ := os.ReadFile(filepath.Join(dir, "logs", "starter.log"))
	require.Contains(t, string(log), "temporal operator search-attribute create --namespace default --name SmithSeat --type Keyword")
}

// T4: a config with five mistakes names all five, each with its file and line.
func TestT4_AConfigWithFiveMistakesNamesAllFive(t *testing.T) {
	t.Parallel()
	p := inCommon.programs()
	require.NoError(t, p.err)
	path := filepath.Join(t.TempDir(), "smith.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`data_dir: not/absolute
seats:
  - name: Smith!
    permission_mode: bypassPermissions
idle_after: soon
slack:
  api_urll: http://127.0.0.1/
`), 0o600))
	for _, program := range []string{p.starter, p.worker} {
		out, err := exec.CommandContext(t.Context(), program, "--config", path).CombinedOutput()
		require.Error(t, err)
		for _, line := range []int{1, 3, 4, 5, 7} {
			require.Contains(t, string(out), fmt.Sprintf("smith.yaml:%d: ", line), string(out))
		}
		require.NotContains(t, string(out), "panic")
	}
}

// T6: SIGTERM lets a running turn finish within the drain's time.
func TestT6_SIGTERMDrainsRunningTurns(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"), withConfig(map[string]any{"drain": "30s"}))
	r := s.room(t)
	root := r.say("ana", "@smith [[sleep 3s]] [[say drained]]")
	r.running(root)
	require.NoError(t, s.Worker.Stop(40*time.Second))
	require.Empty(t, s.agents())
	s.restartWorker(t)
	require.Contains(t, r.answer("smith", root).Text, "drained")
	require.Len(t, r.runs(root), 1)
}

// T6: what does not end within that time is ended, and the thread is told.
func TestT6_ATurnThatOutlastsTheDrainIsToldOf(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"), withConfig(map[string]any{"drain": "1s"}))
	r := s.room(t)
	root := r.say("ana", "@smith [[hang]]")
	r.running(root)
	require.NoError(t, s.Worker.Stop(40*time.Second))
	require.Empty(t, s.agents())
	s.restartWorker(t)
	require.Contains(t, r.answer("smith", root).Text, told(rules.ReasonWorkerDied))
}

// T6: nothing that was accepted is lost when the starter is asked to stop amid lines.
func TestT6_TheStarterStopsAmidLinesAndLosesNone(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	r.answer("smith", r.say("ana", "@smith [[say warm]]"))
	var lines []string
	for i := range 6 {
		lines = append(lines, r.say("ana", fmt.Sprintf("@smith [[say nr%d]]", i)))
		if i == 2 {
			require.NoError(t, syscall.Kill(s.Starter.PID(), syscall.SIGTERM))
		}
	}
	<-s.Starter.Done()
	s.restartStarter(t)
	for i, ts := range lines {
		require.Contains(t, r.answer("smith", ts).Text, fmt.Sprintf("nr%d", i))
	}
}

// loudSystem is one with an ops channel.
func loudSystem(t *testing.T) (*system, *room) {
	s := start(t, withSeats("smith"), func(o *stack.Options) {
		o.Slack.Seed = seedWith(slackbox.Channel{ID: "C0OPS000001", Name: "ops", Members: []string{"ana", "smith"}})
		o.Config["ops_channel"] = "C0OPS000001"
	})
	return s, &room{system: s, t: t, id: "C0OPS000001"}
}

// loud waits until trouble was said in all three places (T6).
func (s *system) loud(t *testing.T, ops *room, text string, inOps bool) {
	t.Helper()
	waitFor(t, 3*time.Minute, "for the trouble said loudly: "+text, func() (bool, string) {
		code, body := s.healthz(t)
		log := s.log("starter")
		said := strings.Contains(strings.Join(ops.texts(), " "), text) || !inOps
		return code != http.StatusOK && strings.Contains(log, "level=ERROR") && strings.Contains(log, text) && said,
			fmt.Sprintf("health %d %s ops %v", code, body, ops.texts())
	})
	if inOps {
		require.Len(t, ops.texts(), 1, "one line")
	}
}

func (s *system) healthz(t *testing.T) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.StarterHealth()+"/healthz", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// T6: a second process on the same app eats half the lines: that is said loudly.
func TestT6_ASecondProcessOnTheAppIsSaidLoudly(t *testing.T) {
	t.Parallel()
	s, ops := loudSystem(t)
	thief := socketmode.New(slack.New("", slack.OptionAppLevelToken("xapp-local-smith"), slack.OptionAPIURL(s.Slack.URL())))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = thief.RunContext(ctx) }()
	wait(t, "for its socket", func() (bool, string) {
		for e := range thief.Events {
			if e.Type == socketmode.EventTypeHello {
				return true, ""
			}
		}
		return false, ""
	})
	go func() {
		for range thief.Events { //nolint:revive // it reads and answers nothing, as a thief would
		}
	}()
	s.Starter.Kill()
	s.startStarterAnyhow(t)
	s.loud(t, ops, "Another process is connected as smith", true)
}

// T6: dead credentials are said loudly. The bot's own token still works, so the ops
// channel hears of it.
func TestT6_DeadCredentialsAreSaidLoudly(t *testing.T) {
	t.Parallel()
	s, ops := loudSystem(t)
	s.deaf = true // no socket takes the seat's envelopes any more
	s.Slack.RevokeToken("xapp-local-smith")
	_, err := s.Slack.Cut("smith")
	require.NoError(t, err)
	s.loud(t, ops, "Slack does not take the app token of smith", true)
}

// T6, L6: a half-open socket is found by its missing pings, said loudly, opened again, and
// what was missed is read.
func TestT6_AHalfOpenSocketIsSaidLoudlyAndMended(t *testing.T) {
	t.Parallel()
	s, ops := loudSystem(t)
	r := s.room(t)
	r.answer("smith", r.say("ana", "@smith [[say warm]]"))
	_, err := s.Slack.StopPings("smith")
	require.NoError(t, err)
	ts := r.say("ana", "@smith [[say through]]")
	require.Contains(t, r.answer("smith", ts).Text, "through")
	wait(t, "for the word about it", func() (bool, string) {
		return strings.Contains(s.log("starter"), "half open") && strings.Contains(strings.Join(ops.texts(), " "), "half open"), fmt.Sprint(ops.texts())
	})
}

// startStarterAnyhow starts a starter that will not be healthy.
func (s *system) startStarterAnyhow(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_ = s.StartStarter(ctx)
}
