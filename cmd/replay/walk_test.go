package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// walk returns the commands of the section "Try it" of docs/changing-workflows.md.
func walk(t *testing.T) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "changing-workflows.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "\n## Try it: ")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// shims stand in for task, so that nothing is recorded or tested within this test: a
// specimen of generation 1 is the instrument.
const shims = `task() {
	case "$*" in
	replay) go run ./cmd/replay ;;
	capture*--list*) echo outsider refused ;;
	*) echo "left out: task $*" ;;
	esac
}
`

// The walk-through of the docs still applies to the code: its gate is proved, and without
// the gate the specimen strands.
func TestWalkThrough_OfTheDocsHolds(t *testing.T) {
	o := clone(t)
	script := shims
	for _, block := range walk(t) {
		switch {
		case strings.Contains(block, "git worktree"), strings.Contains(block, "8-outsider.json"), strings.Contains(block, "go test"):
		default:
			script += block
		}
	}
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = o.dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	said := string(out)
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit, said) // the last grep of what is left out finds nothing
	}
	require.Regexp(t, `(?m)^wait-before-decline +reply/1-outsider.json .* proved$`, said)
	require.Contains(t, said, "FAILS: reply/1-outsider.json does not replay: stranded at event 6")
	require.Equal(t, 3, strings.Count(said, "gates: "), said) // proved, red, and put back
	require.NotContains(t, regexp.MustCompile(`(?m)^FAILS: reply/\d+-outsider.*$`).ReplaceAllString(said, ""), "FAILS:")

	require.NotContains(t, said, "command not found")
	diff, err := exec.Command("git", "-C", o.dir, "diff", "--stat", "HEAD", "--", "workflows").Output()
	require.NoError(t, err)
	require.Contains(t, string(diff), "workflows/reply_asides.go")
}
