package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/stack"
	"agentsmith/rules"
)

// O2, O3, P2: a question is answered, and nothing else happens.
func TestO3_AQuestionGetsAnAnswerOnly(t *testing.T) {
	t.Parallel()
	r := operators(t).room(t)
	root := r.say("ana", "@smith [[classify question]] [[say because of the cache]]")
	said := r.answer("smith", root)
	require.Equal(t, 1, len(r.asked("because of the cache")))
	require.NotContains(t, said.Text, "perator")
	r.settleRoom()
	require.Empty(t, r.sessionsOf(root))
	r.noTable(root)
	require.Len(t, r.posts(root), 1)
}

// O3, O4: work in no known repository is said to be so; naming one is all that it takes.
func TestO4_WorkStartsOnceItsRepositoryIsNamed(t *testing.T) {
	t.Parallel()
	r := operators(t).room(t)
	root := r.say("ana", "@smith please fix the retry of uploads")
	require.Contains(t, r.answer("smith", root).Text, rules.EscapeText(rules.GapLine(rules.DispUnscoped, "")))
	require.Empty(t, r.sessionsOf(root), "one checkout is no default (O4)")
	r.noTable(root)
	other := r.say("ana", "@smith [[classify work retry-elsewhere we]] [[say hm]]")
	require.Contains(t, r.answer("smith", other).Text, rules.EscapeText(rules.GapLine(rules.DispUnscoped, "we")))
	require.Empty(t, r.sessionsOf(other), "a prefix is no name (O4)")

	next := r.reply("ana", root, "it is in web")
	require.Contains(t, r.answer("smith", next).Text, "was started for this in web.")
	op := r.operator(root)
	wait(t, "for its brief to hold the ask, not only the repository (O9)", func() (bool, string) {
		return len(r.prompts(op, "fix the retry of uploads")) > 0, fmt.Sprintf("%+v", r.prompts(op, ""))
	})
	r.stopOperator(root)
}

