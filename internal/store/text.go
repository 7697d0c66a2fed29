package store

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// clean makes s a text that every database takes: NUL and invalid UTF-8, which
// PostgreSQL refuses, become U+FFFD. Every string argument passes through it.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// cleanArgs cleans the strings among args in place.
func cleanArgs(args []any) []any {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = clean(s)
		}
	}
	return args
}

// tsMicros is a Slack ts as a number that sorts and compares. Only digits, a dot and
// six digits are a ts.
func tsMicros(ts string) (int64, error) {
	sec, frac, ok := strings.Cut(ts, ".")
	if !ok || sec == "" || len(frac) != 6 || !digits(sec) || !digits(frac) {
		return 0, fmt.Errorf("%w: %q is no Slack ts", ErrInvalid, short(ts))
	}
	n, err := strconv.ParseInt(sec+frac, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: Slack ts %q is out of range", ErrInvalid, short(ts))
	}
	return n, nil
}

// optionalMicros is tsMicros where "" stands for never, 0.
func optionalMicros(ts string) (int64, error) {
	if ts == "" {
		return 0, nil
	}
	return tsMicros(ts)
}

// microsTS is the reverse of tsMicros.
func microsTS(us int64) string { return fmt.Sprintf("%d.%06d", us/1_000_000, us%1_000_000) }

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// short keeps a hostile value from filling an error.
func short(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// jsonText is v as JSON, "" for an empty list.
func jsonText[T any](v []T) (string, error) {
	if len(v) == 0 {
		return "", nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// fromJSON reads what jsonText wrote.
func fromJSON[T any](s string) ([]T, error) {
	if s == "" {
		return nil, nil
	}
	var v []T
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		return nil, fmt.Errorf("read a stored list: %w", err)
	}
	return v, nil
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
