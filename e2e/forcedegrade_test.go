package e2e_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/slackbox"
	"agentsmith/internal/stack"
	"agentsmith/rules"
)

// forceTable keeps what was seen of each case in which a part of an ask is missing.
var forceTable = struct {
	sync.Mutex
	rows map[string]string
}{rows: map[string]string{}}

// saw notes a case as docs/agent-force.md has it, and holds the two together.
func saw(t *testing.T, name string, a asked) {
	t.Helper()
	row := fmt.Sprintf("| %s | %s | %d | %d |", name, strings.Join(a.drove, ", "), len(a.answers), len(a.improving))
	t.Log(row)
	forceTable.Lock()
	forceTable.rows[name] = row
	forceTable.Unlock()
	doc, err := os.ReadFile("../docs/agent-force.md")
	require.NoError(t, err)
	require.Contains(t, string(doc), row, "the table of docs/agent-force.md")
}

// dispatchAs posts a dispatch line as an app, for a driver.
func (r *room) dispatchAs(app, root, askTS, driver string) {
	r.t.Helper()
	var ana string
	for _, u := range r.Slack.State().Users {
		if u.Name == "ana" {
			ana = u.ID
		}
	}
	r.appSays(app, root, "<@"+driver+"> drives", slack.MsgOptionMetadata(slack.SlackMetadata{
		EventType: rules.PickEvent, EventPayload: map[string]any{"ask_ts": askTS, "asker": ana, "driver": driver},
	}))
}

// undispatched is a system whose dispatcher has no tokens: the cases post its lines.
func undispatched(t *testing.T) *system { return shared(t, "undispatched") }

// A3, A4: with the dispatcher down, or its line of no use, the seats pick by themselves.
func TestForceDegrade_TheDispatchersLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say   func(r *room, ts string)
		drove string
	}{
		"the dispatcher is down": {func(*room, string) {}, "smith"},
		"two dispatch lines: the first counts": {func(r *room, ts string) {
			r.dispatchAs("agent-force", ts, ts, r.botUser("trinity"))
			r.dispatchAs("agent-force", ts, ts, r.botUser("smith"))
		}, "trinity"},
		"it names a seat that nobody knows": {func(r *room, ts string) { r.dispatchAs("agent-force", ts, ts, "U0NOBODY001") }, "smith"},
		"another app forges it":             {func(r *room, ts string) { r.dispatchAs("trinity", ts, ts, r.botUser("trinity")) }, "smith"},
		"it is of another ask":              {func(r *room, ts string) { r.dispatchAs("agent-force", ts, "1600000000.000100", r.botUser("trinity")) }, "smith"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := undispatched(t).room(t, "agent-force")
			ts := r.ask("", "is it safe? [[say It is.]]")
			c.say(r, ts)
			a := r.done(ts)
			require.Equal(t, []string{c.drove}, a.drove)
			a.requireOneDriver(t)
			saw(t, name, a)
		})
	}
	require.Contains(t, undispatched(t).log("starter"), "the dispatcher idles")
}

// A2, A4: a driver that is not in the channel is not one, whoever named it.
func TestForceDegrade_ASeatOutsideTheChannel(t *testing.T) {
	t.Parallel()
	s := undispatched(t)
	name := fmt.Sprintf("room%d", rooms.Add(1))
	require.NoError(t, s.Slack.Add(slackbox.Seed{Channels: []slackbox.Channel{{Name: name, Members: []string{"ana", "smith", "agent-force"}}}}))
	r := &room{system: s, t: t, id: s.channelID(name)}
	ts := r.ask("", "trinity, is it safe? [[say It is.]]")
	r.dispatchAs("agent-force", ts, ts, r.botUser("trinity"))
	wait(t, "for the answer", func() (bool, string) {
		state, _ := r.lineState("smith", ts)
		return state.Ended(), string(state)
	})
	a := r.outcome(ts)
	require.Equal(t, []string{"smith"}, a.drove)
	a.requireOneDriver(t)
	saw(t, "it names a seat outside the channel", a)
}

func (s *system) channelID(name string) string {
	for _, c := range s.Slack.State().Channels {
		if c.Name == name {
			return c.ID
		}
	}
	return ""
}

// A4: what counts is Slack's clock: a line of 7.9 s is the pick, one of 8.1 s is none.
func TestForceDegrade_TheClockIsSlacks(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, c := range []struct {
		name  string
		after time.Duration
		drove string
	}{
		{"a dispatch line of 7.9 s", 7900 * time.Millisecond, "trinity"},
		{"a dispatch line of 8.1 s", 8100 * time.Millisecond, "smith"},
	} {
		r := s.room(t, "agent-force")
		ts := r.ask("", "is it safe? [[say It is.]]")
		require.NoError(t, s.Slack.Advance(rules.TSTime(ts).Add(c.after).Sub(s.Slack.Now())))
		r.dispatchAs("agent-force", ts, ts, r.botUser("trinity"))
		a := r.done(ts)
		require.Equal(t, []string{c.drove}, a.drove, c.name)
		a.requireOneDriver(t)
		saw(t, c.name, a)
	}
}

