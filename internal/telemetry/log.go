// Package telemetry is how a process of Smith is watched: its log, its health and
// its metrics, and the loud way of saying that something is wrong (T6).
package telemetry

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strconv"
	"unicode/utf8"
)

// The keys of log lines, the same everywhere.
const (
	KeySeat     = "seat"
	KeyChannel  = "channel"
	KeyThread   = "thread" // ts of the thread's root
	KeyLine     = "line"   // ts of the line
	KeyWorkflow = "workflow"
	KeyTurn     = "turn"
	KeyError    = "error"
)

// NewLogger returns the log of a process. Level is debug, info, warn or error;
// format is json or text. What it writes is one line a record, whatever a stranger
// put into a value: nothing in it moves a terminal's cursor, and a token that got
// in by mistake is hidden (X2, X3).
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("read the log level %q: %w", level, err)
	}
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(&safeWriter{w}, opts)), nil
	case "text":
		return slog.New(slog.NewTextHandler(&safeWriter{w}, opts)), nil
	}
	return nil, fmt.Errorf("the log format %q is not known; it is json or text", format)
}

// safeWriter escapes what slog's handlers leave: JSON lets DEL, the C1 controls
// (one of which begins a terminal sequence as ESC [ does) and text direction marks
// through. A handler hands over one record a Write.
type safeWriter struct{ w io.Writer }

func (s *safeWriter) Write(record []byte) (int, error) {
	if _, err := s.w.Write(Clean(record)); err != nil {
		return 0, err
	}
	return len(record), nil
}

// tokenShape is a Slack token, a key of the model's service, a token of GitHub, or the
// ticket in the address of a socket.
var tokenShape = regexp.MustCompile(`\b(?:xox[a-z]|xapp|sk-ant)-[A-Za-z0-9_-]+|\b(?:gh[oprsu]|github_pat)_[A-Za-z0-9_]{16,}|([?&](?:ticket|token)=)[^&\s"\\]+`)

// Clean hides tokens, and escapes every rune of a line that is not printable, as
// \uXXXX; newlines stay.
func Clean(line []byte) []byte {
	if bytes.Contains(line, []byte("xox")) || bytes.Contains(line, []byte("xapp-")) ||
		bytes.Contains(line, []byte("sk-ant-")) || (bytes.Contains(line, []byte("gh")) && bytes.ContainsRune(line, '_')) || bytes.ContainsAny(line, "?&") {
		line = tokenShape.ReplaceAll(line, []byte("${1}[secret]"))
	}
	if printable(line) {
		return line
	}
	out := make([]byte, 0, len(line)+16)
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		switch {
		case r == '\n' || strconv.IsPrint(r) && (r != utf8.RuneError || size > 1):
			out = append(out, line[:size]...)
		case r > 0xffff: // JSON has no longer escape than a pair of these
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		line = line[size:]
	}
	return out
}

// printable tells quickly that a line is plain ASCII.
func printable(line []byte) bool {
	for _, b := range line {
		if (b < ' ' && b != '\n') || b >= 0x7f {
			return false
		}
	}
	return true
}
