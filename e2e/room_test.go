package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // to lock the store

	"agentsmith/internal/slackbox"
	"agentsmith/internal/standin"
	"agentsmith/rules"
	"agentsmith/workflows"
)

// room is a channel (or a DM) of a case's own, so that cases can share a system.
type room struct {
	*system
	t  *testing.T
	id string
}

var rooms atomic.Int64

// room makes a channel for a case, with ana and ben, the seats, and whoever is named
// besides. When the case ends what happened in it is looked at.
func (s *system) room(t *testing.T, more ...string) *room {
	t.Helper()
	n := rooms.Add(1)
	name := fmt.Sprintf("room%d", n)
	members := append([]string{"ana", "ben", "smith", "trinity"}, more...)
	require.NoError(t, s.Slack.Add(slackbox.Seed{Channels: []slackbox.Channel{{Name: name, Members: members, Shared: slices.Contains(more, "olga")}}}))
	r := &room{system: s, t: t}
	for _, c := range s.Slack.State().Channels {
		if c.Name == name {
			r.id = c.ID
		}
	}
	require.NotEmpty(t, r.id, "the new channel has an id")
	r.lookAtTheEnd()
	return r
}

// dm makes a new member and returns the member's DM with a seat.
func (s *system) dm(t *testing.T, seat string) (r *room, member string) {
	t.Helper()
	member = fmt.Sprintf("person%d", rooms.Add(1))
	require.NoError(t, s.Slack.Add(slackbox.Seed{Users: []slackbox.User{{Name: member, RealName: member}}}))
	id, err := s.Slack.Person(member).DM(seat)
	require.NoError(t, err)
	r = &room{system: s, t: t, id: id}
	r.lookAtTheEnd()
	return r, member
}

func (r *room) lookAtTheEnd() {
	r.t.Cleanup(func() {
		if r.t.Failed() {
			r.tell()
			return
		}
		r.settleRoom()
		for _, problem := range r.audit(r.id) {
			r.t.Errorf("after the case: %s", problem)
		}
		if r.t.Failed() {
			r.tell()
		}
	})
}

// settleRoom waits until nothing is under way in the room.
func (r *room) settleRoom() {
	r.t.Helper()
	wait(r.t, "until nothing is under way in this room", func() (bool, string) {
		busy := r.busy(r.id)
		return len(busy) == 0, strings.Join(busy, "; ")
	})
}

// tell prints what the room saw, and the logs' lines about it.
func (r *room) tell() {
	for _, m := range r.Slack.Log(0).Messages {
		if m.Channel == r.id {
			r.t.Logf("slack: %s thread=%s %s deleted=%v %.200q %v", m.TS, m.ThreadTS, m.Name, m.Deleted(), m.Text, postID(m))
		}
	}
	for _, b := range r.brains(r.id) {
		r.t.Logf("temporal: %s", b)
	}
	for _, name := range []string{"starter", "worker"} {
		for line := range strings.SplitSeq(r.log(name), "\n") {
			if strings.Contains(line, r.id) {
				r.t.Logf("%s: %.600s", name, line)
			}
		}
	}
	for _, e := range r.Model.Log() {
		if strings.Contains(e.User, r.id) {
			r.t.Logf("model: lines=%v prompts=%d step=%d %s answer=%.80q", e.Lines, e.Prompts, e.Step, e.Outcome, e.Answer)
		}
	}
}

// say posts a line at the top level and returns its ts.
func (r *room) say(who, text string) string { r.t.Helper(); return r.reply(who, "", text) }

// reply posts a line into a thread.
func (r *room) reply(who, root, text string) string {
	r.t.Helper()
	ts, err := r.Slack.Person(who).Reply(r.id, root, text)
	require.NoError(r.t, err)
	return ts
}

func (r *room) edit(who, ts, text string) {
	r.t.Helper()
	require.NoError(r.t, r.Slack.Person(who).Edit(r.id, ts, text))
}

func (r *room) remove(who, ts string) {
	r.t.Helper()
	require.NoError(r.t, r.Slack.Person(who).Delete(r.id, ts))
}

func (r *room) react(who, ts, name string) {
	r.t.Helper()
	require.NoError(r.t, r.Slack.Person(who).React(r.id, ts, name))
}

