package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// stayer puts an agent CLI into the rig that takes its brief and stays.
func (r *rig) stayer(t *testing.T) {
	t.Helper()
	r.program(t, "claude", `#!/bin/sh
mkdir -p "$SMITH_OUTBOX/$SMITH_SESSION/prompts"
env > "$SMITH_OUTBOX/$SMITH_SESSION/env"
: > "$SMITH_OUTBOX/$SMITH_SESSION/prompts/1.json"
exec sleep 1000
`)
}

func withStayer(t *testing.T, tags ...string) *rig {
	t.Helper()
	r := newRig(t, "", tags...)
	r.stayer(t)
	r.edit(t, "operators:\n", "agent: {command: "+filepath.Join(r.bin, "claude")+"}\noperators:\n")
	return r
}

func TestStartOperator_HelpSaysTheExitCodes(t *testing.T) {
	var out, errs strings.Builder
	require.Equal(t, 0, run(t.Context(), []string{"--help"}, strings.NewReader(""), &out, &errs))
	for _, line := range []string{"0  started", "2  the flags", "3  a session", "4  the repo", "5  tmux", "6  as many", "--check", "--repo"} {
		require.Contains(t, out.String(), line)
	}
	require.NotContains(t, out.String(), "run-session")
	require.Empty(t, errs.String())
}

func TestStartOperator_PrintsOneJSONObject(t *testing.T) {
	r := withStayer(t)
	s := r.call(t, "Mend it.", r.flags("foo", thread(1), "--check")...)
	require.Equal(t, said{0, `{"outcome":"none","this_thread":false}` + "\n", ""}, s)
	require.Empty(t, r.names(t), "--check starts nothing (O7)")
	require.NoDirExists(t, filepath.Join(r.dir, "data"))

	s = r.call(t, "Mend it.", r.flags("foo", thread(1), "--repo", "shop", "--asked", "1712345678.000100")...)
	require.Equal(t, 0, s.code, s.errs)
	a := s.answer(t)
	require.Equal(t, "started", a.Outcome)
	require.True(t, a.ThisThread)
	require.NoError(t, uuid.Validate(a.Operator.ID))
	require.Equal(t, "op-foo", a.Operator.Name)
	require.Equal(t, "smith/foo", a.Operator.Branch)
	require.Equal(t, thread(1), a.Operator.Thread)
	require.Equal(t, "tmux -S "+r.tmux.Socket+" attach -t '=op-foo'", a.Operator.Attach)

	for _, more := range [][]string{{"--check"}, {"--repo", "shop"}} {
		s = r.call(t, "Mend it.", r.flags("other-name", thread(1), more...)...)
		require.Equal(t, 3, s.code, s.errs)
		again := s.answer(t)
		require.Equal(t, "exists", again.Outcome)
		require.True(t, again.ThisThread, "to be taken up again, never started anew")
		require.Equal(t, a.Operator.ID, again.Operator.ID)
		require.Equal(t, "1712345678.000100", again.Operator.Asked, "what it was asked is the session's to know")

		s = r.call(t, "Mend it.", r.flags("foo", thread(2), more...)...)
		require.Equal(t, 3, s.code, s.errs)
		require.False(t, s.answer(t).ThisThread)
		require.Equal(t, "start-operator: session op-foo is another task's\n", s.errs)
	}
}

// Across processes: of many starts at once, of one slug or for one thread, one starts (O7).
func TestStartOperator_ManyProcessesMakeOneSession(t *testing.T) {
	r := withStayer(t)
	const many = 20
	codes := make(chan int, 2*many)
	for i := range many {
		go func() { codes <- r.call(t, "x", r.flags("foo", thread(i), "--repo", "shop")...).code }()
		go func() {
			codes <- r.call(t, "x", r.flags(rules.SuffixSlug("bar", thread(i).Root), thread(100), "--repo", "shop")...).code
		}()
	}
	count := map[int]int{}
	for range 2 * many {
		count[<-codes]++
	}
	require.Equal(t, map[int]int{0: 2, 3: 2*many - 2}, count)
	require.Len(t, r.names(t), 2)
}

// The sweep's question: foo while only foo-bar runs. Red without the "=" in Tmux.has (O7).
func TestStartOperator_CheckKnowsFooFromFooBar(t *testing.T) {
	r := withStayer(t)
	require.Equal(t, 0, r.call(t, "x", r.flags("foo-bar", thread(1), "--repo", "shop")...).code)
	require.Equal(t, 0, r.call(t, "", r.flags("foo", thread(2), "--check")...).code)
	require.Equal(t, 0, r.call(t, "x", r.flags("foo", thread(2), "--repo", "shop")...).code)
}

