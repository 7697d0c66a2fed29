package github

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clip makes a text of GitHub's safe to carry: valid, without control characters, and
// of at most so many runes. What it means to a reader is escaped where it is shown (X2).
func clip(text string, runes int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) > runes {
		text = string([]rune(text)[:runes-1]) + "…"
	}
	return text
}
