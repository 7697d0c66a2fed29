package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/stack"
	"agentsmith/internal/store/storetest"
	"agentsmith/internal/tools"
)

// theDatabase is the PostgreSQL server; the file of SQLite has no process to kill.
const theDatabase victim = "database"

// away is how long a killed database stays away: longer than one statement is tried again for.
const away = 15 * time.Second

// startDatabase starts a PostgreSQL server and a system that keeps its state there (T3).
func startDatabase(t *testing.T) *system {
	t.Helper()
	bin, err := tools.Postgres()
	require.NoError(t, err)
	p := storetest.StartPostgres(t, bin)
	url := p.NewURL(t)
	s, err := begin(inCommon.dir+"/database", withOperators(), withLauncherPoints(), func(o *stack.Options) {
		o.Env = append(o.Env, "SMITH_DATABASE_URL="+url)
	})
	require.NoError(t, err)
	s.database = p
	t.Cleanup(func() {
		for _, problem := range s.close() {
			t.Errorf("after the cases: %s", problem)
		}
	})
	return s
}

// databasePoints are the moments at which the database dies: one of each kind of write.
func databasePoints() []operatorPoint {
	return []operatorPoint{
		{failpoint.StarterReceived, theDatabase, starting},
		{failpoint.StarterAcked, theDatabase, starting},
		{failpoint.AgentTaken, theDatabase, starting},
		{failpoint.AgentEnded, theDatabase, starting},
		{failpoint.PostSent, theDatabase, starting},
		{failpoint.BindClaimed, theDatabase, starting},
		{failpoint.BindStarted, theDatabase, starting},
		{failpoint.BindBound, theDatabase, starting},
		{failpoint.TaskOffering, theDatabase, speaking},
		{failpoint.TaskTyping, theDatabase, following},
		{failpoint.TaskTyped, theDatabase, following},
		{failpoint.StopKilled, theDatabase, stopping},
	}
}

// T3, L2, O6, R10, R11: the whole works on PostgreSQL, and when that dies in the middle of
// anything and stays away for a while, every line still comes to one end and no thread
// has two operators.
func TestKillDatabase(t *testing.T) {
	t.Parallel()
	s := startDatabase(t)
	for _, p := range databasePoints() {
		if os.Getenv("SMITH_KILL") != "full" && p.Point != failpoint.StarterReceived && p.Point != failpoint.BindStarted && p.Point != failpoint.TaskTyped {
			continue
		}
		t.Run(fmt.Sprintf("%s/%s", p.Point, p.victim), func(t *testing.T) {
			began := time.Now()
			killOperatorAt(t, s, p)
			t.Logf("after %s", time.Since(began).Round(100*time.Millisecond))
		})
	}
	require.NotContains(t, s.log("worker")+s.log("starter"), "smith.db", "nothing is kept anywhere else")
	matches, err := os.ReadDir(s.Dir)
	require.NoError(t, err)
	for _, m := range matches {
		require.False(t, strings.HasSuffix(m.Name(), ".db") && strings.HasPrefix(m.Name(), "smith"), "%s is no part of PostgreSQL", m.Name())
	}
}
