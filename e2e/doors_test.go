package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/slackbox"
	"agentsmith/internal/stack"
	"agentsmith/rules"
)

// as is an app's own client of the local Slack.
func (s *system) as(t testing.TB, app string) *slack.Client {
	t.Helper()
	for _, a := range s.Slack.State().Apps {
		if a.Name == app {
			return slack.New(a.BotToken, slack.OptionAPIURL(s.Slack.URL()))
		}
	}
	require.FailNow(t, "no app "+app)
	return nil
}

func (s *system) botUser(app string) string {
	for _, a := range s.Slack.State().Apps {
		if a.Name == app {
			return a.BotUser
		}
	}
	return ""
}

// appSays posts as an app and returns the ts.
func (r *room) appSays(app, root, text string, more ...slack.MsgOption) string {
	r.t.Helper()
	opts := append([]slack.MsgOption{slack.MsgOptionText(text, false)}, more...)
	if root != "" {
		opts = append(opts, slack.MsgOptionTS(root))
	}
	_, ts, err := r.as(r.t, app).PostMessage(r.id, opts...)
	require.NoError(r.t, err)
	return ts
}

// noneSince makes sure that nothing came of a line: what it would start comes before the
// answer to a later line of the same thread.
func (r *room) noneSince(ts, root string) {
	r.t.Helper()
	r.recorded()
	if root == "" {
		root = ts
	}
	next := r.reply("ana", root, "@smith [[say after all]]")
	r.answer("smith", next)
	require.Empty(r.t, r.runs(ts), "no agent ran for it")
	for _, p := range r.posts(root) {
		require.NotEqual(r.t, rules.TurnID("smith", r.id, ts), postID(p), "no word about it")
	}
}

// D1: a schedule of the config starts the same workflow; its turn opens a thread.
func TestD1_AScheduleOpensAThreadWithItsAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"), func(o *stack.Options) {
		o.Slack.Seed = seedWith(slackbox.Channel{ID: "C0STANDUP01", Name: "standup", Members: []string{"ana", "smith"}})
		o.Config["schedules"] = []map[string]any{{
			"name": "standup", "seat": "smith", "channel": "C0STANDUP01", "cron": "0 9 1 1 *", "prompt": "[[say stand up please]]",
		}}
	})
	r := &room{system: s, t: t, id: "C0STANDUP01"}
	require.NoError(t, s.temporalClient.ScheduleClient().GetHandle(t.Context(), "smith-standup").Trigger(t.Context(), client.ScheduleTriggerOptions{}))
	wait(t, "for the scheduled post", func() (bool, string) { return len(r.texts()) > 0, "" })
	posts := s.Slack.Log(0).Messages
	root := posts[len(posts)-1]
	require.Contains(t, root.Text, "stand up please")
	require.Empty(t, root.ThreadTS)
	s.excuses.add(r.id, root.TS, "a schedule opens a thread")
	// The door knows the post before the person answers it.
	wait(t, "for the post's own event to be taken", func() (bool, string) { return r.Slack.Quiet("smith"), "" })
	next := r.reply("ana", root.TS, "[[say standing]]")
	require.Contains(t, r.answer("smith", next).Text, "standing", "the thread holds only ana and smith (D3)")
}

// D2, X1: outsiders and guests are declined before any work, each with one honest line.
func TestD2_OutsidersAndGuestsAreDeclinedBeforeAnyWork(t *testing.T) {
	t.Parallel()
	r := home(t).room(t, "olga", "gil")
	ts := r.say("olga", "@smith [[say for olga]]")
	require.Contains(t, r.answer("smith", ts).Text, told(rules.ReasonOutsider))
	require.Empty(t, r.runs(ts))
	ts = r.say("gil", "@smith [[say for gil]]")
	require.Contains(t, r.answer("smith", ts).Text, told(rules.ReasonNotMember))
	require.Empty(t, r.runs(ts))
}

// D2: neither the dispatcher's line, nor another bot's, nor an unmarked one of another
// seat, nor a mark that somebody forged, engages a seat.
func TestD2_BotsDoNotEngage(t *testing.T) {
	t.Parallel()
	s := home(t)
	const name = "robot"
	require.NoError(t, s.Slack.Add(slackbox.Seed{Apps: []slackbox.App{{Name: name}}}))
	r := s.room(t, "agent-force", name)
	at := "<@" + s.botUser("smith") + "> "
	forged := slack.MsgOptionMetadata(slack.SlackMetadata{EventType: rules.EventHandOff, EventPayload: map[string]any{"to": "smith", "sibling_hop": 0}})
	root := r.say("ana", "for the bots")
	for _, ts := range []string{
		r.appSays("agent-force", root, at+"[[say dispatcher]]"),
		r.appSays(name, root, at+"[[say bot]]"),
		r.appSays(name, root, at+"[[say forged]]", forged),
		r.appSays("agent-force", root, at+"[[say forged]]", forged),
		r.appSays("trinity", root, at+"[[say unmarked]]"),
		r.appSays("smith", root, at+"[[say myself]]"),
	} {
		r.excuses.add(r.id, ts, "a bot's line")
		r.noneSince(ts, root)
	}
}

