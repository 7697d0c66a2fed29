package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
	"agentsmith/rules"
)

// The environment of a test binary that is to be a second process.
const (
	childRole = "STORETEST_CHILD"
	childURL  = "STORETEST_URL"
	childName = "STORETEST_NAME"
)

const childLines = 60

// Main is for TestMain: it runs the tests, or plays the second process that a test
// started from the same binary.
func Main(m *testing.M) int {
	var play func(ctx context.Context, s *store.Store, name string) error
	switch role := os.Getenv(childRole); role {
	case "":
		return m.Run()
	case "take":
		play = childTakes
	case "claim":
		play = childClaims
	case "write":
		play = childWrites
	case "relay":
		play = childRelays
	default:
		fmt.Fprintln(os.Stderr, "unknown role", role)
		return 2
	}
	ctx := context.Background()
	s, err := store.Open(ctx, os.Getenv(childURL), quiet())
	if err == nil {
		defer s.Close()
		err = play(ctx, s, os.Getenv(childName))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func child(t *testing.T, role, url, name string) (*exec.Cmd, io.Reader) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childRole+"="+role, childURL+"="+url, childName+"="+name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, out
}

// childTakes records and takes all lines, and prints those that it got.
func childTakes(ctx context.Context, s *store.Store, name string) error {
	for _, n := range rand.Perm(childLines) {
		l := line(n, n, "hello")
		if _, err := s.Record(ctx, seat, l, rules.Person, says(rules.Owed)); err != nil {
			return err
		}
		got, err := s.TakeLines(ctx, turn(fmt.Sprint(name, " ", n), n), []store.TakeLine{{Line: l, Author: rules.Person, HasRow: true}})
		if err != nil {
			return err
		}
		if len(got.Taken) > 0 {
			fmt.Println(n)
		}
	}
	return nil
}

// testProcesses has several processes start on a new database and take the same lines.
func testProcesses(t *testing.T, newURL func(t *testing.T) string) {
	t.Run("TakeLines_EachLineOnceAcrossProcesses", func(t *testing.T) {
		url := newURL(t)
		taken := map[string]int{}
		var cmds []*exec.Cmd
		var outs []io.Reader
		for i := range 3 {
			cmd, out := child(t, "take", url, fmt.Sprint("child", i))
			cmds, outs = append(cmds, cmd), append(outs, out)
		}
		for i, cmd := range cmds {
			all, err := io.ReadAll(outs[i])
			require.NoError(t, err)
			require.NoError(t, cmd.Wait())
			for _, n := range strings.Fields(string(all)) {
				taken[n]++
			}
		}
		require.Len(t, taken, childLines)
		for n, times := range taken {
			require.Equal(t, 1, times, "line %s", n)
		}
	})
}

// childWrites takes lines through their whole life until it is killed, and prints each
// step once the store has said that it is durable.
func childWrites(ctx context.Context, s *store.Store, name string) error {
	var out sync.Mutex
	ack := func(step string, n int) {
		out.Lock()
		defer out.Unlock()
		fmt.Println(step, n)
	}
	first, err := strconv.Atoi(name)
	if err != nil {
		return err
	}
	var next atomic.Int64
	next.Store(int64(first))
	var all sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		all.Go(func() {
			for {
				n := int(next.Add(1))
				l := line(n, n, strings.Repeat("hello ", n%500))
				id := writerTurn(n)
				if _, err := s.Record(ctx, seat, l, rules.Person, says(rules.Owed)); err != nil {
					errs <- err
					return
				}
				ack("recorded", n)
				if _, err := s.TakeLines(ctx, turn(id, n), []store.TakeLine{{Line: l, Author: rules.Person, HasRow: true}}); err != nil {
					errs <- err
					return
				}
				ack("taken", n)
				if _, err := s.FinishTurn(ctx, id, seat, []rules.LineKey{l.LineKey}, rules.Answered, ""); err != nil {
					errs <- err
					return
				}
				ack("finished", n)
			}
		})
	}
	all.Wait()
	return <-errs
}

func writerTurn(n int) string { return fmt.Sprint("turn ", n) }

// testKilled kills a writer in the middle: what it acknowledged is there.
func testKilled(t *testing.T, newURL func(t *testing.T) string, verify func(t *testing.T, url string)) {
	t.Run("Record_WhatWasAcknowledgedOutlivesTheProcess", func(t *testing.T) {
		url := newURL(t)
		const acks = 400
		steps := map[int]string{}
		for round := range 3 {
			cmd, out := child(t, "write", url, strconv.Itoa(round*100_000))
			lines := bufio.NewScanner(out)
			seen := 0
			for lines.Scan() {
				var step string
				var n int
				if _, err := fmt.Sscan(lines.Text(), &step, &n); err != nil {
					continue // the last line, cut by the kill
				}
				steps[n] = step
				if seen++; seen == acks {
					require.NoError(t, cmd.Process.Kill())
				}
			}
			require.GreaterOrEqual(t, seen, acks)
			require.Error(t, cmd.Wait())
		}
		verify(t, url)
		s := openURL(t, url)
		for n, step := range steps {
			_, err := s.Line(t.Context(), key(n))
			require.NoError(t, err, "line %d was acknowledged as %s", n, step)
			r, err := s.RowOf(t.Context(), seat, key(n))
			require.NoError(t, err)
			switch step {
			case "taken":
				require.Equal(t, writerTurn(n), r.Turn)
			case "finished":
				require.Equal(t, rules.Answered, r.State)
			}
		}
	})
}
