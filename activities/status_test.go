package activities_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/mock/gomock"

	sdkactivity "go.temporal.io/sdk/activity"

	"agentsmith/activities"
	"agentsmith/internal/agent"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// shown notes what a thread's status was set to, and when.
type shown struct {
	mu    sync.Mutex
	texts []string
	at    []time.Duration
	began time.Time
}

func (s *shown) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts, s.at = append(s.texts, text), append(s.at, time.Since(s.began).Round(time.Second))
}

func (s *shown) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.texts...)
}

func mockStatus(t *testing.T, fail error) (*MockSlackClient, *shown) {
	slack, seen := NewMockSlackClient(gomock.NewController(t)), &shown{began: time.Now()}
	slack.EXPECT().SetStatus(gomock.Any(), "C", "1.000000", gomock.Any()).AnyTimes().DoAndReturn(
		func(_ context.Context, _, _, text string) error { seen.note(text); return fail })
	return slack, seen
}

var someThread = rules.Thread{Team: "T", Channel: "C", Root: "1.000000"}

// A status is shown at once, again before Slack takes it away, and never after its end (B7).
func TestStatus_IsRefreshedUntilItsEndAndNeverAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slack, seen := mockStatus(t, nil)
		set, end := activities.ShowStatus(t.Context(), slack, someThread, discard())
		time.Sleep(100 * time.Second) // nothing to show yet: nothing is refreshed
		require.Empty(t, seen.list())
		set("one")
		synctest.Wait()
		require.Equal(t, []string{"one"}, seen.list(), "at once")
		time.Sleep(200 * time.Second)
		set("two")
		synctest.Wait()
		time.Sleep(90 * time.Second)
		synctest.Wait()
		end()
		set("three")
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"one", "one", "one", "two", "two"}, seen.list())
		for i := 1; i < len(seen.at); i++ {
			require.LessOrEqual(t, seen.at[i]-seen.at[i-1], 110*time.Second, "within Slack's two minutes")
		}
	})
}

// A slow or failing Slack never holds a run up; only the newest text counts; and end
// waits until no call is under way, so that what clears it is the last word.
func TestStatus_NeverHoldsTheRunUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slack, seen := NewMockSlackClient(gomock.NewController(t)), &shown{}
		under := 0
		slack.EXPECT().SetStatus(gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any()).AnyTimes().DoAndReturn(
			func(ctx context.Context, _, _, text string) error {
				under++
				defer func() { under-- }()
				seen.note(text)
				select {
				case <-time.After(10 * time.Second):
				case <-ctx.Done():
					time.Sleep(time.Second)
				}
				return errors.New("slack is slow")
			})
		set, end := activities.ShowStatus(t.Context(), slack, someThread, discard())
		began := time.Now()
		for _, text := range []string{"one", "two", "three", "four"} {
			set(text)
			synctest.Wait()
		}
		require.Equal(t, began, time.Now())
		time.Sleep(15 * time.Second)
		require.Equal(t, []string{"one", "four"}, seen.list())
		require.Equal(t, 1, under)
		end()
		require.Zero(t, under)
	})
}

// What has no thread yet has no status.
func TestStatus_IsNotShownWithoutAThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slack := NewMockSlackClient(gomock.NewController(t)) // no call is expected
		set, end := activities.ShowStatus(t.Context(), slack, rules.Thread{Team: "T", Channel: "C"}, discard())
		set("one")
		set("two")
		synctest.Wait()
		end()
	})
}

