package replaytests

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"agentsmith/histories"
	"agentsmith/internal/proof"
	"agentsmith/workflows"
)

// RelayStandsDown owes no gate, since it rides on the payload and is absent in what old
// starters sent (R4): every specimen of a person's turn holds no such field and replays
// unchanged, and strands where its turn began once the field is forced on.
func TestR4_StandingDownOwesNoGate(t *testing.T) {
	all, err := histories.Load(specimens)
	require.NoError(t, err)
	prover, err := proof.New(proof.Code{Register: workflows.Register, DisableRegistrationAliasing: true, Repeat: 3})
	require.NoError(t, err)
	turns := map[int]int{}
	for _, s := range all {
		if s.Workflow != workflows.ReplyType {
			continue
		}
		forced, lines, older := standDown(t, s.History)
		if lines == 0 || !older {
			continue // nobody's line, or captured by code that knows the field
		}
		require.Equal(t, proof.Green, prover.Replay(proof.Specimen{Name: s.File, History: s.History}).Verdict, s.File)
		got := prover.Replay(proof.Specimen{Name: s.File, History: forced})
		if !takesTurn(s.History) || s.History.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId() != "" {
			continue // no turn that the field could take away: none was taken, or its lines were accepted by the run before
		}
		require.Equal(t, proof.Stranded, got.Verdict, s.File)
		require.Equal(t, proof.NonDeterminism, got.Code, s.File)
		turns[s.Generation]++
		t.Logf("%s: forced on, it strands at event %d: %s", s.File, got.Event, got.Command)
	}
	require.GreaterOrEqual(t, turns[1], 2, "pre-change histories of a person's turn: instruments of generation 1")
	require.GreaterOrEqual(t, turns[2], 2, "and of generation 2, what stood before the relay")
}

// takesTurn tells whether an agent ran in a history.
func takesTurn(h *historypb.History) bool {
	for _, e := range h.GetEvents() {
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == "RunAgent" {
			return true
		}
	}
	return false
}

// standDown returns the history with every line of a person standing down, how many lines
// that are, and whether none of them had the field at all.
func standDown(t *testing.T, h *historypb.History) (forced *historypb.History, lines int, older bool) {
	t.Helper()
	forced, older = proto.CloneOf(h), true
	for _, e := range forced.GetEvents() {
		for _, p := range append(e.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads(),
			e.GetWorkflowExecutionSignaledEventAttributes().GetInput().GetPayloads()...) {
			var v map[string]any
			require.NoError(t, json.Unmarshal(p.GetData(), &v))
			n, fresh := force(v)
			lines, older = lines+n, older && fresh
			write(t, p, v)
		}
	}
	return forced, lines, older
}

// force sets the field on every trigger within a payload that is a person's line.
func force(v any) (lines int, older bool) {
	older = true
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			n, fresh := force(x)
			lines, older = lines+n, older && fresh
		}
	case map[string]any:
		for _, x := range v {
			n, fresh := force(x)
			lines, older = lines+n, older && fresh
		}
		if v["kind"] == string(workflows.KindLine) && v["author"] == "person" {
			_, has := v["relay_stands_down"]
			v["relay_stands_down"] = true
			lines, older = lines+1, older && !has
		}
	}
	return lines, older
}

func write(t *testing.T, p *commonpb.Payload, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	p.Data = data
}
