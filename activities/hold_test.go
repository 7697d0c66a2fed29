package activities_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"agentsmith/activities"
	"agentsmith/rules"
)

// waitingClassifier says nothing until its context ends.
type waitingClassifier struct{ asked chan struct{} }

func (c *waitingClassifier) Classify(ctx context.Context, _ activities.ClassifyInput) rules.WorkDisposition {
	close(c.asked)
	<-ctx.Done()
	return rules.NoDisposition()
}

// noOperators is a launcher on a box where none runs, and none may be started.
type noOperators struct{ t *testing.T }

func (noOperators) Check(context.Context, activities.Launch) (activities.Launched, error) {
	return activities.Launched{Outcome: activities.LaunchNone}, nil
}

func (n noOperators) Start(context.Context, activities.Launch) (activities.Launched, error) {
	n.t.Error("an operator was started")
	return activities.Launched{}, nil
}

// D4: a stop does not wait for the classifier, and nothing is started behind it.
func TestBind_EndsAtOnceWithAStop(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "please fix it")
	agents := &activities.Agent{Seats: r.seats, Ledger: r.store, Box: "main", Log: r.poster.Log}
	classifier := &waitingClassifier{asked: make(chan struct{})}
	o := &activities.Operator{
		Seats: r.seats, Ledger: r.store, Classifier: classifier, Launcher: noOperators{t}, Box: "main",
		Checkouts: func() []rules.Checkout { return nil }, Hold: activities.Hold(agents), Log: r.poster.Log,
	}
	go func() {
		<-classifier.asked
		_, err := agents.KillAgent(context.Background(), activities.KillAgentInput{
			Seat: "smith", Thread: line.Thread(), StopTS: rules.TimeTS(rules.TSTime(line.TS).Add(1e9)),
		})
		if err != nil {
			t.Error(err)
		}
	}()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(o)
	got, err := env.ExecuteActivity(o.Bind, activities.BindInput{Turn: turn(line), MaySpawn: true})
	require.NoError(t, err)
	var b activities.Binding
	require.NoError(t, got.Get(&b))
	require.Empty(t, b.Disposition)
}
