package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/standin"
	"agentsmith/internal/tools"
)

// rig is a runner of the real CLI that talks to a stand-in.
type rig struct {
	*Runner
	api  *standin.Server
	home string
}

func newRig(t *testing.T, env ...string) *rig {
	t.Helper()
	return newRigWith(t, standin.Options{}, env...)
}

func newRigWith(t *testing.T, o standin.Options, env ...string) *rig {
	t.Helper()
	api, err := standin.Start(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = api.Close() })
	home := t.TempDir()
	all := []string{"ANTHROPIC_API_KEY=sk-ant-of-the-test", "CLAUDE_CODE_MAX_RETRIES=0"}
	for _, kv := range append(env, "PATH="+os.Getenv("PATH"), "ANTHROPIC_BASE_URL="+api.URL()) {
		name, value, _ := strings.Cut(kv, "=")
		all = set(all, name, value)
	}
	command, err := tools.Claude() // missing, it fails: nothing else can check the shapes relied on
	require.NoError(t, err)
	r := New(Options{Command: command, Home: home, Env: all})
	t.Cleanup(r.Close)
	return &rig{Runner: r, api: api, home: home}
}

func spec(t *testing.T, prompt string) Spec {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return Spec{RunID: uuid.NewString(), SessionID: uuid.NewString(), Dir: dir, Prompt: prompt, Timeout: time.Minute}
}

// plainly runs a spec that must succeed.
func (r *rig) plainly(t *testing.T, s Spec) Result {
	t.Helper()
	res, err := r.Run(t.Context(), s, nil)
	require.NoError(t, err)
	return res
}

func TestContract_AnswersAndResumes(t *testing.T) {
	t.Parallel()
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
	res = r.plainly(t, s)
	require.True(t, res.Resumed)
	require.Equal(t, "prompts: 2\n- the first line\n- [[recall]]", res.Text)
	log := r.api.Log()
	require.Len(t, log, 2, "one request a turn, and none that the CLI made for itself")
	require.Equal(t, s.SessionID, log[1].Session)
	require.Equal(t, standin.Served, log[1].Outcome)
	require.Zero(t, r.api.Background())
}

func TestContract_UsesOnlyTheToolsItIsAllowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, `[[tool Bash {"command":"echo run $SMITH_RUN in $PWD"}]] [[result]]`)
	s.AllowedTools = []string{"Read", "Bash"}
	res := r.plainly(t, s)
	require.Equal(t, "run "+s.RunID+" in "+s.Dir, res.Text, "a tool runs in the directory and carries the marker")
	require.Equal(t, 2, res.Turns)

	s = spec(t, `[[tool Bash {"command":"touch made"}]] [[result]]`)
	s.AllowedTools = []string{"Read"}
	r.plainly(t, s)
	require.NoFileExists(t, filepath.Join(s.Dir, "made"))
}

func TestContract_WritesAFileWhereItIsAllowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, `[[file notes.txt two words]]`)
	s.AllowedTools = []string{"Write"}
	r.plainly(t, s)
	got, err := os.ReadFile(filepath.Join(s.Dir, "notes.txt"))
	require.NoError(t, err)
	require.Equal(t, "two words", string(got))
}

func TestContract_PassesModelAndSystemPrompt(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 16)
	r := newRigWith(t, standin.Options{Dump: func(_ string, b []byte) { bodies <- string(b) }})
	s := spec(t, "hello")
	s.Model = "claude-haiku-4-5"
	s.SystemPrompt = "--be brief, \"says\" the seat"
	s.AddDirs = []string{t.TempDir()}
	s.DisallowedTools = []string{"WebFetch", "Bash(rm *)"}
	res := r.plainly(t, s)
	require.Equal(t, "claude-haiku-4-5", res.Model)
	body := <-bodies
	require.Contains(t, body, `--be brief, \"says\" the seat`)
	require.NotContains(t, body, `"name":"WebFetch"`)
}

func TestContract_GivesALongAnswerWhole(t *testing.T) {
	t.Parallel()
	res := newRig(t).plainly(t, spec(t, "[[long 90000]]"))
	require.Len(t, res.Text, 90000)
	require.Contains(t, res.Text, "\nrow 02000 ")
}

func TestContract_TellsTheServicesErrorsApart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		prompt                string
		status                int
		limited, loaded, auth bool
	}{
		{"[[ratelimit]]", 429, true, false, false},
		{"[[error 529]]", 529, false, true, false},
		{"[[error 401]]", 401, false, false, true},
		{"[[error 500]]", 500, false, false, false},
		{"[[say half]] [[drop]]", 0, false, false, false},
	} {
		t.Run(tc.prompt, func(t *testing.T) {
			t.Parallel()
			_, err := newRig(t).Run(t.Context(), spec(t, tc.prompt), nil)
			var api *APIError
			require.ErrorAs(t, err, &api)
			require.Equal(t, tc.status, api.Status)
			require.NotEmpty(t, api.Message)
			require.Equal(t, tc.limited, api.RateLimited())
			require.Equal(t, tc.loaded, api.Overloaded())
			require.Equal(t, tc.auth, api.Auth())
		})
	}
}