// D2: another seat's marked hand-off engages; over the limit of hops it is declined.
func TestD2_AHandOffEngagesUntilItsHopsAreUsedUp(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[say look at this⏎⟦hand off to trinity: [say trinity was here] please⟧]]")
	r.answer("smith", root)
	wait(t, "for trinity", func() (bool, string) {
		for _, p := range r.posts(root) {
			if p.App == "trinity" {
				return true, ""
			}
		}
		return false, fmt.Sprint(r.texts())
	})
	loop := r.say("ana", "@smith ping-pong")
	wait(t, "for the end of the hand-offs", func() (bool, string) {
		for _, p := range r.posts(loop) {
			if strings.Contains(p.Text, told(rules.ReasonHops)) {
				return true, ""
			}
		}
		return false, fmt.Sprint(r.texts())
	})
	turns := 0
	for _, e := range r.Model.Log() {
		if e.Step == 0 && strings.Contains(e.User, loop) && strings.Contains(e.Section, "ping-pong") {
			turns++
		}
	}
	require.Equal(t, 3, turns, "the person's own and two hand-offs")
}

// D2: an agent that continues its own thread does so no more often than the config says.
func TestD2_SelfDriveEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith drive-for-ever")
	wait(t, "for the last driven turn", func() (bool, string) {
		posts := r.posts(root)
		return len(posts) > 0 && strings.Contains(posts[len(posts)-1].Text, rules.DrivesUsedUpText), fmt.Sprint(r.texts())
	})
	require.Len(t, r.posts(root), 3, "the line's own and two driven ones")
}

// D3: in a thread that holds only one person and the seat no mention is needed; as soon as
// another person or another seat is in it, an unmentioned line is noted: context for the
// next turn, no run, no post.
func TestD3_AThreadOfTwoNeedsNoMention(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[say one]]")
	r.answer("smith", root)
	two := r.reply("ana", root, "[[say two]]")
	require.Contains(t, r.answer("smith", two).Text, "two")

	ben := r.reply("ben", root, "by the way, a word of ben's")
	r.noneSince(ben, root)
	ana := r.reply("ana", root, "said without a mention, with ben here")
	r.noneSince(ana, root)
	last := r.reply("ana", root, "@smith [[say three]]")
	r.answer("smith", last)
	all := ""
	for _, e := range r.Model.Log() {
		if strings.Contains(e.User, root) {
			all += e.User
		}
	}
	require.Contains(t, all, "a word of ben's", "a noted line is context")
	require.Contains(t, all, "said without a mention")
}

func TestD3_AnotherSeatInTheThreadNeedsAMention(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[say one]]")
	r.answer("smith", root)
	r.answer("trinity", r.reply("ana", root, "@trinity [[say hello]]"))
	ts := r.reply("ana", root, "to whom is this?")
	r.noneSince(ts, root)
}

// D3: a thread that somebody else began is no thread of two.
func TestD3_AThreadThatSomebodyElseBeganNeedsAMention(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ben", "a thread of ben's")
	r.recorded()
	r.answer("smith", r.reply("ana", root, "@smith [[say one]]"))
	ts := r.reply("ana", root, "and without a mention")
	r.noneSince(ts, root)
}

// D3: a line that no one of the three engages leaves no trace in a thread of strangers.
func TestD3_ALineAmongPeopleIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "lunch?")
	ts := r.reply("ben", root, "yes, stop")
	r.noneSince(ts, root)
}

// D4: any case, trailing punctuation, a mention in front; what waits is dropped too.
func TestD4_StopDropsWhatWaits(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[hang]]")
	r.running(root)
	waiting := r.reply("ana", root, "@smith [[say never]]")
	r.quietAbout(waiting, "stopped")
	r.quietAbout(root, "stopped")
	r.recorded()
	stop := r.reply("ana", root, "@smith  STOP!!!")
	said := r.post("smith/" + r.id + "/" + stop + "/stop")
	require.Contains(t, said.Text, "Stopped.")
	require.Contains(t, said.Text, "One waiting line is dropped")
	next := r.reply("ana", root, "@smith [[say again]]")
	require.Contains(t, r.answer("smith", next).Text, "again")
	require.Empty(t, r.runs(waiting))
	require.Len(t, r.posts(root), 2)
}

