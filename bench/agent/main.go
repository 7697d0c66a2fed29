// Command agent stands where the agent CLI stands, and does nothing as fast as it can: a
// benchmark measures what is around an agent, not the agent. It tells when it began and
// when it ended.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"time"
)

var name = regexp.MustCompile(`bench-[0-9a-z-]+`)

func main() {
	began := time.Now()
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
	asked := name.FindAllString(string(prompt), -1)
	if len(asked) == 0 {
		asked = []string{"bench-none"}
	}
	session := session(os.Args)
	out := json.NewEncoder(os.Stdout)
	answer := asked[len(asked)-1]
	for _, line := range []map[string]any{
		{"type": "system", "subtype": "init", "session_id": session, "model": "none"},
		{"type": "assistant", "message": map[string]any{"role": "assistant", "content": []map[string]any{{"type": "text", "text": answer}}}},
		{"type": "result", "subtype": "success", "is_error": false, "result": answer, "session_id": session, "num_turns": 1, "duration_ms": 1, "total_cost_usd": 0},
	} {
		if err := out.Encode(line); err != nil {
			os.Exit(1)
		}
	}
	tell(asked, began, time.Now())
}

func session(args []string) string {
	for _, a := range args {
		for _, flag := range []string{"--session-id=", "--resume="} {
			if id, ok := strings.CutPrefix(a, flag); ok {
				return id
			}
		}
	}
	return ""
}

// tell sends the moments to whoever measures, in nanoseconds since 1970.
func tell(names []string, began, ended time.Time) {
	c, err := net.Dial("unixgram", os.Getenv("BENCH_SOCKET"))
	if err != nil {
		return
	}
	defer c.Close()
	for _, n := range names {
		fmt.Fprintf(c, "%s %d %d", n, began.UnixNano(), ended.UnixNano())
	}
}
