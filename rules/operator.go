package rules

import (
	"encoding/json"
	"fmt"
	"strings"
)

// WorkDisposition is what the classifier says of a line (O2). Only an explicit kind of
// work may spawn; Unavailable marks a classifier that never said anything, so that its
// silence is not taken for a verdict.
type WorkDisposition struct {
	Kind string `json:"kind"`
	// Slug and Repo are "" where nothing usable was said.
	Slug        string `json:"slug"`
	Repo        string `json:"repo"`
	Unavailable bool   `json:"unavailable,omitempty"`
}

// The kinds of a WorkDisposition.
const (
	KindWork     = "work"
	KindQuestion = "question"
)

// NoDisposition is a classifier's outage: a question, since an outage is no evidence of
// work, and marked as one (O2).
func NoDisposition() WorkDisposition {
	return WorkDisposition{Kind: KindQuestion, Unavailable: true}
}

// ReadDisposition reads the classifier's answer, which a hostile line may have written.
// What cannot be read, or is of no known kind, is an outage and spawns nothing. A slug or
// a repo that is no name is dropped; the kind stands (O2, X2).
func ReadDisposition(answer []byte) WorkDisposition {
	var got struct {
		Kind *string `json:"kind"`
		Slug string  `json:"slug"`
		Repo string  `json:"repo"`
	}
	if json.Unmarshal(answer, &got) != nil || got.Kind == nil {
		return NoDisposition()
	}
	d := WorkDisposition{Kind: *got.Kind}
	switch d.Kind {
	case KindQuestion:
		return d
	case KindWork:
	default:
		return NoDisposition()
	}
	if ValidSlug(got.Slug) {
		d.Slug = got.Slug
	}
	if validRepo(got.Repo) {
		d.Repo = got.Repo
	}
	return d
}

// validRepo tells whether a text can be a checkout's name: it is looked up, never used.
func validRepo(s string) bool {
	return s != "" && len(s) <= 100 && SafeFileName(s) == s
}

// Disposition is what became of a human turn's operator (O3).
type Disposition string

// The seven dispositions.
const (
	DispQuestion    Disposition = "question"    // nothing to do
	DispBound       Disposition = "bound"       // an operator runs already
	DispSpawned     Disposition = "spawned"     // one was started
	DispUnbound     Disposition = "unbound"     // work, and none could be bound: said
	DispDisabled    Disposition = "disabled"    // switched off (O5)
	DispUnscoped    Disposition = "unscoped"    // work in no checkout that is known: said
	DispUnavailable Disposition = "unavailable" // the classifier did not answer: said
)

// HumanTurnFacts are what O1 asks of a line.
type HumanTurnFacts struct {
	Author       Author
	IsCron       bool
	SiblingHop   int
	SelfDriveHop int
	// Reportable: the thread has somewhere to report to.
	Reportable bool
	// StoodDown: the line is a session's, not the brain's (R4).
	StoodDown bool
}

// HumanTurn tells whether a line is one that may bind an operator (O1).
func HumanTurn(f HumanTurnFacts) bool {
	return f.Author == Person &&
		!f.IsCron &&
		f.SiblingHop == 0 &&
		f.SelfDriveHop == 0 &&
		f.Reportable &&
		!f.StoodDown
}

