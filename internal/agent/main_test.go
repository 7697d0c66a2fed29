package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// workerEnv holds a workerJob: this test binary is then a worker that runs one agent.
const workerEnv = "AGENT_TEST_WORKER"

type workerJob struct {
	Options Options
	Spec    Spec
}

func TestMain(m *testing.M) {
	MaybeSupervise()
	if j := os.Getenv(workerEnv); j != "" {
		os.Exit(worker(j))
	}
	os.Exit(m.Run())
}

// worker runs an agent, and prints its process when it has started, and the run's
// error when it has ended.
func worker(j string) int {
	var wj workerJob
	if err := json.Unmarshal([]byte(j), &wj); err != nil {
		return 2
	}
	out := json.NewEncoder(os.Stdout)
	_, err := New(wj.Options).Run(context.Background(), wj.Spec, func(p Process) error { return out.Encode(p) })
	fmt.Println(err)
	return 0
}
