package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/standin"
)

// B3: an agent that ends while the Temporal server is away is no lost agent: what it
// answered is reported when the server is back, and nobody waits for a heartbeat that was
// missed. The storm found turns that did, for a minute.
func TestB3_AnAgentThatEndsWhileTheServerIsAwayIsReportedWhenItIsBack(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	ts := r.say("ana", "@smith [[sleep 2s]] [[say outlasted]]")
	r.running(ts)
	s.Stack.Temporal.Kill()
	wait(t, "for the model's answer", func() (bool, string) { return r.runs(ts)[0].Outcome == standin.Served, "" })
	// Longer than the SDK asks by itself for one report.
	<-time.After(15 * time.Second)
	s.restartTemporal(t)
	back := time.Now()
	require.Contains(t, r.answer("smith", ts).Text, "outlasted")
	t.Logf("the answer came %s after the server was back", time.Since(back).Round(100*time.Millisecond))
	require.Less(t, time.Since(back), 30*time.Second, "a heartbeat's timeout is a minute")
}
