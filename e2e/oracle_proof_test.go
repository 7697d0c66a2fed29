package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/standin"
)

// An audit that cannot fail proves nothing: each check is shown evidence of what it is for.
func TestAudit_SeesWhatMustNeverBe(t *testing.T) {
	const first, second = "1700000001.000100", "1700000002.000100"
	seat := slackbox.App{Name: "smith", BotUser: "U0SMITH0001"}
	line := func(ts string) slackbox.LoggedMessage {
		return slackbox.LoggedMessage{Channel: "C1", TS: ts, User: "U0ANA", Name: "ana", Text: "<@U0SMITH0001> hello", Message: &slackbox.Message{}}
	}
	post := func(ts, root, id, text string) slackbox.LoggedMessage {
		meta := &slackbox.Metadata{EventType: "smith_post", EventPayload: fmt.Appendf(nil, `{"post_id":%q,"part":1,"parts":1}`, id)}
		return slackbox.LoggedMessage{
			Channel: "C1", TS: ts, ThreadTS: root, User: seat.BotUser, App: "smith", Text: text, Message: &slackbox.Message{Metadata: meta},
		}
	}
	run := func(outcome standin.Outcome, lines ...string) standin.Entry {
		e := standin.Entry{Session: "s", User: "channel C1", Outcome: outcome}
		for _, ts := range lines {
			e.Section += "ana (U0ANA) at " + ts + ":\n| hello at 1600000000.000000:\n"
		}
		return e
	}
	answer := func(ts, of string) slackbox.LoggedMessage { return post(ts, first, "smith/C1/"+of, "yes") }
	gone := time.Now()
	deleted := answer("1700000005.000100", first)
	deleted.DeletedAt = &gone

	for name, c := range map[string]struct {
		messages []slackbox.LoggedMessage
		model    []standin.Entry
		want     int
	}{
		"all is well":                       {[]slackbox.LoggedMessage{line(first), answer("1700000003.000100", first)}, []standin.Entry{run(standin.Served, first)}, 0},
		"two lines, one answer":             {[]slackbox.LoggedMessage{line(first), line(second), answer("1700000003.000100", first)}, []standin.Entry{run(standin.Served, first, second)}, 0},
		"a deleted copy":                    {[]slackbox.LoggedMessage{line(first), answer("1700000003.000100", first), deleted}, []standin.Entry{run(standin.Served, first)}, 0},
		"an API error that the CLI repeats": {[]slackbox.LoggedMessage{line(first), answer("1700000003.000100", first)}, []standin.Entry{run(standin.Refused, first), run(standin.Served, first)}, 0},
		"no answer":                         {[]slackbox.LoggedMessage{line(first)}, nil, 1},
		"one of two lines unanswered":       {[]slackbox.LoggedMessage{line(first), line(second), answer("1700000003.000100", first)}, []standin.Entry{run(standin.Served, first)}, 1},
		"posted twice":                      {[]slackbox.LoggedMessage{line(first), answer("1700000003.000100", first), answer("1700000004.000100", first)}, nil, 1},
		"two answers to one line":           {[]slackbox.LoggedMessage{line(first), line(second), answer("1700000003.000100", first), answer("1700000004.000100", second)}, []standin.Entry{run(standin.Served, first, second)}, 2},
		"run twice":                         {[]slackbox.LoggedMessage{line(first), answer("1700000003.000100", first)}, []standin.Entry{run(standin.Aborted, first), run(standin.Served, first)}, 1},
		"a leak":                            {[]slackbox.LoggedMessage{line(first), post("1700000003.000100", "", "smith/C1/"+first, "yes")}, nil, 1},
		"a mention":                         {[]slackbox.LoggedMessage{line(first), post("1700000003.000100", first, "smith/C1/"+first, "<!channel> yes")}, nil, 1},
	} {
		v := view{log: slackbox.Log{Messages: c.messages}, model: c.model, seats: map[string]slackbox.App{seat.BotUser: seat}}
		var problems []string
		for _, check := range [][]string{
			v.doubled(everywhere), v.runTwice(everywhere), v.unanswered(everywhere, newExcuses()), v.leaked(everywhere, newExcuses()), v.strangers(everywhere),
		} {
			problems = append(problems, check...)
		}
		require.Len(t, problems, c.want, "%s: %v", name, problems)
	}
}
