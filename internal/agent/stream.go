package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxLine bounds one line of the CLI's output, in bytes. A longer one that is not
// the result (an image that a tool read) is skipped.
const maxLine = 4 << 20

// The lines of `--output-format stream-json --verbose` that are relied on, one JSON
// object each:
//
//	{"type":"system","subtype":"init","session_id","model",…}       first
//	{"type":"system","subtype":"api_retry","error_status","error"}  before each retry
//	{"type":"assistant","message":{"model",…},"error"}              error: set when the text is the CLI's own
//	{"type":"result","subtype","is_error","result","errors","session_id","num_turns",
//	 "duration_ms","total_cost_usd","api_error_status","terminal_reason",
//	 "structured_output"}                                           at the end
//
// An API error is a result with subtype "success", is_error true, exit code 1, and
// api_error_status null when the CLI gave up after retries or got no response.
// With --json-schema the model has one more tool, StructuredOutput, which it is urged to
// call; its input, once it fits, is structured_output, which is missing when the model
// wrote prose after all. An input that never fits is a result of subtype
// error_max_structured_output_retries.
// After the result more system lines may come, and another result.
type wireLine struct {
	Type        string  `json:"type"`
	Subtype     string  `json:"subtype"`
	SessionID   string  `json:"session_id"`
	Model       string  `json:"model"`
	Error       any     `json:"error"`
	ErrorStatus float64 `json:"error_status"`
	Message     struct {
		Model string `json:"model"`
	} `json:"message"`

	IsError        bool     `json:"is_error"`
	Result         string   `json:"result"`
	Errors         []string `json:"errors"`
	NumTurns       float64  `json:"num_turns"`
	DurationMS     float64  `json:"duration_ms"`
	TotalCostUSD   float64  `json:"total_cost_usd"`
	APIErrorStatus float64  `json:"api_error_status"`

	Structured json.RawMessage `json:"structured_output"`
}

// output is what a stream said.
type output struct {
	// begun: the CLI took the prompt up.
	begun  bool
	result *wireLine
	// texts are the answers: a background task that ended after the first one makes
	// the CLI go on to another.
	texts       []string
	turns       int
	model       string
	errorKind   string
	retryStatus int
	retryKind   string
	bytes       int64
	// unread counts lines that were no JSON object of a known shape.
	unread int
}

// readStream reads a CLI's standard output to its end. onLine is called after each
// line of a turn, and told whether it was the result, so the turn's last. It fails
// with ErrOutput beyond limit bytes, or for a result that is longer than a line may
// be; otherwise only as src does.
func readStream(src io.Reader, limit int64, onLine func(result bool)) (output, error) {
	var out output
	r := bufio.NewReaderSize(src, 64<<10)
	for {
		line, skipped, err := readLine(r, limit, &out.bytes)
		if skipped && bytes.HasPrefix(line, []byte(`{"type":"result"`)) {
			return out, fmt.Errorf("%w: its result has more than %d bytes", ErrOutput, maxLine)
		}
		if skipped {
			out.unread++
		} else if kind := out.take(line); kind == "result" || kind == "assistant" {
			onLine(kind == "result")
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
}

// readLine returns one line, or the first maxLine bytes of a longer one and skipped.
func readLine(r *bufio.Reader, limit int64, total *int64) (line []byte, skipped bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		*total += int64(len(part))
		if *total > limit {
			return line, true, fmt.Errorf("%w: more than %d bytes", ErrOutput, limit)
		}
		if room := maxLine - len(line); len(part) > room {
			line, skipped = append(line, part[:room]...), true
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, skipped, err
		}
	}
}

// take reads one line and returns its type.
func (o *output) take(line []byte) string {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return ""
	}
	var w wireLine
	if json.Unmarshal(line, &w) != nil || w.Type == "" {
		o.unread++
		return ""
	}
	switch w.Type {
	case "system":
		switch w.Subtype {
		case "init":
			o.begun = true
			o.model = w.Model
		case "api_retry":
			o.retryStatus = int(w.ErrorStatus)
			o.retryKind, _ = w.Error.(string)
		}
	case "assistant":
		o.begun = true
		o.errorKind, _ = w.Error.(string)
		if m := w.Message.Model; m != "" && m != "<synthetic>" {
			o.model = m
			o.retryStatus, o.retryKind = 0, ""
		}
	case "result":
		o.result = &w
		o.turns += int(w.NumTurns)
		if w.Result != "" && !w.IsError && !slices.Contains(o.texts, w.Result) {
			o.texts = append(o.texts, w.Result)
		}
	}
	return w.Type
}

// failure reads an error out of a result, nil when it is none.
func (o *output) failure() error {
	w := o.result
	if w == nil || !w.IsError {
		return nil
	}
	e := &APIError{Status: int(w.APIErrorStatus), Kind: o.errorKind, Message: w.Result}
	if e.Status == 0 && e.Kind == "" {
		return nil // an error of the CLI's own
	}
	if o.retryStatus != 0 && (e.Status == o.retryStatus || e.Status == 0 && e.Kind != "authentication_failed") {
		e.Status, e.Kind = o.retryStatus, o.retryKind
	}
	return e
}
