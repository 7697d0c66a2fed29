package terminal

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/outbox"
	"agentsmith/rules"
)

// typeJobEnv holds a typeJob: TestTypeHelper is then a process that types, stops at a
// point, says so, and waits to be killed.
const typeJobEnv = "TERMINAL_TEST_TYPE"

type typeJob struct {
	Tmux   Tmux
	Target Target
	Text   Text
	Point  failpoint.Point
}

func TestTypeHelper(t *testing.T) {
	raw, ok := os.LookupEnv(typeJobEnv)
	if !ok {
		return
	}
	var job typeJob
	require.NoError(t, json.Unmarshal([]byte(raw), &job))
	y := newTyper(job.Tmux)
	y.show, y.prove = patience, patience
	y.at = func(p failpoint.Point) {
		if p == job.Point {
			fmt.Println("stopped at", p)
			select {}
		}
	}
	a, err := y.do(t.Context(), job.Target, job.Text)
	fmt.Println("ended", a, err)
}

// killedAt types in another process that is killed at a point.
func (r *typeRig) killedAt(point failpoint.Point, text Text) {
	r.t.Helper()
	job, err := json.Marshal(typeJob{r.tmux, r.target, text, point})
	require.NoError(r.t, err)
	exe, err := os.Executable()
	require.NoError(r.t, err)
	cmd := exec.Command(exe, "-test.run=^TestTypeHelper$")
	cmd.Env = append(os.Environ(), typeJobEnv+"="+string(job))
	out, err := cmd.StdoutPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, cmd.Start())
	said := ""
	for lines := bufio.NewScanner(out); said == "" && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "stopped") || strings.HasPrefix(lines.Text(), "ended") {
			said = lines.Text()
		}
	}
	require.NoError(r.t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Equal(r.t, "stopped at "+string(point), said)
}

func TestType_AKilledTyperIsGoneOnWithAndNothingIsTypedTwice(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t)
	for i, point := range []failpoint.Point{failpoint.TypeLoaded, failpoint.TypePasted, failpoint.TypeEntered} {
		for j, body := range []string{"short " + string(point), "first\n" + strings.Repeat("many words of "+string(point)+" ", 60)} {
			text := Text{ID: fmt.Sprint(i, j), Body: body}
			r.killedAt(point, text)
			a, err := r.typed(text.ID, text.Body)
			require.NoError(t, err)
			require.Equal(t, Arrived, a, point)
			r.requireOnce(body)
			a, err = r.typed(text.ID, text.Body)
			require.NoError(t, err)
			require.Equal(t, Arrived, a, "and once more")
		}
	}
	require.Len(t, r.prompts(), 6)
}

// After a kill a person may have done anything with what stood in the box.
func TestType_WhatCannotBeKnownIsUnsureAndNotTypedAgain(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t)
	again := func(text Text) (Arrival, error) {
		y := r.typer()
		y.show, y.prove = y.settle, y.settle
		return y.do(t.Context(), r.target, text)
	}

	taken := Text{ID: "taken out", Body: "taken out by a person"}
	r.killedAt(failpoint.TypePasted, taken)
	r.waitFor("the text in the box", func() bool { return r.look().text != "" })
	r.press("C-u")
	r.waitFor("the empty box", func() bool { return r.look().text == "" })
	for range 2 {
		a, err := again(taken)
		require.NoError(t, err)
		require.Equal(t, Unsure, a)
	}

	entered := Text{ID: "entered", Body: "entered by a person"}
	r.killedAt(failpoint.TypePasted, entered)
	r.waitFor("the text in the box", func() bool { return r.look().text != "" })
	r.press("Enter")
	r.waitFor("the prompt", func() bool { return len(r.prompts()) == 1 })
	a, err := again(entered)
	require.NoError(t, err)
	require.Equal(t, Arrived, a)
	r.requireOnce(entered.Body)

	changed := Text{ID: "changed", Body: "changed by a person"}
	r.killedAt(failpoint.TypePasted, changed)
	r.waitFor("the text in the box", func() bool { return r.look().text != "" })
	r.press("-l", "and more")
	r.waitFor("the change", func() bool { return strings.HasSuffix(r.look().text, "more") })
	a, err = again(changed)
	requireHeld(t, a, err, true)
	require.Len(t, r.prompts(), 1, "a person's words are not entered")
	r.press("C-u")

	require.NoError(t, os.WriteFile(r.target.Outbox+"/"+r.target.ID+"/"+journalFile, []byte("{"), 0o600))
	a, err = again(Text{ID: "new", Body: "whatever"})
	require.NoError(t, err)
	require.Equal(t, Unsure, a, "the journal is lost")
	r.arrives("and on it goes")
}

func TestType_ASessionThatEndsIsToldApartByTheEnter(t *testing.T) {
	t.Parallel()
	for point, want := range map[failpoint.Point]Arrival{failpoint.TypeLoaded: NotTyped, failpoint.TypePasted: NotTyped, failpoint.TypeEntered: Arrived} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			r := newTypeRig(t)
			text := Text{ID: "x", Body: "the last words"}
			r.killedAt(point, text)
			if want == Arrived {
				r.waitFor("the prompt", func() bool {
					last, err := outbox.Box{Dir: r.target.Outbox}.LastPrompt(r.target.ID)
					return err == nil && last != ""
				})
			}
			_, err := r.tmux.Run(t.Context(), nil, "kill-server")
			require.NoError(t, err)
			a, err := r.typed(text.ID, text.Body)
			require.Equal(t, want, a)
			if want == NotTyped {
				require.ErrorIs(t, err, ErrGone)
			}
		})
	}
}

func TestType_TwoTypersNeverInterleave(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t)
	const each = 5
	var all sync.WaitGroup
	body := func(who string, i int) string { return fmt.Sprintf("%s %d\nsecond row of %s %d", who, i, who, i) }
	for _, who := range []string{"ana", "bob"} {
		all.Go(func() {
			for i := range each {
				a, err := r.typed(fmt.Sprint(who, i), body(who, i))
				if a != Arrived || err != nil {
					t.Errorf("%s %d: %s %v", who, i, a, err)
				}
			}
		})
	}
	all.Wait()
	for _, who := range []string{"ana", "bob"} {
		last := -1
		for i := range each {
			r.requireOnce(body(who, i))
			at := strings.Index(r.conversation(), outbox.Squash(rules.PlainForTerminal(body(who, i))))
			require.Greater(t, at, last, "in each one's order")
			last = at
		}
	}
}
