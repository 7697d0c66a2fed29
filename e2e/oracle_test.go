package e2e_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/standin"
	"agentsmith/rules"
)

// everywhere means every channel of a system.
const everywhere = ""

// excuses are the lines that look as if they were owed a post and are not, each with why.
type excuses struct {
	mu  sync.Mutex
	why map[string]string
}

func newExcuses() *excuses { return &excuses{why: map[string]string{}} }

func (e *excuses) add(channel, ts, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.why[channel+"/"+ts] = why
}

func (e *excuses) has(channel, ts string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.why[channel+"/"+ts] != ""
}

func payload(m slackbox.LoggedMessage) map[string]any {
	if m.Message == nil || m.Message.Metadata == nil {
		return nil
	}
	var p map[string]any
	raw, err := json.Marshal(m.Message.Metadata.EventPayload)
	if err != nil || json.Unmarshal(raw, &p) != nil {
		return nil
	}
	return p
}

// postID is the name that a post carries, "" for a message that has none.
func postID(m slackbox.LoggedMessage) string {
	id, _ := payload(m)["post_id"].(string)
	return id
}

func postPart(m slackbox.LoggedMessage) int {
	part, _ := payload(m)["part"].(float64)
	return int(part)
}

var lineHead = regexp.MustCompile(`(?m)^[^|\n].* at (\d+\.\d{6}):$`)

