// Command agent stands where the agent CLI stands, and does nothing as fast as it can: a
// benchmark measures what is around an agent, not the agent. It tells when it began and
// when it ended. A classifier's run answers what the line says that it should, and in an
// operator's terminal the real CLI takes its place.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

var name = regexp.MustCompile(`bench-[0-9a-z-]+`)

func main() {
	began := time.Now()
	if !slices.Contains(os.Args, "-p") && !slices.Contains(os.Args, "--print") && os.Getenv("BENCH_CLAUDE") != "" {
		err := syscall.Exec(os.Getenv("BENCH_CLAUDE"), append([]string{"claude"}, os.Args[1:]...), os.Environ())
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
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
	if slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "--json-schema=") }) {
		classify(string(prompt), session)
		return
	}
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

var disposition = regexp.MustCompile(`kind=(\w+)(?: repo=(\w+))?`)

// classify answers what the newest line says, "kind=work repo=NAME" or "kind=question";
// any other kind is an outage.
func classify(prompt, session string) {
	all := disposition.FindAllStringSubmatch(prompt, -1)
	form := map[string]string{"kind": "question", "slug": "", "repo": ""}
	if len(all) > 0 {
		form["kind"], form["repo"] = all[len(all)-1][1], all[len(all)-1][2]
	}
	if form["kind"] != "question" && form["kind"] != "work" {
		fmt.Fprintln(os.Stderr, "agent: no answer")
		os.Exit(1)
	}
	if asked := name.FindAllString(prompt, -1); form["kind"] == "work" && len(asked) > 0 {
		form["slug"] = asked[len(asked)-1]
	}
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(map[string]any{"type": "system", "subtype": "init", "session_id": session, "model": "none"})
	_ = out.Encode(map[string]any{"type": "result", "subtype": "success", "is_error": false, "result": "", "structured_output": form,
		"session_id": session, "num_turns": 1, "duration_ms": 1, "total_cost_usd": 0})
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