// A line that waits is told its place, told again when it moves, then that its agent is
// at work (X6, B7).
func TestRunAgent_TellsItsPlaceInTheLine(t *testing.T) {
	began, finish := make(chan agent.Spec, 3), make(chan struct{}, 3)
	w := newWorkshop(t, runs(func(ctx context.Context, s agent.Spec, started func(agent.Process) error) (agent.Result, error) {
		began <- s
		<-finish
		return says("Hello")(ctx, s, started)
	}))
	w.agent.Places = activities.NewPlaces(1)
	first, second, third := w.says("", "one"), w.says("", "two"), w.says("", "three")
	a := w.runBeside(input(turn(first)))
	<-began
	b := w.runBeside(input(turn(second)))
	w.waitForStatus(rules.WaitingStatus(1))
	c := w.runBeside(input(turn(third)))
	w.waitForStatus(rules.WaitingStatus(2))
	finish <- struct{}{}
	<-began
	finish <- struct{}{}
	<-began
	finish <- struct{}{}
	for _, done := range []<-chan ended{a, b, c} {
		require.NoError(t, (<-done).err)
	}
	of := func(root string) (texts []string) {
		for _, s := range w.box.Log(0).Statuses {
			if s.ThreadTS == root && s.Why == "set" {
				texts = append(texts, s.Status)
			}
		}
		return texts
	}
	require.Equal(t, rules.WaitingStatus(2), of(third.Root)[0])
	require.NotContains(t, of(first.Root), rules.WaitingStatus(1), "who finds a place free does not wait")
}

// Most activities end before their first heartbeat, which is a billable action; a longer
// one says that it lives, and says it no more when it has ended.
func TestRunAgent_HeartbeatsOnlyAfterTenSeconds(t *testing.T) {
	for name, c := range map[string]struct {
		runs time.Duration
		want bool
	}{"short": {9 * time.Second, false}, "long": {11 * time.Second, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctrl := gomock.NewController(t)
				ledger, slack := NewMockAgentLedger(ctrl), NewMockSlackClient(ctrl)
				slack.EXPECT().SetStatus(gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any()).AnyTimes()
				ledger.EXPECT().LastTurnLine(gomock.Any(), gomock.Any(), gomock.Any()).Return("", nil)
				ledger.EXPECT().TakeLines(gomock.Any(), gomock.Any(), gomock.Any()).Return(store.TakeResult{}, nil)
				ledger.EXPECT().ThreadProcesses(gomock.Any(), gomock.Any(), gomock.Any()).Return(nil, nil)
				ledger.EXPECT().ProcessDead(gomock.Any(), gomock.Any()).Return(nil)
				ledger.EXPECT().KeepAnswer(gomock.Any(), gomock.Any(), gomock.Any()).Return(nil)
				a := &activities.Agent{
					Seats:  activities.Seats{ByName: map[string]*activities.Seat{"smith": {Name: "smith", Slack: slack}}},
					Ledger: ledger, Places: activities.NewPlaces(1), Dirs: activities.Dirs{Root: t.TempDir()}, Drain: time.Hour, Now: time.Now, Log: discard(),
					Runner: runs(func(context.Context, agent.Spec, func(agent.Process) error) (agent.Result, error) {
						time.Sleep(c.runs)
						return agent.Result{Text: "Hello"}, nil
					}),
				}
				var suite testsuite.WorkflowTestSuite
				suite.SetLogger(sdklog.NewStructuredLogger(discard()))
				env := suite.NewTestActivityEnvironment()
				env.SetTestTimeout(time.Hour)
				beats, began := 0, time.Now()
				env.SetOnActivityHeartbeatListener(func(*sdkactivity.Info, converter.EncodedValues) {
					beats++
					require.GreaterOrEqual(t, time.Since(began), 10*time.Second)
				})
				env.RegisterActivity(a)
				in := input(activities.Turn{ID: "smith/cron", Seat: "smith", Thread: rules.Thread{Team: "T", Channel: "C"}})
				in.Prompt, in.Author = "do it", rules.Schedule
				_, err := env.ExecuteActivity(a.RunAgent, in)
				require.NoError(t, err)
				activities.Finish(a)
				time.Sleep(time.Minute)
				require.Equal(t, c.want, beats > 0)
			})
		})
	}
}
