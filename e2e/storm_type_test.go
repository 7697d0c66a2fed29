package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/stack"
	"agentsmith/internal/standin"
	"agentsmith/rules"
)

// typed is a line that a person typed in the storm, and what was meant by it.
type typed struct {
	kind              kind
	shape             shape
	who               string
	channel, root, ts string
	// seats are those that it is for by itself: mentioned, at last, or of the DM.
	seats []string
	tags  []string
	file  string // that the answer brings
	// wide: a stop at a DM's top level.
	wide bool
	// crossed: somebody put `:x:` on it.
	crossed bool
}

func (l typed) String() string {
	return fmt.Sprintf("%s of %s in %s/%s (%s) for %v", l.ts, l.who, l.channel, l.root, l.kind, l.seats)
}

// storm is one storm under way.
type storm struct {
	*system
	t    *testing.T
	size size
	seed uint64

	channels []string
	began    time.Time
	later    sync.WaitGroup // what follows a line: edits, deletions, stops

	mu      sync.Mutex
	lines   []*typed
	struck  []strike
	crossed map[string]bool // threads with a `:x:`
	gale    bool            // nobody waits any more
}

// withStorm sets a system up for a storm: short timeouts, brains that soon complete and
// soon renew themselves, and agents that may write files.
func withStorm(z size, seed uint64) settings {
	return func(o *stack.Options) {
		world := slackbox.DefaultSeed()
		for _, name := range people(z)[2:] {
			world.Users = append(world.Users, slackbox.User{Name: name, RealName: name})
		}
		members := append([]string{"smith", "trinity"}, people(z)...)
		for i := range 4 {
			world.Channels = append(world.Channels, slackbox.Channel{Name: fmt.Sprintf("deck%d", i), Members: members})
		}
		o.Slack.Seed, o.Slack.RandSeed = &world, seed
		var seats []map[string]any
		for _, name := range []string{"smith", "trinity"} {
			seats = append(seats, map[string]any{
				"name": name, "permission_mode": "acceptEdits", "allowed_tools": []string{"Read", "Write"},
			})
		}
		o.Config["seats"] = seats
		o.Config["slack"] = map[string]any{"request_timeout": stormTimeout.String()}
		o.Config["idle_after"] = "4s"
		o.Config["owed_too_long"] = "90s"
		o.Config["limits"] = map[string]any{"concurrent_turns": 4, "turn_timeout": "10m"}
		o.Dynamic = append(o.Dynamic, "limit.historyCount.suggestContinueAsNew=60")
		o.Model = stormModel()
	}
}

// stormTimeout is the programs' limit for a request to Slack: a repeat of a post waits
// this out, and reads back twice, 5 s apart. What is committed late and what lags behind
// must come out within that, as on Slack (B5).
const stormTimeout = 3 * time.Second

// stormModel is the model of the other tests; it also knows where files go when what
// people said names the outbox.
func stormModel() func(standin.Request) standin.Reply {
	base := model()
	return func(r standin.Request) standin.Reply {
		if m := outbox.FindStringSubmatch(r.User); m != nil {
			r.Said = strings.ReplaceAll(r.Said, "OUTBOX", m[1])
		}
		return base(r)
	}
}

// add keeps a line that was typed.
func (w *storm) add(l typed) *typed {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, &l)
	return &l
}

