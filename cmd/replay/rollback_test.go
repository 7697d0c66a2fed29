package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/histories"
)

const root = "../.."

// older is a clone of this one, to go back in.
type older struct {
	t   *testing.T
	dir string
}

func clone(t *testing.T) older {
	t.Helper()
	o := older{t, filepath.Join(t.TempDir(), "clone")}
	out, err := exec.Command("git", "-c", "safe.directory=*", "clone", "-q", "--no-hardlinks", root, o.dir).CombinedOutput()
	require.NoError(t, err, string(out))
	return o
}

func (o older) git(args ...string) {
	o.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", o.dir, "-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...).CombinedOutput()
	require.NoError(o.t, err, string(out))
}

// change commits a file with every match of a pattern replaced.
func (o older) change(file, pattern, by string) {
	o.t.Helper()
	path := filepath.Join(o.dir, file)
	text, err := os.ReadFile(path)
	require.NoError(o.t, err)
	changed := regexp.MustCompile(pattern).ReplaceAll(text, []byte(by))
	require.NotEqual(o.t, string(text), string(changed), "%s has no %s", file, pattern)
	require.NoError(o.t, os.WriteFile(path, changed, 0o644))
	o.git("commit", "-q", "-a", "-m", "change "+file)
}

// back goes back to the clone's newest commit with what stands here.
func (o older) back() (lines []string, err error) {
	o.t.Helper()
	var out bytes.Buffer
	err = rollback(o.t.Context(), rollbackOptions{Tree: root, Clone: o.dir, Rev: "HEAD"}, &out)
	return strings.Split(strings.TrimSpace(out.String()), "\n"), err
}

func TestRollback_NamesTheSpecimensThatWouldStrand(t *testing.T) {
	o := clone(t)
	o.change("workflows/reply_asides.go", `p\.Settle, `, "p.Post, ")
	lines, err := o.back()
	require.ErrorIs(t, err, errNo)
	var stranded []string
	for _, line := range lines {
		if strings.Contains(line, " stranded ") {
			stranded = append(stranded, strings.Fields(line)[0])
			require.Contains(t, line, "(ActivityTaskScheduled Settle): ")
		}
	}
	all, err := histories.Load(filepath.Join(root, "histories"))
	require.NoError(t, err)
	var want []string
	for _, s := range all {
		if strings.Contains(s.History.String(), `"Settle"`) {
			want = append(want, s.File)
		}
	}
	require.NotEmpty(t, want)
	require.Equal(t, want, stranded)
	require.Equal(t, fmt.Sprintf("rollback: %d green, %d would strand, 0 of an unknown workflow, 0 not told", len(all)-len(want), len(want)), lines[len(lines)-1])
}

func TestRollback_SaysThatTheOlderCodeDoesNotKnowAWorkflow(t *testing.T) {
	o := clone(t)
	o.change("workflows/reply.go", `ReplyType = "Reply"`, `ReplyType = "Answer"`)
	lines, err := o.back()
	require.ErrorIs(t, err, errNo)
	require.Regexp(t, `(?m)^reply/1-abstain.json +does not know workflow Reply$`, strings.Join(lines, "\n"))
	require.Regexp(t, `^rollback: [1-9]\d* green, 0 would strand, [1-9]\d* of an unknown workflow, 0 not told$`, lines[len(lines)-1])

	o.git("rm", "-q", "-r", "workflows")
	o.git("commit", "-q", "-m", "before there was a workflow")
	lines, err = o.back()
	require.ErrorIs(t, err, errNo)
	require.Contains(t, lines[0], "it has no workflows")
}

func TestRollback_IsFreeWhereNothingParts(t *testing.T) {
	o := clone(t)
	lines, err := o.back()
	require.NoError(t, err)
	require.Regexp(t, `^rollback: [1-9]\d* green, 0 would strand, 0 of an unknown workflow, 0 not told$`, lines[len(lines)-1])
	left, err := exec.Command("git", "-C", o.dir, "status", "--porcelain").Output()
	require.NoError(t, err)
	require.Empty(t, left, "the clone is left as it was")
}

func TestRollback_SaysWhatItCannotDo(t *testing.T) {
	o := clone(t)
	err := rollback(t.Context(), rollbackOptions{Tree: root, Clone: o.dir, Rev: "no-such-tag"}, &bytes.Buffer{})
	require.ErrorContains(t, err, `git knows no revision "no-such-tag"`)

	o.change("workflows/register.go", `func Register\(`, "func RegisterAll(")
	_, err = o.back()
	require.NotErrorIs(t, err, errNo)
	require.ErrorContains(t, err, "today's prover does not build beside the workflows of ")
	require.ErrorContains(t, err, "undefined: workflows.Register")
}

func TestReport_TellsEachKindOfEnd(t *testing.T) {
	var out bytes.Buffer
	err := report([]result{
		{Specimen: "a", Verdict: "green", Differences: []string{"1", "2", "3"}},
		{Specimen: "b", Verdict: "stranded", Event: 7, Has: "TimerStarted", Command: "ScheduleActivityTask Post", Reason: "the history has another"},
		{Specimen: "c", Verdict: "panic", Reason: "nil map"},
		{Specimen: "d", Verdict: "false red", Unknown: "Reply", Reason: "unable to find workflow type"},
	}, &out)
	require.ErrorIs(t, err, errNo)
	text := regexp.MustCompile(` {3,}`).ReplaceAllString(out.String(), " ")
	require.Equal(t, `a green; strict differences, which strand nothing: 3
  1
  2
  and 1 more
b stranded at event 7 (TimerStarted): ScheduleActivityTask Post, the history has another
c panic: nil map
d does not know workflow Reply
rollback: 1 green, 1 would strand, 1 of an unknown workflow, 1 not told
`, text)
	_, err = readResults(nil)
	require.ErrorContains(t, err, "nothing was replayed")
}
