// Package e2e_test checks the rules of the product from the outside: the real worker and
// starter, the real Temporal server, the real agent CLI against a stand-in of the model,
// and the local Slack. What it believes comes from oracles only (the local Slack's log,
// the stand-in's log, /proc, Temporal's histories), never from the system's own store.
package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"agentsmith/internal/stack"
	"agentsmith/internal/tools"
)

// programs are what every stack of this test process runs; ours are built once.
type programs struct {
	temporal, claude, worker, starter string
	err                               error
}

// build finds the pinned programs and builds ours, with failpoints. A missing program is
// a failure that says how to go on.
func build(dir string) programs {
	var p programs
	if p.temporal, p.err = tools.Temporal(); p.err != nil {
		return p
	}
	if p.claude, p.err = tools.Claude(); p.err != nil {
		return p
	}
	p.worker, p.starter, p.err = stack.Build(context.Background(), dir, "failpoints")
	return p
}

// house is what the tests of this process have in common.
type house struct {
	dir      string
	programs func() programs

	mu     sync.Mutex
	shared map[string]*system
}

var inCommon *house

// parallel is how many cases run at once: most of them wait.
const parallel = "6"

func TestMain(m *testing.M) {
	flag.Parse()
	if !flagGiven("test.parallel") {
		_ = flag.Set("test.parallel", parallel)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "smith-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	inCommon = &house{
		dir: dir, shared: map[string]*system{},
		programs: sync.OnceValue(func() programs { return build(filepath.Join(dir, "bin")) }),
	}
	code := m.Run()
	for name, s := range inCommon.shared {
		for _, problem := range s.close() {
			fmt.Fprintf(os.Stderr, "--- FAIL: the shared system %q, looked at after all cases: %s\n", name, problem)
			code = 1
		}
	}
	printKillTable()
	return code
}

func flagGiven(name string) bool {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}
