package rules

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

var workOn = regexp.MustCompile(`(?i)^work on (?:#?([1-9][0-9]{0,8})|(?:op-)?([a-z0-9-]{3,40}))$`)

// ReadDoor reads a line that is nothing but a door (R1): "work on N", "work on <slug>",
// "sessions", or the stop word, in any case, with a mention of the seat in front or none,
// and with trailing punctuation. What names no possible session is no door: digits alone are a number.
func ReadDoor(text, seatUser string) (Door, bool) {
	words, ok := wordsOf(text, seatUser)
	switch {
	case !ok:
		return Door{}, false
	case strings.EqualFold(words, "sessions"):
		return Door{Kind: DoorSessions}, true
	case strings.EqualFold(words, "stop"):
		return Door{Kind: DoorStop}, true
	}
	m := workOn.FindStringSubmatch(words)
	if m == nil {
		return Door{}, false
	}
	if m[1] != "" {
		n, err := strconv.Atoi(m[1])
		return Door{Kind: DoorWorkOn, Number: n}, err == nil
	}
	slug := strings.ToLower(m[2])
	return Door{Kind: DoorWorkOn, Slug: slug}, ValidSlug(slug) && strings.Trim(slug, "0123456789-") != ""
}

// wordsOf are the words of a line that is for the seat or for nobody by name, one space
// between them, without what quotes or ends them; ok is false for a word to somebody else.
func wordsOf(text, seatUser string) (words string, ok bool) {
	text = trimBlank(text)
	if mention, rest, found := leadingMention(text); found {
		if seatUser == "" || mention != seatUser {
			return "", false
		}
		text = strings.TrimLeftFunc(rest, func(r rune) bool { return blank(r) || r == ',' || r == ':' })
	}
	text = strings.TrimLeftFunc(Unescape(text), func(r rune) bool { return blank(r) || opening(r) })
	text = strings.TrimRightFunc(text, func(r rune) bool { return blank(r) || unicode.IsPunct(r) || opening(r) })
	return strings.Join(strings.FieldsFunc(text, blank), " "), true
}
