package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/rules"
)

// The main job: a person mentions a seat and gets one answer in the thread.
func TestB2_AMentionGetsOneAnswerInItsThread(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	ts := r.say("ana", "@smith hello [[say good day]]")
	a := r.answer("smith", ts)
	require.Equal(t, ts, a.ThreadTS)
	require.Contains(t, a.Text, "good day")
	require.Len(t, r.runs(ts), 1)
}

// D3: in a DM no mention is needed.
func TestD3_ALineInADMEngages(t *testing.T) {
	t.Parallel()
	r, who := home(t).dm(t, "smith")
	ts := r.say(who, "hello [[say in private]]")
	require.Contains(t, r.answer("smith", ts).Text, "in private")
}

// B2: lines that come while a turn runs are answered together by the next one.
func TestB2_LinesDuringATurnAreAnsweredTogether(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[sleep 4s]] [[say one]]")
	r.running(root)
	second := r.reply("ana", root, "@smith and [[say two]]")
	third := r.reply("ben", root, "@smith also [[say three]]")
	require.Contains(t, r.answer("smith", root).Text, "one")
	require.Contains(t, r.answer("smith", second).Text, "two three")
	require.Equal(t, []string{second, third}, lead(r.runs(second)[0]))
	require.Len(t, r.posts(root), 2)
}

// D4: stop ends the running agent within moments, and one line says so.
func TestD4_StopEndsTheRunningTurn(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[hang]]")
	r.running(root)
	require.NotEmpty(t, r.agentsOf(r.id, root))
	stop := r.reply("ben", root, "Stop!")
	said := r.post("smith/" + r.id + "/" + stop + "/stop")
	require.Contains(t, said.Text, "Stopped.")
	require.Empty(t, r.agentsOf(r.id, root))
	require.Len(t, r.posts(root), 1)
}

// B3: a worker that dies mid-run leaves no agent behind and one honest line; the next
// line resumes the same agent session.
func TestB3_AWorkerThatDiesMidRunLeavesNoAgentAndOneHonestLine(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.room(t)
	root := r.say("ana", "@smith [[hang]]")
	session := r.running(root).Session
	s.Worker.Kill()
	wait(t, "until the agent is gone without its worker", func() (bool, string) {
		left := s.agents()
		return len(left) == 0, ""
	})
	s.restartWorker(t)
	require.Contains(t, r.answer("smith", root).Text, told(rules.ReasonWorkerDied))
	next := r.reply("ana", root, "@smith go on [[say here I am]]")
	require.Contains(t, r.answer("smith", next).Text, "here I am")
	require.Equal(t, session, r.runs(next)[0].Session)
	require.Len(t, r.posts(root), 2)
}
