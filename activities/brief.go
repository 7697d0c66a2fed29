package activities

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"agentsmith/rules"
)

// How much of what went before an agent is told (B10).
const (
	earlierInThread = 200
	earlierInDM     = 20
	notedLines      = 100
)

// brief writes what the agent is told. What cannot be read is said to be missing; it
// does not stop the turn.
func (a *Agent) brief(ctx context.Context, seat *Seat, in RunAgentInput, lines []rules.Line, last string, dir ThreadDir) rules.Brief {
	t := in.Turn.Thread
	w := briefing{agent: a, seat: seat, names: map[string]string{}}
	b := rules.Brief{
		Where:    fmt.Sprintf("You are @%s (%s) in the Slack channel %s, thread %s.", seat.Name, seat.BotUser, t.Channel, t.Root),
		Operator: rules.OperatorNote(in.Operator, in.Disposition),
		Prompt:   in.Prompt, PromptAuthor: in.Author,
	}
	if rel, err := filepath.Rel(dir.Path, dir.Outbox); err == nil {
		b.Outbox = rel
	}
	if w := in.Work; w != nil {
		b.Ask = rules.AskBrief{Drives: w.Drives(), Driver: w.Driver, DriverUser: w.driverUser(), Answer: in.driverSaid}
	}
	authors := map[string]rules.Author{}
	for _, l := range in.Turn.Lines {
		authors[l.Line.TS] = l.Author
	}
	taken := map[string]bool{}
	for _, l := range lines {
		taken[l.TS] = true
		if in.Work != nil {
			if question, ok := rules.Question(l, rules.Person, in.Work.Ask.Dispatcher); ok {
				l.Text = question
			}
		}
		said := w.said(ctx, l, authors[l.TS])
		said.Files, said.Unread = a.fetch(ctx, seat, dir, l)
		b.Lines = append(b.Lines, said)
	}
	switch {
	case last != "":
		b.Noted = w.noted(ctx, in, last, taken)
	case t.Root != "":
		b.Earlier, b.Unread = w.earlier(ctx, t, lines, taken)
	}
	for _, e := range in.Edits {
		b.Edited = append(b.Edited, rules.Said{TS: e.TS, Author: rules.Person, Name: "a person", Text: w.plain(ctx, e.Text)})
	}
	return b
}

// briefing turns lines into what a reader sees, asking Slack once for each name.
type briefing struct {
	agent *Agent
	seat  *Seat
	names map[string]string
}

// earlier reads what stands before a first turn: the thread's lines, or, for a new DM
// root, the conversation's latest.
func (w *briefing) earlier(ctx context.Context, t rules.Thread, lines []rules.Line, taken map[string]bool) (said []rules.Said, unread string) {
	first := ""
	if len(lines) > 0 {
		first = lines[0].TS
	}
	newRoot := first == t.Root
	read := w.seat.Slack.Replies(ctx, t.Channel, t.Root, "")
	keep := earlierInThread
	switch {
	case newRoot && strings.HasPrefix(t.Channel, "D"):
		read = w.seat.Slack.History(ctx, t.Channel, "", earlierInDM+1)
		keep = earlierInDM
	case newRoot:
		return nil, ""
	}
	var before []rules.Line
	for l, err := range read {
		if err != nil {
			w.agent.Log.Warn("earlier lines could not be read", "channel", t.Channel, "thread", t.Root, "error", err)
			unread = "Slack did not hand them out."
			break
		}
		if taken[l.TS] || first != "" && rules.CompareTS(l.TS, first) > 0 {
			continue
		}
		before = append(before, l)
	}
	for _, l := range before[max(0, len(before)-keep):] {
		said = append(said, w.said(ctx, l, w.author(l)))
	}
	return said, unread
}

// noted are the lines since the last turn that nobody answered (D3).
func (w *briefing) noted(ctx context.Context, in RunAgentInput, last string, taken map[string]bool) []rules.Said {
	noted, err := w.agent.Ledger.UnansweredSince(ctx, in.Turn.Seat, in.Turn.Thread, last, notedLines)
	if err != nil {
		w.agent.Log.Warn("lines since the last turn could not be read", "thread", in.Turn.Thread.Root, "error", err)
		return nil
	}
	var out []rules.Said
	for _, l := range noted {
		if !taken[l.Line.TS] && l.Author != rules.Self {
			out = append(out, w.said(ctx, l.Line, l.Author))
		}
	}
	return out
}

// author tells who wrote a line that came from a read and not through a door.
func (w *briefing) author(l rules.Line) rules.Author {
	if l.User == w.seat.BotUser {
		return rules.Self
	}
	for _, user := range w.agent.Seats.BotUsers {
		if user != "" && user == l.User {
			return rules.Sibling
		}
	}
	switch {
	case l.BotID != "":
		return rules.OtherBot
	case l.UserTeam != "" && l.UserTeam != l.Team:
		return rules.Outsider
	}
	return rules.Person
}

func (w *briefing) said(ctx context.Context, l rules.Line, author rules.Author) rules.Said {
	if author == "" {
		author = w.author(l)
	}
	if asker, ok := rules.OldAsk(l); ok && asker != "" && (author == rules.Self || author == rules.Sibling) {
		author, l.User = rules.Person, asker // it is their line, whoever posted it (A8)
	}
	return rules.Said{
		TS: l.TS, Author: author, Name: w.name(ctx, l.User), User: l.User, Text: w.plain(ctx, l.Text),
	}
}

func (w *briefing) plain(ctx context.Context, text string) string {
	return rules.PlainText(text, func(user string) string { return w.name(ctx, user) })
}

// maxNames bounds how many people one brief asks Slack about: a line can mention thousands.
const maxNames = 50

func (w *briefing) name(ctx context.Context, user string) string {
	if user == "" {
		return ""
	}
	if user == w.seat.BotUser {
		return w.seat.Name
	}
	if name, known := w.names[user]; known {
		return name
	}
	if len(w.names) >= maxNames {
		return ""
	}
	w.names[user] = ""
	if p, err := w.seat.Slack.User(ctx, user); err == nil {
		w.names[user] = p.Name
	}
	return w.names[user]
}