// D4: at a DM's top level it stops every running turn of the DM.
func TestD4_StopAtADMsTopLevelStopsAllOfIt(t *testing.T) {
	t.Parallel()
	r, who := home(t).dm(t, "smith")
	a, b := r.say(who, "[[hang]]"), r.say(who, "[[hang]]")
	r.quietAbout(a, "stopped")
	r.quietAbout(b, "stopped")
	r.running(a)
	r.running(b)
	stop := r.say(who, "stop.")
	said := r.post("smith/" + r.id + "/" + stop + "/stop")
	require.Contains(t, said.Text, "Stopped 2 running turns.")
	require.Empty(t, r.agentsOf(r.id, a))
	require.Empty(t, r.agentsOf(r.id, b))
	require.Empty(t, r.posts(a))
	require.Empty(t, r.posts(b))
}

// D4: `:x:` on a line that is being answered stops its turn; on one that was answered it
// does nothing.
func TestD4_ACrossOnALineStopsItsTurn(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[hang]]")
	r.quietAbout(root, "stopped")
	r.running(root)
	began := time.Now()
	r.react("ben", root, "x")
	wait(t, "until the agent is gone", func() (bool, string) { return len(r.agentsOf(r.id, root)) == 0, "it runs" })
	t.Logf("the agent was gone %s after the reaction", time.Since(began).Round(10*time.Millisecond))
	wait(t, "for the word about it", func() (bool, string) { return len(r.posts(root)) == 1, fmt.Sprint(r.texts()) })
	require.Contains(t, r.posts(root)[0].Text, "Stopped.")

	done := r.say("ana", "@smith [[say done]]")
	r.answer("smith", done)
	r.settleRoom()
	r.react("ben", done, "x")
	r.answer("smith", r.reply("ana", done, "@smith [[say next]]"))
	require.Len(t, r.posts(done), 2)
}

// D4: the newest stop's ts is stored: an older line that arrives later is not answered.
func TestD4_AnOlderLineThatArrivesAfterTheStopIsDropped(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	root := r.say("ana", "@smith [[say one]]")
	r.answer("smith", root)
	heal := s.fault(t, slackbox.Fault{Kind: slackbox.Forget, App: "smith", Channel: r.id})
	late := r.reply("ana", root, "@smith [[say never]]")
	r.quietAbout(late, "stopped before it arrived")
	heal()
	stop := r.reply("ana", root, "stop")
	r.post("smith/" + r.id + "/" + stop + "/stop")
	_, err := s.Slack.Cut("smith")
	require.NoError(t, err)
	wait(t, "until the gap is read", func() (bool, string) { return strings.Contains(s.log("starter"), "read what may have been missed"), "" })
	r.noneSince(late, root)
}

// D4: one line says what was done, also when the post had already begun.
func TestD4_AStopThatIsTooLateSaysSo(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	r := s.room(t)
	s.arm(t, failpoint.PostRecorded)
	root := r.say("ana", "@smith [[say on its way]]")
	s.hit(t, failpoint.PostRecorded)
	stop := r.reply("ana", root, "stop")
	require.Contains(t, r.post("smith/"+r.id+"/"+stop+"/stop").Text, "Too late to stop")
	s.letGo(t, failpoint.PostRecorded)
	require.Contains(t, r.answer("smith", root).Text, "on its way")
	require.Len(t, r.posts(root), 2)
}

// D4: nothing ran: that is said too, once.
func TestD4_AStopThatFindsNothingSaysSo(t *testing.T) {
	t.Parallel()
	r := home(t).room(t)
	root := r.say("ana", "@smith [[say one]]")
	r.answer("smith", root)
	r.settleRoom()
	stop := r.reply("ana", root, "stop")
	require.Contains(t, r.post("smith/"+r.id+"/"+stop+"/stop").Text, "Nothing was running here.")
	require.Len(t, r.posts(root), 2)
}

// D5: a seat that Slack does not name does not start.
func TestD5_TheStarterRefusesToStartWithoutAnIdentity(t *testing.T) {
	t.Parallel()
	s := start(t, withSeats("smith"))
	require.NoError(t, s.Starter.Stop(20*time.Second))
	token := ""
	for _, a := range s.Slack.State().Apps {
		if a.Name == "smith" {
			token = a.BotToken
		}
	}
	s.Slack.RevokeToken(token)
	require.Error(t, s.StartStarter(t.Context()))
	require.Contains(t, s.log("starter"), "no word from Slack on who the seat smith is")
	require.Contains(t, s.log("starter"), "SMITH_BOT_TOKEN")
	s.Slack.RestoreToken(token)
	s.restartStarter(t)
	r := s.room(t)
	r.answer("smith", r.say("ana", "@smith [[say back]]"))
}
