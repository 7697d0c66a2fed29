package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// result is one line of the report. Product and Floor are in the unit that the name ends
// with, and were measured in the same run; Ratio is what counts.
type result struct {
	Name    string  `json:"name"`
	Product float64 `json:"product"`
	Floor   float64 `json:"floor"`
	Ratio   float64 `json:"ratio"`
}

func report(name string, product, floor float64) {
	r := result{Name: name, Product: round(product), Floor: round(floor)}
	if floor != 0 {
		r.Ratio = round(product / floor)
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
}

// reportNamed prints what a count is made of.
func reportNamed(name string, before, after map[string]float64) {
	grown := map[string]float64{}
	for k, n := range after {
		if d := n - before[k]; d > 0 {
			grown[k] = d
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"name": name, "each": grown})
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// percentile of durations, in milliseconds.
func percentile(all []time.Duration, p float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(all))
	i := min(len(sorted)-1, int(math.Ceil(p*float64(len(sorted))))-1)
	return float64(sorted[max(0, i)]) / float64(time.Millisecond)
}

// moments of one run of the agent.
type moments struct{ began, ended time.Time }

// clock hears from the agents when they began and ended.
type clock struct {
	path string
	conn *net.UnixConn
	mu   sync.Mutex
	seen map[string]moments
	more chan struct{}
}

func listen(path string) (*clock, error) {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, fmt.Errorf("listen for the agents: %w", err)
	}
	c := &clock{path: path, conn: conn, seen: map[string]moments{}, more: make(chan struct{})}
	go c.read()
	return c, nil
}

func (c *clock) read() {
	buf := make([]byte, 4096)
	for {
		n, err := c.conn.Read(buf)
		if err != nil {
			return
		}
		var name string
		var began, ended int64
		if _, err := fmt.Sscanf(string(buf[:n]), "%s %d %d", &name, &began, &ended); err != nil {
			continue
		}
		c.mu.Lock()
		c.seen[name] = moments{time.Unix(0, began), time.Unix(0, ended)}
		close(c.more)
		c.more = make(chan struct{})
		c.mu.Unlock()
	}
}

// of waits for the moments of the agent that was asked name.
func (c *clock) of(ctx context.Context, name string) (moments, error) {
	for {
		c.mu.Lock()
		m, ok := c.seen[name]
		more := c.more
		c.mu.Unlock()
		if ok {
			return m, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return moments{}, fmt.Errorf("waiting for the agent of %s: %w", name, ctx.Err())
		}
	}
}

// actions is the server's own count of billable actions.
func actions(ctx context.Context, metrics string) (float64, error) {
	all, err := billed(ctx, metrics)
	total := 0.0
	for _, n := range all {
		total += n
	}
	return total, err
}

// billed reads the server's own counts of billable actions, by their names.
func billed(ctx context.Context, metrics string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+metrics+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the server's metrics: %w", err)
	}
	defer resp.Body.Close()
	all := map[string]float64{}
	rows := bufio.NewScanner(resp.Body)
	rows.Buffer(nil, 1<<20)
	for rows.Scan() {
		row := rows.Text()
		if !strings.HasPrefix(row, "action{") || !strings.Contains(row, `namespace="default"`) {
			continue
		}
		v, err := strconv.ParseFloat(row[strings.LastIndexByte(row, ' ')+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("read the server's metrics: %w", err)
		}
		_, name, _ := strings.Cut(row, `action_type="`)
		name, _, _ = strings.Cut(name, `"`)
		all[name] += v
	}
	if len(all) == 0 {
		return nil, errors.New("the server's metrics do not count actions")
	}
	return all, rows.Err()
}

// residentKiB is a process's resident memory.
func residentKiB(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for row := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(row, "VmRSS:"); ok {
			return strconv.ParseFloat(strings.Fields(rest)[0], 64)
		}
	}
	return 0, errors.New("the kernel does not tell the process's memory")
}
