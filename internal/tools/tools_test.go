package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bare makes a machine with an empty cache and the named programs on its PATH.
func bare(t *testing.T, programs ...string) (cache string) {
	t.Helper()
	bin := t.TempDir()
	for _, p := range programs {
		require.NoError(t, os.WriteFile(filepath.Join(bin, p), []byte("#!/bin/sh\n"), 0o755))
	}
	t.Setenv("PATH", bin)
	cache = t.TempDir()
	t.Setenv("SMITH_CACHE", cache)
	for _, name := range []string{"TEMPORAL_BIN", "CLAUDE_BIN", "BOLT_DIR", "NODE_BIN", "TMUX_BIN", "CHROMIUM_BIN", "POSTGRES_BIN"} {
		t.Setenv("SMITH_"+name, "")
	}
	return cache
}

// shelf stands for the world: each command that an installer runs leaves what it should.
type shelf struct {
	sync.Mutex
	ran  []string
	fail string                                     // a command that begins so fails
	do   func(ctx context.Context, c command) error // instead of succeeding
}

func (w *shelf) run(ctx context.Context, c command) error {
	line := strings.Join(c.args, " ")
	w.Lock()
	w.ran = append(w.ran, line)
	w.Unlock()
	if w.fail != "" && strings.HasPrefix(line, w.fail) {
		if c.out != nil {
			fmt.Fprintln(c.out, "the reason of the failure")
		}
		return errors.New("exit status 1")
	}
	if w.do != nil {
		if err := w.do(ctx, c); err != nil {
			return err
		}
	}
	switch {
	case c.args[0] == "go":
		return os.WriteFile(filepath.Join(c.dir, "temporal"), nil, 0o755)
	case c.args[0] == "npm":
		bin := filepath.Join(c.dir, "node_modules/.bin")
		return errors.Join(os.MkdirAll(bin, 0o755), os.WriteFile(filepath.Join(bin, "claude"), nil, 0o755))
	}
	return nil
}

// setup installs on the machine that bare made: what the real one has of Debian's
// PostgreSQL is not there.
func (w *shelf) setup(out io.Writer) *Setup {
	return &Setup{Out: out, run: w.run, postgres: func() (string, error) { return postgresIn(os.Getenv("SMITH_CACHE")) }}
}

// serve puts a PostgreSQL server of a version where Debian would.
func serve(t *testing.T, root, version string, programs ...string) string {
	t.Helper()
	dir := filepath.Join(root, version, "bin")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, p := range programs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, p), nil, 0o755))
	}
	return dir
}

func TestPostgres_IsTheOneOnThePathElseDebiansNewest(t *testing.T) {
	root := bare(t)
	_, err := postgresIn(root)
	require.ErrorContains(t, err, SetupCommand)
	require.ErrorContains(t, err, "SMITH_POSTGRES_BIN")
	serve(t, root, "16", "psql")
	_, err = postgresIn(root)
	require.ErrorContains(t, err, SetupCommand, "a client alone is no server")
	serve(t, root, "9", "initdb", "postgres")
	newest := serve(t, root, "15", "initdb", "postgres")
	serve(t, root, "17rc1", "initdb", "postgres")
	got, err := postgresIn(root)
	require.NoError(t, err)
	require.Equal(t, newest, got)

	own := serve(t, t.TempDir(), "x", "initdb", "postgres")
	require.NoError(t, os.Symlink(filepath.Join(own, "initdb"), filepath.Join(os.Getenv("PATH"), "initdb")))
	got, err = postgresIn(root)
	require.NoError(t, err)
	require.Equal(t, own, got)

	t.Setenv("SMITH_POSTGRES_BIN", newest)
	got, err = postgresIn(root)
	require.NoError(t, err)
	require.Equal(t, newest, got)
	t.Setenv("SMITH_POSTGRES_BIN", "/no/such/folder")
	_, err = postgresIn(root)
	require.ErrorContains(t, err, "SMITH_POSTGRES_BIN names /no/such/folder")
}

