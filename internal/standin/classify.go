package standin

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FormTool is the tool by which the CLI has a model answer in the form of --json-schema.
const FormTool = "StructuredOutput"

// classify answers whether a line asks for work, in the classifier's form (O2).
//
// A stand-in understands nothing, so its rule is plain and its own: a line that begins
// like an order ("fix …", "please add …", "can you write …", "work: …") is work, and its
// repo is the one of those listed whose name is a word of the line. So is a line that only
// names a repo, where such an order was given before. Every other line is a question, and so is one that holds directives, so that they stay what they were. To
// have it say anything else:
//
//	[[classify question]]
//	[[classify work SLUG REPO]]   both may be left out; "-" is none
//	[[classify {"kind":…}]]       that JSON, whatever it is
//	[[classify say TEXT]]         prose in the place of the form
//	[[classify error STATUS]]     an API error
//	[[classify hang]]             no answer; and [[classify drop]]
//	[[classify sleep 2s …]]       wait before any of them
func classify(req Request) Reply {
	list := parseDirectives(req.Said)
	if i := slices.IndexFunc(list, func(x directive) bool { return x.name == "classify" }); i >= 0 {
		return classifyAs(list[i].arg)
	}
	repo, earlier := repoOf(req), sectionOf(req.User, "Asked earlier in this thread")
	switch {
	case len(list) > 0:
	case AsksForWork(req.Said):
		return form("work", slugOf(req.Said), repo)
	case repo != "" && AsksForWork(said(earlier)):
		return form("work", slugOf(said(earlier)), repo)
	}
	return form("question", "", "")
}

func classifyAs(arg string) Reply {
	word, rest, _ := strings.Cut(arg, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "sleep":
		first, rest, _ := strings.Cut(rest, " ")
		wait, _ := time.ParseDuration(first)
		r := classifyAs(strings.TrimSpace(rest))
		r.Wait += wait
		return r
	case "work":
		slug, repo, _ := strings.Cut(rest, " ")
		return form("work", none(slug), none(strings.TrimSpace(repo)))
	case "say":
		return Reply{Text: rest}
	case "error":
		status, _ := strconv.Atoi(rest)
		kind, message := errorOf(status)
		return Reply{Status: status, Kind: kind, Message: message}
	case "hang":
		return Reply{Hang: true}
	case "drop":
		return Reply{Drop: true}
	}
	if strings.HasPrefix(arg, "{") && json.Valid([]byte(arg)) {
		return Reply{Tool: &ToolUse{Name: FormTool, Input: json.RawMessage(arg)}}
	}
	return form("question", "", "")
}

func none(word string) string {
	if word == "-" {
		return ""
	}
	return word
}

func form(kind, slug, repo string) Reply {
	input, _ := json.Marshal(map[string]string{"kind": kind, "slug": slug, "repo": repo})
	return Reply{Tool: &ToolUse{Name: FormTool, Input: input}}
}

var (
	order = regexp.MustCompile(`(?i)^(?:@\S+\s+|(?:hi|hello|hey|please)\b[,!]?\s*|(?:can|could|would) you\s+)*(?:work:|(?:add|build|change|create|fix|implement|refactor|remove|rename|replace|update|write)\s)`)
	words = regexp.MustCompile(`[a-z0-9]+`)
)

// AsksForWork is the stand-in's own rule of what asks for work: see classify. A line of it
// begins with an order.
func AsksForWork(said string) bool {
	return slices.ContainsFunc(strings.Split(said, "\n"), func(row string) bool { return order.MatchString(strings.TrimSpace(row)) })
}

// slugOf takes the first words of the order.
func slugOf(said string) string {
	for row := range strings.SplitSeq(said, "\n") {
		row = strings.TrimSpace(row)
		if !order.MatchString(row) {
			continue
		}
		found := words.FindAllString(strings.ToLower(fillers.ReplaceAllString(row, " ")), 4)
		return strings.Join(found, "-")
	}
	return ""
}

var fillers = regexp.MustCompile(`(?i)@\S+|\b(?:hi|hello|hey|please|can|could|would|you|work|the|an?|this|that)\b|[^\x00-\x7f]+`)

// repoOf looks for the name of a listed repository among the words of the line.
func repoOf(req Request) string {
	said := strings.FieldsFunc(req.Said, func(r rune) bool { return strings.ContainsRune(" \n\t,;:!?\"'`()", r) })
	for i, w := range said {
		said[i] = strings.TrimRight(w, ".")
	}
	for row := range strings.SplitSeq(sectionOf(req.User, "Repositories"), "\n") {
		name, ok := strings.CutPrefix(row, "- ")
		if ok && slices.Contains(said, name) {
			return name
		}
	}
	return ""
}

// sectionOf returns what stands below a heading.
func sectionOf(text, title string) string {
	_, section, _ := strings.Cut("\n"+text, "\n## "+title+"\n")
	section, _, _ = strings.Cut("\n"+section, "\n## ")
	return strings.TrimSpace(section)
}
