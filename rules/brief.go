package rules

import (
	"fmt"
	"strings"
)

// Said is a line as a brief tells it: who wrote it is marked, and its text is quoted
// row by row, so that nothing in it can pass for a part of the brief (B10, X2).
type Said struct {
	TS     string
	Author Author
	// Name is how a reader knows the author, User the Slack id.
	Name, User string
	// Text is plain text: Slack's escapes are undone.
	Text string
	// Files are the paths of the line's files, relative to the agent's directory.
	Files []string
	// Unread are files that could not be fetched, each with why.
	Unread []string
}

// Brief is what an agent is told for one turn. Empty parts are left out.
type Brief struct {
	// Where says which thread this is.
	Where string
	// Operator tells what the agent has to know of the thread's operator (O11).
	Operator string
	// Earlier are the lines of the thread, or of the DM, before the first turn.
	Earlier []Said
	// Unread says why earlier lines are missing.
	Unread string
	// Noted are lines since the last turn that this seat did not answer.
	Noted []Said
	// Edited are new texts of lines that earlier turns answered.
	Edited []Said
	// Ask is the turn's part in an ask of all seats (A5).
	Ask AskBrief
	// Outbox is where the agent puts files for the thread.
	Outbox string
	// Prompt is what a schedule, a webhook or the agent itself asks.
	Prompt       string
	PromptAuthor Author
	// Lines are what this turn answers.
	Lines []Said
}

// String writes the brief. What is to be answered stands last.
func (b Brief) String() string {
	var w strings.Builder
	fmt.Fprintf(&w, "%s\nRows that begin with \"| \" are quoted from Slack: what somebody wrote there.\n", b.Where)
	if b.Operator != "" {
		fmt.Fprintf(&w, "%s\n", Visible(b.Operator))
	}
	w.WriteString(b.Ask.String())
	if b.Outbox != "" {
		fmt.Fprintf(&w, "Files that you write into %s are posted with your answer.\n", b.Outbox)
	}
	if b.Unread != "" {
		fmt.Fprintf(&w, "Earlier lines could not be read: %s\n", Visible(b.Unread))
	}
	section(&w, "Earlier lines, for context", b.Earlier)
	section(&w, "Lines since your last turn that you did not answer, for context", b.Noted)
	section(&w, "Lines that were edited after you had answered them, as they read now, for context", b.Edited)
	switch {
	case len(b.Lines) > 0:
		if b.Prompt != "" {
			fmt.Fprintf(&w, "\n## What you meant to do next\n%s\n", quote(b.Prompt))
		}
		section(&w, "Answer these lines", b.Lines)
	case b.PromptAuthor == Self:
		fmt.Fprintf(&w, "\n## Go on with what you meant to do next\n%s\n", quote(b.Prompt))
	default:
		fmt.Fprintf(&w, "\n## Do this, asked by a %s\n%s\n", b.PromptAuthor, quote(b.Prompt))
	}
	return w.String()
}

func section(w *strings.Builder, title string, lines []Said) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n## %s\n", title)
	for _, l := range lines {
		fmt.Fprintf(w, "%s at %s:\n%s\n", l.who(), l.TS, quote(l.Text))
		for _, f := range l.Files {
			fmt.Fprintf(w, "file: %s\n", Visible(f))
		}
		for _, f := range l.Unread {
			fmt.Fprintf(w, "file not fetched: %s\n", Visible(f))
		}
	}
}

func (l Said) who() string {
	// A name must not begin a row as a heading or a quotation does.
	name := strings.TrimLeft(Visible(l.Name), "#| ")
	switch {
	case l.Author == Self:
		return "You"
	case name == "" || name == l.User:
		name = Visible(l.User)
	case l.User != "":
		name += " (" + Visible(l.User) + ")"
	}
	switch l.Author {
	case Person, "":
		return name
	case Sibling:
		return name + ", another seat"
	case Outsider:
		return name + ", of another workspace"
	default:
		return name + ", a bot"
	}
}

// quote marks every row of a text as quoted.
func quote(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n").Replace(text)
	return "| " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n| ")
}

// Visible makes a short hostile text fit for one row: whatever could break the row, or
// steer a terminal, becomes a space.
func Visible(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), func(r rune) bool {
		return r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == '\u2028' || r == '\u2029'
	}), " ")
}

// SystemPrompt is what every agent is told about being a seat, before its config's own words.
func SystemPrompt(seat string, siblings []string, mayContinue bool) string {
	var w strings.Builder
	fmt.Fprintf(&w, `You are %s, an agent whose colleagues talk to you in a Slack thread. Your final message of a turn is posted there as your answer; nothing else of yours is seen. Write it for them, in standard Markdown, short and exact.
If there is nothing useful to add, make your whole final message %s and nothing is posted.
`, seat, Abstain)
	if mayContinue {
		fmt.Fprintf(&w, "To go on by yourself in another turn, end your final message with a last row of this form: %s\n", ContinueForm)
	}
	if len(siblings) > 0 {
		fmt.Fprintf(&w, "To hand a piece of work to another seat (%s), end your final message with a last row of this form: %s\n",
			strings.Join(siblings, ", "), HandOffForm)
	}
	return w.String()
}

// AskBrief is what an agent is told of its part in an ask of all seats (A5).
type AskBrief struct {
	// Drives: it answers. Else Driver, of the bot user DriverUser, has answered with Answer.
	Drives             bool
	Driver, DriverUser string
	Answer             string
}

// String writes the part, "" where there is none.
func (b AskBrief) String() string {
	switch {
	case b.Drives:
		return "This is a question to every agent here, and you were picked to answer it. Another agent reads your answer afterwards and may add to it.\n"
	case b.Driver == "":
		return ""
	}
	return fmt.Sprintf(`This is a question to every agent here. %s was picked to answer it, and has:

## The answer of %s
%s

You take one turn after it. Add only what improves that answer: a correction, a missed risk, a missing step. Do not repeat or sum up what it says. Only for a correction, begin with <@%s>. If there is nothing to add, your whole final message is %s.
`, Visible(b.Driver), Visible(b.Driver), quote(b.Answer), b.DriverUser, Abstain)
}
