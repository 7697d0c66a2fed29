package rules

import (
	"fmt"
	"strings"
)

// SessionRow is a session in the list that `sessions` shows.
type SessionRow struct {
	SessionFact
	// Unseen: it is on another box, where nobody looked whether it runs.
	Unseen bool
}

// Called is what a session is called: its number, and its operator's name or its own.
func (s SessionFact) Called() string {
	if s.Slug != "" {
		return SessionName(s.Number, s.Slug)
	}
	return fmt.Sprintf("#%d %s", s.Number, s.Name)
}

// RelayOpenedText says where the next lines go (R1).
func RelayOpenedText(s SessionFact) string {
	where := ""
	if s.Repo != "" {
		where = " in " + EscapeText(s.Repo)
	}
	return fmt.Sprintf("Your lines here now go to %s%s, and its words come back here. A line that mentions me is mine; `stop` ends it; `sessions` shows where you are.",
		EscapeText(s.Called()), where)
}

// RelayStatus is shown while a line is on its way into a session: where it goes (R5, B7).
func RelayStatus(s SessionFact) string { return "is passing this on to " + s.Called() + "…" }

// RelayClosedText says that the lines are Smith's again (R6).
func RelayClosedText(number int) string {
	return fmt.Sprintf("The relay to #%d is closed: your lines are mine again. What it says to lines that it already has still comes here.", number)
}

// RelayEndedText says that the session of an open relay is gone (R9). It is said as that
// session's last word.
func RelayEndedText(number int) string {
	return fmt.Sprintf("Session #%d has ended, and the relay to it with it. Your lines are mine again; what it had not taken I answer myself.", number)
}

// RelayUnsureText says that nobody knows whether a line reached the session (R10).
func RelayUnsureText(number int, text string) string {
	return fmt.Sprintf("I can't tell whether session #%d got this line, so it is not sent again: %s", number, excerpt(text))
}

// RelayHeldText says why a line waits (R10).
func RelayHeldText(number int, why string) string {
	return fmt.Sprintf("Your line waits to be typed into #%d: %s. It is typed as soon as that is over; `stop` gives what waits to me.", number, EscapeText(why))
}

// RelayRefusedText says why a door stays shut, and how to go on (R1, X1).
func RelayRefusedText(why RelayRefusal, d Door, list []SessionRow) string {
	named := d.Slug
	if d.Number != 0 {
		named = fmt.Sprintf("#%d", d.Number)
	}
	switch why {
	case RefuseNotOwner:
		return "Only the owners of this machine may talk to its sessions through me. They are named in my config, under access.owners."
	case RefuseEnded:
		return fmt.Sprintf("Session %s has ended.\n\n%s", EscapeText(named), SessionsText(list, 0))
	}
	return fmt.Sprintf("I know no session %s.\n\n%s", EscapeText(named), SessionsText(list, 0))
}

// SessionsText lists the sessions; open is the number of the one that this conversation's
// lines go to, 0 for none. It is readable on a phone.
func SessionsText(list []SessionRow, open int) string {
	if len(list) == 0 {
		return "There is no session now. A thread that asks for work gets one, and `start-operator --register` in a tmux session of your own makes it one."
	}
	var b strings.Builder
	b.WriteString("Sessions:")
	for _, s := range list {
		fmt.Fprintf(&b, "\n• %s", EscapeText(s.Called()))
		if s.Repo != "" {
			fmt.Fprintf(&b, " in %s", EscapeText(s.Repo))
		}
		if s.Unseen {
			fmt.Fprintf(&b, ", on %s", EscapeText(s.Box))
		}
		if s.Number == open {
			b.WriteString(" ← your lines go here")
		}
	}
	if open == 0 {
		b.WriteString("\nYour lines here are mine. `work on N` sends them to session N.")
	} else {
		b.WriteString("\n`stop` makes your lines mine again.")
	}
	return b.String()
}
