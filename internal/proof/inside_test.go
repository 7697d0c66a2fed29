package proof

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"
)

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func options(toClose, toStart, start, beat int) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		ScheduleToCloseTimeout: seconds(toClose), ScheduleToStartTimeout: seconds(toStart),
		StartToCloseTimeout: seconds(start), HeartbeatTimeout: seconds(beat),
	}
}

// A strand is the expected one by its event or by one of the two commands that part there.
func TestPart_TakesTheExpectedStrandOnly(t *testing.T) {
	p := part{found: true, event: 11, old: &call{Command: Command{Name: "A"}}, branch: &call{Command: Command{Name: "B"}}}
	for _, c := range []struct {
		o      Outcome
		parted int64
		fits   bool
	}{
		{Outcome{Event: 11}, 0, true},
		{Outcome{Event: 17, Command: "ScheduleActivityTask B"}, 0, true},
		{Outcome{Event: 17, Reason: "the history has ActivityTaskScheduled A"}, 0, true},
		{Outcome{Event: 17, Command: "ScheduleActivityTask C"}, 0, false},
		{Outcome{Event: 17}, 0, false},
		{Outcome{Event: 17}, 17, false},
		{Outcome{Event: 17}, 14, false},
		{Outcome{Event: 17}, 11, true},
		{Outcome{Event: 5}, 11, false},
	} {
		require.Equal(t, c.fits, p.fits(c.o, c.parted), "%+v", c)
	}
	require.False(t, part{}.fits(Outcome{}, 0))
}

// Timeouts that the code leaves out are filled in as the server does it.
func TestFilledIn_FollowsTheServer(t *testing.T) {
	for _, c := range []struct{ run, toClose, toStart, start, beat, wantClose, wantStart, wantRun, wantBeat int }{
		{toClose: 10, wantClose: 10, wantStart: 10, wantRun: 10},
		{toClose: 10, toStart: 20, start: 30, beat: 40, wantClose: 10, wantStart: 10, wantRun: 10, wantBeat: 10},
		{start: 5, beat: 1, wantRun: 5, wantBeat: 1},
		{run: 7, start: 5, wantClose: 7, wantStart: 7, wantRun: 5},
		{run: 3, start: 5, beat: 4, wantClose: 3, wantStart: 3, wantRun: 3, wantBeat: 3},
	} {
		o := filledIn(options(c.toClose, c.toStart, c.start, c.beat), seconds(c.run))
		require.Equal(t, options(c.wantClose, c.wantStart, c.wantRun, c.wantBeat), o, "%+v", c)
	}
}
