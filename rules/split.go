package rules

import (
	"regexp"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SplitText cuts a long text into parts of at most limit, as TextLen counts, and
// loses nothing of it (B4): the parts, without the code fences that were added, are
// the text, but for a part that would be blank. It cuts between paragraphs if it can, else between lines, sentences, words, and
// only then inside a word, but never inside a character, be it an emoji of many code
// points. A code block that is cut is closed, and opened again in the next part. The
// same text is always cut the same way: a part's number is part of a post's name (B5).
// A limit under 100 is taken as 100. A blank text has no parts.
func SplitText(text string, limit int) []string {
	var parts []string
	for _, p := range split(text, max(limit, 100)) {
		// Slack takes no blank message.
		if strings.TrimSpace(p.body) != "" {
			parts = append(parts, p.before+p.body+p.after)
		}
	}
	return parts
}

// piece is a part of a text, with the fences that were added around it.
type piece struct{ before, body, after string }

func split(text string, limit int) []piece {
	var pieces []piece
	lines := scanLines(text)
	for pos := 0; pos < len(text); {
		before := fenceAt(lines, pos).open()
		end := pos + cut(text[pos:], pos, lines, limit-TextLen(before))
		p := piece{before: before, body: text[pos:end]}
		if end < len(text) {
			p.after = fenceAt(lines, end).close(p.body)
		}
		pieces = append(pieces, p)
		pos = end
	}
	return pieces
}

// fence is a code block that is open at some place; the zero value is none.
type fence struct{ indent, marks, info string }

// maxFence is how long a fence's parts may be to be repeated: a stranger one is not.
const maxFence = 24

func (f fence) none() bool { return f.marks == "" }

func (f fence) open() string {
	if f.none() {
		return ""
	}
	return f.indent + f.marks + f.info + "\n"
}

func (f fence) close(body string) string {
	if f.none() {
		return ""
	}
	if strings.HasSuffix(body, "\n") {
		return f.indent + f.marks
	}
	return "\n" + f.indent + f.marks
}

// textLine is one line of a text: where it starts, and the code block that is open
// before it and after it.
type textLine struct {
	start         int
	before, after fence
	blank         bool
}

var fenceLine = regexp.MustCompile("^([ \t]*)(`{3,}|~{3,})[ \t]*(.*?)[ \t\r]*$")

func scanLines(text string) []textLine {
	var lines []textLine
	var open fence
	for pos := 0; pos < len(text); {
		line, _, _ := strings.Cut(text[pos:], "\n")
		l := textLine{start: pos, before: open, blank: strings.TrimSpace(line) == ""}
		if m := fenceLine.FindStringSubmatch(line); m != nil {
			open = open.next(m[1], m[2], m[3])
		}
		l.after = open
		lines = append(lines, l)
		pos += len(line) + 1
	}
	return lines
}

// next is the code block that is open after a line of marks.
func (f fence) next(indent, marks, info string) fence {
	if !f.none() {
		if marks[0] == f.marks[0] && len(marks) >= len(f.marks) && info == "" {
			return fence{}
		}
		return f
	}
	if len(indent) > maxFence || len(marks) > maxFence || (marks[0] == '`' && strings.Contains(info, "`")) {
		return fence{}
	}
	if len(info) > maxFence {
		info = ""
	}
	return fence{indent: indent, marks: marks, info: info}
}

// fenceAt is the code block that a cut at pos would cut.
func fenceAt(lines []textLine, pos int) fence {
	i := sort.Search(len(lines), func(i int) bool { return lines[i].start > pos }) - 1
	if i < 0 {
		return fence{}
	}
	return lines[i].before
}

// cut returns how many bytes of rest, which stands at offset at, the next part takes.
func cut(rest string, at int, lines []textLine, room int) int {
	window, whole := fit(rest, room)
	if whole {
		return len(rest)
	}
	// Every cut must leave room for the fence that it has to close.
	most := map[string]int{"": window}
	fits := func(end int) bool {
		after := fenceAt(lines, at+end).close(rest[:end])
		if _, ok := most[after]; !ok {
			most[after], _ = fit(rest, room-TextLen(after))
		}
		return end <= most[after]
	}
	if end := cutAtLine(at, lines, window, fits); end > 0 {
		return end
	}
	return cutInLine(rest, window, fits)
}

// cutAtLine finds the last good line's end in the window: after a blank line, else
// between two lines of text, else between two lines of code. A better kind of place
// is worth a shorter part, down to half of the window.
func cutAtLine(at int, lines []textLine, window int, fits func(int) bool) int {
	best := [3]int{}
	i := sort.Search(len(lines), func(i int) bool { return lines[i].start > at })
	for ; i < len(lines) && lines[i].start-at <= window; i++ {
		end := lines[i].start - at
		prev := lines[i-1]
		kind := 1
		switch {
		case prev.before.none() && !prev.after.none():
			continue // just behind an opening fence
		case !lines[i].before.none():
			kind = 2
		case prev.blank && !lines[i].blank:
			kind = 0
		}
		if fits(end) {
			best[kind] = end
		}
	}
	for kind, end := range best {
		if end > 0 && (end >= window/2 || kind == 2 && end >= window/4) {
			return end
		}
	}
	return max(best[0], best[1], best[2])
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?][)"'*_]*[ \t]+|[。！？]`)
	wordEnd     = regexp.MustCompile(`[ \t\n]+`)
)

