package terminal

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// What a person is told of a text that is held.
const (
	reasonDialog  = "a question or another screen is open in the terminal, and an Enter there would answer it"
	reasonMode    = "somebody scrolls there"
	reasonBusy    = "the screen of the terminal does not stand still"
	reasonEarlier = "a line from before still waits in the input box"
	reasonDraft   = "somebody has a text of their own in the input box"
	reasonTwice   = "an old input box is still shown above the new one; Ctrl+L there takes it away"
)

// inputBox is what the agent CLI shows for a person to type into, as the screen has it:
//
//	────────────────
//	❯ text
//	  its further rows
//	────────────────
//
// A dialog takes its place, so that no box means that Enter would answer something else.
type inputBox struct {
	row, end int    // its first text row, and the rule below the last, from 0
	text     string // without what is only suggested
}

// promptMark begins the input box. What was entered before begins with a plain space
// behind the sign, and so do the options of a dialog.
const promptMark = "❯\u00a0"

const ruleMark = "────────"

// findBox finds the input box that the cursor is in.
func findBox(screen string, cursor int) (inputBox, bool) {
	rows := strings.Split(strings.TrimSuffix(screen, "\n"), "\n")
	if cursor < 0 || cursor >= len(rows) {
		return inputBox{}, false
	}
	plain := make([]string, len(rows))
	for i, row := range rows {
		plain[i] = solid(row, false)
	}
	top, bottom := cursor, cursor
	for top >= 0 && !strings.HasPrefix(plain[top], ruleMark) {
		top--
	}
	for bottom < len(rows) && !strings.HasPrefix(plain[bottom], ruleMark) {
		bottom++
	}
	if top < 0 || bottom == len(rows) || bottom-top < 2 || !strings.HasPrefix(plain[top+1], promptMark) {
		return inputBox{}, false
	}
	var text []string
	for i := top + 1; i < bottom; i++ {
		row := solid(rows[i], true)
		switch {
		case i == top+1:
			row = strings.TrimPrefix(row, promptMark)
		case strings.TrimSpace(row) == "":
			row = ""
		case strings.HasPrefix(row, "  "):
			row = row[2:]
		default:
			return inputBox{}, false
		}
		text = append(text, strings.TrimRightFunc(row, unicode.IsSpace))
	}
	return inputBox{row: top + 1, end: bottom, text: strings.TrimSpace(strings.Join(text, "\n"))}, true
}

// twice tells whether an input box from before stands above this one, as after the CLI was
// suspended and continued: tmux finds the first that it sees, and so can't tell whether this
// one is still there (see still).
func twice(screen string, box inputBox) bool {
	for i, row := range strings.Split(screen, "\n") {
		if i < box.row && strings.HasPrefix(solid(row, false), promptMark) {
			return true
		}
	}
	return false
}

// outside returns the glyphs of a screen but for its input box.
func outside(screen string, box inputBox) string {
	var b strings.Builder
	for i, row := range strings.Split(screen, "\n") {
		if i < box.row || i > box.end {
			b.WriteString(glyphs(solid(row, false)))
		}
	}
	return b.String()
}

// solid returns the characters of a row that was captured with its attributes. Without
// the suggested ones, dim characters are left out, and the one under the cursor that
// dim ones follow.
func solid(row string, withoutSuggested bool) string {
	var out []rune
	var dim, inverse, underCursor bool
	for rest := row; rest != ""; {
		if params, after, ok := sgr(rest); ok {
			dim, inverse = attributes(params, dim, inverse)
			rest = after
			continue
		}
		r, n := utf8.DecodeRuneInString(rest)
		rest = rest[n:]
		if r < ' ' || r == utf8.RuneError {
			continue
		}
		if dim && withoutSuggested {
			if underCursor {
				out, underCursor = out[:len(out)-1], false
			}
			continue
		}
		underCursor = inverse
		out = append(out, r)
	}
	return string(out)
}

// sgr cuts an escape sequence that sets attributes, or any other, from the front.
func sgr(s string) (params, after string, ok bool) {
	if s[0] != '\x1b' {
		return "", s, false
	}
	const noAttribute = "1"            // bold, which does not count here
	if strings.HasPrefix(s, "\x1b]") { // a link; tmux ends it by ESC \
		_, after, _ := strings.Cut(s, "\x1b\\")
		return noAttribute, after, true
	}
	if !strings.HasPrefix(s, "\x1b[") {
		return noAttribute, s[1:], true
	}
	for i := 2; i < len(s); i++ {
		if s[i] >= '@' && s[i] <= '~' {
			if s[i] == 'm' {
				return s[2:i], s[i+1:], true
			}
			return noAttribute, s[i+1:], true
		}
	}
	return noAttribute, "", true
}

func attributes(params string, dim, inverse bool) (bool, bool) {
	codes := strings.FieldsFunc(params, func(r rune) bool { return r == ';' || r == ':' })
	if len(codes) == 0 {
		return false, false
	}
	for i := 0; i < len(codes); i++ {
		n, _ := strconv.Atoi(codes[i])
		switch n {
		case 0:
			dim, inverse = false, false
		case 2:
			dim = true
		case 22:
			dim = false
		case 7:
			inverse = true
		case 27:
			inverse = false
		case 38, 48, 58: // a colour, by number or by its parts
			if i+1 < len(codes) && codes[i+1] == "5" {
				i += 2
			} else if i+1 < len(codes) && codes[i+1] == "2" {
				i += 4
			}
		}
	}
	return dim, inverse
}

// glyphs is what of a text can be compared with a screen: a terminal breaks rows where it
// likes, and draws emoji and accents in its own way.
func glyphs(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r > ' ' && r < 0x7f {
			return r
		}
		return -1
	}, norm.NFC.String(text))
}

// rowsMore is how many rows a text has after its first, "" for none.
func rowsMore(text string) string {
	n := strings.Count(text, "\n")
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