func TestInstall_OfPostgreSQLMakesNoServerOfTheMachine(t *testing.T) {
	for name, fail := range map[string]string{"done": "", "failed": "env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 install"} {
		t.Run(name, func(t *testing.T) {
			cache := bare(t, "apt-get")
			w := &shelf{fail: fail}
			w.do = func(_ context.Context, c command) error {
				line := strings.Join(c.args, " ")
				if strings.Contains(line, " install -D ") {
					text, err := os.ReadFile(c.args[len(c.args)-2])
					require.NoError(t, err)
					require.Contains(t, string(text), "\ncreate_main_cluster = false\n")
				}
				if strings.Contains(line, "apt-get") && strings.Contains(line, " postgresql") {
					serve(t, cache, "15", "initdb", "postgres")
				}
				return nil
			}
			s := w.setup(io.Discard)
			s.euid = func() int { return 0 }
			err := s.Install(t.Context(), "postgresql")
			require.Equal(t, fail != "", err != nil)
			require.Contains(t, w.ran[len(w.ran)-3], clusterPolicy, "before the install")
			require.Contains(t, w.ran[len(w.ran)-2], "recommends postgresql")
			require.Equal(t, "env DEBIAN_FRONTEND=noninteractive rm -f "+clusterPolicy, w.ran[len(w.ran)-1], "and away after it")
		})
	}
}

func TestFind_PrefersTheEnvironment(t *testing.T) {
	bare(t)
	here := filepath.Join(t.TempDir(), "x")
	require.NoError(t, os.WriteFile(here, nil, 0o755))
	for env, find := range map[string]func() (string, error){
		"SMITH_TEMPORAL_BIN": Temporal, "SMITH_CLAUDE_BIN": Claude, "SMITH_CHROMIUM_BIN": Chromium,
		"SMITH_NODE_BIN": Node, "SMITH_TMUX_BIN": Tmux, "SMITH_BOLT_DIR": BoltDir,
	} {
		t.Run(env, func(t *testing.T) {
			_, err := find()
			require.ErrorContains(t, err, SetupCommand, "a missing program must say how to go on")
			t.Setenv(env, here)
			got, err := find()
			require.NoError(t, err)
			require.Equal(t, here, got)
			t.Setenv(env, "/no/such/program")
			_, err = find()
			require.ErrorContains(t, err, env+" names /no/such/program")
		})
	}
}

func TestInstall_FillsTheCacheOnce(t *testing.T) {
	bare(t, "go", "npm", "node", "tmux", "chromium")
	var out bytes.Buffer
	w := &shelf{}
	serve(t, os.Getenv("SMITH_CACHE"), "15", "initdb", "postgres")
	require.NoError(t, w.setup(&out).Install(t.Context()))
	for _, find := range []func() (string, error){Temporal, Claude, BoltDir, Node, Tmux, Chromium} {
		_, err := find()
		require.NoError(t, err)
	}
	require.Contains(t, strings.Join(w.ran, "\n"), "go install github.com/temporalio/cli/cmd/temporal@v1.5.1")
	first := len(w.ran)
	require.NoError(t, w.setup(&out).Install(t.Context()))
	require.Len(t, w.ran, first, "a second setup did something again")
}

func TestInstall_SeveralAtOnceInstallOnce(t *testing.T) {
	bare(t, "go", "npm", "node")
	const others = 3
	waiting := make(chan struct{}, others)
	out := writer(func(p []byte) {
		if strings.Contains(string(p), "waiting for that one") {
			waiting <- struct{}{}
		}
	})
	var builds atomic.Int32
	w := &shelf{do: func(_ context.Context, c command) error {
		if builds.Add(1) == 1 {
			for range others {
				<-waiting
			}
		}
		return nil
	}}
	var group sync.WaitGroup
	for range 1 + others {
		group.Go(func() { require.NoError(t, w.setup(out).Install(t.Context(), "temporal")) })
	}
	group.Wait()
	require.EqualValues(t, 1, builds.Load())
}

func TestInstall_GoesOnAfterItWasStopped(t *testing.T) {
	cache := bare(t, "go")
	ctx, cancel := context.WithCancel(t.Context())
	w := &shelf{do: func(ctx context.Context, c command) error {
		require.NoError(t, os.WriteFile(filepath.Join(c.dir, "half"), nil, 0o644))
		cancel()
		return ctx.Err()
	}}
	err := w.setup(io.Discard).Install(ctx, "temporal")
	require.EqualError(t, err, "stopped while installing temporal; nothing is broken, go on with: "+SetupCommand)
	_, err = Temporal()
	require.Error(t, err, "a half install passes for a whole one")
	require.NoDirExists(t, filepath.Join(cache, ".making-"+temporalDir))
	// One that was killed outright leaves its folder behind.
	require.NoError(t, os.MkdirAll(filepath.Join(cache, ".making-"+temporalDir, "junk"), 0o755))
	w.do = nil
	require.NoError(t, w.setup(io.Discard).Install(t.Context(), "temporal"))
	require.NoFileExists(t, filepath.Join(cache, temporalDir, "half"))
	require.NoDirExists(t, filepath.Join(cache, temporalDir, "junk"))
}

