package rules

import (
	"fmt"
	"strings"
)

// The bounds of what a classifier is told, in runes and in names.
const (
	maxClassified   = 6000
	maxClassEarlier = 3000
	maxClassRepos   = 200
)

// ToClassify is what the classifier is told of a person's lines (O2). All of it but the
// names of the repositories may be hostile.
type ToClassify struct {
	// Text is what the person wrote, as plain text.
	Text string
	// Earlier is what was asked in the thread before and came to no operator, so that a
	// line that only names the repository is understood.
	Earlier string
	// Repos are the names of the checkouts that a line may name (O4).
	Repos []string
}

// String writes it. What somebody wrote is quoted row by row, so that none of it can pass
// for a part of the prompt, and its middle is left out where it is too long (X2).
func (c ToClassify) String() string {
	var w strings.Builder
	w.WriteString("## Repositories\n")
	for _, name := range c.Repos[:min(len(c.Repos), maxClassRepos)] {
		fmt.Fprintf(&w, "- %s\n", Visible(name))
	}
	if len(c.Repos) == 0 {
		w.WriteString("None.\n")
	}
	if strings.TrimSpace(c.Earlier) != "" {
		fmt.Fprintf(&w, "\n## Asked earlier in this thread\n%s\n", quote(middleOut(c.Earlier, maxClassEarlier)))
	}
	fmt.Fprintf(&w, "\n## New lines\n%s\n", quote(middleOut(c.Text, maxClassified)))
	return w.String()
}

// middleOut makes a text plain and leaves out its middle where it has more than limit runes.
func middleOut(text string, limit int) string {
	text = plainForTerminal(text)
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	head, tail := limit*2/3, limit/3
	return fmt.Sprintf("%s\n(%d characters are left out here)\n%s",
		string(runes[:head]), len(runes)-head-tail, string(runes[len(runes)-tail:]))
}