func TestStartOperator_RefusesWrongFlagsWithTwo(t *testing.T) {
	r := withStayer(t)
	for name, args := range map[string][]string{
		"no repo":          r.flags("foo", thread(1)),
		"empty repo":       r.flags("foo", thread(1), "--repo="),
		"slug leads out":   r.flags("../x", thread(1), "--repo", "shop"),
		"slug is a flag":   r.flags("-t", thread(1), "--repo", "shop"),
		"slug as a flag":   append(r.flags("foo", thread(1), "--repo", "shop"), "--slug=-t"),
		"slug has an end":  r.flags("foo\n", thread(1), "--repo", "shop"),
		"check, hostile":   r.flags("foo;x", thread(1), "--check"),
		"check, no thread": append(r.flags("foo", thread(1), "--check"), "--root="),
		"unknown seat":     append(r.flags("foo", thread(1), "--repo", "shop"), "--seat=trinity"),
		"unknown flag":     r.flags("foo", thread(1), "--repo", "shop", "--dangerously"),
		"no slug":          {"--config", r.config},
		"no config":        append(r.flags("foo", thread(1), "--repo", "shop"), "--config=/no/such"),
		"no brief":         r.flags("foo", thread(1), "--repo", "shop"),
		"no brief's file":  r.flags("foo", thread(1), "--repo", "shop", "--brief-file=/no/such"),
		"an argument":      append(r.flags("foo", thread(1), "--repo", "shop"), "more"),
		"inner, as a flag": {"run-session"},
	} {
		t.Run(name, func(t *testing.T) {
			s := r.call(t, "", args...)
			require.Equal(t, 2, s.code, s.errs)
			require.Empty(t, s.out)
			require.True(t, strings.HasPrefix(s.errs, "start-operator: "), s.errs)
		})
	}
	s := r.call(t, "x", r.flags("foo", thread(1), "--repo", "shop", "--asked", "x")...)
	require.Equal(t, said{2, "", "start-operator: \"x\" is no ts of a line\n"}, s)
	require.Empty(t, r.names(t))
}

func TestStartOperator_ExitsByWhatFailed(t *testing.T) {
	r := withStayer(t)
	require.Equal(t, 4, r.call(t, "x", r.flags("foo", thread(1), "--repo", "sho")...).code)
	r.operators(t, "limit: 1")
	require.Equal(t, 0, r.call(t, "x", r.flags("foo", thread(1), "--repo", "shop")...).code)
	require.Equal(t, 6, r.call(t, "x", r.flags("bar", thread(2), "--repo", "shop")...).code)
	r.program(t, "claude", "#!/bin/sh\nexit 1\n")
	r.operators(t, "model: opus")
	r.edit(t, "limit: 1", "limit: 2")
	s := r.call(t, "x", r.flags("bar", thread(2), "--repo", "shop")...)
	require.Equal(t, 5, s.code)
	require.Contains(t, s.errs, "the agent CLI ended as soon as it was started")
	require.Equal(t, []string{"op-foo"}, r.names(t))
}

// X3: of this process's environment the session gets what the config passes, no more.
func TestStartOperator_HandsOnNoSecret(t *testing.T) {
	r := withStayer(t)
	r.env = append(r.env, "ANTHROPIC_API_KEY=sk-ant-key", "TEMPORAL_API_KEY=xoxb-secret", "SMITH_GITHUB_TOKEN=xoxb-secret", "SHELLISH=xoxb-secret")
	s := r.call(t, "x", r.flags("foo", thread(1), "--repo", "shop")...)
	require.Equal(t, 0, s.code, s.errs)
	env := r.read(t, filepath.Join(r.dir, "data", "outbox", s.answer(t).Operator.ID, "env"))
	require.Contains(t, env, "ANTHROPIC_API_KEY=sk-ant-key\n")
	require.Contains(t, env, "HOME="+r.dir+"/data/operators/home\n")
	require.NotContains(t, env, "xoxb-secret")
	require.NotContains(t, env, "TMUX")
}

func TestAnswerOf_AFailureSaysNothingThatCouldBeTakenForAnAnswer(t *testing.T) {
	_, ok := answerOf(terminal.Live{}, terminal.ErrLimit)
	require.False(t, ok)
}
