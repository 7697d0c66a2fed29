package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/store"
)

const (
	racers     = 4  // processes
	racerTries = 50 // claims of each
)

// told is what one claimant learned.
type told struct {
	Asked, Claimant, Slug string
	Root                  string
	Won                   bool
}

// childClaims claims one thread, and then one slug for threads of its own, as often as it
// can at once, when its standard input ends. It prints what each claimant learned.
func childClaims(ctx context.Context, s *store.Store, name string) error {
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	var first int
	if _, err := fmt.Sscan(name, &first); err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	for _, root := range []func(i int) int{
		func(int) int { return 1 },
		func(i int) int { return 10 + first*racerTries + i },
	} {
		var all sync.WaitGroup
		errs := make(chan error, racerTries)
		for i := range racerTries {
			all.Go(func() {
				w := wish(root(i), "fix-login", fmt.Sprintf("process %d claimant %d", first, i))
				c, won, err := s.Claim(ctx, w)
				if err != nil {
					errs <- err
					return
				}
				mu.Lock()
				defer mu.Unlock()
				errs <- out.Encode(told{w.Claimant, c.Claimant, c.Slug, c.Thread.Root, won})
			})
		}
		all.Wait()
		for range racerTries {
			if err := <-errs; err != nil {
				return err
			}
		}
	}
	return nil
}

// testClaimRace has 200 claimants in 4 processes claim one thread at once (O6).
func testClaimRace(t *testing.T, newURL func(t *testing.T) string) {
	url := newURL(t)
	openURL(t, url)
	var cmds []*exec.Cmd
	var outs []*bufio.Scanner
	var gates []io.Closer
	for i := range racers {
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), childRole+"=claim", childURL+"="+url, childName+"="+fmt.Sprint(i))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan(), "process %d did not start", i)
		require.Equal(t, "ready", lines.Text())
		cmds, outs, gates = append(cmds, cmd), append(outs, lines), append(gates, in)
	}
	for _, gate := range gates {
		require.NoError(t, gate.Close())
	}
	var one, many []told
	for i, lines := range outs {
		for lines.Scan() {
			var x told
			require.NoError(t, json.Unmarshal(lines.Bytes(), &x))
			if x.Root == ts(1) {
				one = append(one, x)
			} else {
				many = append(many, x)
			}
		}
		require.NoError(t, lines.Err())
		require.NoError(t, cmds[i].Wait())
	}

	require.Len(t, one, racers*racerTries, "everyone is told")
	var winner told
	winners := 0
	for _, x := range one {
		if x.Won {
			winner, winners = x, winners+1
		}
	}
	require.Equal(t, 1, winners)
	require.Equal(t, winner.Asked, winner.Claimant)
	for _, x := range one {
		require.Equal(t, winner.Claimant, x.Claimant, "%s was told of another", x.Asked)
		require.Equal(t, winner.Slug, x.Slug)
	}

	require.Len(t, many, racers*racerTries)
	slugs := map[string]string{winner.Slug: winner.Root}
	for _, x := range many {
		require.True(t, x.Won, "%s has a thread of its own", x.Asked)
		require.Empty(t, slugs[x.Slug], "two threads have the slug %s", x.Slug)
		slugs[x.Slug] = x.Root
	}
}
