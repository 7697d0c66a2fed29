package rules

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIsStop_IsTheWholeLine(t *testing.T) {
	for _, text := range []string{
		"stop", "Stop", "STOP", "stop.", "Stop!", "stop!!!", "stop …", "stop?", " stop ", "\tstop\n", "\u00a0stop\u00a0",
		"\u200bstop\u200f", "\u202estop\u202c", "\ufeffstop", "“stop”", "‘Stop’", "\"stop\"", "'stop'", "«stop»", "*stop*", "_stop_", "`stop`", "~stop~", "stop\x00",
		"<@UBOT> stop", "<@UBOT>stop", "<@UBOT>, stop", "<@UBOT>: stop!", "<@UBOT|smith>\u00a0Stop", " <@UBOT> stop",
	} {
		require.True(t, IsStop(text, "UBOT"), "%q", text)
	}
	for _, text := range []string{
		"", " ", "stop it", "please stop", "stops", "non-stop", "stop stop", "don't stop", "stop\nthe build", "s t o p", "stop 1", "&lt;stop&gt;x",
		"<@UBOT>", "<@UOTHER> stop", "<@UBOT> <@UOTHER> stop", "stop <@UBOT>", "stop <@UOTHER>", "<#C1> stop", "<!here> stop", "<@UBOT", ".", "…", "-stop",
	} {
		require.False(t, IsStop(text, "UBOT"), "%q", text)
	}
	require.False(t, IsStop("<@UBOT> stop", ""), "a seat that does not know itself is not spoken to")
	require.True(t, IsStop("stop", ""))
}

func TestStopsHere_NeedsEachOfItsConjuncts(t *testing.T) {
	self := SeatIdentity{Name: "smith", BotUser: "UBOT"}
	stop := Line{LineKey: LineKey{"T1", "C1", "2.000000"}, Root: "1.000000", User: "U1", Text: "stop"}
	part := ThreadFacts{Seats: []string{"smith"}}
	require.True(t, StopsHere(stop, Person, self, part))

	require.False(t, StopsHere(stop, Outsider, self, part), "not a person of this team")
	require.False(t, StopsHere(stop, OtherBot, self, part))
	require.False(t, StopsHere(stop, Self, self, part))
	require.False(t, StopsHere(stop, Sibling, self, part))
	edited := stop
	edited.EditedTS = "3.000000"
	require.False(t, StopsHere(edited, Person, self, part), "an edit into stop stops nothing")
	other := stop
	other.Text = "stop the press"
	require.False(t, StopsHere(other, Person, self, part))
	require.False(t, StopsHere(stop, Person, self, ThreadFacts{Seats: []string{"trinity"}}), "nothing of this seat is here")

	said := stop
	said.Text = "<@UBOT> stop"
	require.True(t, StopsHere(said, Person, self, ThreadFacts{}), "said to the seat")
	dm := stop
	dm.Channel = "D1"
	require.True(t, StopsHere(dm, Person, self, ThreadFacts{}), "in a DM")
}

func TestStopsWholeChannel_AtTheTopOfADM(t *testing.T) {
	line := func(channel, ts, root string) Line {
		return Line{LineKey: LineKey{Channel: channel, TS: ts}, Root: root}
	}
	require.True(t, StopsWholeChannel(line("D1", "1.000000", "1.000000")))
	require.False(t, StopsWholeChannel(line("D1", "2.000000", "1.000000")))
	require.False(t, StopsWholeChannel(line("C1", "1.000000", "1.000000")))
}

func FuzzIsStop(f *testing.F) {
	f.Add("<@UBOT> stop", "UBOT")
	f.Add("“stop”\xff", "")
	f.Fuzz(func(t *testing.T, text, seat string) {
		if IsStop(text, seat) && len(text) < 4 {
			t.Fatalf("%q is no stop", text)
		}
	})
}
