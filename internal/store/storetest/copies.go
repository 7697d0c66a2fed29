package storetest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

// testCopies is L5 and the copies of L1: one line, several events, any order.
func testCopies(t *testing.T, newURL func(t *testing.T) string) {
	message := line(1, 1, "<@U0> look")
	message.ChannelType, message.UserTeam, message.Subtype = "channel", "T1", "file_share"
	message.Files = []rules.File{{ID: "F1", Name: "log.txt", Size: 3, URLPrivate: "https://files"}}
	message.Raw = json.RawMessage(`{"type":"message","files":[{}],"client_msg_id":"x"}`)
	mention := line(1, 1, "<@U0> look")
	mention.Raw = json.RawMessage(`{"type":"app_mention"}`)

	orders := map[string][]rules.Line{
		"message, app_mention":          {message, mention},
		"app_mention, message":          {mention, message},
		"app_mention, message, mention": {mention, message, mention},
	}
	for name, copies := range orders {
		t.Run("Record_TheFullerCopyWins: "+name, func(t *testing.T) {
			w := open(t, newURL)
			for _, c := range copies {
				w.record(c, rules.Owed)
			}
			got, err := w.Line(w.ctx(), key(1))
			require.NoError(t, err)
			require.Equal(t, message, got)
			all, err := w.Undispatched(w.ctx(), seat, 10)
			require.NoError(t, err)
			require.Len(t, all, 1, "one turn")
		})
		t.Run("Record_ACopyNeverUndoesAnEdit: "+name, func(t *testing.T) {
			for at := range len(copies) + 1 {
				w := open(t, newURL)
				for i, c := range copies {
					if i == at {
						w.edit(edited(mention, 60, "edited"), rules.Owed)
					}
					w.record(c, rules.Owed)
				}
				if at == len(copies) {
					w.edit(edited(mention, 60, "edited"), rules.Owed)
				}
				got, err := w.Line(w.ctx(), key(1))
				require.NoError(t, err)
				require.Equal(t, "edited", got.Text)
				require.Equal(t, "1700000060.000000", got.EditedTS)
				require.Equal(t, message.Files, got.Files)
				require.Equal(t, message.Subtype, got.Subtype)
				require.Equal(t, message.UserTeam, got.UserTeam)
			}
		})
	}
	t.Run("Record_AFullerCopyMayWithdrawThatAPersonWroteIt", func(t *testing.T) {
		w := open(t, newURL)
		w.record(mention, rules.Owed)
		outside := message
		outside.UserTeam = "T2"
		r, err := w.Record(w.ctx(), seat, outside, rules.Outsider, unasked(t))
		require.NoError(t, err)
		require.Equal(t, rules.Outsider, r.Author)
		r, err = w.Record(w.ctx(), seat, mention, rules.Person, unasked(t))
		require.NoError(t, err)
		require.Equal(t, rules.Outsider, r.Author, "and never grants it")
		all, err := w.Undispatched(w.ctx(), seat, 1)
		require.NoError(t, err)
		require.Equal(t, rules.Outsider, all[0].Author)
		require.Equal(t, "T2", all[0].Line.UserTeam)
	})
	t.Run("Record_HistoryBringsAnEditToo", func(t *testing.T) {
		w := open(t, newURL)
		w.record(mention, rules.Owed)
		w.record(edited(mention, 60, "from history"), rules.Owed)
		require.Equal(t, "from history", w.text(1))
		w.record(edited(mention, 30, "older"), rules.Owed)
		require.Equal(t, "from history", w.text(1))
		_, err := w.Record(w.ctx(), other, mention, rules.Person, func(f store.Facts) store.Verdict {
			require.Equal(t, "from history", f.Line.Text, "decided by the newest text")
			return store.Verdict{State: rules.Noted}
		})
		require.NoError(t, err)
	})
}