func TestInstall_AFailureShowsItsOutputAndEndsInOneLineThatSaysHowToGoOn(t *testing.T) {
	for name, tc := range map[string]struct{ fail, install, want string }{
		"temporal": {"go install", "temporal", "temporal could not be installed: go install github.com/temporalio/cli/cmd/temporal@v1.5.1: exit status 1"},
		"npm":      {"npm ci", "bolt", "bolt could not be installed: npm ci"},
		"script":   {"node install.cjs", "claude", "claude could not be installed: node install.cjs"},
	} {
		t.Run(name, func(t *testing.T) {
			bare(t, "go", "npm", "node")
			var out bytes.Buffer
			err := (&shelf{fail: tc.fail}).setup(&out).Install(t.Context(), tc.install)
			require.ErrorContains(t, err, tc.want)
			require.True(t, strings.HasSuffix(err.Error(), "run again: "+SetupCommand), err)
			require.NotContains(t, err.Error(), "\n")
			require.Contains(t, out.String(), "the reason of the failure")
		})
	}
}

func TestInstall_SaysThatItIsStillAtIt(t *testing.T) {
	bare(t, "go")
	said := make(chan string, 100)
	w := &shelf{do: func(context.Context, command) error {
		for line := range said {
			if strings.Contains(line, "so far") {
				return nil
			}
		}
		return nil
	}}
	s := w.setup(writer(func(p []byte) { said <- string(p) }))
	s.Every = time.Millisecond
	require.NoError(t, s.Install(t.Context(), "temporal"))
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func TestInstall_WithoutAptSaysWhatToInstallByHand(t *testing.T) {
	bare(t, "go", "npm")
	err := (&shelf{}).setup(io.Discard).Install(t.Context())
	require.EqualError(t, err, "this system has no apt-get; install by its own means: nodejs tmux chromium postgresql; then run again: "+SetupCommand)
}

func TestInstall_WithoutRootSaysTheExactLine(t *testing.T) {
	bare(t, "go", "npm", "node", "apt-get", "sudo")
	s := (&shelf{fail: "sudo -n true"}).setup(io.Discard)
	s.euid = func() int { return 1000 }
	err := s.Install(t.Context())
	require.ErrorContains(t, err, "run: sudo apt-get update && sudo apt-get install -y --no-install-recommends tmux chromium postgresql; then run again")
}

func TestInstall_UpdatesAptFirstAndOnlyForWhatIsMissing(t *testing.T) {
	bare(t, "go", "npm", "node", "tmux", "apt-get")
	w := &shelf{fail: "env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 update"}
	w.do = func(_ context.Context, c command) error {
		if strings.Contains(strings.Join(c.args, " "), "install -y") {
			return os.WriteFile(filepath.Join(os.Getenv("PATH"), "chromium"), []byte("#!/bin/sh\n"), 0o755)
		}
		return nil
	}
	s := w.setup(io.Discard)
	s.euid = func() int { return 0 }
	require.NoError(t, s.Install(t.Context(), "chromium", "tmux", "node"), "a source that is down stops nothing")
	ran := strings.Join(w.ran, "\n")
	require.NotContains(t, ran, "sudo")
	require.Contains(t, ran, "install -y --no-install-recommends chromium")
	require.NotContains(t, ran, "recommends chromium tmux")
	require.Less(t, strings.Index(ran, " update"), strings.Index(ran, " install -y"))
}

func TestInstall_UsesSudoThatAsksForNoPassword(t *testing.T) {
	bare(t, "go", "npm", "node", "apt-get", "sudo")
	w := &shelf{do: func(_ context.Context, c command) error {
		if strings.Contains(strings.Join(c.args, " "), "install -y") {
			return os.WriteFile(filepath.Join(os.Getenv("PATH"), "tmux"), []byte("#!/bin/sh\n"), 0o755)
		}
		return nil
	}}
	s := w.setup(io.Discard)
	s.euid = func() int { return 1000 }
	require.NoError(t, s.Install(t.Context(), "tmux"))
	require.Contains(t, w.ran, "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 install -y --no-install-recommends tmux")
}

func TestInstall_RefusesAnUnknownName(t *testing.T) {
	bare(t)
	err := (&shelf{}).setup(io.Discard).Install(t.Context(), "tempral")
	require.ErrorContains(t, err, `nothing named "tempral" can be installed`)
}

func TestRunCommand_EndsTheWholeGroup(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "alive")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(mark); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	begun := time.Now()
	err := runCommand(ctx, command{out: io.Discard, args: []string{"sh", "-c", `sh -c 'touch "$0"; sleep 100' "` + mark + `" & wait`}})
	require.Error(t, err)
	require.Less(t, time.Since(begun), 20*time.Second, "a grandchild outlived the stop")
}
