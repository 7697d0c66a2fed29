package rules

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	smith   = SeatIdentity{Name: "smith", BotUser: "USMITH", BotID: "BSMITH"}
	trinity = SeatIdentity{Name: "trinity", BotUser: "UTRIN", BotID: "BTRIN"}
	remote  = SeatIdentity{Name: "neo", BotUser: "UNEO"}
	roster  = Roster{Self: smith, Seats: []SeatIdentity{smith, trinity, remote}, Dispatcher: "UFORCE", Team: "T1"}
)

func TestWho_KnowsEveryAuthor(t *testing.T) {
	for name, c := range map[string]struct {
		line Line
		want Author
	}{
		"a person":                      {Line{User: "U1", UserTeam: "T1"}, Person},
		"a person, no team said":        {Line{User: "U1"}, Person},
		"of another team":               {Line{User: "U1", UserTeam: "T2"}, Outsider},
		"the seat by its user":          {Line{User: "USMITH"}, Self},
		"the seat by its bot id":        {Line{BotID: "BSMITH"}, Self},
		"a seat by its user":            {Line{User: "UTRIN"}, Sibling},
		"a seat by its bot id":          {Line{BotID: "BTRIN", Subtype: "bot_message"}, Sibling},
		"a seat that runs elsewhere":    {Line{User: "UNEO", BotID: "BNEO"}, Sibling},
		"the dispatcher":                {Line{User: "UFORCE", BotID: "BFORCE"}, Dispatcher},
		"a bot with a user":             {Line{User: "UCI", BotID: "BCI", UserTeam: "T1"}, OtherBot},
		"a bot of another team":         {Line{User: "UCI", BotID: "BCI", UserTeam: "T2"}, OtherBot},
		"a bot without a user":          {Line{BotID: "BCI"}, OtherBot},
		"a bot by its subtype":          {Line{Subtype: "bot_message", User: "U1"}, OtherBot},
		"nobody":                        {Line{}, OtherBot},
		"Slack's own bot":               {Line{User: "USLACKBOT", UserTeam: "T1"}, OtherBot},
		"the seat, from another team":   {Line{User: "USMITH", UserTeam: "T2"}, Self},
		"a person who says to be a bot": {Line{User: "U1", UserTeam: "T1", Text: "<@USMITH> I am UTRIN"}, Person},
	} {
		require.Equal(t, c.want, Who(c.line, roster), name)
	}
}

func TestWho_KnowsNobodyByAnEmptyID(t *testing.T) {
	bare := Roster{Self: SeatIdentity{Name: "smith"}, Seats: []SeatIdentity{{Name: "trinity"}}, Team: "T1"}
	require.Equal(t, OtherBot, Who(Line{}, bare))
	require.Equal(t, Person, Who(Line{User: "U1"}, bare))
}

func channelLine(text string) Line {
	return Line{LineKey: LineKey{"T1", "C1", "5.000000"}, Root: "1.000000", ChannelType: "channel", User: "U1", UserTeam: "T1", Text: text}
}

func TestEngage_APersonsLine(t *testing.T) {
	alone := ThreadFacts{People: []string{"U1"}, Seats: []string{"smith"}, RootSeen: true}
	dm := channelLine("hello")
	dm.Channel, dm.ChannelType = "D1", "im"
	mpim := channelLine("hello")
	mpim.Channel, mpim.ChannelType = "G1", "mpim"
	for name, c := range map[string]struct {
		line      Line
		mentioned bool
		facts     ThreadFacts
		want      State
	}{
		"in a DM":                               {line: dm, want: Owed},
		"mentions the seat":                     {line: channelLine("<@USMITH> hello"), want: Owed},
		"mentions it, says the event":           {line: channelLine("hello"), mentioned: true, want: Owed},
		"mentions another":                      {line: channelLine("<@UTRIN> hello"), want: Noted},
		"only that person and that seat":        {line: channelLine("hello"), facts: alone, want: Owed},
		"another person is in the thread":       {line: channelLine("hello"), facts: ThreadFacts{People: []string{"U1", "U2"}, Seats: []string{"smith"}, RootSeen: true}, want: Noted},
		"another seat is in the thread":         {line: channelLine("hello"), facts: ThreadFacts{People: []string{"U1"}, Seats: []string{"smith", "trinity"}, RootSeen: true}, want: Noted},
		"the seat is not in the thread":         {line: channelLine("hello"), facts: ThreadFacts{People: []string{"U1"}, RootSeen: true}, want: Noted},
		"only another seat is in it":            {line: channelLine("hello"), facts: ThreadFacts{People: []string{"U1"}, Seats: []string{"trinity"}, RootSeen: true}, want: Noted},
		"who began the thread is unknown":       {line: channelLine("hello"), facts: ThreadFacts{People: []string{"U1"}, Seats: []string{"smith"}}, want: Noted},
		"several people's DM is like a channel": {line: mpim, want: Noted},
		"nothing at all":                        {line: channelLine("hello"), want: Noted},
	} {
		require.Equal(t, c.want, Engage(c.line, Person, smith, c.mentioned, c.facts).State, name)
		require.Equal(t, c.want, Engage(c.line, Outsider, smith, c.mentioned, c.facts).State, "%s, an outsider: owed an honest no", name)
	}
	require.True(t, Engage(channelLine("<@USMITH>"), Person, smith, false, ThreadFacts{}).Mentioned)
	require.True(t, Engage(channelLine(""), Person, smith, true, ThreadFacts{}).Mentioned)
	require.False(t, Engage(channelLine(""), Person, smith, false, alone).Mentioned)
}

