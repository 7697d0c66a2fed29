package standin

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Request is what a script needs to know of one call of the Messages API.
type Request struct {
	// Session is the CLI's session id, "" where it does not show.
	Session string
	Model   string
	Stream  bool
	// Tools are the names of the tools the model may call.
	Tools []string
	// Dir is the CLI's working directory, as its system prompt says.
	Dir string
	// User is the newest prompt, whole; Section is its last section: all that
	// follows its last line that begins with "## ", or all of it. Said is what people
	// said there: its rows that begin with "| ", without that, or all of it.
	User    string
	Section string
	Said    string
	// Prompts counts the prompts of the conversation, this one included, and
	// History holds what people said in them, oldest first.
	Prompts int
	History []string
	// Step counts the model's tool calls since the newest prompt, and Results holds
	// what the last of them returned.
	Step    int
	Results []string
	// Background: the CLI asks for itself (a title), not for a turn.
	Background bool
	// Form: the CLI wants the answer as a call of FormTool.
	Form bool
	// Terminal: the CLI runs in a terminal, not in print mode.
	Terminal bool
}

type wireRequest struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	System   json.RawMessage `json:"system"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Metadata struct {
		UserID string `json:"user_id"`
	} `json:"metadata"`
	OutputConfig struct {
		Format json.RawMessage `json:"format"`
	} `json:"output_config"`
}

type wireBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`
}

// ParseRequest reads the body of a POST /v1/messages.
func ParseRequest(body []byte) (Request, error) {
	var w wireRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return Request{}, fmt.Errorf("read a request for messages: %w", err)
	}
	r := Request{Model: w.Model, Stream: w.Stream}
	for _, t := range w.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	r.Form = slices.Contains(r.Tools, FormTool)
	var user struct {
		Session string `json:"session_id"`
	}
	if json.Unmarshal([]byte(w.Metadata.UserID), &user) == nil {
		r.Session = user.Session
	}
	for _, b := range blocks(w.System) {
		if m := workingDir.FindStringSubmatch(b.Text); m != nil {
			r.Dir = strings.TrimSpace(m[1])
		}
		r.Terminal = r.Terminal || strings.HasPrefix(b.Text, "x-anthropic-billing-header:") && strings.Contains(b.Text, "cc_entrypoint=cli;")
	}
	// A request for a title has no tools and asks for JSON of a given shape; a turn
	// that runs with no tools at all asks for none.
	r.Background = len(w.Tools) == 0 && (len(w.OutputConfig.Format) > 0 || strings.Contains(w.Model, "haiku"))
	for _, m := range w.Messages {
		r.add(m.Role, blocks(m.Content))
	}
	return r, nil
}

func (r *Request) add(role string, bs []wireBlock) {
	if role == "user" {
		r.Results = nil
	}
	for _, b := range bs {
		switch {
		case role == "user" && b.Type == "text" && isPrompt(b.Text):
			r.User = b.Text
			r.Section = lastSection(b.Text)
			r.Said = said(r.Section)
			r.History = append(r.History, r.Said)
			r.Prompts++
			r.Step = 0
		case role == "user" && b.Type == "tool_result":
			r.Results = append(r.Results, flat(b.Content))
		case role == "assistant" && b.Type == "tool_use":
			r.Step++
		}
	}
}

// blocks reads a content, which is either a string or a list of blocks.
func blocks(raw json.RawMessage) []wireBlock {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []wireBlock{{Type: "text", Text: text}}
	}
	var list []wireBlock
	_ = json.Unmarshal(raw, &list)
	return list
}

func flat(raw json.RawMessage) string {
	var b strings.Builder
	for _, x := range blocks(raw) {
		b.WriteString(x.Text)
	}
	return b.String()
}

// isPrompt tells a prompt from what the CLI itself writes as a user.
func isPrompt(text string) bool {
	t := strings.TrimSpace(text)
	for _, own := range []string{"<system-reminder>", "<task-notification>", "[Request interrupted", "[structured-output-enforce]", "[Your previous response had no visible output"} {
		if strings.HasPrefix(t, own) {
			return false
		}
	}
	return t != ""
}

func lastSection(text string) string {
	if i := strings.LastIndex("\n"+text, "\n## "); i >= 0 {
		rest := text[i:]
		if _, after, ok := strings.Cut(rest, "\n"); ok {
			return strings.TrimSpace(after)
		}
		return ""
	}
	return strings.TrimSpace(text)
}

// said are the words of people in a section. What is typed into a session begins with who
// wrote it.
func said(section string) string {
	section = typedLine.ReplaceAllString(section, "| ")
	var rows []string
	for row := range strings.Lines(section) {
		if words, ok := strings.CutPrefix(row, "| "); ok {
			rows = append(rows, strings.TrimRight(words, "\n"))
		}
	}
	if rows == nil {
		return section
	}
	return strings.Join(rows, "\n")
}

func lineTS(text string) []string { return slackTS.FindAllString(text, -1) }

var (
	typedLine  = regexp.MustCompile(`^Line from (?:.{1,80} in )?Slack: `)
	workingDir = regexp.MustCompile(`(?m)^ - Primary working directory: (.*)$`)
	slackTS    = regexp.MustCompile(`\b\d{10}\.\d{6}\b`)
)
