package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxHook bounds what a hook is given, in bytes.
const maxHook = 16 << 20

// Hook is what the agent CLI gives a hook on its standard input, as far as it is used.
// Its session_id is not: it changes within one terminal, when the conversation does.
type Hook struct {
	Event      string `json:"hook_event_name"`
	Transcript string `json:"transcript_path"`
	// Prompt is a UserPromptSubmit's, whole as it was entered.
	Prompt string `json:"prompt"`
	// Last is a Stop's: the last message of the agent in that turn.
	Last string `json:"last_assistant_message"`
	// Message and Type are a Notification's.
	Message string `json:"message"`
	Type    string `json:"notification_type"`
}

// ReadHook reads a hook's input. What it does not know it passes over.
func ReadHook(r io.Reader) (Hook, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxHook+1))
	if err != nil {
		return Hook{}, fmt.Errorf("read a hook's input: %w", err)
	}
	if len(raw) > maxHook {
		return Hook{}, errors.New("read a hook's input: it is too long")
	}
	var h Hook
	if err := json.Unmarshal(raw, &h); err != nil {
		return Hook{}, fmt.Errorf("read a hook's input: %w", err)
	}
	return h, nil
}

// Word returns what the hook's event says to people; ok is false when it says nothing.
// A Stop's text counts also when another hook had made the agent go on
// (stop_hook_active): it is then what the agent said last. A CLI that is merely idle
// notifies of that after each turn: its Stop has said it already.
func (h Hook) Word() (w Word, ok bool) {
	switch h.Event {
	case "Stop":
		w = Word{Kind: Stop, Text: h.Last}
	case "Notification":
		if h.Type == "idle_prompt" {
			return Word{}, false
		}
		w = Word{Kind: Notification, Text: h.Message}
		if detail.MatchString(h.Type) {
			w.Detail = h.Type
		}
	}
	return w, strings.TrimSpace(w.Text) != ""
}
