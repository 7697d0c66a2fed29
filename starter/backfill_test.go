package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackapi"
	"agentsmith/rules"
)

// past is a line as a channel's history gives it.
func past(t *testing.T, channel, user, ts, root, text, more string) rules.Line {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"user": user, "ts": ts, "thread_ts": root, "text": text, "team": team})
	require.NoError(t, err)
	if more != "" {
		raw = append(raw[:len(raw)-1], []byte(","+more+"}")...)
	}
	line, err := rules.ParseMessage(team, channel, raw)
	require.NoError(t, err)
	return line
}

func TestBackfill_ReadsWhatWasMissed(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("C1", ana, ts1, "", "<@USMITH> before the gap"))
	w.slack.channels = []slackapi.Conversation{{ID: "D1", Kind: "im"}, {ID: "C1", Kind: "channel"}, {ID: "C2", Kind: "channel"}}
	w.slack.history["D1"] = []rules.Line{past(t, "D1", ana, ts2, "", "missed in the DM", "")}
	w.slack.history["C2"] = []rules.Line{
		past(t, "C2", ben, ts2, "", "hello all", ""),
		past(t, "C2", ben, ts3, ts3, "<@USMITH> a new thread", `"reply_count":1,"latest_reply":"`+ts4+`"`),
		past(t, "C2", ben, "1700000003.500000", "", "joined", `"subtype":"channel_join"`),
	}
	w.slack.replies["C2"+ts3] = []rules.Line{past(t, "C2", ben, ts3, ts3, "<@USMITH> a new thread", ""), past(t, "C2", ben, ts4, ts3, "and a reply", "")}
	w.slack.replies["C1"+ts1] = []rules.Line{past(t, "C1", ana, ts1, ts1, "<@USMITH> before the gap", ""), past(t, "C1", ana, ts4, ts1, "missed in the thread", "")}

	require.NoError(t, w.backfill.boot(t.Context()))
	require.True(t, w.backfill.fill(t.Context()))
	for _, k := range [][2]string{{"D1", ts2}, {"C1", ts4}, {"C2", ts3}, {"C2", ts4}} {
		require.Equal(t, rules.Owed, w.row(k[0], k[1]).State, "%v", k)
	}
	require.Equal(t, rules.Noted, w.row("C2", ts2).State)
	_, err := w.store.RowOf(t.Context(), seatName, rules.LineKey{Team: team, Channel: "C2", TS: "1700000003.500000"})
	require.Error(t, err, "no content")

	require.NoError(t, w.backfill.boot(t.Context()))
	require.True(t, w.backfill.fill(t.Context()))
	w.dispatches(func() bool {
		for _, k := range [][2]string{{"D1", ts2}, {"C1", ts1}, {"C1", ts4}, {"C2", ts3}, {"C2", ts4}} {
			if !w.row(k[0], k[1]).Dispatched {
				return false
			}
		}
		return true
	}, "")
	require.Len(t, w.brains.all(), 5, "each once, however often it is read")
}

func TestBackfill_ASeatThatNeverSawALineHasMissedNone(t *testing.T) {
	w := newWorld(t)
	w.slack.channels = []slackapi.Conversation{{ID: "D1", Kind: "im"}}
	w.slack.history["D1"] = []rules.Line{past(t, "D1", ana, ts2, "", "long before", "")}
	require.NoError(t, w.backfill.boot(t.Context()))
	require.True(t, w.backfill.fill(t.Context()))
	w.settled()
	require.Empty(t, w.brains.all())
}

// A starter that dies while it reads begins again where the gap began, not at the new
// lines that came meanwhile.
func TestBackfill_AGapOutlivesTheProcess(t *testing.T) {
	w := newWorld(t)
	w.arrives(say("D1", ana, ts1, "", "before the gap"))
	require.NoError(t, w.backfill.boot(t.Context()))
	w.slack.readErr = slackapi.ErrAmbiguous
	require.False(t, w.backfill.fill(t.Context()))
	require.NotEmpty(t, w.loud.standing("backfill smith"))
	w.arrives(say("D1", ana, "1700099999.000000", "", "after the gap"))

	w.entrance = w.open()
	require.NoError(t, w.backfill.boot(t.Context()))
	w.slack.readErr = nil
	w.slack.channels = []slackapi.Conversation{{ID: "D1", Kind: "im"}}
	w.slack.history["D1"] = []rules.Line{past(t, "D1", ana, ts2, "", "missed", "")}
	require.True(t, w.backfill.fill(t.Context()))
	require.Equal(t, rules.Owed, w.row("D1", ts2).State)
	require.Empty(t, w.loud.standing("backfill smith"))
	require.NoFileExists(t, w.backfill.mark)
}

func TestBackfill_AMarkThatIsNoneIsIgnored(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.backfill.boot(t.Context()))
	require.NoError(t, os.WriteFile(w.backfill.mark, []byte("garbage\n"), 0o600))
	require.NoError(t, w.backfill.boot(t.Context()))
	require.Empty(t, w.backfill.since)
}

func TestBackfill_AChannelThatIsGoneHoldsUpNoOther(t *testing.T) {
	require.True(t, gone(&slackapi.Rejected{Code: "channel_not_found"}))
	require.True(t, gone(slackapi.ErrParentGone))
	require.False(t, gone(slackapi.ErrAmbiguous))
	require.False(t, gone(nil))
}

func TestComeLate_LearnsWhoIsInTheThread(t *testing.T) {
	w := newWorld(t)
	w.slack.replies["C1"+ts1] = []rules.Line{
		past(t, "C1", ben, ts1, ts1, "<@USMITH> was not here yet", ""),
		past(t, "C1", ana, ts2, ts1, "<@USMITH> come here", ""),
	}
	w.arrives(say("C1", ana, ts2, ts1, "<@USMITH> come here"))
	w.dispatches(func() bool { return w.row("C1", ts2).Dispatched && len(w.backfill.late) == 1 }, "")
	line := <-w.backfill.late
	require.NoError(t, w.backfill.readLate(t.Context(), line.Thread()))
	require.Equal(t, rules.Noted, w.row("C1", ts1).State, "it was written before the seat was asked")
	w.arrives(say("C1", ana, ts3, ts1, "and now?"))
	require.Equal(t, rules.Noted, w.row("C1", ts3).State, "ben is in the thread")

	w2 := newWorld(t)
	w2.slack.replies["C1"+ts1] = []rules.Line{past(t, "C1", ana, ts1, ts1, "alone so far", "")}
	w2.arrives(say("C1", ana, ts2, ts1, "<@USMITH> come here"))
	require.NoError(t, w2.backfill.readLate(t.Context(), rules.Thread{Team: team, Channel: "C1", Root: ts1}))
	w2.arrives(say("C1", ana, ts3, ts1, "and now?"))
	require.Equal(t, rules.Owed, w2.row("C1", ts3).State, "only ana and the seat")
	w2.backfill.comeLate(past(t, "C1", ana, ts2, ts1, "", ""))
	w2.backfill.comeLate(past(t, "C1", ana, ts3, ts1, "", ""))
	w2.backfill.comeLate(past(t, "C1", ana, ts4, "", "", ""))
	require.Len(t, w2.backfill.late, 1, "a thread is read once")
}