// A1-A5 while Slack asks to wait on every call.
func TestForceDegrade_SlackAsksToWait(t *testing.T) {
	t.Parallel()
	r := force(t)
	for _, app := range []string{"smith", "trinity", "agent-force"} {
		r.fault(t, slackbox.Fault{Kind: slackbox.RateLimited, App: app, Channel: r.id, RetryAfter: 1, Count: 4})
	}
	ts := r.ask("", "is it safe? [[say It is.]] [[adds]] [[say Mostly.]]")
	a := r.done(ts)
	a.requireOneDriver(t)
	require.Len(t, a.dispatched, 1)
	saw(t, "Slack answers 429 to every call for a while", a)
}

// A2: who is in the channel is read to its last page.
func TestForceDegrade_AChannelOfMoreThanAThousand(t *testing.T) {
	t.Parallel()
	s := shared(t, "force", withDispatcher())
	var users []slackbox.User
	members := []string{"ana", "agent-force"}
	for i := range 1100 {
		users = append(users, slackbox.User{Name: fmt.Sprintf("crowd%d", i), RealName: "Crowd"})
		members = append(members, users[i].Name)
	}
	name := fmt.Sprintf("room%d", rooms.Add(1))
	require.NoError(t, s.Slack.Add(slackbox.Seed{Users: users, Channels: []slackbox.Channel{{Name: name, Members: append(members, "smith", "trinity")}}}))
	r := &room{system: s, t: t, id: s.channelID(name)}
	ts := r.ask("", "trinity, is it safe? [[say It is.]]")
	a := r.done(ts)
	require.Equal(t, []string{"trinity"}, a.drove)
	a.requireOneDriver(t)
	saw(t, "the channel has 1,100 members", a)
}

// A2: the sticker and the thread's driver are read from Slack, and what is out of the
// channel is passed over.
func TestForce_StickersAndAreas(t *testing.T) {
	t.Parallel()
	s := start(t, withDispatcher(), func(o *stack.Options) {
		o.Area = map[string][]string{"trinity": {"ben"}}
		o.Stickers = map[string]string{"trinity": "mag"}
	})
	r := s.room(t, "agent-force")
	ts := r.reply("ben", "", "@agent-force is it safe? [[say It is.]]")
	a := r.done(ts)
	require.Equal(t, []string{"trinity"}, a.drove, "ben is of its area")
	root := r.say("ana", "a thread of its own")
	r.react("ana", root, "mag")
	ts = r.ask(root, "is it safe? [[say It is.]]")
	a = r.done(ts)
	require.Equal(t, []string{"trinity"}, a.drove, "its sticker stands on the root")
	a.requireOneDriver(t)
}

// A7, D2: seats and dispatcher that thank each other start nothing.
func TestForce_BotsDoNotLoop(t *testing.T) {
	t.Parallel()
	r := force(t)
	root := r.say("ana", "a thread of its own")
	everyone := "<@" + r.botUser("smith") + "> <@" + r.botUser("trinity") + "> <@" + r.botUser("agent-force") + "> thanks"
	for range 20 {
		for _, app := range []string{"smith", "trinity", "agent-force"} {
			r.appSays(app, root, everyone)
		}
	}
	r.recorded()
	next := r.reply("ana", root, "@smith [[say after all]]")
	r.answer("smith", next)
	require.Empty(t, slices.DeleteFunc(r.texts(), func(s string) bool {
		return strings.Contains(s, "thanks") || strings.Contains(s, "after all")
	}), "no dispatch line and no answer")
	for _, e := range r.Model.Log() {
		if strings.Contains(e.User, r.id) {
			require.Contains(t, lead(e), next, "one turn: ana's")
		}
	}
}

// A3, A6: whoever dies at whatever point of an ask, it has one dispatch line, one driver and
// one answer.
func TestKillForce(t *testing.T) {
	t.Parallel()
	s := start(t, withDispatcher())
	for _, p := range []struct {
		failpoint.Point
		victim
	}{
		{failpoint.ForcePicking, theStarter}, {failpoint.ForceDispatched, theWorker}, {failpoint.ForceClaimed, theWorker},
		{failpoint.ForceFinal, theWorker}, {failpoint.ForceClaimed, theTemporal}, {failpoint.ForceDispatched, theStarter},
	} {
		if os.Getenv("SMITH_KILL") != "full" && p.victim != theWorker {
			continue
		}
		t.Run(fmt.Sprintf("%s/%s", p.Point, p.victim), func(t *testing.T) {
			r := s.room(t, "agent-force")
			s.arm(t, p.Point)
			ts := r.ask("", "trinity, is it safe? [[say It is.]] [[adds]] [[say Mostly.]]")
			s.hit(t, p.Point)
			s.kill(t, r, ts, p.victim)
			switch p.victim {
			case theWorker:
				s.restartWorker(t)
			case theStarter:
				s.restartStarter(t)
			case theTemporal:
				s.letGo(t, p.Point)
				s.restartTemporal(t)
			}
			if p.victim == theStarter {
				s.takeEnvelopes()
			}
			a := r.done(ts)
			a.requireOneDriver(t)
			require.Len(t, a.dispatched, 1, "%+v", a)
			require.Len(t, a.answers, 1)
		})
	}
}
