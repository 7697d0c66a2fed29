package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/stack"
	"agentsmith/rules"
)

// machines are two of them: smith and the dispatcher on one, trinity on the other, with a
// HOME, a tmux socket, a store and a Temporal server of its own. Nothing but Slack is between
// them (A7). Trinity's app may not read users.
type machines struct{ one, other *system }

func twoMachines(t *testing.T) machines {
	t.Helper()
	seed := slackbox.DefaultSeed()
	for i, a := range seed.Apps {
		if a.Name == "trinity" {
			for _, scope := range slackbox.SeatScopes() {
				if scope != "users:read" {
					seed.Apps[i].Scopes = append(seed.Apps[i].Scopes, scope)
				}
			}
		}
	}
	one := start(t, withSeats("smith"), withDispatcher(), func(o *stack.Options) {
		o.Slack.Seed, o.Remote = &seed, []string{"trinity"}
	})
	home := t.TempDir()
	other := start(t, withSeats("trinity"), func(o *stack.Options) {
		o.Beside, o.Remote = one.Stack, []string{"smith"}
		o.Config["access"] = map[string]any{"talk": []string{one.userID("ana")}, "spawn_allowed": []string{one.userID("ana")}}
		o.Env = []string{"HOME=" + home, "AGENT_FORCE_USER_ID=" + one.botUser("agent-force")}
	})
	return machines{one, other}
}

func (s *system) userID(name string) string {
	for _, u := range s.Slack.State().Users {
		if u.Name == name {
			return u.ID
		}
	}
	return ""
}

// at is the same room, seen from another machine.
func (r *room) at(s *system) *room { return &room{system: s, t: r.t, id: r.id} }

func TestForce_TwoMachines(t *testing.T) {
	t.Parallel()
	m := twoMachines(t)
	r := m.one.room(t, "agent-force")
	require.NotEqual(t, m.one.Stack.Temporal.Address, m.other.Stack.Temporal.Address)
	require.NotEqual(t, filepath.Clean(m.one.Dir), filepath.Clean(m.other.Dir))

	ts := r.ask("", "trinity, is it safe? [[say It is.]] [[adds]] [[say Mostly.]]")
	a := r.done(ts)
	r.at(m.other).done(ts)
	a.requireOneDriver(t)
	require.Equal(t, []string{"trinity"}, a.drove)
	require.Len(t, a.improving, 1)
	require.True(t, strings.HasPrefix(a.improving[0], "smith: "), a.improving[0])
	saw(t, "a seat without users:read that is told who the dispatcher is", a)
	next := r.reply("ana", ts, "and now? [[say Now too.]]")
	require.Contains(t, r.answer("trinity", next).Text, "Now too.")
	r.recorded()
	state, _ := r.lineState("smith", next)
	require.Equal(t, rules.Noted, state, "smith stays silent, though the thread's driver is on another machine")

	// The picked seat is down: the other covers for it, once.
	require.NoError(t, m.other.Starter.Stop(40*time.Second))
	ts = r.ask("", "trinity, is it safe? [[say It is, says another.]]")
	a = r.done(ts)
	a.requireOneDriver(t)
	require.Equal(t, []string{"smith"}, a.drove)
	saw(t, "the picked seat is down", a)

	// Both are down, and come back.
	require.NoError(t, m.one.Starter.Stop(40*time.Second))
	both := r.ask("", "is it safe? [[say It is, after all.]]")
	m.one.restartStarter(t)
	m.other.restartStarter(t)
	m.one.takeEnvelopes()
	a = r.done(both)
	r.at(m.other).done(both)
	a = r.outcome(both)
	a.requireOneDriver(t)
	require.Len(t, a.answers, 1)
	saw(t, "both seats are down, then back", a)
	late, _ := r.at(m.other).lineState("trinity", ts)
	require.True(t, late.Ended(), "what was covered has its end on the other machine too: %s", late)

	// A seat that knows of no asks, as on older code: the mention means nothing to it.
	require.NoError(t, m.other.Starter.Stop(40*time.Second))
	m.other.Env = m.other.Env[:1]
	m.other.restartStarter(t)
	ts = r.ask("", "trinity, is it safe? [[say It is, says another.]]")
	a = r.done(ts)
	a.requireOneDriver(t)
	require.Equal(t, []string{"smith"}, a.drove)
	saw(t, "a seat that knows of no asks", a)
	state, _ = r.at(m.other).lineState("trinity", ts)
	require.Equal(t, rules.Noted, state)
}
