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

// filler are words that name nothing, where they stand before the task.
func filler(word string) bool {
	switch word {
	case "please", "can", "could", "would", "you", "hi", "hey", "hello", "the", "a", "an":
		return true
	}
	return false
}

// SlugFor makes a slug of what a line says, for work that the classifier gave no usable
// one. It is never empty.
func SlugFor(text string) string {
	text = strings.ToLower(Unescape(PlainWords(text)))
	slug, parts := "", 0
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') }) {
		if slug == "" && filler(w) {
			continue
		}
		next := strings.TrimPrefix(slug+"-"+w, "-")
		if len(next) > maxSlug-16 || parts == 5 {
			break
		}
		slug, parts = next, parts+1
	}
	if !ValidSlug(slug) {
		return "task"
	}
	return slug
}

// PlainWords is a text without mentions and links, as Slack sent it or as a reader sees it.
func PlainWords(text string) string {
	return named.ReplaceAllString(angle.ReplaceAllString(text, " "), " ")
}

var named = regexp.MustCompile(`@\S+|https?://\S+`)

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
