package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/standin"
)

const formSchema = `{"type":"object","additionalProperties":false,"required":["kind"],"properties":{
 "kind":{"type":"string","enum":["work","question"]},"slug":{"type":"string"},"repo":{"type":"string"}}}`

// form is a spec that asks for an answer in a form.
func form(t *testing.T, prompt string) Spec {
	t.Helper()
	s := spec(t, prompt)
	s.SessionID, s.Schema, s.SystemPrompt, s.Model = "", formSchema, "You classify.", "haiku"
	return s
}

func TestContract_AnswersInAForm(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 16)
	r := newRigWith(t, standin.Options{Dump: func(_ string, b []byte) { bodies <- string(b) }})
	s := form(t, "| fix the login")
	var p Process
	res, err := r.Run(t.Context(), s, func(q Process) error { p = q; return nil })
	require.NoError(t, err)
	require.JSONEq(t, `{"kind":"work","slug":"fix-login","repo":""}`, string(res.Structured))
	require.Contains(t, res.Model, "haiku")
	require.Positive(t, res.CostUSD)
	require.False(t, Alive(p))

	body := <-bodies
	require.Empty(t, bodies, "one request")
	require.Contains(t, body, `"text":"You classify."`)
	require.Less(t, len(body), 4000, "our words stand in the place of the CLI's own")
	require.NotContains(t, body, `"type":"enabled"`, "it does not think aloud")
	req, err := standin.ParseRequest([]byte(body))
	require.NoError(t, err)
	require.Equal(t, []string{standin.FormTool}, req.Tools, "it has no other tool")
	require.Empty(t, r.api.Log(), "it is no turn")

	kept, err := filepath.Glob(filepath.Join(r.home, ".claude", "projects", "*", "*"))
	require.NoError(t, err)
	require.Empty(t, kept, "nothing of it is kept")
}

func TestContract_TellsProseFromAForm(t *testing.T) {
	t.Parallel()
	for name, prompt := range map[string]string{
		"prose":             "[[classify say it is work]]",
		"a form in prose":   `[[classify say {"kind":"work"}]]`,
		"nothing":           "[[classify say]]",
		"prose with a mark": "[[classify say <StructuredOutput>]]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newRig(t).Run(t.Context(), form(t, prompt), nil)
			require.ErrorIs(t, err, ErrUnreadable)
		})
	}
}

func TestContract_GivesUpOnAFormThatNeverFits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.Run(t.Context(), form(t, `[[classify {"kind":"dance"}]]`), nil)
	var exit *ExitError
	require.ErrorAs(t, err, &exit)
	require.Contains(t, exit.Stderr, "structured output")
	require.Len(t, r.api.Forms(), 5)
}

func TestContract_EndsAFormThatTakesTooLong(t *testing.T) {
	t.Parallel()
	s := form(t, "[[classify hang]]")
	s.Timeout = 1500 * time.Millisecond
	var p Process
	_, err := newRig(t).Run(t.Context(), s, func(q Process) error { p = q; return nil })
	require.ErrorIs(t, err, ErrTimeout)
	require.False(t, Alive(p))
}

func TestContract_TellsAServicesErrorFromAForm(t *testing.T) {
	t.Parallel()
	_, err := newRig(t).Run(t.Context(), form(t, "[[classify error 529]]"), nil)
	var api *APIError
	require.ErrorAs(t, err, &api)
	require.True(t, api.Overloaded())
}

func TestRun_TakesOnlyTheFormForAnAnswerInAForm(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line string
		want string
	}{
		"a form":       {`{"type":"result","subtype":"success","result":"x","structured_output":{"kind":"work"}}`, `{"kind":"work"}`},
		"a secret":     {`{"type":"result","subtype":"success","structured_output":{"kind":"sk-ant-abc"}}`, `{"kind":"[secret]"}`},
		"an empty one": {`{"type":"result","subtype":"success","structured_output":{}}`, `{}`},
		"no form":      {`{"type":"result","subtype":"success","result":"{\"kind\":\"work\"}"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := fake(t, "cat >/dev/null; cat <<'X'\n"+tc.line+"\nX").Run(t.Context(), form(t, "hello"), nil)
			if tc.want == "" {
				require.ErrorIs(t, err, ErrUnreadable)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, string(res.Structured))
		})
	}
}

func TestRun_AFormNeedsNoSessionButAProperSchema(t *testing.T) {
	t.Parallel()
	r := fake(t, "echo '"+result+"'")
	for name, change := range map[string]func(*Spec){
		"a broken schema":  func(s *Spec) { s.Schema = "{" },
		"a broken session": func(s *Spec) { s.SessionID = "x" },
	} {
		s := form(t, "hello")
		change(&s)
		_, err := r.Run(t.Context(), s, nil)
		require.ErrorContains(t, err, "run an agent", name)
		require.False(t, errors.Is(err, ErrUnreadable), name)
	}
}

// No record is kept of a form's process: it has no tools, so what dies with its supervisor
// is all there is.
func TestContract_AFormLeavesNothingBehindWhoeverDies(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"the worker", "both"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			cmd, p, _ := startWorker(t, r, form(t, "[[classify hang]]"))
			require.Eventually(t, func() bool { return len(r.api.Forms()) > 0 }, 30*time.Second, 5*time.Millisecond)
			supervisor := parent(t, p.PID)
			if who == "both" {
				require.NoError(t, syscall.Kill(supervisor, syscall.SIGSTOP)) // it must not see the worker die
			}
			at := time.Now()
			require.NoError(t, cmd.Process.Kill())
			if who == "both" {
				require.NoError(t, syscall.Kill(supervisor, syscall.SIGKILL))
			}
			requireGone(t, at, p, supervisor)
		})
	}
}

// A session of that name, whatever is in it, is neither read nor set aside.
func TestContract_AFormLeavesSessionsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := form(t, "| fix it")
	s.SessionID = uuid.NewString()
	r.plainly(t, s)
	s.RunID = uuid.NewString()
	r.plainly(t, s)
	found, err := transcripts{home: r.home}.find(s.SessionID)
	require.NoError(t, err)
	require.Empty(t, found)
	require.False(t, strings.Contains(listing(t, r.home), s.SessionID))
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	}))
	return strings.Join(all, "\n")
}
