package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Directives set what some directives need to know of the system under test.
type Directives struct {
	// Abstain is the sentinel that [[abstain]] answers with (B4); "" is DefaultAbstain.
	Abstain string
}

// DefaultAbstain is what [[abstain]] answers when nothing else is set.
const DefaultAbstain = "[nothing to add]"

// quoted bounds how much of what was said the stand-in says back, in characters.
const quoted = 400

// Script is the default script. It answers that it is a stand-in and says back what
// it was asked, unless people said directives in the newest prompt's last section
// (Request.Said); those of earlier prompts and of earlier sections (quoted context)
// count for nothing.
//
//	[[say TEXT]]          answer TEXT
//	[[abstain]]           answer the sentinel for "nothing to add"
//	[[recall]]            answer how many prompts this conversation holds, and their ends
//	[[long N]]            answer N characters, in numbered rows
//	[[sleep 2s]]          wait before what follows
//	[[tool NAME JSON]]    call a tool of the CLI; what follows is done after its result
//	[[result]]            answer what the last tool returned
//	[[file NAME TEXT]]    write a file by the Write tool; NAME is relative to the agent's directory
//	[[error STATUS]]      an API error: 400, 401, 403, 500, 529, …
//	[[ratelimit]]         a 429 with Retry-After: 1
//	[[hang]]              nothing more until the client goes away; after [[say]]: mid-stream
//	[[drop]]              cut the connection; after [[say]]: mid-stream
//	[[commit MESSAGE]]    commit what changed in the agent's directory, by the Bash tool
//	[[terminal]]          what stands before it is for an agent in print mode only, what
//	                      follows for one in a terminal: an operator reads the same line
//	[[adds]]              what stands before it is for the agent that answers an ask of
//	                      every agent, what follows for one that adds to its answer; one
//	                      that has nothing behind it adds nothing
//	[[classify …]]        what the classifier is told of the line, see classify; for a
//	                      turn it is nothing
//
// They are carried out in order. Several texts are joined by a space. A text ends
// at the first "]]"; JSON may hold any. Slack's escapes (&amp; &lt; &gt;) are undone.
func Script(d Directives) func(Request) Reply {
	if d.Abstain == "" {
		d.Abstain = DefaultAbstain
	}
	return func(req Request) Reply {
		if req.Form {
			return classify(req)
		}
		list := turnDirectives(req)
		if len(list) == 0 {
			return Reply{Text: standInAnswer(req)}
		}
		return d.carryOut(req, list)
	}
}

func standInAnswer(req Request) string {
	said := strings.Join(strings.Fields(req.Said), " ")
	if r := []rune(said); len(r) > quoted {
		said = string(r[:quoted]) + " …"
	}
	return "I am a stand-in for the model: nobody is signed in to claude here. You said: " + said
}

// turnDirectives are those that a turn carries out, in print mode or in a terminal.
func turnDirectives(req Request) []directive {
	list := slices.DeleteFunc(parseDirectives(req.Said), func(x directive) bool { return x.name == "classify" })
	adds := slices.IndexFunc(list, func(x directive) bool { return x.name == "adds" })
	switch {
	case adding(req) && adds < 0:
		return []directive{{name: "abstain"}}
	case adding(req):
		list = list[adds+1:]
	case adds >= 0:
		list = list[:adds]
	}
	at := slices.IndexFunc(list, func(x directive) bool { return x.name == "terminal" })
	switch {
	case at < 0:
		return list
	case req.Terminal:
		return list[at+1:]
	}
	return list[:at]
}

// adding tells whether the agent is asked to add to another's answer.
func adding(req Request) bool { return strings.Contains(req.User, "\nYou take one turn after it.") }

type directive struct {
	name string
	arg  string
}

func (d Directives) carryOut(req Request, list []directive) Reply {
	var r Reply
	var texts []string
	step := 0
	for _, x := range list {
		if x.name == "tool" || x.name == "file" || x.name == "commit" {
			if step++; step <= req.Step {
				r, texts = Reply{}, nil // done by an earlier request of this turn
				continue
			}
			r.Text = strings.Join(texts, " ")
			r.Tool = toolOf(req, x)
			return r
		}
		switch x.name {
		case "say":
			texts = append(texts, x.arg)
		case "abstain":
			texts = append(texts, d.Abstain)
		case "recall":
			texts = append(texts, recall(req))
		case "result":
			texts = append(texts, strings.Join(req.Results, "\n"))
		case "long":
			n, _ := strconv.Atoi(x.arg)
			texts = append(texts, long(n))
		case "sleep":
			wait, _ := time.ParseDuration(x.arg)
			r.Wait += wait
		case "error":
			r.Status, _ = strconv.Atoi(x.arg)
			r.Kind, r.Message = errorOf(r.Status)
			return r
		case "ratelimit":
			r.Status = http.StatusTooManyRequests
			r.Kind, r.Message = errorOf(r.Status)
			r.RetryAfter = time.Second
			return r
		case "hang", "drop":
			r.Text = strings.Join(texts, " ")
			r.Hang, r.Drop = x.name == "hang", x.name == "drop"
			return r
		}
	}
	r.Text = strings.Join(texts, " ")
	if r.Text == "" {
		r.Text = "Done, says the stand-in."
	}
	return r
}

