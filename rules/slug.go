package rules

import (
	"regexp"
	"strings"
)

// maxSlug is the longest slug: it is part of a branch, a session's and a workflow's name.
const maxSlug = 40

var slugShape = regexp.MustCompile(`^[a-z0-9]+(?:-[a-z0-9]+)*$`)

// ValidSlug tells whether s may name a task: small letters, digits and single dashes
// between them, 3 to 40 long. Nothing else ever reaches a branch, a path or tmux (O9).
func ValidSlug(s string) bool {
	return len(s) >= 3 && len(s) <= maxSlug && slugShape.MatchString(s)
}

// SlugFor makes a slug of what a line says, for work that the classifier gave no usable
// one. It is never empty.
func SlugFor(text string) string {
	words := strings.FieldsFunc(strings.ToLower(PlainWords(text)), func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9')
	})
	slug := ""
	for _, w := range words {
		next := strings.TrimPrefix(slug+"-"+w, "-")
		if len(next) > maxSlug-16 || strings.Count(next, "-") > 4 {
			break
		}
		slug = next
	}
	if !ValidSlug(slug) {
		return "task"
	}
	return slug
}

// PlainWords is a text without what stands in angle brackets: mentions and links.
func PlainWords(text string) string {
	var b strings.Builder
	depth := 0
	for _, r := range text {
		switch {
		case r == '<':
			depth++
		case r == '>' && depth > 0:
			depth--
			b.WriteByte(' ')
		case depth == 0:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// SuffixSlug makes a slug unique to a thread by the root's ts (O6). It stays valid.
func SuffixSlug(slug, rootTS string) string {
	tail := strings.ReplaceAll(rootTS, ".", "")
	tail = strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, tail)
	if len(tail) > 16 {
		tail = tail[len(tail)-16:]
	}
	if tail == "" {
		tail = "0"
	}
	if room := maxSlug - len(tail) - 1; len(slug) > room {
		slug = strings.TrimRight(slug[:room], "-")
	}
	return slug + "-" + tail
}
