package standin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Reply is what a script answers with.
type Reply struct {
	// Wait is how long to wait before the first byte.
	Wait time.Duration
	// Text is streamed first, Tool is called after it.
	Text string
	Tool *ToolUse
	// Hang: after Text nothing more comes until the client goes away. With no Text
	// not even the response's header is sent.
	Hang bool
	// Drop: after Text the connection is cut.
	Drop bool
	// Status makes it an error response of that HTTP status, with Kind and Message
	// in its body and RetryAfter in its header.
	Status     int
	Kind       string
	Message    string
	RetryAfter time.Duration
}

// ToolUse is a call of one of the CLI's tools.
type ToolUse struct {
	Name  string
	Input json.RawMessage
}

// chunk is how many bytes of text go into one delta.
const chunk = 2000

var errDrop = errors.New("stand-in: connection dropped by the script")

// send carries out a reply. Its error is errDrop, or that the client went away.
func send(ctx context.Context, w http.ResponseWriter, req Request, r Reply) error {
	if r.Wait > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(r.Wait):
		}
	}
	if r.Status != 0 {
		if r.RetryAfter > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(int(r.RetryAfter.Seconds())))
		}
		writeError(w, r.Status, r.Kind, r.Message)
		return nil
	}
	if r.Hang && r.Text == "" {
		<-ctx.Done()
		return ctx.Err()
	}
	if !req.Stream && !r.Hang && !r.Drop {
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(whole(req, r))
	}
	return stream(ctx, w, req, r)
}

type object = map[string]any

func message(req Request) object {
	return object{
		"id": "msg_standin_" + strings.ReplaceAll(uuid.NewString(), "-", ""), "type": "message", "role": "assistant",
		"model": req.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": 10 + len(req.User)/4, "output_tokens": 1},
	}
}

func stopReason(r Reply) string {
	if r.Tool != nil {
		return "tool_use"
	}
	return "end_turn"
}

func whole(req Request, r Reply) object {
	m := message(req)
	content := []any{}
	if r.Text != "" || r.Tool == nil {
		content = append(content, object{"type": "text", "text": r.Text})
	}
	if r.Tool != nil {
		content = append(content, object{"type": "tool_use", "id": toolID(), "name": r.Tool.Name, "input": r.Tool.Input})
	}
	m["content"] = content
	m["stop_reason"] = stopReason(r)
	return m
}

func toolID() string { return "toolu_standin_" + strings.ReplaceAll(uuid.NewString(), "-", "") }

// stream writes the reply as server-sent events, in the order that the API sends them.
func stream(ctx context.Context, w http.ResponseWriter, req Request, r Reply) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	var failed error
	event := func(kind string, fields object) {
		if failed != nil {
			return
		}
		fields["type"] = kind
		data, err := json.Marshal(fields)
		if err == nil {
			_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
		}
		failed = err
	}
	event("message_start", object{"message": message(req)})
	index := 0
	if r.Text != "" || r.Tool == nil {
		event("content_block_start", object{"index": index, "content_block": object{"type": "text", "text": ""}})
		for rest := r.Text; rest != ""; {
			n := cut(rest, chunk)
			event("content_block_delta", object{"index": index, "delta": object{"type": "text_delta", "text": rest[:n]}})
			rest = rest[n:]
		}
		if r.Hang || r.Drop {
			if err := flush.Flush(); err != nil || r.Drop {
				return errors.Join(errDrop, err)
			}
			<-ctx.Done()
			return ctx.Err()
		}
		event("content_block_stop", object{"index": index})
		index++
	}
	if r.Tool != nil {
		event("content_block_start", object{"index": index, "content_block": object{
			"type": "tool_use", "id": toolID(), "name": r.Tool.Name, "input": object{}}})
		event("content_block_delta", object{"index": index, "delta": object{
			"type": "input_json_delta", "partial_json": string(r.Tool.Input)}})
		event("content_block_stop", object{"index": index})
	}
	event("message_delta", object{
		"delta": object{"stop_reason": stopReason(r), "stop_sequence": nil},
		"usage": object{"output_tokens": 1 + len(r.Text)/4},
	})
	event("message_stop", object{})
	if failed != nil {
		return failed
	}
	return flush.Flush()
}

// cut returns how many bytes of s, at most n, end on a rune's end.
func cut(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	for n > 1 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}

func writeError(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"type": "error", "error": object{"type": kind, "message": message}})
}

func backgroundAnswer(Request) string { return `{"title":"stand-in"}` }