// cutInLine cuts a line that is longer than a part.
func cutInLine(rest string, window int, fits func(int) bool) int {
	for _, ends := range []*regexp.Regexp{sentenceEnd, wordEnd} {
		best := 0
		for _, m := range ends.FindAllStringIndex(rest[:window], -1) {
			if m[1] >= window/4 && boundary(rest, m[1]) && fits(m[1]) {
				best = m[1]
			}
		}
		if best > 0 {
			return best
		}
	}
	for end := window; end > window/2; end-- {
		if utf8.RuneStart(rest[end]) && boundary(rest, end) && fits(end) {
			return end
		}
	}
	// A character without end: at least no byte is torn off.
	for end := window; end > 0; end-- {
		if utf8.RuneStart(rest[end]) && fits(end) {
			return end
		}
	}
	_, size := utf8.DecodeRuneInString(rest)
	return size
}

// fit returns how many bytes of s have at most room, as TextLen counts, and whether
// that is all of it.
func fit(s string, room int) (int, bool) {
	for i, r := range s {
		room--
		if r >= 0x10000 {
			room--
		}
		if room < 0 {
			return i, false
		}
	}
	return len(s), true
}

// boundary tells whether a reader sees two characters around pos, and not one that is
// made of both sides: accents, joined emoji, skin tones, flags, Hangul.
func boundary(s string, pos int) bool {
	if pos <= 0 || pos >= len(s) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s[:pos])
	after, _ := utf8.DecodeRuneInString(s[pos:])
	switch {
	case before == '\n':
		return true
	case before == '\r':
		return after != '\n'
	case before == zeroWidthJoiner, after == zeroWidthJoiner, before == wordJoiner, after == wordJoiner:
		return false
	case unicode.In(after, unicode.M), after >= 0x1F3FB && after <= 0x1F3FF, after >= 0xE0020 && after <= 0xE007F:
		return false
	case hangul(before) && after >= 0x1160 && after <= 0x11FF, before >= 0x1100 && before <= 0x115F && hangul(after):
		return false
	case flag(after):
		n := 0
		for head := s[:pos]; ; n++ {
			r, size := utf8.DecodeLastRuneInString(head)
			if !flag(r) {
				break
			}
			head = head[:len(head)-size]
		}
		return n%2 == 0
	}
	return true
}

const (
	zeroWidthJoiner = 0x200D
	wordJoiner      = 0x2060
)

func flag(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }

func hangul(r rune) bool { return r >= 0x1100 && r <= 0x11FF || r >= 0xAC00 && r <= 0xD7A3 }