func (w *storm) note(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// hurry ends all waiting: what is left of the plan is typed at once.
func (w *storm) hurry() { w.note(func() { w.gale = true }) }

func (w *storm) hurried() (yes bool) {
	w.note(func() { yes = w.gale })
	return yes
}

// sleep is a person's pause.
func (w *storm) sleep(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !w.hurried(); {
		time.Sleep(min(50*time.Millisecond, time.Until(end)))
	}
}

// play plays a thread's script.
func (w *storm) play(s script) {
	w.sleep(s.after)
	th := &thread{storm: w, script: s, channel: w.channels[s.place%len(w.channels)]}
	if s.shape == dm {
		id, err := w.Slack.Person(s.people[0]).DM(s.seats[0])
		require.NoError(w.t, err)
		th.channel = id
	}
	for _, x := range s.steps {
		w.sleep(x.pause)
		if x.calm {
			th.calm()
		}
		th.do(x)
	}
}

// thread is a script that is being played.
type thread struct {
	*storm
	script
	channel, root, last string
	// known: the seat has answered the thread's first line, so that every line of a duo engages.
	known bool
}

// calm waits until a seat said something after the last line, for a while.
func (th *thread) calm() {
	for end := time.Now().Add(th.size.wait); time.Now().Before(end) && !th.hurried(); {
		for _, m := range th.Slack.Log(0).Messages {
			if m.Channel != th.channel || m.ThreadTS != th.root || m.App == "" {
				continue
			}
			_, _, first, _ := lineOfPost(postID(m))
			th.known = th.known || first == th.root
			if rules.CompareTS(m.TS, th.last) > 0 {
				return
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// do types one line, and what follows it.
func (th *thread) do(x step) {
	l := typed{kind: x.kind, shape: th.shape, who: x.who, channel: th.channel, root: th.root, seats: x.seats, tags: x.tags}
	to := th.address(x)
	text := to + th.words(x, x.tags[0])
	switch x.kind {
	case chatter:
		l.seats, text = nil, "among us: "+x.tags[0]
	case raised:
		text = "among us: " + x.tags[0]
	case fileOut:
		l.file = x.tags[0] + ".txt"
	}
	if x.kind == fileIn {
		l.ts = th.upload(x, l.channel, text)
	} else {
		ts, err := th.Slack.Person(x.who).Reply(th.channel, th.root, text)
		require.NoError(th.t, err)
		l.ts = ts
	}
	if th.root == "" {
		th.root = l.ts
		l.root = l.ts
	}
	if x.kind != chatter {
		th.last = l.ts
	}
	th.follow(x, th.add(l), to)
}

// address is how a line says whom it is for: in a DM, and in a duo that has begun, there
// is no need.
func (th *thread) address(x step) string {
	if th.shape == dm || th.shape == duo && th.known {
		return ""
	}
	return "@" + strings.Join(x.seats, " @") + " "
}

// words are what a line has the model do.
func (th *thread) words(x step, tag string) string {
	say := " [[say " + tag + "]]"
	switch {
	case x.kind == long:
		return fmt.Sprintf("tell all%s [[long %d]]", say, x.rows)
	case x.kind == fileOut:
		return fmt.Sprintf("write it down [[file OUTBOX/%s.txt of %s]]%s", tag, tag, say)
	case x.kind == abstains:
		return "nothing to do " + "[[abstain]]"
	case x.kind == fails:
		return "go wrong [[error 400]]"
	case x.takes > 0:
		return fmt.Sprintf("take your time [[sleep %dms]]%s", x.takes.Milliseconds(), say)
	}
	return "please" + say
}

// follow does what follows a line, beside the thread's next lines.
func (th *thread) follow(x step, l *typed, to string) {
	edit := func() error { return th.Slack.Person(x.who).Edit(th.channel, l.ts, to+th.words(x, x.tags[1])) }
	act := map[kind]func() error{
		edited:  edit,
		raised:  edit,
		deleted: func() error { return th.Slack.Person(x.who).Delete(th.channel, l.ts) },
		crossed: func() error {
			th.note(func() { l.crossed = true; th.crossed[th.channel+"/"+th.root] = true })
			return th.Slack.Person(x.who).React(th.channel, l.ts, rules.StopReaction)
		},
		stopped: func() error { return th.stop(x) },
	}[x.kind]
	if act == nil {
		return
	}
	if x.kind == stopped || x.kind == crossed {
		th.sleep(x.delay)
		require.NoError(th.t, act())
		return
	}
	th.later.Go(func() {
		th.sleep(x.delay)
		if err := act(); err != nil {
			th.t.Errorf("%s of line %s: %v", x.kind, l.ts, err)
		}
	})
}

// stop types the stop word.
func (th *thread) stop(x step) error {
	l := typed{kind: stopWord, shape: th.shape, who: x.who, channel: th.channel, root: th.root, seats: x.seats, wide: x.wide}
	text, root := th.address(x)+"stop", th.root
	if x.wide {
		root = ""
	}
	ts, err := th.Slack.Person(x.who).Reply(th.channel, root, text)
	if err != nil {
		return err
	}
	l.ts = ts
	if x.wide {
		l.root = ts
	}
	th.add(l)
	th.last = ts
	return nil
}

// upload posts a line with a small file, and finds the ts that it got.
func (th *thread) upload(x step, channel, text string) string {
	var token string
	st := th.Slack.State()
	for _, u := range st.Users {
		if u.Name == x.who {
			token = u.Token
		}
	}
	for _, a := range st.Apps {
		text = strings.ReplaceAll(text, "@"+a.Name+" ", "<@"+a.BotUser+"> ")
	}
	api := slack.New(token, slack.OptionAPIURL(th.Slack.URL()))
	_, err := api.UploadFileContext(th.t.Context(), slack.UploadFileParameters{
		Content: "from " + x.who, FileSize: len("from " + x.who), Filename: x.tags[0] + "-in.txt",
		Channel: channel, ThreadTimestamp: th.root, InitialComment: text,
	})
	require.NoError(th.t, err)
	var ts string
	wait(th.t, "for the line with a file", func() (bool, string) {
		for _, m := range th.Slack.Log(0).Messages {
			if m.Channel == channel && m.App == "" && strings.Contains(m.Text, "[[say "+x.tags[0]+"]]") {
				ts = m.TS
			}
		}
		return ts != "", ""
	})
	return ts
}