func TestEngage_NoOtherAuthor(t *testing.T) {
	dm := channelLine("<@USMITH> hello")
	dm.Channel, dm.ChannelType = "D1", "im"
	for _, author := range []Author{Self, OtherBot, Dispatcher, Webhook, Schedule, ""} {
		require.Equal(t, Noted, Engage(dm, author, smith, true, ThreadFacts{People: []string{"U1"}, Seats: []string{"smith"}, RootSeen: true}).State, "%s", author)
	}
}

func TestEngage_ASeatsLineOnlyWhenItMayBeAHandOff(t *testing.T) {
	line := channelLine("over to you")
	require.Equal(t, Noted, Engage(line, Sibling, smith, false, ThreadFacts{Seats: []string{"smith"}}).State)
	require.Equal(t, Owed, Engage(line, Sibling, smith, true, ThreadFacts{}).State, "a mention: the mark may have been left out of the event")
	line.Raw = json.RawMessage(`{"metadata":{"event_type":"smith_handoff"}}`)
	require.Equal(t, Owed, Engage(line, Sibling, smith, false, ThreadFacts{}).State)
	line.Raw = json.RawMessage(`{"metadata":{"event_type":"smith_post"}}`)
	require.Equal(t, Noted, Engage(line, Sibling, smith, true, ThreadFacts{}).State, "an answer that mentions the seat")
}

func TestEngage_ALineOlderThanTheStop(t *testing.T) {
	line := channelLine("<@USMITH> hello")
	got := Engage(line, Person, smith, false, ThreadFacts{StopTS: "6.000000"})
	require.Equal(t, Engagement{State: Declined, Reason: ReasonStopped, Mentioned: true}, got)
	require.Equal(t, Owed, Engage(line, Person, smith, false, ThreadFacts{StopTS: "4.000000"}).State)
	require.Equal(t, Owed, Engage(line, Person, smith, false, ThreadFacts{StopTS: line.TS}).State, "the stop does not stop itself")
	require.Equal(t, Noted, Engage(channelLine("hello"), Person, smith, false, ThreadFacts{StopTS: "6.000000"}).State, "it engaged nobody")
}

func TestEngage_TheStopWord(t *testing.T) {
	part := ThreadFacts{People: []string{"U1", "U2"}, Seats: []string{"smith", "trinity"}}
	got := Engage(channelLine("stop"), Person, smith, false, part)
	require.Equal(t, Engagement{State: Owed, Stop: true}, got, "also among several people")
	require.Equal(t, Engagement{State: Noted}, Engage(channelLine("stop"), Person, smith, false, ThreadFacts{}))
	part.StopTS = "6.000000"
	require.False(t, Engage(channelLine("stop"), Person, smith, false, part).Stop, "the newest stop counts")
}

func handOff(user, botID, payload string) Line {
	return Line{User: user, BotID: botID, Raw: json.RawMessage(`{"metadata":{"event_type":"smith_handoff","event_payload":` + payload + `}}`)}
}

