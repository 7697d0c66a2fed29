package replaytests

import (
	"fmt"
	"path/filepath"
	"regexp"
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
	b.WriteString("\n## Gates and mutants\n\n```text\n")
	if len(p.Report.Gates) == 0 {
		b.WriteString("no gate: the code has no workflow.GetVersion\n")
	}
	body := regexp.MustCompile(` \(commit [^)]*\)`).ReplaceAllString(p.body(), "")
	body = regexp.MustCompile(`(?m)^(no specimen reaches: \S+\.go):\d+`).ReplaceAllString(body, "$1")
	b.WriteString(body + p.Report.LastLine() + "\n```\n")
	return b.String()
}
