package signals

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"agentsmith/rules"
	"agentsmith/workflows"
)

// door is a Temporal that remembers the last signal with start.
type door struct {
	Client
	id      string
	trigger workflows.Trigger
	input   workflows.ReplyInput
	options client.StartWorkflowOptions
	err     error
}

func (d *door) SignalWithStartWorkflow(_ context.Context, id, _ string, arg any, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	d.id, d.trigger, d.input, d.options = id, arg.(workflows.Trigger), args[0].(workflows.ReplyInput), o
	return nil, d.err
}

func asking(text string) rules.Line {
	return rules.Line{
		LineKey: rules.LineKey{Team: "T1", Channel: "C1", TS: "1700000000.000200"}, Root: "1700000000.000100", User: "U1", Text: text,
		Raw: json.RawMessage(`{"secret":"x"}`), Files: []rules.File{{ID: "F1"}},
	}
}

func TestBind_ReachesTheThreadsBrainAndStartsOne(t *testing.T) {
	d := &door{}
	w := Worker{Client: d, Settings: workflows.Settings{Box: "main"}}
	asked := rules.WorkDisposition{Kind: rules.KindWork, Slug: "fix-login", Repo: "web"}
	require.NoError(t, w.Bind(t.Context(), "smith", asking("fix it"), asked, "1700000001.000000"))
	require.Equal(t, "smith-reply-C1-1700000000.000100", d.id)
	require.Equal(t, workflows.KindBind, d.trigger.Kind)
	require.True(t, d.trigger.MaySpawn)
	require.Equal(t, &asked, d.trigger.Asked)
	require.Equal(t, "fix it", d.trigger.Line.Text)
	require.Nil(t, d.trigger.Line.Raw, "a raw event has no place in a history")
	require.Nil(t, d.trigger.Line.Files)
	require.Equal(t, d.trigger, d.input.Trigger, "a brain that is started knows it by the name of the signal, and binds once")
	require.Equal(t, "main", d.input.Settings.Box)
	require.Nil(t, d.options.RetryPolicy)
}

func TestBind_ALongLineStaysInTheStore(t *testing.T) {
	d := &door{}
	w := Worker{Client: d}
	require.NoError(t, w.Bind(t.Context(), "smith", asking(strings.Repeat("x", rules.InlineText+1)), rules.WorkDisposition{}, "1.000000"))
	require.True(t, d.trigger.TextRef)
	require.Empty(t, d.trigger.Line.Text)
}

func TestBind_SaysWhichThreadItCouldNotReach(t *testing.T) {
	w := Worker{Client: &door{err: errors.New("down")}}
	require.EqualError(t, w.Bind(t.Context(), "smith", asking("x"), rules.WorkDisposition{}, "1.000000"),
		"signal with start the brain of 1700000000.000100 in C1: down")
}
