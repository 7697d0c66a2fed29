package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/terminal"
)

// relayPoint is a failpoint on a relayed line's way, and who dies there. dies: the session
// is gone by then, and the line is the brain's.
type relayPoint struct {
	failpoint.Point
	victim
	dies bool
}

func relayPoints() []relayPoint {
	return []relayPoint{
		{failpoint.StarterRouted, theStarter, false},
		{failpoint.StarterBrainWoken, theStarter, false},
		{failpoint.RelayTyping, theWorker, false},
		{failpoint.RelayTyped, theWorker, false},
		{failpoint.RelayTyped, theTemporal, false},
		{failpoint.TypeLoaded, theWorker, false},
		{failpoint.TypePasted, theWorker, false},
		{failpoint.TypeEntered, theWorker, false},
		{failpoint.TaskOffering, theWorker, false},
		{failpoint.TaskOffered, theWorker, false},
		{failpoint.RelayHandedBack, theWorker, true},
		{failpoint.RelayHandedBack, theTemporal, true},
		{failpoint.RelayEnding, theWorker, true},
	}
}

// R9-R11: whoever dies at whatever point of a relayed line's way, the session or the brain
// answers it, never both and never nobody, and its word comes back once.
func TestKillRelay(t *testing.T) {
	t.Parallel()
	s := start(t, withOwner())
	for i, p := range relayPoints() {
		if os.Getenv("SMITH_KILL") != "full" && p.Point != failpoint.StarterBrainWoken && p.Point != failpoint.TypeEntered && (p.Point != failpoint.RelayHandedBack || p.victim != theWorker) {
			continue
		}
		t.Run(fmt.Sprintf("%s/%s", p.Point, p.victim), func(t *testing.T) {
			began := time.Now()
			killRelayAt(t, s, p, fmt.Sprintf("relay-kill-%d", i))
			t.Logf("after %s", time.Since(began).Round(100*time.Millisecond))
		})
	}
}

func killRelayAt(t *testing.T, s *system, p relayPoint, slug string) {
	r := relays(t, s, slug)
	r.inThread(r.say("ana", "work on "+slug), "Your lines here now go to")
	s.arm(t, p.Point)
	if p.dies {
		s.arm(t, failpoint.StarterBrainWoken)
	}
	word := "word-of-" + slug + "."
	ts := r.say("ana", "continue [[say "+word+"]]")
	if p.dies { // when the line is the session's already
		s.hit(t, failpoint.StarterBrainWoken)
		r.end(r.op)
		s.letGo(t, failpoint.StarterBrainWoken)
	}
	s.hit(t, p.Point)
	switch p.victim {
	case theStarter:
		s.Starter.Kill()
	case theWorker:
		s.Worker.Kill()
	case theTemporal:
		s.Stack.Temporal.Kill()
	}
	s.letGo(t, p.Point)
	switch p.victim {
	case theStarter:
		s.restartStarter(t)
	case theWorker:
		s.restartWorker(t)
	case theTemporal:
		s.restartTemporal(t)
	}
	const unsure = "I can't tell whether session #"
	said := func(text string) (n int) {
		for _, m := range r.messages() {
			if text == unsure || !strings.Contains(m, unsure) { // which quotes the line
				n += strings.Count(m, text)
			}
		}
		return n
	}
	wait(t, "for what becomes of the line", func() (bool, string) {
		return said(word) > 0 || said(unsure) > 0, strings.Join(r.texts(), " | ")
	})
	if p.dies {
		require.Contains(t, r.answer("smith", ts).Text, word)
		wait(t, "for what is said of the session's end", func() (bool, string) {
			return said("has ended, and the relay to it with it") > 0, strings.Join(r.texts(), " | ")
		})
	}
	r.settleRoom()
	if !p.dies {
		s.excuses.add(r.id, ts, "carried by a relay")
	}
	require.Empty(t, r.audit(r.id))
	typed, brain := len(r.prompts(r.op, word)), len(r.brainRuns(ts))
	require.LessOrEqual(t, typed, 1, "never typed twice (R10)")
	require.LessOrEqual(t, brain, 1)
	if p.dies {
		require.Equal(t, []int{0, 1}, []int{typed, brain}, "the brain's (R9)")
	} else {
		require.Zero(t, brain, "the session's (R5)")
		require.Positive(t, typed+said(unsure))
	}
	require.Equal(t, typed+brain, said(word), "a word once (R11)")
	if p.dies {
		r.inThread(r.say("ana", "sessions"), "There is no session now")
		return
	}
	r.inThread(r.say("ana", "stop"), "is closed")
	_ = s.Tmux.Kill(t.Context(), r.op.ID)
}

// end kills a session as somebody does who knows nothing of Smith.
func (r *relayed) end(op terminal.Live) {
	r.t.Helper()
	_, err := r.Tmux.Run(r.t.Context(), nil, "kill-session", "-t", "="+op.Name)
	require.NoError(r.t, err)
}

// messages are all texts of the seat in this conversation and in the operator's thread.
func (r *relayed) messages() (out []string) {
	for _, m := range r.Slack.Log(0).Messages {
		if m.App == "smith" && !m.Deleted() && (m.Channel == r.id || m.Channel == r.work.id) {
			out = append(out, m.Text)
		}
	}
	return out
}

// R8: a line is typed on its wake; and where that is lost, by the safety net.
func TestRelay_ALostWakeIsMadeUpFor(t *testing.T) {
	t.Parallel()
	s := start(t, withOwner())
	r := relays(t, s, "woken")
	r.inThread(r.say("ana", "work on 1"), "Your lines here now go to #1 op-woken")
	woken := r.say("ana", "now [[say woken by a signal]]")
	r.inThread(woken, "woken by a signal")
	r.carried(woken, "woken by a signal")
	events := s.events(t, "smith-relay-tick-"+r.id)
	signal := lastOf(events, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED)
	look := firstAfter(events, signal, enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
	require.Greater(t, look, signal)
	require.NotContains(t, events[signal:look], enumspb.EVENT_TYPE_TIMER_FIRED, "typed on its wake, not on the tick")

	s.arm(t, failpoint.StarterBrainWoken)
	lost := r.say("ana", "and now [[say found by the net]]")
	s.hit(t, failpoint.StarterBrainWoken) // its wake will not come while the starter hangs there
	r.inThread(lost, "found by the net")
	r.carried(lost, "found by the net")
	s.letGo(t, failpoint.StarterBrainWoken)
	r.inThread(r.say("ana", "stop"), "is closed")
}

// events are the types of a workflow's events, of its newest run.
func (s *system) events(t testing.TB, id string) (types []enumspb.EventType) {
	t.Helper()
	iter := s.temporalClient.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		require.NoError(t, err)
		types = append(types, e.GetEventType())
	}
	return types
}

func lastOf(events []enumspb.EventType, want enumspb.EventType) int {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i] == want {
			return i
		}
	}
	return -1
}

func firstAfter(events []enumspb.EventType, at int, want enumspb.EventType) int {
	for i := at + 1; i < len(events); i++ {
		if events[i] == want {
			return i
		}
	}
	return -1
}
