package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/stack"
	"agentsmith/internal/standin"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// checkout makes a git checkout with one commit, whose origin is named as on GitHub.
func checkout(dir, name string) (path string, err error) {
	path = filepath.Join(dir, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"config", "user.email", "ana@example.com"}, {"config", "user.name", "ana"},
		{"commit", "-q", "--allow-empty", "-m", "begin"},
		{"remote", "add", "origin", "git@github.com:example/" + name + ".git"},
	} {
		if out, err := exec.Command("git", append([]string{"-C", path}, args...)...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	return path, nil
}

// withOperators lets threads get operators that work in a checkout named web.
func withOperators() settings {
	return func(o *stack.Options) {
		web, err := checkout(filepath.Join(o.Dir, "checkouts"), "web")
		if err != nil {
			panic(err)
		}
		o.Seats = []string{"smith"}
		o.Operators = &stack.Operators{Checkouts: []string{web}, Config: map[string]any{"skip_permissions": true, "limit": 40}}
	}
}

// operators is the system for cases that need operators and nothing else special.
func operators(t *testing.T) *system { return shared(t, "operators", withOperators()) }

// sessionsOf are the sessions that tmux has for a thread.
func (r *room) sessionsOf(root string) []terminal.Live {
	r.t.Helper()
	all, err := r.Tmux.Sessions(r.t.Context())
	require.NoError(r.t, err)
	return slices.DeleteFunc(all, func(l terminal.Live) bool { return l.Thread.Channel != r.id || l.Thread.Root != root })
}

// operator waits until a thread has its operator, and makes sure that it has one only.
func (r *room) operator(root string) terminal.Live {
	r.t.Helper()
	var live []terminal.Live
	wait(r.t, "for the operator of "+root, func() (bool, string) {
		live = r.sessionsOf(root)
		return len(live) > 0, strings.Join(r.texts(), " | ")
	})
	require.Len(r.t, live, 1, "one operator for a thread (O6, O7)")
	return live[0]
}

// operatorGone waits until tmux has no session for a thread.
func (r *room) operatorGone(root string) {
	r.t.Helper()
	wait(r.t, "for the end of the operator of "+root, func() (bool, string) {
		live := r.sessionsOf(root)
		return len(live) == 0, fmt.Sprint(live)
	})
}

// words are what a session's agent, or Smith about it, said in the thread, in order.
func (r *room) words(op terminal.Live) []slackbox.LoggedMessage {
	return slices.DeleteFunc(r.posts(op.Thread.Root), func(m slackbox.LoggedMessage) bool {
		return !strings.HasPrefix(postID(m), "smith/"+r.id+"/"+op.ID+"/")
	})
}

// word waits for a word of a session that holds text, and returns it.
func (r *room) word(op terminal.Live, text string) slackbox.LoggedMessage {
	r.t.Helper()
	var found slackbox.LoggedMessage
	wait(r.t, fmt.Sprintf("for the word %q", text), func() (bool, string) {
		for _, m := range r.words(op) {
			if strings.Contains(m.Text, text) {
				found = m
				return true, ""
			}
		}
		return false, strings.Join(r.texts(), " | ")
	})
	return found
}

// said counts the words of a session that hold text.
func (r *room) saidTimes(op terminal.Live, text string) (n int) {
	for _, m := range r.words(op) {
		n += strings.Count(m.Text, text)
	}
	return n
}

// phases waits until the thread's table shows every row, and makes sure that it is one message (P3).
func (r *room) phases(root string, rows ...string) slackbox.LoggedMessage {
	r.t.Helper()
	var table slackbox.LoggedMessage
	wait(r.t, fmt.Sprintf("for the rows %q", rows), func() (bool, string) {
		table = slackbox.LoggedMessage{}
		for _, m := range r.posts(root) {
			if postID(m) == rules.PhasesID("smith", r.id, root) {
				require.Empty(r.t, table.TS, "the table is one message (P3)")
				table = m
			}
		}
		missing := slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return slices.Contains(strings.Split(table.Text, "\n"), row) })
		return table.TS != "" && len(missing) == 0, fmt.Sprintf("%q", table.Text)
	})
	return table
}

// noTable makes sure that a thread has no table (P2).
func (r *room) noTable(root string) {
	r.t.Helper()
	for _, m := range r.posts(root) {
		require.NotEqual(r.t, rules.PhasesID("smith", r.id, root), postID(m), m.Text)
	}
}

// asked are the classifier's requests that hold text.
func (s *system) asked(text string) []standin.Entry {
	return slices.DeleteFunc(s.Model.Forms(), func(e standin.Entry) bool { return !strings.Contains(e.Section, text) })
}

// prompts are the prompts of one session that hold text, as the model got them.
func (s *system) prompts(op terminal.Live, text string) []standin.Entry {
	return slices.DeleteFunc(s.Model.Log(), func(e standin.Entry) bool {
		return e.Session != op.ID || e.Step != 0 || !strings.Contains(e.User, text)
	})
}

// stopOperator ends the operator of a thread as a person does, and returns what is said of it.
func (r *room) stopOperator(root string) string {
	r.t.Helper()
	ts := r.reply("ana", root, "stop operator")
	said := r.post(rules.StopID("smith", r.id, ts)).Text
	r.operatorGone(root)
	return said
}

// brainEnds waits until the run of a brain has completed: the next line begins another.
func (s *system) brainEnds(t testing.TB, id string) {
	t.Helper()
	wait(t, "for the end of "+id, func() (bool, string) {
		d, err := s.temporalClient.DescribeWorkflow(t.Context(), id, "")
		return err == nil && d.Status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, fmt.Sprint(err)
	})
}

// git runs git in a worktree.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}
