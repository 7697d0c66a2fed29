package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	mailbox "agentsmith/internal/outbox"
	"agentsmith/internal/slackbox"
	"agentsmith/internal/stack"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// relaySize is how large a storm over relays is.
type relaySize struct {
	people, sessions, lines int
	// words is how many words each session says of its own accord, floor how often each
	// fault must strike and each part be killed.
	words, floor int
	// typing is over how long the people type; quiet is how long the rest may take.
	typing, quiet time.Duration
}

func smallRelayStorm() relaySize {
	return relaySize{people: 2, sessions: 2, lines: 24, words: 5, floor: 1, typing: 20 * time.Second, quiet: 8 * time.Minute}
}

func fullRelayStorm() relaySize {
	return relaySize{people: 3, sessions: 5, lines: 402, words: 40, floor: 5, typing: 6 * time.Minute, quiet: 20 * time.Minute}
}

// relayStorm is one storm over relays under way.
type relayStorm struct {
	*system
	t     *testing.T
	size  relaySize
	seed  uint64
	boxes mailbox.Box
	began time.Time

	mu sync.Mutex
	// lines are all that people typed, by their tags.
	lines    []*relayLine
	sessions []*terminal.Live
	// all are the identities of all sessions that there ever were.
	all []terminal.Live
	// said are the words that sessions said of their own accord, in order, by session.
	said  map[string][]string
	kills map[string]int
}

type relayLine struct {
	who, channel, ts, tag, text string
	// door: it opens, closes or lists; smiths: it is the brain's in any case.
	door, smiths bool
}

func relayCast(z relaySize) []string { return []string{"ana", "ben", "cleo"}[:z.people] }

// withRelays lets several people open relays to operators.
func withRelays(z relaySize, seed uint64) settings {
	return func(o *stack.Options) {
		withOperators()(o)
		world := slackbox.DefaultSeed()
		world.Users = append(world.Users, slackbox.User{Name: "cleo", RealName: "Cleo"})
		var owners []string
		for i := range world.Users {
			if u := &world.Users[i]; slices.Contains(relayCast(z), u.Name) {
				u.ID = "U0" + strings.ToUpper(u.Name)
				owners = append(owners, u.ID)
			}
		}
		o.Slack.Seed, o.Slack.RandSeed = &world, seed
		o.Config["access"] = map[string]any{"owners": owners}
		o.Config["slack"] = map[string]any{"request_timeout": stormTimeout.String()}
		o.Config["idle_after"] = "10s"
		o.Dynamic = append(o.Dynamic, "limit.historyCount.suggestContinueAsNew=60")
	}
}

// relayFaults are the faults of Slack that must strike.
func relayFaults() []slackbox.FaultKind {
	return []slackbox.FaultKind{
		slackbox.Duplicate, slackbox.Reorder, slackbox.Disconnect, slackbox.DropAck, slackbox.RateLimited,
		slackbox.ServerError, slackbox.ResponseLost, slackbox.CommitLate,
	}
}

