package rules

import (
	"strings"
	"unicode"
)

// StopReaction is the name of the reaction that stops the turn of the line it is put
// on (D4): `:x:`.
const StopReaction = "x"

// IsStop tells whether a text, as Slack sent it, is the stop word as the whole line
// (D4): any case, trailing punctuation, any white space, quoted or emphasised or
// not, with or without a mention of the seat in front. A mention of somebody else
// in front makes it a word to somebody else.
func IsStop(text, seatUser string) bool { return isWord(text, seatUser, "stop") }

// IsStopOperator tells whether a text is the line that ends a thread's operator (O11),
// read as IsStop reads the stop word.
func IsStopOperator(text, seatUser string) bool { return isWord(text, seatUser, "stop operator") }

// isWord tells whether a text is these words and nothing else.
func isWord(text, seatUser, want string) bool {
	words, ok := wordsOf(text, seatUser)
	return ok && strings.EqualFold(words, want)
}

// StopsHere tells whether a stop word typed by author has something to stop here: in
// a DM, in a thread that the seat takes part in, or said to the seat. Elsewhere it is
// a word among people. An edit into "stop" stops nothing.
func StopsHere(line Line, author Author, self SeatIdentity, f ThreadFacts) bool {
	return IsStop(line.Text, self.BotUser) && saidHere(line, author, self, f)
}

// StopsOperatorHere tells the same of the line that ends the thread's operator (O11).
func StopsOperatorHere(line Line, author Author, self SeatIdentity, f ThreadFacts) bool {
	return IsStopOperator(line.Text, self.BotUser) && saidHere(line, author, self, f)
}

func saidHere(line Line, author Author, self SeatIdentity, f ThreadFacts) bool {
	return author == Person && line.EditedTS == "" &&
		(line.InDM() || line.Mentions(self.BotUser) || f.TakesPart(self.Name))
}

// StopsWholeChannel tells whether a stop word reaches every running turn of the
// conversation: it stands at a DM's top level (D4).
func StopsWholeChannel(line Line) bool { return line.InDM() && line.TopLevel() }

// leadingMention cuts a mention off the front of a text.
func leadingMention(text string) (user, rest string, ok bool) {
	if !strings.HasPrefix(text, "<@") {
		return "", text, false
	}
	end := strings.IndexByte(text, '>')
	if end < 0 {
		return "", text, false
	}
	user, _, _ = strings.Cut(text[2:end], "|")
	return user, text[end+1:], validID(user)
}

func trimBlank(s string) string { return strings.TrimFunc(s, blank) }

// blank is white space and what is as good as invisible: phones and copied text bring
// non-breaking spaces, zero-width marks and marks of direction.
func blank(r rune) bool {
	return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zs, r) || r == 0
}

// opening is what a quoted or emphasised word starts with.
func opening(r rune) bool {
	return strings.ContainsRune("\"'`*_~", r) || unicode.In(r, unicode.Pi, unicode.Ps)
}
