package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/stack"
	"agentsmith/rules"
)

// More victims of the operators' matrix.
const (
	theLauncher victim = "launcher"
	theTmux     victim = "tmux"
)

// operatorPoint is a failpoint of an operator's life, and when somebody comes by.
type operatorPoint struct {
	failpoint.Point
	victim
	when stage
}

// stage is what brings a process to a failpoint.
type stage int

const (
	starting  stage = iota // the first line, which starts the operator
	speaking               // the operator's first word
	following              // a line to the operator that runs
	stopping               // its stop
)

// operatorPoints are the failpoints of binding, starting, following and stopping an operator.
func operatorPoints() []operatorPoint {
	return []operatorPoint{
		{failpoint.BindBefore, theWorker, starting},
		{failpoint.BindClaimed, theWorker, starting},
		{failpoint.BindStarted, theWorker, starting},
		{failpoint.BindStarted, theTemporal, starting},
		{failpoint.BindStarted, theTmux, starting},
		{failpoint.BindRegistered, theWorker, starting},
		{failpoint.BindBound, theWorker, starting},
		{failpoint.BindAdopted, theWorker, starting},
		{failpoint.OperatorLocked, theLauncher, starting},
		{failpoint.OperatorRecorded, theLauncher, starting},
		{failpoint.OperatorChecked, theLauncher, starting},
		{failpoint.OperatorMade, theLauncher, starting},
		{failpoint.OperatorTrusted, theLauncher, starting},
		{failpoint.OperatorSession, theLauncher, starting},
		{failpoint.OperatorHanded, theLauncher, starting},
		{failpoint.TaskCollected, theWorker, speaking},
		{failpoint.TaskOffering, theWorker, speaking},
		{failpoint.TaskOffered, theWorker, speaking},
		{failpoint.TaskTyping, theWorker, following},
		{failpoint.TaskTyped, theWorker, following},
		{failpoint.TypeLoaded, theWorker, following},
		{failpoint.TypePasted, theWorker, following},
		{failpoint.TypeEntered, theWorker, following},
		{failpoint.StopKilled, theWorker, stopping},
		{failpoint.TaskKilled, theWorker, stopping},
	}
}

// telling are the points that every run of the tests kills at; SMITH_KILL=full takes all.
func telling(p operatorPoint) bool {
	switch p.Point {
	case failpoint.BindStarted:
		return p.victim != theTemporal
	case failpoint.BindClaimed, failpoint.OperatorSession, failpoint.TaskTyping, failpoint.TypeEntered, failpoint.TaskOffered, failpoint.StopKilled:
		return true
	}
	return false
}

// operatorLanes is how many systems the operators' matrix runs on: most cases wait for
// the end of a heartbeat.
const operatorLanes = 3

// withLauncherPoints has the launcher wait at failpoints too: the worker hands it nothing
// of its own environment (X3).
func withLauncherPoints() settings {
	return func(o *stack.Options) {
		program := filepath.Join(filepath.Dir(o.Worker), "start-operator")
		script := filepath.Join(o.Dir, "start-operator")
		text := fmt.Sprintf("#!/bin/sh\nSMITH_FAILPOINTS='%s' exec '%s' \"$@\"\n", o.Failpoints, program)
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			panic(err)
		}
		if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
			panic(err)
		}
		o.Operators.Config["command"] = script
	}
}

// O6-O8, O11, R10, R11: whoever dies at whatever point, a thread has never two operators
// and has one after its next line at the latest; no line and no word is lost or doubled.
func TestKillOperator(t *testing.T) {
	t.Parallel()
	free := make(chan *system, operatorLanes)
	for i := range operatorLanes {
		s, err := begin(fmt.Sprintf("%s/okill%d", inCommon.dir, i), withOperators(), withLauncherPoints())
		require.NoError(t, err)
		free <- s
	}
	t.Cleanup(func() {
		for range operatorLanes {
			for _, problem := range (<-free).close() {
				t.Errorf("after the matrix: %s", problem)
			}
		}
	})
	t.Run("matrix", func(t *testing.T) {
		for _, p := range operatorPoints() {
			if os.Getenv("SMITH_KILL") != "full" && !telling(p) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", p.Point, p.victim), func(t *testing.T) {
				t.Parallel()
				s := <-free
				defer func() { free <- s }()
				began := time.Now()
				killOperatorAt(t, s, p)
				t.Logf("after %s", time.Since(began).Round(100*time.Millisecond))
			})
		}
	})
}

