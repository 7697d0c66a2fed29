package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/githubbox"
)

// O1-O10, P1-P3, R11: a line that asks for work gets its operator and is answered all the
// same; the operator works, its words and its phases are in the thread, and when its pull
// request is merged the thread is free for another.
func TestO10_FromALineToAMergedPullRequest(t *testing.T) {
	t.Parallel()
	s := operators(t)
	r := s.room(t)
	root := r.say("ana", "@smith [[classify work login-page web]] [[say it is handed on]] [[terminal]] "+
		"[[file login.txt fixed]] [[commit Fix the login page]] [[say the login page is fixed]]")
	said := r.answer("smith", root)
	require.Contains(t, said.Text, "it is handed on")
	require.Regexp(t, `Operator #\d+ op-login-page was started for this in web\.`, said.Text)
	op := r.operator(root)
	require.Equal(t, "op-login-page", op.Name)

	word := r.word(op, "the login page is fixed")
	require.Equal(t, root, word.ThreadTS)
	require.Equal(t, "Fix the login page", git(t, op.Worktree, "log", "-1", "--format=%s", "smith/login-page"))
	require.Equal(t, "begin", git(t, op.Worktree, "log", "-1", "--format=%s", "main"), "on a branch of its own (O9)")
	table := r.phases(root, "● ask", "● classified: work", "● repo: `web`", "◐ session: works",
		"● branch: `smith/login-page`", "● commits: 1 commit", "○ pull request", "○ checks", "○ review", "○ merged")

	const repo = "example/web"
	sha := git(t, op.Worktree, "rev-parse", "HEAD")
	pull, err := s.GitHub.OpenPull(githubbox.Pull{Repo: repo, Branch: "smith/login-page", SHA: sha, Title: "Fix the login page"})
	require.NoError(t, err)
	r.phases(root, "○ checks")
	require.NoError(t, s.GitHub.SetCheck(repo, sha, githubbox.CheckRun{Name: "tests", Status: "in_progress"}))
	r.phases(root, "◐ checks: running")
	require.NoError(t, s.GitHub.SetCheck(repo, sha, githubbox.CheckRun{Name: "tests", Status: "completed", Conclusion: "success"}))
	r.phases(root, "● checks: passed")
	require.NoError(t, s.GitHub.Review(repo, pull, githubbox.Review{State: "APPROVED"}))
	r.phases(root, "● review: approved", "○ merged")
	require.NoError(t, s.GitHub.Merge(repo, pull))
	r.word(op, "op-login-page is done: #")
	r.operatorGone(root)
	last := r.phases(root, "● merged")
	require.Equal(t, table.TS, last.TS, "the same message, edited in place (P3)")
	require.Equal(t, 1, r.saidTimes(op, "the login page is fixed"))
	require.Equal(t, 1, r.saidTimes(op, "is done: #"))

	next := r.reply("ana", root, "@smith [[classify work footer web]] [[say another one]] [[terminal]] [[say the footer is written]]")
	require.Contains(t, r.answer("smith", next).Text, "op-footer was started for this in web.")
	second := r.operator(root)
	require.NotEqual(t, op.ID, second.ID)
	r.word(second, "the footer is written")
	r.stopOperator(root)
}

// O11, R10, R11: people's lines of a thread reach its operator once each, in order, and so
// do its words the thread; a stop ends it, and is said once.
func TestO11_AThreadAndItsOperatorTalk(t *testing.T) {
	t.Parallel()
	s := operators(t)
	r := s.room(t)
	root := r.say("ana", "@smith [[classify work talking web]] [[say handed on]] [[terminal]] [[say the first word]]")
	r.answer("smith", root)
	op := r.operator(root)
	r.word(op, "the first word")
	for _, line := range []struct{ who, text, word string }{
		{"ana", "[[abstain]] [[terminal]] [[say the second word]]", "the second word"},
		{"ben", "@smith [[say I pass it on]] [[terminal]] [[say the third word]]", "the third word"},
	} {
		r.reply(line.who, root, line.text)
		r.word(op, line.word)
		require.Len(t, s.prompts(op, line.word), 1, "typed once")
	}
	require.Contains(t, s.prompts(op, "the third word")[0].User, "Line from ben in Slack: ", "it knows who wrote it")
	require.Equal(t, op.ID, r.operator(root).ID, "it is the same session")
	require.Empty(t, s.asked("the second word"), "a thread with an operator is not classified (O2)")

	require.Regexp(t, `^Stopped operator #\d+ op-talking\.`, r.stopOperator(root))
	var said []string
	for _, m := range r.words(op) {
		said = append(said, m.Text)
	}
	require.Len(t, said, 3, "each word once, nothing of its end besides the stop's line")
	for i, want := range []string{"the first word", "the second word", "the third word"} {
		require.Contains(t, said[i], want)
	}
	again := r.reply("ana", root, "@smith [[say nobody works here]]")
	require.NotContains(t, r.answer("smith", again).Text, "perator")
}

// X5: with a stack that stops, its tmux server and the agents in it end, though operators
// were at work.
func TestX5_NoOperatorOutlivesItsStack(t *testing.T) {
	t.Parallel()
	s, err := begin(t.TempDir(), withOperators())
	require.NoError(t, err)
	r := &room{system: s, t: t, id: s.general()}
	root := r.say("ana", "@smith [[classify work long-haul web]] [[say go]] [[terminal]] [[say at work]] [[hang]]")
	r.answer("smith", root)
	op := r.operator(root)
	require.False(t, zombie(fmt.Sprintf("/proc/%d", op.PanePID)), "its agent lives")
	s.settle(t)
	require.Empty(t, s.close(), "nothing is left behind")
	require.True(t, zombie(fmt.Sprintf("/proc/%d", op.PanePID)), "its agent is gone")
}

// general is the channel that everybody is in.
func (s *system) general() string {
	for _, c := range s.Slack.State().Channels {
		if c.Name == "general" {
			return c.ID
		}
	}
	return ""
}
