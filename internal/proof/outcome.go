package proof

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Verdict says how a replay went.
type Verdict string

// The verdicts, from the best to the worst.
const (
	// Green: the code gives what the history holds, as far as the SDK looks.
	Green Verdict = "green"
	// FalseRed: the replay failed, and by its set-up, not by the code.
	FalseRed Verdict = "false red"
	// Stranded: the code gives something else than the history holds; a run under way would be stuck.
	Stranded Verdict = "stranded"
	// Panic: the code panicked by itself.
	Panic Verdict = "panic"
	// Hung: the replay did not end in time.
	Hung Verdict = "hung"
)

func (v Verdict) rank() int {
	for i, o := range []Verdict{Green, FalseRed, Stranded, Panic, Hung} {
		if v == o {
			return i
		}
	}
	return 0
}

// NonDeterminism is the code that the SDK puts on a strand.
const NonDeterminism = "TMPRL1100"

// Outcome is how the replays of one history went; of several runs the worst.
type Outcome struct {
	Verdict Verdict
	// Runs counts the replays, Greens those that were green: fewer than Runs but not none
	// means that the code does not do the same each time.
	Runs, Greens int
	// Code is NonDeterminism where the SDK itself tells the strand; a run that only ends
	// otherwise has none.
	Code string
	// Command is the diverging command: what the code gave, or what was missing.
	Command string
	// Event is the event where the histories part; 0 when it cannot be told. It says where
	// they part, not what broke.
	Event int64
	// Reason says a false red's cause, or a strand's, in words.
	Reason string
	Err    error
}

// Sometimes tells whether the runs did not all go alike.
func (o Outcome) Sometimes() bool { return o.Greens > 0 && o.Greens < o.Runs }

// String says an outcome in a few words.
func (o Outcome) String() string {
	var b strings.Builder
	b.WriteString(string(o.Verdict))
	if o.Event != 0 {
		fmt.Fprintf(&b, " at event %d", o.Event)
	}
	if o.Command != "" {
		fmt.Fprintf(&b, " (%s)", o.Command)
	}
	if o.Sometimes() {
		fmt.Fprintf(&b, ", green in %d of %d", o.Greens, o.Runs)
	}
	if o.Reason != "" {
		b.WriteString(": " + o.Reason)
	}
	return b.String()
}

// shapes are the SDK's words. They are matched here and nowhere else.
type shapes struct {
	event, missing, extra, position, name, setup *regexp.Regexp
}

func newShapes() shapes {
	return shapes{
		event:    regexp.MustCompile(`history event is (\w+): .*?, replay command is (\w+): (.*)`),
		missing:  regexp.MustCompile(`missing replay command for (\w+): (.*)`),
		extra:    regexp.MustCompile(`extra replay command for (\w+): (.*)`),
		position: regexp.MustCompile(`a matching (\w+) command was expected in history event position (\S+?)\.`),
		name:     regexp.MustCompile(`(?:ActivityType|WorkflowType):\((?:[^()]*?)Name:([^,)]+)|(?:SignalName|MarkerName|TimerId):([^,)]+)`),
		setup: regexp.MustCompile(`unable to find workflow type|empty events|at least 3 events expected|` +
			`first event is not WorkflowExecutionStarted|corrupted WorkflowExecutionStarted|missing history events|` +
			`unable to decode|unknown.*[Pp]ayload|unregistered`),
	}
}

// classify reads one replay's error.
func (s shapes) classify(err error) Outcome {
	o := Outcome{Runs: 1, Err: err}
	if err == nil {
		o.Verdict, o.Greens = Green, 1
		return o
	}
	msg := err.Error()
	switch {
	case s.setup.MatchString(msg):
		o.Verdict, o.Reason = FalseRed, firstLine(msg)
	case strings.Contains(msg, NonDeterminism):
		o.Verdict, o.Code = Stranded, NonDeterminism
		s.strand(&o, msg)
	case strings.Contains(msg, "doesn't return the same result as the last event"):
		o.Verdict, o.Reason = Stranded, "the run ends otherwise, or not at all"
	default:
		o.Verdict, o.Reason = Panic, firstLine(msg)
	}
	return o
}

func (s shapes) strand(o *Outcome, msg string) {
	if m := s.event.FindStringSubmatch(msg); m != nil {
		o.Command = m[2] + s.nameIn(m[3])
		o.Reason = "the history has " + m[1] + s.nameIn(msg[:strings.Index(msg, ", replay command is")])
		return
	}
	if m := s.missing.FindStringSubmatch(msg); m != nil {
		o.Command, o.Reason = m[1]+s.nameIn(m[2]), "the code no longer gives it"
		return
	}
	if m := s.extra.FindStringSubmatch(msg); m != nil {
		o.Command, o.Reason = m[1]+s.nameIn(m[2]), "the history has no such event"
		return
	}
	if m := s.position.FindStringSubmatch(msg); m != nil {
		o.Command, o.Reason = m[1], "the code no longer gives it"
		o.Event, _ = strconv.ParseInt(m[2], 10, 64)
		return
	}
	at := strings.Index(msg, NonDeterminism)
	o.Reason = firstLine(strings.TrimLeft(msg[at+len(NonDeterminism):], "] "))
}

func (s shapes) nameIn(text string) string {
	m := s.name.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	for _, g := range m[1:] {
		if g != "" {
			return " " + g
		}
	}
	return ""
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 300 {
		s = s[:297] + "..."
	}
	return s
}