func TestContract_KnowsAnErrorThatOutlastedTheRetries(t *testing.T) {
	t.Parallel()
	r := newRig(t, "CLAUDE_CODE_MAX_RETRIES=2")
	_, err := r.Run(t.Context(), spec(t, "[[error 529]]"), nil)
	var api *APIError
	require.ErrorAs(t, err, &api)
	require.True(t, api.Overloaded(), "the CLI's result has no status then: it is taken from its last retry")
	require.Len(t, r.api.Log(), 3)
}

func TestContract_SaysThatNobodyIsSignedIn(t *testing.T) {
	t.Parallel()
	r := newRig(t, "ANTHROPIC_API_KEY=")
	_, err := r.Run(t.Context(), spec(t, "hello"), nil)
	var api *APIError
	require.ErrorAs(t, err, &api)
	require.True(t, api.Auth())

	require.False(t, SignedIn(r.command, r.home, r.env))
	require.True(t, SignedIn(r.command, r.home, set(r.env, "ANTHROPIC_API_KEY", "sk-ant-some")))
	require.False(t, SignedIn("/no/such/claude", r.home, r.env))
}

func TestContract_TakesAnyPromptAsALine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 40_000) + "end"
	for name, tc := range map[string]struct{ prompt, seen string }{
		"a flag":        {"--help me", "--help me"},
		"a command":     {"/cost", "/cost"},
		"a shell line":  {"!touch made", "!touch made"},
		"200 KB":        {long, long},
		"broken":        {"a\x00b\x1b[31mc\xffd\r", "ab[31mc\uFFFDd"},
		"right to left": {"\u202eabc", "\u202eabc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := spec(t, tc.prompt)
			r.plainly(t, s)
			log := r.api.Log()
			require.Len(t, log, 1, "the line reaches the model, once")
			require.Equal(t, tc.seen, log[0].Section)
			require.NoFileExists(t, filepath.Join(s.Dir, "made"))
		})
	}
}

func TestContract_ReadsNoFileThatALineNames(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 16)
	r := newRigWith(t, standin.Options{Dump: func(_ string, b []byte) { bodies <- string(b) }})
	s := spec(t, "")
	secret := filepath.Join(s.Dir, "secret.txt")
	require.NoError(t, os.WriteFile(secret, []byte("the hidden words"), 0o600))
	s.Prompt = "look at @" + secret + " please"
	r.plainly(t, s)
	require.NotContains(t, <-bodies, "the hidden words")
}

func TestContract_TakesNoSettingsFromTheDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := spec(t, `[[tool Bash {"command":"touch made"}]] [[result]]`)
	settings := `{"permissions":{"allow":["Bash"]},"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"touch ` + s.Dir + `/hooked"}]}]}}`
	require.NoError(t, os.Mkdir(filepath.Join(s.Dir, ".claude"), 0o700))
	for _, name := range []string{"settings.json", "settings.local.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(s.Dir, ".claude", name), []byte(settings), 0o600))
	}
	r.plainly(t, s)
	require.NoFileExists(t, filepath.Join(s.Dir, "made"), "an agent could give itself permissions for its next turn")
	require.NoFileExists(t, filepath.Join(s.Dir, "hooked"))
}

func TestContract_GivesTheAgentNoTokenOfOurs(t *testing.T) {
	t.Parallel()
	tokens := []string{
		"SLACK_TOKEN=hidden-1", "SMITH_BOT_TOKEN=hidden-2", "TRINITY_APP_TOKEN=hidden-3",
		"TEMPORAL_API_KEY=hidden-4", "TEMPORAL_TLS_KEY=hidden-5", "OTHER=xoxb-hidden-6", "UNASKED=hidden-7",
	}
	pass := []string{"ANTHROPIC_API_KEY", "SLACK_TOKEN", "SMITH_BOT_TOKEN", "TRINITY_APP_TOKEN", "TEMPORAL_API_KEY", "TEMPORAL_TLS_KEY", "OTHER"}
	r := newRig(t, BuildEnv(append(tokens, "ANTHROPIC_API_KEY=sk-ant-the-key"), pass, "/home")...)
	s := spec(t, `[[tool Bash {"command":"env"}]] [[result]]`)
	s.AllowedTools = []string{"Bash"}
	var environ string
	res, err := r.Run(t.Context(), s, func(p Process) error {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID))
		environ = string(b)
		return err
	})
	require.NoError(t, err)
	require.Contains(t, environ, "SMITH_RUN="+s.RunID)
	require.Contains(t, environ, "ANTHROPIC_API_KEY=sk-ant-the-key")
	require.NotContains(t, environ, "hidden")
	require.NotContains(t, res.Text, "hidden")
	require.NotContains(t, res.Text, "sk-ant-the-key", "what the agent was given is taken out of what it says")
}
