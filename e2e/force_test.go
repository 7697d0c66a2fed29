package e2e_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/stack"
	"agentsmith/rules"
)

// withDispatcher runs both seats and the dispatcher.
func withDispatcher() settings { return func(o *stack.Options) { o.Dispatcher = true } }

// force is the system for cases of asks that need nothing special.
func force(t *testing.T) *room {
	t.Helper()
	return shared(t, "force", withDispatcher()).room(t, "agent-force")
}

// asked is what became of an ask, as Slack's log shows it.
type asked struct {
	dispatched []string // texts of the dispatch lines
	working    []string // the seats that ever posted a claim
	drove      []string // the seats whose answer is marked as the ask's
	answers    []string // texts of answers that stand, by the seats in order
	improving  []string // texts of what others added
	claimsLeft int
	failed     []string
}

// ask has ana ask everyone, under root or in a thread of its own.
func (r *room) ask(root, text string) string {
	r.t.Helper()
	return r.reply("ana", root, "@agent-force "+text)
}

// outcome reads what became of an ask.
func (r *room) outcome(ts string) (a asked) {
	for _, m := range r.Slack.Log(0).Messages {
		if m.Channel != r.id || m.App == "" {
			continue
		}
		line, err := rules.ParseMessage("T", r.id, messageJSON(r.t, m))
		require.NoError(r.t, err)
		mark, marked := rules.ReadForce(line)
		switch {
		case m.App == "agent-force" && strings.Contains(postID(m), ts) && !m.Deleted():
			a.dispatched = append(a.dispatched, m.Text)
		case marked && mark.AskTS == ts && mark.State == rules.ForceFinal && !m.Deleted():
			a.drove = append(a.drove, m.Name)
			a.answers = append(a.answers, m.Text)
		case marked && mark.AskTS == ts && mark.State == rules.ForceFailed && !m.Deleted():
			a.failed = append(a.failed, m.Name)
		case strings.HasSuffix(postID(m), ts+"/claim") || strings.HasSuffix(postID(m), ts+"/claim/cover"):
			a.working = append(a.working, m.Name)
			if !m.Deleted() {
				a.claimsLeft++
			}
		case postID(m) == rules.TurnID(m.Name, r.id, ts) && !m.Deleted():
			a.improving = append(a.improving, m.Name+": "+m.Text)
		}
	}
	return a
}

// done waits until every seat has an end for an ask.
func (r *room) done(ts string) asked {
	r.t.Helper()
	wait(r.t, "for the ends of "+ts, func() (bool, string) {
		var open []string
		for _, seat := range r.seatNames() {
			if state, _ := r.lineState(seat, ts); !state.Ended() {
				open = append(open, fmt.Sprint(seat, " ", state))
			}
		}
		return len(open) == 0, fmt.Sprint(open, " ", r.texts())
	})
	return r.outcome(ts)
}

// requireOneDriver is what holds in every case: one driver, at most one answer, at most one
// improving turn, no claim left (A5, A6).
func (a asked) requireOneDriver(t *testing.T) {
	t.Helper()
	require.Len(t, a.drove, 1, "%+v", a)
	require.LessOrEqual(t, len(a.dispatched), 1, "%+v", a)
	require.LessOrEqual(t, len(a.improving), 1, "%+v", a)
	require.Zero(t, a.claimsLeft, "%+v", a)
}

// A whole ask: one dispatch line, the picked seat answers, the other adds once (A1-A5).
func TestForce_TheDriverAnswersAndTheOtherAdds(t *testing.T) {
	t.Parallel()
	r := force(t)
	ts := r.ask("", "trinity, is it safe? [[say It is safe.]] [[adds]] [[say One risk is missing.]]")
	a := r.done(ts)
	a.requireOneDriver(t)
	require.Len(t, a.dispatched, 1)
	require.Equal(t, []string{"trinity"}, a.drove, "the question names it")
	require.Contains(t, a.answers[0], "It is safe.")
	require.Len(t, a.improving, 1)
	require.Contains(t, a.improving[0], "smith: One risk is missing.")
	for _, e := range r.runs(ts) {
		if strings.Contains(e.User, "You take one turn after it.") {
			require.Contains(t, e.User, "| It is safe.", "the answer is quoted")
		}
		require.NotContains(t, e.User, r.botUser("agent-force"), "the mention is stripped: %s", e.User)
	}

	next := r.reply("ana", ts, "and now? [[say Now too.]]")
	require.Contains(t, r.answer("trinity", next).Text, "Now too.", "one driver a thread for the rest of it")
	r.recorded()
	state, _ := r.lineState("smith", next)
	require.Equal(t, rules.Noted, state, "the other stays silent unless it is named")

	again := r.ask(ts, "once more? [[say Once more.]]")
	a = r.done(again)
	a.requireOneDriver(t)
	require.Equal(t, []string{"trinity"}, a.drove, "it drives the thread")
	require.Empty(t, a.improving, "the other abstained")
}

// messageJSON is a message as the API shows it.
func messageJSON(t *testing.T, m slackbox.LoggedMessage) []byte {
	t.Helper()
	raw, err := json.Marshal(m.Message)
	require.NoError(t, err)
	return raw
}

// lineState reads what became of a line for a seat.
func (r *room) lineState(seat, ts string) (state rules.State, reason rules.Reason) {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.Dir, "data", "smith.db")+"?mode=ro&_pragma=busy_timeout(5000)")
	require.NoError(r.t, err)
	defer func() { _ = db.Close() }()
	err = db.QueryRowContext(r.t.Context(), `SELECT state, reason FROM ledger WHERE seat = ? AND channel = ? AND ts = ?`, seat, r.id, ts).Scan(&state, &reason)
	if errors.Is(err, sql.ErrNoRows) {
		return "", ""
	}
	require.NoError(r.t, err)
	return state, reason
}