// lead are the lines that a run was asked to answer: those that its brief's last section
// heads, whatever numbers their texts quote.
func lead(e standin.Entry) []string {
	var out []string
	for _, m := range lineHead.FindAllStringSubmatch(e.Section, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// view is one reading of the oracles.
type view struct {
	log   slackbox.Log
	model []standin.Entry
	seats map[string]slackbox.App // by bot user
	team  string
}

func (s *system) view() view {
	v := view{log: s.Slack.Log(0), model: s.Model.Log(), seats: map[string]slackbox.App{}}
	st := s.Slack.State()
	v.team = st.Team.ID
	for _, a := range st.Apps {
		if a.Seat && (s.Seats == nil || slices.Contains(s.Seats, a.Name)) {
			v.seats[a.BotUser] = a.App
		}
	}
	return v
}

// audit looks at a channel, or everywhere, for what must never be.
func (s *system) audit(channel string) []string {
	v := s.view()
	var problems []string
	problems = append(problems, v.doubled(channel)...)
	problems = append(problems, v.runTwice(channel)...)
	problems = append(problems, v.unanswered(channel, s.excuses)...)
	problems = append(problems, v.leaked(channel, s.excuses)...)
	problems = append(problems, v.strangers(channel)...)
	for _, b := range s.busyFor(channel, 20*time.Second) {
		problems = append(problems, "still under way: "+b)
	}
	if channel == everywhere {
		problems = append(problems, s.historiesWithSecrets()...)
	}
	return problems
}

// doubled finds posts that a reader sees twice (B5).
func (v view) doubled(channel string) (out []string) {
	seen := map[string]string{}
	for _, m := range v.log.Messages {
		id := postID(m)
		if id == "" || m.Deleted() || channel != everywhere && m.Channel != channel {
			continue
		}
		key := fmt.Sprintf("%s#%d", id, postPart(m))
		if m.Subtype == "file_share" || len(m.Message.Files) > 0 {
			continue
		}
		if was := seen[key]; was != "" {
			out = append(out, fmt.Sprintf("posted twice: %s, as %s and %s: %.80q", key, was, m.TS, m.Text))
		}
		seen[key] = m.TS
	}
	for line, posts := range v.covers(channel) {
		if len(posts) > 1 {
			out = append(out, fmt.Sprintf("line %s has %d answers: %v", line, len(posts), posts))
		}
	}
	files := map[string]int{}
	for _, m := range v.log.Messages {
		if m.App == "" || m.Deleted() || channel != everywhere && m.Channel != channel {
			continue
		}
		for _, f := range m.Message.Files {
			files[m.Channel+" "+m.ThreadTS+" "+f.Name]++
		}
	}
	for f, n := range files {
		if n > 1 {
			out = append(out, fmt.Sprintf("the file %s is posted %d times", f, n))
		}
	}
	return out
}

// covers tells which posts answer a line of a seat: the one that bears its name, and
// those of the runs that it was part of. Driven turns go on with an answer; what a stop
// did is no answer.
func (v view) covers(channel string) map[string][]string {
	together := map[string][]string{} // "<seat's channel>/<first line>" -> the lines of its runs
	for _, e := range v.model {
		lines := lead(e)
		for _, first := range lines {
			together[first] = append(together[first], lines...)
		}
	}
	out := map[string][]string{}
	for _, m := range v.log.Messages {
		seat, ch, first, ok := lineOfPost(postID(m))
		if !ok || m.Deleted() || channel != everywhere && ch != channel {
			continue
		}
		lines := append([]string{first}, together[first]...)
		slices.Sort(lines)
		for _, ts := range slices.Compact(lines) {
			key := seat + "/" + ch + "/" + ts
			if !slices.Contains(out[key], postID(m)) {
				out[key] = append(out[key], postID(m))
			}
		}
	}
	return out
}

// lineOfPost reads a turn's post id, which is <seat>/<channel>/<first line>.
func lineOfPost(id string) (seat, channel, ts string, ok bool) {
	p := strings.Split(id, "/")
	if len(p) != 3 || !rules.ValidTS(p[2]) {
		return "", "", "", false
	}
	return p[0], p[1], p[2], true
}

// runTwice finds lines that two runs of an agent worked on (B3): a run that ended, or was
// ended, is never made again. Requests that were refused are the CLI's own to repeat.
func (v view) runTwice(channel string) (out []string) {
	runs := map[string]int{}
	for _, e := range v.model {
		if e.Step != 0 || e.Outcome == standin.Refused || channel != everywhere && !strings.Contains(e.User, channel) {
			continue
		}
		for _, ts := range lead(e) {
			runs[e.Session+" "+ts]++
		}
	}
	for key, n := range runs {
		if n > 1 {
			out = append(out, fmt.Sprintf("%d runs of the agent for one line: %s", n, key))
		}
	}
	return out
}

// unanswered finds persons' lines to a seat that got neither an answer nor an honest word.
func (v view) unanswered(channel string, ex *excuses) (out []string) {
	covers := v.covers(channel)
	for _, m := range v.log.Messages {
		if m.App != "" || m.Subtype != "" && m.Subtype != "file_share" || channel != everywhere && m.Channel != channel {
			continue
		}
		if ex.has(m.Channel, m.TS) || m.Deleted() {
			continue
		}
		for user, seat := range v.seats {
			if !addressed(m, user, seat, v) || len(covers[seat.Name+"/"+m.Channel+"/"+m.TS]) > 0 {
				continue
			}
			if !v.toldSince(m, seat) {
				out = append(out, fmt.Sprintf("%s owes line %s of %s a word: %.80q", seat.Name, m.TS, m.Name, m.Text))
			}
		}
	}
	return out
}

// addressed tells whether a line is a seat's by itself: it mentions it, or stands in a DM with it.
func addressed(m slackbox.LoggedMessage, user string, seat slackbox.App, v view) bool {
	if strings.Contains(m.Text, "<@"+user) {
		return true
	}
	return m.ChannelType == "im" && v.dmOf(m.Channel, seat)
}

func (v view) dmOf(channel string, seat slackbox.App) bool {
	for _, m := range v.log.Messages {
		if m.Channel == channel && m.App != "" {
			return m.App == seat.Name
		}
	}
	return false
}

// toldSince tells whether the thread got an honest line after this one, where no run saw
// the line: a turn that failed before its agent ran speaks for all of its lines.
func (v view) toldSince(m slackbox.LoggedMessage, seat slackbox.App) bool {
	root := m.ThreadTS
	if root == "" {
		root = m.TS
	}
	for _, p := range v.log.Messages {
		if p.Channel != m.Channel || p.App != seat.Name || p.Deleted() || rules.CompareTS(p.TS, m.TS) <= 0 {
			continue
		}
		if p.ThreadTS == root && (honest(p.Text) || strings.HasSuffix(postID(p), "/stop")) {
			return true
		}
	}
	return false
}

// failures and refusals are the reasons of the lines that say that there is no answer.
func failures() []rules.Reason {
	return []rules.Reason{
		rules.ReasonAgentExit, rules.ReasonAgentUnreadable, rules.ReasonAgentTimeout, rules.ReasonAgentOutput, rules.ReasonAgentAPI,
		rules.ReasonAgentMissing, rules.ReasonWorkerDied, rules.ReasonLost, rules.ReasonPostRejected, rules.ReasonInternal,
	}
}

func refusals() []rules.Reason {
	return []rules.Reason{
		rules.ReasonOutsider, rules.ReasonNotMember, rules.ReasonUnknown, rules.ReasonHops, rules.ReasonBudget, rules.ReasonCancelled,
	}
}

// told is the honest line of a reason, as it stands in Slack.
func told(r rules.Reason) string {
	if slices.Contains(failures(), r) {
		return rules.EscapeText(rules.FailureText(r))
	}
	return rules.EscapeText(rules.DeclineText(r))
}

// honest tells whether a text is one of the lines that say that there is no answer.
func honest(text string) bool {
	return slices.ContainsFunc(append(failures(), refusals()...), func(r rules.Reason) bool { return text == told(r) })
}

// leaked finds seats' messages at a channel's top level that belong into a thread (B5).
func (v view) leaked(channel string, ex *excuses) (out []string) {
	for _, m := range v.log.Messages {
		if _, ch, _, ok := lineOfPost(postID(m)); !ok || ch != m.Channel || m.Deleted() || channel != everywhere && m.Channel != channel {
			continue
		}
		if m.ThreadTS == "" && !ex.has(m.Channel, m.TS) {
			out = append(out, fmt.Sprintf("a reply stands at the top level: %s %.80q", m.TS, m.Text))
		}
	}
	return out
}

// strangers finds mentions in what the system posted (X2); every post of its has a name. A hand-off mentions the seat
// that it is for, and no one else.
func (v view) strangers(channel string) (out []string) {
	for _, m := range v.log.Messages {
		if seat, ok := v.seats[m.User]; !ok || m.App != seat.Name || postID(m) == "" || channel != everywhere && m.Channel != channel {
			continue
		}
		text := m.Text + " " + blockTexts(m.Message.Blocks)
		if payload(m)["to"] != nil {
			for user := range v.seats {
				text = strings.ReplaceAll(text, "<@"+user+">", "")
			}
		}
		if at := mention.FindString(text); at != "" {
			out = append(out, fmt.Sprintf("a post mentions %s: %s %.120q", at, m.TS, m.Text))
		}
	}
	return out
}

var mention = regexp.MustCompile(`<(@|!subteam|!channel|!here|!everyone)[^>]*>`)

// blockTexts joins every string of a message's blocks.
func blockTexts(raw json.RawMessage) string {
	var all any
	if json.Unmarshal(raw, &all) != nil {
		return ""
	}
	var b strings.Builder
	var walk func(x any)
	walk = func(x any) {
		switch x := x.(type) {
		case string:
			b.WriteString(x + "\n")
		case []any:
			for _, y := range x {
				walk(y)
			}
		case map[string]any:
			for _, y := range x {
				walk(y)
			}
		}
	}
	walk(all)
	return b.String()
}
