package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/stack"
	"agentsmith/internal/standin"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// withOwner is a system with operators, whose owner is ana: a stack's first person. Brains
// complete soon, so that words start new ones.
func withOwner() settings {
	return func(o *stack.Options) {
		withOperators()(o)
		o.Config["idle_after"] = "20s"
	}
}

// relayed is ana's DM with a seat, and the operator of a thread beside it.
type relayed struct {
	*room
	work *room
	op   terminal.Live
}

// relays is a conversation of ana's and an operator that can be talked to.
func relays(t *testing.T, s *system, slug string) *relayed {
	t.Helper()
	work := s.room(t)
	root := work.say("ana", "@smith [[classify work "+slug+" web]] [[say handed on]] [[terminal]] [[say at work]]")
	work.answer("smith", root)
	op := work.operator(root)
	work.word(op, "at work")
	id, err := s.Slack.Person("ana").DM("smith")
	require.NoError(t, err)
	return &relayed{room: &room{system: s, t: t, id: id}, work: work, op: op}
}

// inThread waits for a message of the seat in a thread of the DM that holds text.
func (r *relayed) inThread(root, text string) slackbox.LoggedMessage {
	r.t.Helper()
	var found slackbox.LoggedMessage
	wait(r.t, fmt.Sprintf("for %q under %s", text, root), func() (bool, string) {
		for _, m := range r.posts(root) {
			if strings.Contains(m.Text, text) {
				found = m
				return true, ""
			}
		}
		return false, strings.Join(r.texts(), " | ")
	})
	return found
}

// carried makes sure that a line went to the session once and that no brain answered it.
func (r *relayed) carried(ts, text string) {
	r.t.Helper()
	require.Len(r.t, r.prompts(r.op, text), 1, "typed once")
	require.Empty(r.t, r.brainRuns(ts), "no agent ran for it (R5)")
	for _, m := range r.posts(ts) {
		require.NotEqual(r.t, rules.TurnID("smith", r.id, ts), postID(m), "the brain posts nothing of its own: %s", m.Text)
	}
	r.excuses.add(r.id, ts, "carried by a relay")
}

// brainRuns are the runs of the brain's agent for a line.
func (r *relayed) brainRuns(ts string) []standin.Entry {
	return slices.DeleteFunc(r.runs(ts), func(e standin.Entry) bool { return e.Session == r.op.ID })
}

// The conversation of the source: work on it, go on, an update back, stop, thanks. One
// message has one answer (R1, R3, R5, R6, R11).
func TestRelay_AConversation(t *testing.T) {
	t.Parallel()
	s := start(t, withOwner())
	r := relays(t, s, "relayed")

	listed := r.say("ana", "sessions")
	require.Contains(t, r.inThread(listed, "op-relayed").Text, "Your lines here are mine")
	door := r.say("ana", "work on 1")
	require.Contains(t, r.inThread(door, "#1").Text, "Your lines here now go to #1 op-relayed in web")

	first := r.say("ana", "continue [[say the first update]]")
	m := r.inThread(first, "the first update")
	require.True(t, strings.HasPrefix(postID(m), "smith/"+r.work.id+"/"+r.op.ID+"/"), "it is the session's word: %s", postID(m))
	r.carried(first, "the first update")
	r.showed(first, "is passing this on to #1 op-relayed…")

	second := r.reply("ana", first, "go on [[say the second update]]")
	r.inThread(first, "the second update")
	r.carried(second, "the second update")

	mine := r.say("ana", "@smith [[say I am still here]]")
	require.Contains(t, r.answer("smith", mine).Text, "I am still here")
	require.Empty(t, r.prompts(r.op, "I am still here"), "a line for Smith is Smith's (R2)")

	listed = r.say("ana", "sessions")
	require.Contains(t, r.inThread(listed, "op-relayed").Text, "your lines go here")
	stop := r.say("ana", "stop")
	require.Contains(t, r.inThread(stop, "closed").Text, "The relay to #1 is closed")
	thanks := r.say("ana", "thanks [[say you are welcome]]")
	require.Contains(t, r.answer("smith", thanks).Text, "you are welcome")
	require.Empty(t, r.prompts(r.op, "you are welcome"), "a line after the stop is the brain's (R6)")

	require.NotEmpty(t, r.alive(r.op), "the session goes on")
}

// alive are the sessions of an identity that run.
func (r *relayed) alive(op terminal.Live) []terminal.Live {
	all, err := r.Tmux.Sessions(r.t.Context())
	require.NoError(r.t, err)
	return slices.DeleteFunc(all, func(l terminal.Live) bool { return l.ID != op.ID })
}

// showed makes sure that a thread's status was text, and is nothing now.
func (r *relayed) showed(root, text string) {
	r.t.Helper()
	wait(r.t, fmt.Sprintf("for the status %q and its end", text), func() (bool, string) {
		var got []string
		for _, st := range r.Slack.Log(0).Statuses {
			if st.ThreadTS == root {
				got = append(got, st.Status)
			}
		}
		return len(got) > 1 && got[0] == text && got[len(got)-1] == "", fmt.Sprintf("%q", got)
	})
}
