package replaytests

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// MatrixFile is where the matrix is kept in the clone at root.
func MatrixFile(root string) string { return filepath.Join(root, "docs", "matrix.md") }

// Matrix is the page that is kept in docs: the specimens, and what they prove. It says the
// same on every machine, so no times, and nothing of how much history a clone has.
func (p *Proof) Matrix() string {
	var b strings.Builder
	b.WriteString(`# The proof matrix

Written by ` + "`task replay:docs`" + `, and a test fails when it is not what ` + "`task replay`" + ` prints. How a workflow is changed
is in [changing-workflows.md](changing-workflows.md).

## Specimens

| specimen | what it is for | commit | SDK | server | events |
|---|---|---|---|---|---|
`)
	for _, s := range p.Specimens {
		fmt.Fprintf(&b, "| [%s](../histories/%s) | %s | %.12s | %s | %s | %d |\n",
			s.File, s.File, strings.ReplaceAll(s.For, "|", `\|`), s.Commit, s.SDK, s.Server, len(s.History.Events))
	}
	b.WriteString("\n## Gates\n\n")
	body := regexp.MustCompile(` \(commit [^)]*\)`).ReplaceAllString(p.body(), "")
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	if len(p.Report.Rows) == 0 {
		b.WriteString("No gate: the code has no `workflow.GetVersion`.\n")
	} else {
		writeTable(&b, lines[:len(p.Report.Rows)+1])
		lines = lines[len(p.Report.Rows)+1:]
	}
	b.WriteString("\n## Mutants, and what no specimen reaches\n\n```text\n")
	line := regexp.MustCompile(`^(no specimen reaches: \S+\.go):\d+`)
	var kept []string
	for _, l := range lines {
		if l = line.ReplaceAllString(l, "$1"); !slices.Contains(kept, l) {
			kept = append(kept, l) // without its line, a place may stand twice
		}
	}
	b.WriteString(strings.Join(kept, "\n") + "\n" + p.Report.LastLine() + "\n```\n")
	return b.String()
}

// writeTable writes printed columns, the heads first, as a table of Markdown.
func writeTable(b *strings.Builder, lines []string) {
	columns := regexp.MustCompile(` {2,}`)
	for i, line := range lines {
		cells := columns.Split(strings.TrimRight(strings.ReplaceAll(line, "|", `\|`), " "), -1)
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
}