func recall(req Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "prompts: %d", req.Prompts)
	for _, h := range req.History {
		fmt.Fprintf(&b, "\n- %.80s", strings.Join(strings.Fields(h), " "))
	}
	return b.String()
}

// long makes n characters in rows that a reader can count.
func long(n int) string {
	var b strings.Builder
	for row := 1; b.Len() < n; row++ {
		fmt.Fprintf(&b, "row %05d of a long answer, by the stand-in\n", row)
	}
	return b.String()[:max(n, 0)]
}

func errorOf(status int) (kind, message string) {
	switch status {
	case http.StatusBadRequest:
		return "invalid_request_error", "The stand-in refuses this request."
	case http.StatusUnauthorized:
		return "authentication_error", "invalid x-api-key"
	case http.StatusForbidden:
		return "permission_error", "The stand-in does not permit this."
	case http.StatusTooManyRequests:
		return "rate_limit_error", "This request would exceed your rate limit."
	case 529:
		return "overloaded_error", "Overloaded"
	}
	return "api_error", "Internal server error"
}

func toolOf(req Request, x directive) *ToolUse {
	if x.name == "commit" {
		message := "'" + strings.ReplaceAll(x.arg, "'", `'\''`) + "'"
		input, _ := json.Marshal(object{"command": "git add --all && git commit --quiet --message " + message})
		return &ToolUse{Name: "Bash", Input: input}
	}
	if x.name == "file" {
		name, text, _ := strings.Cut(x.arg, " ")
		input, _ := json.Marshal(object{"file_path": filepath.Join(req.Dir, name), "content": text})
		return &ToolUse{Name: "Write", Input: input}
	}
	name, input, _ := strings.Cut(x.arg, " ")
	if !json.Valid([]byte(input)) {
		input = "{}"
	}
	return &ToolUse{Name: name, Input: json.RawMessage(input)}
}

var (
	opening  = regexp.MustCompile(`\[\[([a-z]+)`)
	unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
)

var known = map[string]bool{
	"say": true, "abstain": true, "recall": true, "result": true, "long": true, "sleep": true, "tool": true,
	"file": true, "error": true, "ratelimit": true, "hang": true, "drop": true,
	"commit": true, "terminal": true, "adds": true, "classify": true,
}

// parseDirectives finds the directives of a text; what is no directive is skipped.
func parseDirectives(text string) []directive {
	text = unescape.Replace(text)
	var list []directive
	for {
		m := opening.FindStringSubmatchIndex(text)
		if m == nil {
			return list
		}
		name, rest := text[m[2]:m[3]], text[m[3]:]
		text = rest
		if !known[name] {
			continue
		}
		arg, after, ok := argument(name, rest)
		if !ok {
			continue
		}
		list = append(list, directive{name: name, arg: arg})
		text = after
	}
}

// argument reads up to the directive's end. JSON is read as JSON, since it may hold the
// closing brackets itself.
func argument(name, rest string) (arg, after string, ok bool) {
	if name == "classify" {
		input := strings.TrimLeft(rest, " ")
		if raw, after, ok := jsonUpToEnd(input); ok && strings.HasPrefix(input, "{") {
			return raw, after, true
		}
	}
	if name == "tool" {
		tool := strings.TrimLeft(rest, " ")
		toolName, input, found := strings.Cut(tool, " ")
		if found && !strings.Contains(toolName, "]]") {
			if raw, after, ok := jsonUpToEnd(input); ok {
				return toolName + " " + raw, after, true
			}
		}
	}
	arg, after, ok = strings.Cut(rest, "]]")
	return strings.TrimSpace(arg), after, ok
}

// jsonUpToEnd reads JSON that stands last in a directive.
func jsonUpToEnd(input string) (raw, after string, ok bool) {
	dec := json.NewDecoder(strings.NewReader(input))
	var value json.RawMessage
	if dec.Decode(&value) != nil {
		return "", "", false
	}
	after, ok = strings.CutPrefix(strings.TrimLeft(input[dec.InputOffset():], " "), "]]")
	return string(value), after, ok
}
