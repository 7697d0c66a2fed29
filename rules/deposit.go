package rules

import "strings"

// terminalPrefix begins every text that is typed into a session.
const terminalPrefix = "Line from "

// maxTerminalName bounds a person's name before a line, in runes.
const maxTerminalName = 60

// TerminalLine is a person's line as it is typed into a session: who wrote it, and then
// the text, safe as PlainForTerminal makes it. from is a display name (R10, X2).
func TerminalLine(from, text string) string {
	name := strings.Join(strings.Fields(plainForTerminal(from)), " ")
	if r := []rune(name); len(r) > maxTerminalName {
		name = string(r[:maxTerminalName])
	}
	if name == "" {
		name = "somebody"
	}
	return terminalPrefix + name + " in Slack: " + typed(text)
}

// PlainForTerminal makes a text safe to paste into a session (R10). Nothing in it steers a
// terminal or ends a paste: no control character is left but the newline. It begins with a
// fixed prefix, since an agent CLI takes a text that begins with "!", "/", "#" or "@" for
// more than words, and "exit" alone for an order. Its further rows begin with "| ". It
// leaves what TerminalLine made as it is.
func PlainForTerminal(text string) string {
	if rest, ok := strings.CutPrefix(text, terminalPrefix); ok {
		return terminalPrefix + typed(rest)
	}
	return terminalPrefix + "Slack: " + typed(text)
}

// typed makes the rows of a text safe. Enter behind a last backslash is taken for one more
// row and sends nothing, so none stands last.
func typed(text string) string {
	rows := strings.Split(plainForTerminal(text), "\n")
	for i, row := range rows {
		row = strings.TrimRight(row, " ")
		if i > 0 && row != "|" && !strings.HasPrefix(row, "| ") {
			row = "| " + row
		}
		rows[i] = strings.TrimRight(row, " ")
	}
	text = strings.Join(rows, "\n")
	if strings.HasSuffix(text, `\`) {
		text += " (end)"
	}
	return text
}

// plainForTerminal takes out what is no text: control characters, what reverses the order
// of reading, and what a person would not see and an agent would read.
func plainForTerminal(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\t", "    ").Replace(text)
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case unseen(r):
			return -1
		}
		return r
	}, StripControls(text))
	return strings.TrimSpace(text)
}

// unseen tells of marks of direction, empty characters and tags. The joiners stay: Persian
// and emoji are written with them.
func unseen(r rune) bool {
	switch {
	case r == 0x00ad, r == 0x061c, r == 0x180e, r == 0x200b, r == 0x200e, r == 0x200f, r == 0xfeff:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}