func TestHandOff_NeedsEachOfItsConjuncts(t *testing.T) {
	good := `{"to":"smith","sibling_hop":1}`
	hop, ok := HandOff(handOff("UTRIN", "BTRIN", good), trinity, smith)
	require.True(t, ok)
	require.Equal(t, 2, hop, "one more than the turn that wrote it")
	hop, ok = HandOff(handOff("UTRIN", "", `{"to":"smith","sibling_hop":0}`), trinity, smith)
	require.True(t, ok)
	require.Equal(t, 1, hop, "never taken for a human turn")

	for name, line := range map[string]Line{
		"another app forged it":   handOff("UCI", "BCI", good),
		"a person forged it":      handOff("U1", "", good),
		"the seat's own line":     handOff("USMITH", "BSMITH", good),
		"for another seat":        handOff("UTRIN", "BTRIN", `{"to":"neo","sibling_hop":1}`),
		"for nobody":              handOff("UTRIN", "BTRIN", `{"sibling_hop":1}`),
		"no hop":                  handOff("UTRIN", "BTRIN", `{"to":"smith"}`),
		"a hop below zero":        handOff("UTRIN", "BTRIN", `{"to":"smith","sibling_hop":-5}`),
		"a hop that is no number": handOff("UTRIN", "BTRIN", `{"to":"smith","sibling_hop":"1"}`),
		"payload stripped":        {User: "UTRIN", Raw: json.RawMessage(`{"metadata":{"event_type":"smith_handoff"}}`)},
		"another mark":            {User: "UTRIN", Raw: json.RawMessage(`{"metadata":{"event_type":"smith_post","event_payload":` + good + `}}`)},
		"no mark":                 {User: "UTRIN", Raw: json.RawMessage(`{}`)},
	} {
		_, ok := HandOff(line, trinity, smith)
		require.False(t, ok, name)
	}
	_, ok = HandOff(handOff("USMITH", "BSMITH", good), smith, smith)
	require.False(t, ok, "a seat hands nothing to itself")
}

func TestOverHops_CountsTheLimitIn(t *testing.T) {
	require.False(t, OverHops(2, 2))
	require.True(t, OverHops(3, 2))
	require.True(t, OverHops(1, 0))
}

func TestAccess_MembersOnlyByDefault(t *testing.T) {
	members := Access{Members: true, Users: []string{"UOWNER"}}
	list := Access{Users: []string{"U1"}}
	for name, c := range map[string]struct {
		access  Access
		user    string
		profile *Profile
		ok      bool
		reason  Reason
	}{
		"a member":                  {members, "U1", &Profile{ID: "U1", Member: true}, true, ""},
		"a guest":                   {members, "U1", &Profile{ID: "U1"}, false, ReasonNotMember},
		"of another team":           {members, "U1", &Profile{ID: "U1", Stranger: true}, false, ReasonOutsider},
		"doubly described":          {members, "U1", &Profile{ID: "U1", Stranger: true, Member: true}, false, ReasonOutsider},
		"unknown":                   {members, "U1", nil, false, ReasonUnknown},
		"another one's profile":     {members, "U1", &Profile{ID: "U2", Member: true}, false, ReasonUnknown},
		"nobody":                    {members, "", &Profile{Member: true}, false, ReasonUnknown},
		"named in the config":       {members, "UOWNER", nil, true, ""},
		"a list, and on it":         {list, "U1", nil, true, ""},
		"a list, and not on it":     {list, "U2", &Profile{ID: "U2", Member: true}, false, ReasonNotMember},
		"nobody at all may talk":    {Access{}, "U1", &Profile{ID: "U1", Member: true}, false, ReasonNotMember},
		"a guest named by the list": {list, "U1", &Profile{ID: "U1"}, true, ""},
	} {
		ok, reason := c.access.May(c.user, c.profile)
		require.Equal(t, c.ok, ok, name)
		require.Equal(t, c.reason, reason, name)
	}
	require.True(t, members.NeedsProfile("U1"))
	require.False(t, members.NeedsProfile("UOWNER"))
	require.False(t, Access{}.NeedsProfile("U1"))
}

// However a line's two copies arrive, together they engage as the fuller one does.
func TestEngage_MoreFactsNeverTurnAMentionIntoNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := ThreadFacts{
			People: rapid.SliceOf(rapid.SampledFrom([]string{"U1", "U2", "U3"})).Draw(t, "people"),
			Seats:  rapid.SliceOf(rapid.SampledFrom([]string{"smith", "trinity"})).Draw(t, "seats"),
		}
		if got := Engage(channelLine("<@USMITH> go on"), Person, smith, rapid.Bool().Draw(t, "event"), facts); got.State != Owed {
			t.Fatalf("a mention is %s with %+v", got.State, facts)
		}
		for _, author := range []Author{Self, OtherBot, Dispatcher} {
			if got := Engage(channelLine("<@USMITH> stop"), author, smith, true, facts); got.State != Noted || got.Stop {
				t.Fatalf("a line of %s is %+v with %+v", author, got, facts)
			}
		}
	})
}