// posts are the seats' messages that stand in a thread, in order.
func (r *room) posts(root string) []slackbox.LoggedMessage {
	var out []slackbox.LoggedMessage
	for _, m := range r.Slack.Log(0).Messages {
		if m.Channel == r.id && m.App != "" && !m.Deleted() && (m.ThreadTS == root || m.TS == root) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b slackbox.LoggedMessage) int { return rules.CompareTS(a.TS, b.TS) })
	return out
}

// answer waits for the post whose first line is ts, and returns it.
func (r *room) answer(seat, ts string) slackbox.LoggedMessage {
	r.t.Helper()
	return r.post(rules.TurnID(seat, r.id, ts))
}

// post waits for the first part of a post.
func (r *room) post(id string) slackbox.LoggedMessage {
	r.t.Helper()
	var found slackbox.LoggedMessage
	wait(r.t, "for the post "+id, func() (bool, string) {
		for _, m := range r.Slack.Log(0).Messages {
			if m.Channel == r.id && !m.Deleted() && postID(m) == id && postPart(m) <= 1 {
				found = m
				return true, ""
			}
		}
		return false, strings.Join(r.texts(), " | ")
	})
	return found
}

// texts are what the seats have said in this room.
func (r *room) texts() []string {
	var out []string
	for _, m := range r.Slack.Log(0).Messages {
		if m.Channel == r.id && m.App != "" && !m.Deleted() {
			out = append(out, fmt.Sprintf("%.120q", m.Text))
		}
	}
	return out
}

// runs are the agent's first requests for a line, one a run.
func (s *system) runs(ts string) []standin.Entry {
	var out []standin.Entry
	for _, e := range s.Model.Log() {
		if e.Step == 0 && slices.Contains(lead(e), ts) {
			out = append(out, e)
		}
	}
	return out
}

// running waits until an agent is at work on a line.
func (r *room) running(ts string) standin.Entry {
	r.t.Helper()
	var found standin.Entry
	wait(r.t, "for an agent on "+ts, func() (bool, string) {
		for _, e := range r.runs(ts) {
			if e.Outcome == standin.Open {
				found = e
				return true, ""
			}
		}
		return false, fmt.Sprint(r.texts())
	})
	return found
}

// quietAbout says that a line is not owed a post of its own, and why.
func (r *room) quietAbout(ts, why string) { r.excuses.add(r.id, ts, why) }

// recorded waits until every envelope about this room is acked: its lines are durable (L2).
func (r *room) recorded() {
	r.t.Helper()
	wait(r.t, "for the acks", func() (bool, string) {
		open := map[string]bool{}
		for _, d := range r.Slack.Log(0).Deliveries {
			if d.Channel != r.id || !slices.Contains(r.seatNames(), d.App) {
				continue
			}
			switch d.What {
			case "queued":
				open[d.Envelope] = true
			case "acked", "gave_up", "forgotten":
				delete(open, d.Envelope)
			}
		}
		return len(open) == 0, fmt.Sprintf("%d envelopes under way", len(open))
	})
}

// fault makes Slack fail, until heal is called.
func (s *system) fault(t testing.TB, f slackbox.Fault) (heal func()) {
	t.Helper()
	id, err := s.Slack.AddFault(f)
	require.NoError(t, err)
	return func() { s.Slack.RemoveFault(id) }
}

// deliveries counts what happened to the envelopes of a line.
func (r *room) deliveries(ts, what string) (n int) {
	for _, d := range r.Slack.Log(0).Deliveries {
		if d.Channel == r.id && d.TS == ts && d.What == what {
			n++
		}
	}
	return n
}

// acked tells whether Slack was told that a line arrived.
func (r *room) acked(ts string) bool { return r.deliveries(ts, "acked") > 0 }

// brain is the workflow of a seat for a thread.
func (r *room) brain(seat, root string) string {
	return workflows.ReplyID(seat, rules.Thread{Channel: r.id, Root: root})
}

// lockStore keeps everyone else from writing the store, until unlock is called.
func (s *system) lockStore(t testing.TB) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.Dir, "data", "smith.db")+"?_pragma=busy_timeout(5000)")
	require.NoError(t, err)
	conn, err := db.Conn(context.Background())
	require.NoError(t, err)
	_, err = conn.ExecContext(context.Background(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	return func() { require.NoError(t, errors.Join(conn.Close(), db.Close())) }
}

// seedWith is the default world with more channels.
func seedWith(channels ...slackbox.Channel) *slackbox.Seed {
	seed := slackbox.DefaultSeed()
	seed.Channels = append(seed.Channels, channels...)
	return &seed
}
