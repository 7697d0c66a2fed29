package e2e_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/slackbox"
	"agentsmith/rules"
)

// B3: nothing of an agent outlives its worker's SIGKILL, also what it started in a session
// of its own.
func TestB3_NothingOfAnAgentOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	s := start(t, withTools(nil))
	r := s.room(t)
	root := r.say("ana", `@smith [[tool Bash {"command":"setsid nohup sleep 3601 & sleep 3602"}]]`)
	wait(t, "for the agent's children", func() (bool, string) {
		all := fmt.Sprint(s.agents())
		return strings.Contains(all, "sleep 3601") && strings.Contains(all, "sleep 3602"), all
	})
	s.Worker.Kill()
	wait(t, "until all of it is gone, without a worker", func() (bool, string) {
		left := s.agents()
		return len(left) == 0, fmt.Sprint(left)
	})
	s.restartWorker(t)
	require.Contains(t, r.answer("smith", root).Text, told(rules.ReasonWorkerDied))
}

// B3: the small process between worker and agent may be killed as well.
func TestB3_AKilledSupervisorTakesItsAgentAlong(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	root := r.say("ana", "@smith [[hang]]")
	r.running(root)
	killed := 0
	for _, p := range s.processes() {
		if strings.HasPrefix(p.cmd, "smith-agent-supervisor") {
			require.NoError(t, syscall.Kill(p.pid, syscall.SIGKILL))
			killed++
		}
	}
	require.Positive(t, killed)
	require.True(t, honest(r.answer("smith", root).Text))
	require.Empty(t, s.agents())
	next := r.reply("ana", root, "@smith [[say still here]]")
	require.Contains(t, r.answer("smith", next).Text, "still here")
}

// B5: a worker that dies over and over while it posts still posts once.
func TestB5_AWorkerThatDiesOverAndOverPostsOnce(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	s.arm(t, failpoint.PostSent)
	root := r.say("ana", "@smith [[say once]]")
	s.hit(t, failpoint.PostSent)
	s.Worker.Kill()
	for range 2 {
		s.arm(t, failpoint.PostBefore)
		s.restartWorker(t)
		s.hit(t, failpoint.PostBefore)
		s.Worker.Kill()
	}
	s.restartWorker(t)
	wait(t, "for the outcome", func() (bool, string) { b := s.busy(r.id); return len(b) == 0, strings.Join(b, "; ") })
	require.Contains(t, r.answer("smith", root).Text, "once")
	require.Len(t, r.posts(root), 1)
}

// B5: the worker dies while a post is on its way, which Slack commits only later.
func TestB5_APostCommittedAfterItsWorkersDeathIsFound(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	s.fault(t, slackbox.Fault{Kind: slackbox.CommitLate, Method: "chat.postMessage", App: "smith", Channel: r.id, Count: 1, DelayMS: 4000})
	s.arm(t, failpoint.PostRecorded)
	root := r.say("ana", "@smith [[say once]]")
	s.hit(t, failpoint.PostRecorded)
	s.letGo(t, failpoint.PostRecorded)
	wait(t, "for the request", func() (bool, string) {
		for _, c := range s.Slack.Log(0).Calls {
			if c.Method == "chat.postMessage" && c.Who == "smith" {
				return true, ""
			}
		}
		return false, ""
	})
	s.Worker.Kill()
	s.restartWorker(t)
	require.Contains(t, r.answer("smith", root).Text, "once")
	s.settle(t)
	require.Len(t, r.posts(root), 1)
}

// D4: a stop whose worker dies before it could end the agent is carried out all the same.
func TestD4_AStopSurvivesTheDeathOfWorkerAndStarter(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	s.arm(t, failpoint.AgentStarted)
	root := r.say("ana", "@smith [[hang]]")
	s.hit(t, failpoint.AgentStarted)
	s.arm(t, failpoint.StarterRecorded)
	stop := r.reply("ana", root, "stop")
	s.hit(t, failpoint.StarterRecorded)
	s.Starter.Kill()
	s.Worker.Kill()
	s.restartStarter(t)
	s.restartWorker(t)
	wait(t, "until nothing runs", func() (bool, string) { return len(s.agents()) == 0, fmt.Sprint(s.agents()) })
	r.post("smith/" + r.id + "/" + stop + "/stop")
	s.settle(t)
	require.LessOrEqual(t, len(r.posts(root)), 2, "the stop's line, and at most one about the interrupted turn")
}

// L2: a starter that is killed over and over amid lines loses none and doubles none.
func TestL2_AStarterThatDiesAmidLinesLosesNone(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	var lines []string
	for i := range 6 {
		lines = append(lines, r.say("ana", fmt.Sprintf("@smith [[say nr%d]]", i)))
		if i%2 == 1 {
			s.Starter.Kill()
			s.restartStarter(t)
		}
	}
	for i, ts := range lines {
		require.Contains(t, r.answer("smith", ts).Text, fmt.Sprintf("nr%d", i))
	}
}
