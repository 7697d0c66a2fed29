package rules

import (
	"regexp"
	"strings"
)

// What an agent may end its answer with to tell the runtime something (B4, D2). The
// brief explains them to the agent.
const (
	// Abstain is the whole answer of an agent that has nothing to add.
	Abstain = "[nothing to add]"
	// ContinueForm and HandOffForm are last lines of an answer.
	ContinueForm = "[continue: what you will do next]"
	HandOffForm  = "[hand off to <seat>: what you ask of it]"
)

// AgentAnswer is an agent's answer as the runtime reads it.
type AgentAnswer struct {
	// Text is what people see.
	Text      string
	Abstained bool
	// Continue is what the agent wants to do next in the thread, "" for nothing.
	Continue string
	// HandOffTo is the seat that is asked to go on, "" for none; HandOff is what it is asked.
	HandOffTo string
	HandOff   string
}

var (
	continueLine = regexp.MustCompile(`(?i)^\[continue:\s*(.+)\]$`)
	handOffLine  = regexp.MustCompile(`(?i)^\[hand off to ([a-z][a-z0-9-]*):\s*(.+)\]$`)
)

// ParseAnswer reads what an agent answered. Anything that is not one of the known
// last lines is text: an answer is never lost to a misread sentinel. seats are the
// seats that a hand-off may name; another name is left standing as text.
func ParseAnswer(answer string, seats []string) AgentAnswer {
	text := strings.TrimSpace(answer)
	if text == "" || strings.EqualFold(text, Abstain) {
		return AgentAnswer{Abstained: true}
	}
	rest, last := cutLastLine(text)
	if m := continueLine.FindStringSubmatch(last); m != nil && strings.TrimSpace(m[1]) != "" {
		return AgentAnswer{Text: rest, Continue: strings.TrimSpace(m[1])}
	}
	if m := handOffLine.FindStringSubmatch(last); m != nil && strings.TrimSpace(m[2]) != "" {
		for _, seat := range seats {
			if strings.EqualFold(seat, m[1]) {
				return AgentAnswer{Text: rest, HandOffTo: seat, HandOff: strings.TrimSpace(m[2])}
			}
		}
	}
	return AgentAnswer{Text: text}
}

func cutLastLine(text string) (rest, last string) {
	i := strings.LastIndexByte(text, '\n')
	return strings.TrimSpace(text[:i+1]), strings.TrimSpace(text[i+1:])
}
