package e2e_test

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/slackbox"
)

// victim is what is killed while a process waits at a failpoint.
type victim string

const (
	theWorker   victim = "worker"
	theStarter  victim = "starter"
	theAgent    victim = "agent"
	theTemporal victim = "temporal"
	everything  victim = "all" // worker, starter and server at once, as when the power goes
)

// point is a failpoint, and what may be killed while somebody is there.
type point struct {
	failpoint.Point
	victims []victim
	// file: the turn posts a file, else it does not come by.
	file bool
}

// points are all failpoints of a turn. An agent process exists at one of them only.
func points() []point {
	all := []victim{theWorker, theStarter, theTemporal, everything}
	return []point{
		{failpoint.StarterReceived, all, false},
		{failpoint.StarterRecorded, all, false},
		{failpoint.StarterAcked, all, false},
		{failpoint.StarterRouted, all, false},
		{failpoint.StarterSignalled, all, false},
		{failpoint.AgentBefore, all, false},
		{failpoint.AgentTaken, all, false},
		{failpoint.AgentStarted, append([]victim{theAgent}, all...), false},
		{failpoint.AgentEnded, all, false},
		{failpoint.AgentKept, all, false},
		{failpoint.PostBefore, all, false},
		{failpoint.PostRecorded, all, false},
		{failpoint.PostSent, all, false},
		{failpoint.PostFileIDKept, all, true},
		{failpoint.PostFileCompleted, all, true},
		{failpoint.PostOutcome, all, false},
		{failpoint.PostCleared, all, false},
	}
}

// lanes is how many systems the matrix runs on at the same time: most cases wait for a
// read-back.
const lanes = 4

// TestKill kills each part at each failpoint of a turn and lets it come back. By the
// oracles alone: every line has one outcome, at most one answer, an honest line where
// there is none, no process is left behind, and no status is stuck.
func TestKill(t *testing.T) {
	t.Parallel()
	free := make(chan *system, lanes)
	for i := range lanes {
		s, err := begin(fmt.Sprintf("%s/kill%d", inCommon.dir, i), withTools(nil))
		require.NoError(t, err)
		free <- s
	}
	t.Cleanup(func() {
		for range lanes {
			for _, problem := range (<-free).close() {
				t.Errorf("after the matrix: %s", problem)
			}
		}
	})
	t.Run("matrix", func(t *testing.T) {
		for _, p := range points() {
			for _, v := range p.victims {
				t.Run(fmt.Sprintf("%s/%s", p.Point, v), func(t *testing.T) {
					t.Parallel()
					s := <-free
					defer func() { free <- s }()
					began := time.Now()
					outcome := "FAILED"
					defer func() { killTable.add(p.Point, v, outcome, time.Since(began)) }()
					outcome = killAt(t, s, p, v)
					t.Logf("%s after %s", outcome, time.Since(began).Round(100*time.Millisecond))
				})
			}
		}
	})
}

// killAt arms the point, kills the victim while a process is there, brings it back, and
// returns what the reader saw.
func killAt(t *testing.T, s *system, p point, v victim) string {
	r := s.room(t)
	text := "@smith [[say the answer]]"
	switch {
	case p.file:
		text = "@smith [[file OUTBOX/a.txt of the turn]] [[say the answer]]"
	case v == theAgent:
		text = "@smith [[hang]]"
	}
	s.arm(t, p.Point)
	ts := r.say("ana", text)
	s.hit(t, p.Point)
	s.kill(t, r, ts, v)
	if v == theTemporal || v == everything {
		s.restartTemporal(t)
	}
	s.letGo(t, p.Point)
	if v == theWorker || v == everything {
		s.restartWorker(t)
	}
	if v == theStarter || v == everything {
		s.restartStarter(t)
	}
	a := r.answer("smith", ts)
	r.settleRoom()
	require.Empty(t, r.audit(r.id))
	posts := r.posts(ts)
	if p.file {
		posts = slices.DeleteFunc(posts, func(m slackbox.LoggedMessage) bool { return len(m.Message.Files) > 0 })
	}
	require.Len(t, posts, 1, "one word about the line")
	require.LessOrEqual(t, len(r.runs(ts)), 1, "the agent ran at most once")
	switch {
	case strings.Contains(a.Text, "the answer"):
		if p.file {
			require.Equal(t, 1, r.files(ts, "a.txt"), "its file is there, once")
		}
		return "answered"
	case honest(a.Text):
		return fmt.Sprintf("said %.28q…", a.Text)
	}
	require.FailNow(t, "neither an answer nor an honest line", a.Text)
	return ""
}

func (s *system) kill(t testing.TB, r *room, ts string, v victim) {
	t.Helper()
	switch v {
	case theWorker:
		s.Worker.Kill()
	case theStarter:
		s.Starter.Kill()
	case theTemporal:
		s.Stack.Temporal.Kill()
	case everything:
		s.Worker.Kill()
		s.Starter.Kill()
		s.Stack.Temporal.Kill()
	case theAgent:
		agents := r.agentsOf(r.id, ts)
		require.NotEmpty(t, agents, "an agent runs")
		for _, p := range agents {
			require.NoError(t, syscall.Kill(p.pid, syscall.SIGKILL))
		}
	}
}

// files counts how often a file stands in a thread.
func (r *room) files(root, name string) (n int) {
	for _, m := range r.posts(root) {
		for _, f := range m.Message.Files {
			if f.Name == name {
				n++
			}
		}
	}
	return n
}

// table keeps what was seen of each kill.
type table struct {
	mu   sync.Mutex
	rows map[failpoint.Point]map[victim]string
}

var killTable = &table{rows: map[failpoint.Point]map[victim]string{}}

func (k *table) add(p failpoint.Point, v victim, outcome string, took time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rows[p] == nil {
		k.rows[p] = map[victim]string{}
	}
	k.rows[p][v] = fmt.Sprintf("%s %.1fs", outcome, took.Seconds())
}

// printKillTable prints point × victim → outcome seen.
func printKillTable() {
	killTable.mu.Lock()
	defer killTable.mu.Unlock()
	if len(killTable.rows) > 0 {
		killTable.print(os.Stdout)
	}
}

func (k *table) print(w io.Writer) {
	victims := []victim{theWorker, theStarter, theAgent, theTemporal, everything}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(out, "killed at")
	for _, v := range victims {
		fmt.Fprintf(out, "\t%s", v)
	}
	fmt.Fprintln(out)
	for _, p := range points() {
		fmt.Fprint(out, string(p.Point))
		for _, v := range victims {
			cell := k.rows[p.Point][v]
			if cell == "" {
				cell = "-"
			}
			fmt.Fprintf(out, "\t%s", cell)
		}
		fmt.Fprintln(out)
	}
	_ = out.Flush()
}