// O2, O3: where the classifier can't tell, nothing is started, and that is said.
func TestO2_AnOutageOfTheClassifierStartsNothing(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]string{
		"error": "error 400", "prose": "say it is work, surely", "hang": "hang", "unknown kind": `{"kind":"WORK","slug":"shouting","repo":"web"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := operators(t).room(t)
			root := r.say("ana", fmt.Sprintf("@smith [[classify %s]] [[say all the same]]", how))
			said := r.answer("smith", root)
			require.Contains(t, said.Text, "all the same", "the line is answered (O3)")
			require.Contains(t, said.Text, rules.EscapeText(rules.GapLine(rules.DispUnavailable, rules.GapClassifier)))
			require.Empty(t, r.sessionsOf(root))
			r.noTable(root)
		})
	}
}

// O5: with the kill switch on, work is answered and nothing is asked or started.
func TestO5_TheKillSwitchStartsNothing(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith please fix the kill switch in web")
	require.NotContains(t, r.answer("smith", root).Text, "perator")
	require.Empty(t, r.asked("kill switch"), "the classifier is not asked")
}

// O3, O7: a name that a session of somebody else's has is not taken, and that is said.
func TestO7_AForeignSessionOfThatNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := operators(t)
	r := s.room(t)
	_, err := s.Tmux.Run(t.Context(), nil, "new-session", "-d", "-s", "op-taken", "sleep", "1000")
	require.NoError(t, err)
	root := r.say("ana", "@smith [[classify work taken web]] [[say all the same]]")
	said := r.answer("smith", root)
	require.Contains(t, said.Text, "all the same")
	require.Contains(t, said.Text, rules.EscapeText(rules.GapLine(rules.DispUnbound, rules.GapTaken)))
	require.Empty(t, r.sessionsOf(root))
	_, err = s.Tmux.Run(t.Context(), nil, "has-session", "-t", "=op-taken")
	require.NoError(t, err, "it lives on")

	// The `=` of O7: a session whose name only begins so is another one.
	near := r.say("ana", "@smith [[classify work take web]] [[say go]]")
	require.Contains(t, r.answer("smith", near).Text, "op-take was started for this in web.")
	r.stopOperator(near)
	_, err = s.Tmux.Run(t.Context(), nil, "kill-session", "-t", "=op-taken")
	require.NoError(t, err)
	next := r.reply("ana", root, "@smith [[classify work taken web]] [[say once more]]")
	require.Contains(t, r.answer("smith", next).Text, "op-taken was started for this in web.", "a gap is not for ever (O8)")
	r.stopOperator(root)
}

// withAccess says who may talk, and whose lines may start an operator.
func withAccess(talk, spawn any) settings {
	return withConfig(map[string]any{"access": map[string]any{"talk": talk, "spawn_allowed": spawn}})
}

// user is the id of a person of the default world.
func user(letters string) string { return "U0" + (letters + "00000000")[:8] + "1" }

// X1, O3: only those whom the config lists start an operator; the others are answered with
// a line that says so, and outsiders are declined before any work.
func TestX1_WhoMayStartAnOperator(t *testing.T) {
	t.Parallel()
	s := shared(t, "operators of ana", withOperators(), withShortIdle(),
		withAccess([]string{user("ANA"), user("BEN"), user("GIL")}, []string{user("ANA")}))
	for _, who := range []string{"ben", "gil", "olga"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			r := s.room(t, "gil", "olga")
			root := r.say(who, "@smith [[classify work of-"+who+" web]] [[say all the same]] [[terminal]] [[say at work]]")
			said := r.answer("smith", root)
			if who == "olga" {
				require.Equal(t, told(rules.ReasonOutsider), said.Text)
				require.Empty(t, r.asked("of-olga"), "declined before any work")
				return
			}
			require.Contains(t, said.Text, "all the same")
			require.Contains(t, said.Text, rules.EscapeText(rules.GapLine(rules.DispUnbound, rules.GapNotAllowed)))
			require.Empty(t, r.sessionsOf(root))
			r.noTable(root)

			next := r.reply("ana", root, "@smith [[classify work of-"+who+" web]] [[say go]] [[terminal]] [[say at work]]")
			require.Contains(t, r.answer("smith", next).Text, "was started for this in web.", "who may can")
			r.word(r.operator(root), "at work")
			r.stopOperator(root)
		})
	}
}

// X1: nobody is nobody.
func TestX1_NobodyMayStartAnOperator(t *testing.T) {
	t.Parallel()
	r := shared(t, "operators of nobody", withOperators(), withAccess("members", "nobody")).room(t)
	root := r.say("ana", "@smith please fix the login page in web")
	require.Contains(t, r.answer("smith", root).Text, rules.EscapeText(rules.GapLine(rules.DispUnbound, rules.GapNotAllowed)))
	require.Empty(t, r.sessionsOf(root))
}

// withShortIdle ends brains soon, so that the next line of a thread begins a new run.
func withShortIdle() settings {
	return func(o *stack.Options) { o.Config["idle_after"] = "1s" }
}

// O3, O7: a new run of a thread's brain finds its operator by asking for it, and says so.
func TestO7_ANewRunFindsTheThreadsOperator(t *testing.T) {
	t.Parallel()
	s := shared(t, "operators of ana", withOperators(), withShortIdle(),
		withAccess([]string{user("ANA"), user("BEN"), user("GIL")}, []string{user("ANA")}))
	r := s.room(t)
	root := r.say("ana", "@smith [[classify work found-again web]] [[say go]] [[terminal]] [[say at work]]")
	r.answer("smith", root)
	op := r.operator(root)
	r.word(op, "at work")
	s.brainEnds(t, r.brain("smith", root))
	next := r.reply("ben", root, "@smith [[classify work another-name web]] [[say it goes on]] [[terminal]] [[say ben was heard]]")
	said := r.answer("smith", next)
	require.Regexp(t, `Operator #\d+ op-found-again works on this in web\.`, said.Text)
	r.word(op, "ben was heard")
	require.Equal(t, op.ID, r.operator(root).ID)
	require.Empty(t, s.asked("another-name"), "what runs is not classified")
	r.stopOperator(root)
}