// Checkout is a git checkout that agents may write in.
type Checkout struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// ResolveCheckout looks a repo up by its exact name in the closed set (O4). There is no
// default, no prefix and no guess, and two checkouts of one name are none.
func ResolveCheckout(set []Checkout, asked string) (Checkout, bool) {
	var found []Checkout
	for _, c := range set {
		if asked != "" && c.Name == asked {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		return Checkout{}, false
	}
	return found[0], true
}

// Operator is the agent in a tmux session that works on one thread's task.
type Operator struct {
	// Number names the session for good: no other ever has it.
	Number int    `json:"number,omitempty"`
	Slug   string `json:"slug,omitempty"`
	Repo   string `json:"repo,omitempty"`
	Box    string `json:"box,omitempty"`
	Seat   string `json:"seat,omitempty"`
	Thread Thread `json:"thread,omitzero"`
	// Session is the session's identity, a UUID that stands in its environment.
	Session  string `json:"session,omitempty"`
	Worktree string `json:"worktree,omitempty"`
	Branch   string `json:"branch,omitempty"`
	// Attach is the command that shows the session to a person on its box.
	Attach string `json:"attach,omitempty"`
	// Asked is the ts of the newest line in its brief: no line up to there is typed into it.
	Asked string `json:"asked,omitempty"`
}

// OperatorName is the tmux session's name of an operator.
func OperatorName(slug string) string { return "op-" + slug }

// BranchOf is the branch that an operator works on.
func BranchOf(slug string) string { return "smith/" + slug }

// SessionName is what people call a session by.
func SessionName(number int, slug string) string {
	if number == 0 {
		return OperatorName(slug)
	}
	return fmt.Sprintf("#%d %s", number, OperatorName(slug))
}

// Why a gap is a gap. Of unscoped the why is the repo that was named.
const (
	GapLauncher   = "launcher"
	GapStore      = "store"
	GapTask       = "task"
	GapBusy       = "busy"
	GapTaken      = "taken"
	GapLimit      = "limit"
	GapLost       = "lost"
	GapElsewhere  = "elsewhere"
	GapNotAllowed = "not_allowed"
	GapClassifier = "classifier"
)

// OperatorLine says which operator works on the thread (O3).
func OperatorLine(o Operator, d Disposition) string {
	verb := "works on this"
	if d == DispSpawned {
		verb = "was started for this"
	}
	line := fmt.Sprintf("Operator %s %s in %s.", SessionName(o.Number, o.Slug), verb, o.Repo)
	if o.Attach != "" {
		line += fmt.Sprintf(" To watch it on %s: `%s`.", o.Box, o.Attach)
	}
	return line
}

// GapLine is the one honest line of work that has no operator: the gap, and how to
// recover; "" where nothing is missing (O3).
func GapLine(d Disposition, why string) string {
	switch d {
	case DispUnscoped:
		if why == "" {
			return "No operator was started: this names no repository that I may write in. Name one of them, and it starts with your next line."
		}
		return fmt.Sprintf("No operator was started: %s is not a repository that I may write in here. Name one that is, and it starts with your next line.", code(why))
	case DispUnavailable:
		return "I could not tell whether this asks for work, so no operator was started. Write again in a moment to have it looked at once more."
	case DispUnbound:
		return "No operator was started: " + gapCause(why)
	}
	return ""
}

func gapCause(why string) string {
	switch why {
	case GapNotAllowed:
		return "you are not among the people who may start one here. Somebody who is can write in this thread."
	case GapLimit:
		return "as many run as may run here. Write again when one has ended."
	case GapTaken:
		return "another thread's operator has this task's name. Ask there, or describe the task in other words."
	case GapBusy:
		return "somebody else is starting one for this thread right now. Write again in a moment."
	case GapStore:
		return "I could not reach my store. Write again in a moment."
	case GapTask:
		return "it runs, and what follows its work could not be told. Write again in a moment to have it followed."
	case GapElsewhere:
		return "another box of mine has this thread's, and I can't look at it from here. Write `stop operator` first, then ask again."
	case GapLost:
		return "I was interrupted, and can't tell how far it came. Write again: I look for it first."
	default:
		return "starting one failed on my box. Write again to have it tried once more."
	}
}

// OperatorStoppedText says what became of an operator that somebody stopped (O11).
// That of another box is ended there, when its worker hears of it.
func OperatorStoppedText(o *Operator, failed, elsewhere bool) string {
	switch {
	case failed:
		return "I could not confirm that the operator ended. Write `stop operator` again to have it tried once more."
	case o == nil:
		return "No operator works on this thread."
	}
	text := fmt.Sprintf("Stopped operator %s.", SessionName(o.Number, o.Slug))
	if elsewhere {
		text = fmt.Sprintf("Operator %s is on box %s, which was told to end it; I can't see from here that it did.", SessionName(o.Number, o.Slug), code(o.Box))
	}
	if o.Branch != "" {
		text += fmt.Sprintf(" What it did stands on the branch `%s` in %s.", o.Branch, o.Repo)
	}
	return text + " This thread is free for another one."
}

// OperatorBrief is what an operator is told to do (O9).
func OperatorBrief(ask, link string) string {
	var w strings.Builder
	w.WriteString("Task from a Slack thread. Rows that begin with \"| \" are quoted from Slack: what somebody wrote there.\n\n")
	w.WriteString(quote(ask))
	w.WriteString("\n\n")
	if link != "" {
		fmt.Fprintf(&w, "The thread: %s\n", Visible(link))
	}
	return w.String()
}

// DepositText makes a session's word safe to post: what a terminal would read is taken
// out (X2, R11).
func DepositText(text string) string {
	return strings.TrimSpace(StripControls(text))
}

// UnsureText tells of a line that may or may not have reached the operator (R10).
func UnsureText(o Operator, line string) string {
	return fmt.Sprintf("I can't tell whether operator %s got this line, so it is not sent again: %s", SessionName(o.Number, o.Slug), excerpt(line))
}

// excerpt is the beginning of a line, as code.
func excerpt(line string) string {
	line = Visible(line)
	if runes := []rune(line); len(runes) > 80 {
		line = string(runes[:80]) + "…"
	}
	return code(line)
}

// BlockedText tells that an operator waits for a person (O10).
func BlockedText(o Operator) string {
	text := fmt.Sprintf("Operator %s waits for a person: a dialog is open in its terminal, and I don't answer those.", SessionName(o.Number, o.Slug))
	if o.Attach != "" {
		text += fmt.Sprintf(" On %s: `%s`.", o.Box, o.Attach)
	}
	return text
}

// DeadText tells that an operator's session is gone, and how many lines wait for the next
// one in its place (O10).
func DeadText(o Operator, waiting int) string {
	text := fmt.Sprintf("Operator %s has ended before its work was done. Its branch and worktree stand; your next line that asks for work starts it again there.", SessionName(o.Number, o.Slug))
	if waiting > 0 {
		text += fmt.Sprintf(" %s not reached it, and will be passed on then.", linesHave(waiting))
	}
	return text
}

// UntypedText tells that lines never reached an operator that is over (O11).
func UntypedText(o Operator, n int) string {
	return fmt.Sprintf("%s not reached operator %s, and will not: it is over.", linesHave(n), SessionName(o.Number, o.Slug))
}

func linesHave(n int) string {
	if n == 1 {
		return "1 line has"
	}
	return fmt.Sprintf("%d lines have", n)
}

// Why a task is over.
const (
	OverMerged  = "merged"
	OverClosed  = "closed" // its pull request, without a merge
	OverStopped = "stopped"
	OverGaveUp  = "gave_up"
	OverGone    = "gone" // the thread is another operator's, or nobody's
)

// TaskOverText is the final line of a task, "" where somebody else has said it (O10).
func TaskOverText(o Operator, why string, f PhaseFacts) string {
	name := SessionName(o.Number, o.Slug)
	switch why {
	case OverMerged:
		return strings.TrimSpace(fmt.Sprintf("Operator %s is done: #%d is merged. %s", name, f.Pull, f.PullURL))
	case OverClosed:
		return strings.TrimSpace(fmt.Sprintf("Operator %s is done: #%d was closed without a merge. %s", name, f.Pull, f.PullURL))
	case OverGaveUp:
		return fmt.Sprintf("I stopped following operator %s: its session has been gone for too long. Its branch stands; ask for the work again to start anew.", name)
	}
	return ""
}

// OperatorNote tells the brain's agent what is bound to the thread, or that nothing could
// be, so that two do not do one piece of work (O11).
func OperatorNote(o *Operator, d Disposition) string {
	switch {
	case o != nil && d == DispSpawned:
		return fmt.Sprintf("Operator %s, another agent with a terminal and a worktree of %s, was just started for the work that these lines ask for. Don't do that work yourself: say in a sentence or two what it will do.", SessionName(o.Number, o.Slug), o.Repo)
	case o != nil:
		return fmt.Sprintf("Operator %s, another agent with a terminal and a worktree of %s, works on this thread's task. It is given these lines too, and posts its own words here. Don't do its work: answer what is asked of you, else answer %s.", SessionName(o.Number, o.Slug), o.Repo, Abstain)
	case d == DispUnbound || d == DispUnscoped || d == DispUnavailable:
		return "No operator could be started for this thread; a line below your answer says why. Answer as well as you can without doing work in a repository."
	}
	return ""
}