// TestRelayStorm has people type into relays to operators' sessions, switch and stop them,
// while sessions speak and everything is killed, and then looks by the agent CLI's hooks
// and the local Slack alone who had each line, and where each word stands (R9, R11).
// SMITH_STORM=full is the large one.
func TestRelayStorm(t *testing.T) {
	z := smallRelayStorm()
	if os.Getenv("SMITH_STORM") == "full" {
		z = fullRelayStorm()
	}
	seed := stormSeed(t)
	fmt.Printf("relay storm: seed=%d\n", seed)
	s, err := begin(t.TempDir(), withRelays(z, seed))
	require.NoError(t, err)
	w := &relayStorm{
		system: s, t: t, size: z, seed: seed, said: map[string][]string{}, kills: map[string]int{},
		boxes: mailbox.Box{Dir: filepath.Join(s.Dir, "data", "outbox")},
	}
	t.Cleanup(func() {
		for _, problem := range s.close() {
			t.Errorf("after the storm: %s", problem)
		}
		if t.Failed() {
			s.tails(t)
		}
	})
	for range z.sessions {
		w.hire()
	}
	w.began = time.Now()
	var typing, wind sync.WaitGroup
	for i, who := range relayCast(z) {
		typing.Go(func() { w.person(who, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	wind.Go(func() { w.speak(rand.New(rand.NewPCG(seed, 100))) })
	wind.Go(func() { w.blow(rand.New(rand.NewPCG(seed, 101))) })
	wind.Go(func() { w.killAll(rand.New(rand.NewPCG(seed, 102))) })
	typing.Wait()
	wind.Wait()
	s.Slack.RemoveFault("")
	w.settleStorm()
	w.report()
}

// hire has a thread of its own get an operator.
func (w *relayStorm) hire() {
	w.mu.Lock()
	n := len(w.all) + 1
	w.mu.Unlock()
	root, err := w.Slack.Person("ana").Say("general", fmt.Sprintf("@smith [[classify work crew%d web]] [[say hired]] [[terminal]] [[say at work]]", n))
	require.NoError(w.t, err)
	asked := time.Now()
	wait(w.t, fmt.Sprintf("for the operator crew%d", n), func() (bool, string) {
		if time.Since(asked) > 20*time.Second {
			// A bind that was killed is made up for by the next human turn (O8).
			asked = time.Now()
			_, err := w.Slack.Person("ana").Reply("general", root, fmt.Sprintf("@smith [[classify work crew%d web]] [[say hired]] [[terminal]] [[say at work]]", n))
			require.NoError(w.t, err)
		}
		all, err := w.Tmux.Sessions(w.t.Context())
		for _, l := range all {
			if l.Thread.Root == root {
				w.mu.Lock()
				w.sessions, w.all = append(w.sessions, &l), append(w.all, l)
				w.mu.Unlock()
				return true, ""
			}
		}
		return false, fmt.Sprint(err)
	})
}

// pick is a session that lives, as far as anybody knows.
func (w *relayStorm) pick(rng *rand.Rand) *terminal.Live {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sessions[rng.IntN(len(w.sessions))]
}

// person types into a DM: doors, lines for the session, lines for Smith, stops.
func (w *relayStorm) person(who string, rng *rand.Rand) {
	channel, err := w.Slack.Person(who).DM("smith")
	require.NoError(w.t, err)
	n := w.size.lines / w.size.people
	for i := range n {
		time.Sleep(time.Until(w.began.Add(w.size.typing * time.Duration(i) / time.Duration(n))))
		l := relayLine{who: who, channel: channel, tag: fmt.Sprintf("%s%04d", who, i)}
		switch x := rng.IntN(100); {
		case i == 0 || x < 12:
			l.door, l.text = true, "work on "+w.pick(rng).Slug
		case x < 17:
			l.door, l.text = true, "stop"
		case x < 19:
			l.door, l.text = true, "sessions"
		case x < 27:
			l.smiths, l.text = true, "@smith [[say "+l.tag+"]]"
		default:
			l.text = "[[say " + l.tag + "]]"
		}
		l.ts, err = w.Slack.Person(who).Say(channel, l.text)
		require.NoError(w.t, err)
		w.mu.Lock()
		w.lines = append(w.lines, &l)
		w.mu.Unlock()
	}
}

// speak has sessions say words with the real say program, each of its own.
func (w *relayStorm) speak(rng *rand.Rand) {
	n := w.size.words * w.size.sessions
	say := filepath.Join(filepath.Dir(w.Stack.Options.Worker), "say")
	for i := range n {
		time.Sleep(time.Until(w.began.Add(w.size.typing * time.Duration(i) / time.Duration(n))))
		l := w.pick(rng)
		word := fmt.Sprintf("word-%04d-of-%s", i, l.Slug)
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, say, word)
		cmd.Env = append(os.Environ(), "SMITH_SESSION="+l.ID, "SMITH_OUTBOX="+w.boxes.Dir)
		out, err := cmd.CombinedOutput()
		cancel()
		require.NoError(w.t, err, "%s", out)
		w.mu.Lock()
		w.said[l.ID] = append(w.said[l.ID], word)
		w.mu.Unlock()
	}
}

// blow asks for the faults, spread over the time of typing.
func (w *relayStorm) blow(rng *rand.Rand) {
	var shots []slackbox.FaultKind
	for _, k := range relayFaults() {
		for range w.size.floor + (w.size.floor+1)/2 {
			shots = append(shots, k)
		}
	}
	rng.Shuffle(len(shots), func(i, j int) { shots[i], shots[j] = shots[j], shots[i] })
	b := &wind{storm: &storm{system: w.system, t: w.t}, rng: rng}
	for i, k := range shots {
		time.Sleep(time.Until(w.began.Add(w.size.typing * time.Duration(i+1) / time.Duration(len(shots)+1))))
		for _, f := range b.fault(k, "smith") {
			if f.Method != "" && f.Method != "conversations.replies" {
				f.Method = "chat.postMessage" // the calls that there are many of
			}
			_, err := w.Slack.AddFault(f)
			require.NoError(w.t, err)
		}
	}
}

// killAll kills every part, one at a time, and a session now and then.
func (w *relayStorm) killAll(rng *rand.Rand) {
	var all []string
	for _, v := range []string{"worker", "starter", "temporal", "session"} {
		for range w.size.floor {
			all = append(all, v)
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	b := &wind{storm: &storm{system: w.system, t: w.t}, rng: rng}
	for i, v := range all {
		time.Sleep(time.Until(w.began.Add(w.size.typing * time.Duration(i+1) / time.Duration(len(all)+1))))
		if v == "session" {
			w.killSession(rng)
		} else {
			b.killParts(time.Duration(rng.IntN(1000))*time.Millisecond, victim(v))
		}
		w.mu.Lock()
		w.kills[v]++
		w.mu.Unlock()
	}
}

// killSession ends a session as a crash does, and has another hired in its place.
func (w *relayStorm) killSession(rng *rand.Rand) {
	w.mu.Lock()
	i := rng.IntN(len(w.sessions))
	l := w.sessions[i]
	if len(w.sessions) > 1 {
		w.sessions = slices.Delete(w.sessions, i, i+1)
	}
	w.mu.Unlock()
	require.NoError(w.t, w.Tmux.Kill(w.t.Context(), l.ID))
	w.hire()
}

// fate is what the oracles know of a line.
type fate struct {
	session, brain, unsure int
	// stopped: an ordinary stop of the whole conversation came soon after it, and said so.
	stopped bool
}

// prompts are the prompts that the sessions' CLIs took, by the log of their hooks.
func (w *relayStorm) hooked() (all []mailbox.Prompt) {
	for _, l := range w.all {
		got, err := w.boxes.Prompts(l.ID, "")
		require.NoError(w.t, err)
		all = append(all, got...)
	}
	return all
}

// fates judges every line that is no door.
func (w *relayStorm) fates() map[*relayLine]fate {
	prompts, v := w.hooked(), w.view()
	covers := v.covers(everywhere)
	out := map[*relayLine]fate{}
	for _, l := range w.lines {
		var f fate
		for _, p := range prompts {
			f.session += strings.Count(p.Text, "[[say "+l.tag+"]]")
		}
		f.brain = len(covers["smith/"+l.channel+"/"+l.ts])
		for _, m := range v.log.Messages {
			if strings.HasSuffix(postID(m), "/unsure/"+l.channel+"/"+l.ts) && !m.Deleted() {
				f.unsure++
			}
			// A turn that failed before its agent ran speaks for all of its lines.
			if f.brain == 0 && m.Channel == l.channel && m.ThreadTS == l.ts && honest(m.Text) {
				f.brain++
			}
		}
		for _, stop := range w.lines {
			after := rules.TSTime(stop.ts).Sub(rules.TSTime(l.ts))
			f.stopped = f.stopped || stop.text == "stop" && stop.channel == l.channel && after > 0 && after < time.Minute && w.stopSaid(stop)
		}
		out[l] = f
	}
	return out
}

// waits are the lines without an end, and the words that stand nowhere yet.
func (w *relayStorm) waits() (out []string) {
	for l, f := range w.fates() {
		if f.session+f.brain+f.unsure == 0 && !f.stopped && !(l.door && w.stopSaid(l)) {
			out = append(out, fmt.Sprintf("%s of %s: %.40q", l.ts, l.who, l.text))
		}
	}
	for _, words := range w.said {
		for _, word := range words {
			if w.times(word) == 0 {
				out = append(out, word)
			}
		}
	}
	return append(out, w.busy(everywhere)...)
}

// stopSaid tells whether a stop was answered as an ordinary one.
func (w *relayStorm) stopSaid(l *relayLine) bool {
	return slices.ContainsFunc(w.Slack.Log(0).Messages, func(m slackbox.LoggedMessage) bool {
		return postID(m) == rules.StopID("smith", l.channel, l.ts)
	})
}

// times counts in how many posts a word stands.
func (w *relayStorm) times(word string) (n int) {
	for _, m := range w.Slack.Log(0).Messages {
		if m.App == "smith" && !m.Deleted() && strings.Contains(m.Text, word) {
			n++
		}
	}
	return n
}

func (w *relayStorm) settleStorm() {
	began, moved, told, asked := time.Now(), time.Now(), time.Now(), false
	var left []string
	for time.Since(began) < w.size.quiet {
		if left = w.waits(); len(left) == 0 {
			return
		}
		if !asked && time.Since(began) > 45*time.Second {
			asked = true
			w.askAfter()
		}
		if time.Since(moved) > 10*time.Second && slices.Contains(left, "envelopes that are not acked") {
			(&storm{system: w.system, t: w.t}).nextRetry()
			moved = time.Now()
		}
		if time.Since(told) > 20*time.Second {
			told = time.Now()
			w.t.Logf("relay storm: %s after the wind: %s", time.Since(began).Round(time.Second), strings.Join(left, "; "))
			fmt.Printf("relay storm: still waiting for: %.600s\n", strings.Join(left, "; "))
		}
		time.Sleep(500 * time.Millisecond)
	}
	w.t.Errorf("relay storm: not calm %s after the wind: %s", w.size.quiet, strings.Join(left, "; "))
}

// askAfter types a line into the threads whose words still wait: an operator whose bind was
// killed is found by the next human turn (O8).
func (w *relayStorm) askAfter() {
	for _, l := range w.all {
		if !slices.ContainsFunc(w.said[l.ID], func(word string) bool { return w.times(word) == 0 }) {
			continue
		}
		ts, err := w.Slack.Person("ana").Reply("general", l.Thread.Root, "@smith are you there? [[say I am]] [[terminal]] [[say here]]")
		require.NoError(w.t, err)
		w.excuses.add(l.Thread.Channel, ts, "asked after an operator")
	}
}

// report judges every line and every word, and prints the counts.
func (w *relayStorm) report() {
	session, brain, both, neither, unsure, stopped, doubled, lost, words := 0, 0, 0, 0, 0, 0, 0, 0, 0
	for l, f := range w.fates() {
		w.excuses.add(l.channel, l.ts, "judged by the storm")
		if l.door {
			if f.session > 0 {
				w.t.Errorf("relay storm: a door was typed into a session: %+v", *l)
			}
			continue
		}
		if f.session > 0 {
			session++
		}
		if f.brain > 0 {
			brain++
		}
		switch {
		case f.session > 0 && f.brain > 0:
			both++
			w.t.Errorf("relay storm: answered by both: %+v %+v", *l, f)
		case f.session+f.brain == 0 && f.unsure == 0 && f.stopped:
			stopped++
		case f.session+f.brain == 0 && f.unsure == 0:
			neither++
			w.t.Errorf("relay storm: answered by nobody: %+v", *l)
		case f.unsure > 0:
			unsure++
			if f.brain > 0 {
				w.t.Errorf("relay storm: unsure and answered: %+v %+v", *l, f)
			}
		}
		if f.session > 1 || f.brain > 1 {
			doubled++
			w.t.Errorf("relay storm: had twice: %+v %+v", *l, f)
		}
		if l.smiths && f.session > 0 {
			w.t.Errorf("relay storm: a line for Smith went to a session: %+v", *l)
		}
	}
	for id, said := range w.said {
		var at []string
		for _, word := range said {
			words++
			switch n := w.times(word); {
			case n == 0:
				lost++
				w.t.Errorf("relay storm: lost: %s of %s", word, id)
			case n > 1:
				doubled++
				w.t.Errorf("relay storm: %d times: %s of %s", n, word, id)
			}
			for _, m := range w.Slack.Log(0).Messages {
				if m.App == "smith" && strings.Contains(m.Text, word) {
					at = append(at, m.TS)
				}
			}
		}
		if !slices.IsSortedFunc(at, rules.CompareTS) {
			w.t.Errorf("relay storm: the words of %s are out of order: %v", id, at)
		}
	}
	var faults []string
	fired := w.Slack.FaultCounts()
	for _, k := range relayFaults() {
		faults = append(faults, fmt.Sprintf("%s=%d", k, fired[string(k)]))
		if w.size.floor > 1 && fired[string(k)] < w.size.floor {
			w.t.Errorf("relay storm: %s struck %d times, and must %d times", k, fired[string(k)], w.size.floor)
		}
	}
	for _, v := range []string{"worker", "starter", "temporal", "session"} {
		faults = append(faults, fmt.Sprintf("kill_%s=%d", v, w.kills[v]))
	}
	summary := fmt.Sprintf("relay storm: took=%s conversations=%d sessions=%d faults %s\nrelay storm: lines=%d by_session=%d by_brain=%d both=%d neither=%d unsure=%d stopped=%d words=%d lost=%d doubled=%d seed=%d",
		time.Since(w.began).Round(time.Second), w.size.people, len(w.all), strings.Join(faults, " "),
		len(w.lines), session, brain, both, neither, unsure, stopped, words, lost, doubled, w.seed)
	fmt.Println(summary)
	dir := filepath.Join("..", "testoutput")
	require.NoError(w.t, os.MkdirAll(dir, 0o755))
	require.NoError(w.t, os.WriteFile(filepath.Join(dir, "relaystorm.txt"), []byte(summary+"\n"), 0o644))
}