func killOperatorAt(t *testing.T, s *system, p operatorPoint) {
	r := s.room(t)
	slug := "kill-" + strings.TrimPrefix(r.id, "C0")
	slug = strings.ToLower(slug)
	ask := func(word string) string {
		return fmt.Sprintf("@smith [[classify work %s web]] [[say answer to %s]] [[terminal]] [[say %s]]", slug, word, word)
	}
	if p.when == starting || p.when == speaking {
		s.arm(t, p.Point)
	}
	root := r.say("ana", ask("word-one."))
	lines := []string{root}
	if p.when == following || p.when == stopping {
		r.answer("smith", root)
		r.word(r.operator(root), "word-one.")
		s.arm(t, p.Point)
		text := "stop operator"
		if p.when == following {
			text = ask("word-two.")
		}
		ts := r.reply("ana", root, text)
		if p.when == following {
			lines = append(lines, ts)
		}
	}
	s.hit(t, p.Point)
	s.killFor(t, root, p.victim)
	s.letGo(t, p.Point)
	switch p.victim {
	case theDatabase:
		time.Sleep(away)
		s.database.Start(t)
	case theWorker:
		s.restartWorker(t)
	case theTemporal:
		s.restartTemporal(t)
	}
	for _, ts := range lines {
		r.answer("smith", ts)
	}
	if p.when == stopping {
		r.operatorGone(root)
		wait(t, "for what is said of the stop", func() (bool, string) {
			said := strings.Join(r.texts(), " | ")
			return strings.Contains(said, "Stopped operator #"), said
		})
	}
	switch p.Point {
	case failpoint.BindStarted, failpoint.BindRegistered, failpoint.BindBound:
		if p.victim == theWorker { // nobody need write for what runs to be heard
			wait(t, "for the word of an operator whose bind died", func() (bool, string) {
				return r.countWord(root, "word-one.") > 0, strings.Join(r.texts(), " | ")
			})
		}
	}
	next := r.reply("ana", root, ask("word-last."))
	r.answer("smith", next)
	op := r.operator(root)
	wait(t, "for the last word", func() (bool, string) {
		return r.countWord(root, "word-last.") > 0, strings.Join(r.texts(), " | ")
	})
	require.Len(t, r.sessionsOf(root), 1, "one operator")
	require.Equal(t, 1, r.countWord(root, "word-last."))
	require.LessOrEqual(t, r.countWord(root, "word-one."), 1, "no word twice")
	switch p.when {
	case speaking, following:
		require.Equal(t, 1, r.countWord(root, "word-one."), "no word is lost")
	case stopping:
		require.Equal(t, 1, r.countWord(root, "word-one."), "no word is lost, nor said again")
	}
	if p.when == following {
		unsure := strings.Count(strings.Join(r.texts(), " "), "can't tell whether operator")
		require.Equal(t, 1, r.countWord(root, "word-two.")+unsure, "typed once, or said that nobody knows (R10)")
		require.LessOrEqual(t, len(s.prompts(op, "word-two.")), 1, "never typed twice")
	}
	r.stopOperator(root)
	r.settleRoom()
	require.Empty(t, r.audit(r.id))
}

// countWord counts the words of a thread's operators, of all that it had, that hold word.
func (r *room) countWord(root, word string) (n int) {
	for _, m := range r.posts(root) {
		parts := strings.Split(postID(m), "/") // <seat>/<channel>/<session>/<word>
		if len(parts) == 4 && !rules.ValidTS(parts[2]) && strings.Contains(m.Text, word) && !strings.Contains(m.Text, "can't tell") {
			n++
		}
	}
	return n
}

// killFor kills a victim with a thread's operator.
func (s *system) killFor(t testing.TB, root string, v victim) {
	t.Helper()
	switch v {
	case theWorker:
		s.Worker.Kill()
	case theTemporal:
		s.Stack.Temporal.Kill()
	case theDatabase:
		s.database.Kill()
	case theTmux:
		pid, err := s.Tmux.Run(t.Context(), nil, "display-message", "-p", "#{pid}")
		require.NoError(t, err)
		var n int
		_, err = fmt.Sscan(pid, &n)
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(n, syscall.SIGKILL))
	case theLauncher:
		found := false
		for _, p := range s.processes() {
			if strings.Contains(p.cmd, "start-operator") && strings.Contains(p.cmd, "--root="+root) && !strings.Contains(p.cmd, "--check") {
				found = true
				require.NoError(t, syscall.Kill(p.pid, syscall.SIGKILL))
			}
		}
		require.True(t, found, "a launcher runs")
	}
}
