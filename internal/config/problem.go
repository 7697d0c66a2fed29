package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a config, and where it stands.
type Problem struct {
	File string
	Line int // from 1
	Text string
}

// String reads file:line: what is wrong; what to write instead.
func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text) }

// Problems is everything that is wrong with a config, in the order of its lines (T4).
type Problems []Problem

// Error prints every problem, one a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// finding collects problems by the path of the field they are about.
type finding struct {
	file  string
	lines map[string]int // path of a field → line where it stands
	last  int            // the file's last line: the parser may count one further
	found Problems
}

func (f *finding) addLine(line int, format string, args ...any) {
	f.found = append(f.found, Problem{File: f.file, Line: max(min(line, f.last), 1), Text: fmt.Sprintf(format, args...)})
}

// add notes a problem of the field at path. A field that is absent is reported
// where the nearest thing that holds it stands.
func (f *finding) add(path, format string, args ...any) {
	f.addLine(f.line(path), format, args...)
}

func (f *finding) line(path string) int {
	for path != "" {
		if n, ok := f.lines[path]; ok {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 1
}

// said tells whether the field at path has a problem already.
func (f *finding) said(path string) bool {
	return slices.ContainsFunc(f.found, func(p Problem) bool { return strings.HasPrefix(p.Text, path+" must") })
}

// err returns the problems in the order of their lines, or nil.
func (f *finding) err() error {
	if len(f.found) == 0 {
		return nil
	}
	slices.SortStableFunc(f.found, func(a, b Problem) int { return a.Line - b.Line })
	return f.found
}

// short quotes a value for a message: escaped, and cut where it is long.
func short(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(s[:most], ""))
	}
	return fmt.Sprintf("%q", s)
}

// nearest returns the name among known that s was probably meant to be, or "".
func nearest(s string, known []string) string {
	best, at := "", 3
	if len(s) > 40 {
		return ""
	}
	for _, k := range known {
		if d := distance(s, k); d < at && d < len(k) {
			best, at = k, d
		}
	}
	return best
}

// distance is the edit distance of two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
