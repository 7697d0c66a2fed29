package agent

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/standin"
)

// claude is the pinned CLI. Without it these tests fail: nothing else can say
// whether the shapes that the runner relies on still hold.
func claude(t *testing.T) string {
	t.Helper()
	p := os.Getenv("SMITH_CLAUDE_BIN")
	require.NotEmpty(t, p, "SMITH_CLAUDE_BIN is not set")
	return p
}

// rig is a runner of the real CLI that talks to a stand-in.
type rig struct {
	*Runner
	api  *standin.Server
	home string
}

func newRig(t *testing.T, env ...string) *rig {
	t.Helper()
	api, err := standin.Start(context.Background(), standin.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = api.Close() })
	home := t.TempDir()
	env = append([]string{
		"PATH=" + os.Getenv("PATH"), "ANTHROPIC_BASE_URL=" + api.URL(), "ANTHROPIC_API_KEY=sk-ant-of-the-test",
		"CLAUDE_CODE_MAX_RETRIES=0",
	}, env...)
	r := New(Options{Command: claude(t), Home: home, Env: env})
	t.Cleanup(r.Close)
	return &rig{Runner: r, api: api, home: home}
}

func spec(t *testing.T, prompt string) Spec {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return Spec{RunID: uuid.NewString(), SessionID: uuid.NewString(), Dir: dir, Prompt: prompt, Timeout: time.Minute}
}

func TestRun_AnswersAndResumes(t *testing.T) {
	r := newRig(t)
	s := spec(t, "the first line")
	var p Process
	res, err := r.Run(t.Context(), s, func(q Process) error { p = q; return nil })
	require.NoError(t, err)
	require.Equal(t, "I am a stand-in for the model: nobody is signed in to claude here. You said: the first line", res.Text)
	require.Equal(t, s.SessionID, res.SessionID)
	require.NotEmpty(t, res.Model)
	require.Positive(t, res.CostUSD)
	require.Positive(t, res.Duration)
	require.Equal(t, 1, res.Turns)
	require.False(t, res.Resumed)
	require.Equal(t, s.RunID, p.RunID)
	require.False(t, Alive(p))

	s.Prompt, s.RunID = "[[recall]]", uuid.NewString()
	res, err = r.Run(t.Context(), s, nil)
	require.NoError(t, err)
	require.True(t, res.Resumed)
	require.Equal(t, "prompts: 2\n- the first line\n- [[recall]]", res.Text)
	log := r.api.Log()
	require.Len(t, log, 2)
	require.Equal(t, s.SessionID, log[1].Session)
	require.Equal(t, standin.Served, log[1].Outcome)
}
