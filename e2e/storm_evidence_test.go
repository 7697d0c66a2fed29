package e2e_test

import (
	"regexp"
	"slices"
	"strings"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/standin"
	"agentsmith/rules"
)

// evidence is one reading of the oracles, sorted: what the seats posted, by its name,
// and which lines the model was shown together. Nothing in it is of the system's own.
type evidence struct {
	lines   []*typed
	struck  []strike
	crossed map[string]bool
	posts   map[string]*posted
	runs    []*agentRun
	files   map[string]int // "<channel>/<root>/<name>"
	gone    map[string]bool
	talked  map[string][]string // "<channel>/<root>": the seats that its lines mention
	host    map[string]string   // "<channel>/<root>": who began it
}

// posted is one post of a seat, in all its parts.
type posted struct {
	id, seat, channel, root string
	// of is the ts in its name: the turn's first line, or the stop.
	of    string
	stop  bool
	parts []slackbox.LoggedMessage
}

func (p *posted) first() slackbox.LoggedMessage { return p.parts[0] }

// agentRun is one run of the agent, as the stand-in saw it.
type agentRun struct {
	seat, session string
	lines         []string
	entries       []standin.Entry // of all steps, the first one's repeats too
}

func (r *agentRun) last() standin.Entry { return r.entries[len(r.entries)-1] }

// served tells whether the model answered to the end, and refused whether it would not.
func (r *agentRun) served() bool  { return r.last().Outcome == standin.Served }
func (r *agentRun) refused() bool { return r.last().Outcome == standin.Refused }

// words are all that the model said in the run; what it says before it uses a tool is no
// part of the answer.
func (r *agentRun) words() string {
	var all []string
	for _, x := range r.entries {
		all = append(all, x.Answer)
	}
	return strings.Join(all, "\n")
}

func (r *agentRun) abstained() bool {
	return r.served() && strings.TrimSpace(r.last().Answer) == rules.Abstain
}

var whoAmI = regexp.MustCompile(`You are @([a-z0-9-]+)`)

// evidence reads the oracles.
func (w *storm) evidence() evidence {
	e := evidence{posts: map[string]*posted{}, files: map[string]int{}, gone: map[string]bool{}, talked: map[string][]string{}, host: map[string]string{}}
	w.note(func() {
		for _, l := range w.lines {
			kept := *l
			e.lines = append(e.lines, &kept)
		}
		e.struck = slices.Clone(w.struck)
		e.crossed = map[string]bool{}
		for t := range w.crossed {
			e.crossed[t] = true
		}
	})
	for _, l := range e.lines {
		t := l.channel + "/" + l.root
		e.talked[t] = append(e.talked[t], l.seats...)
		if l.ts == l.root {
			e.host[t] = l.who
		}
	}
	for _, m := range w.Slack.Log(0).Messages {
		e.read(m)
	}
	for _, p := range e.posts {
		slices.SortFunc(p.parts, func(a, b slackbox.LoggedMessage) int { return rules.CompareTS(a.TS, b.TS) })
	}
	for _, x := range w.Model.Log() {
		e.ran(x)
	}
	return e
}

func (e *evidence) read(m slackbox.LoggedMessage) {
	if m.Deleted() {
		e.gone[m.TS] = true
		return
	}
	if m.App == "" {
		return
	}
	for _, f := range m.Message.Files {
		e.files[m.Channel+"/"+m.ThreadTS+"/"+f.Name]++
	}
	id := postID(m)
	if id == "" || len(m.Message.Files) > 0 {
		return
	}
	p := e.posts[id]
	if p == nil {
		name := strings.Split(id, "/")
		p = &posted{id: id, seat: m.App, channel: m.Channel, root: m.ThreadTS, stop: strings.HasSuffix(id, "/stop")}
		if len(name) > 2 {
			p.of = name[2]
		}
		e.posts[id] = p
	}
	p.parts = append(p.parts, m)
}

// ran adds a request to its run. A repeat of a refused request is of the same run: the
// CLI repeats those itself.
func (e *evidence) ran(x standin.Entry) {
	lines := lead(x)
	seat := ""
	if m := whoAmI.FindStringSubmatch(x.User); m != nil {
		seat = m[1]
	}
	for i := len(e.runs) - 1; i >= 0; i-- {
		r := e.runs[i]
		if r.session == x.Session && slices.Equal(r.lines, lines) && (x.Step > 0 || r.refused()) {
			r.entries = append(r.entries, x)
			return
		}
	}
	e.runs = append(e.runs, &agentRun{seat: seat, session: x.Session, lines: lines, entries: []standin.Entry{x}})
}

func (e *evidence) runsOf(seat string, l *typed) (out []*agentRun) {
	for _, r := range e.runs {
		if r.seat == seat && slices.Contains(r.lines, l.ts) {
			out = append(out, r)
		}
	}
	return out
}
