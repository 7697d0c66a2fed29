package e2e_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/standin"
	"agentsmith/rules"
)

// strike is one kill, for the oracle to know what an honest line may be about.
type strike struct {
	victim   victim
	thread   string // the agent's
	at, back time.Time
}

// counted are the faults of Slack that must strike, each as often as the size says.
func counted() []slackbox.FaultKind {
	return []slackbox.FaultKind{
		slackbox.Duplicate, slackbox.Reorder, slackbox.Disconnect, slackbox.CutSocket, slackbox.DropFrame, slackbox.DropAck,
		slackbox.RateLimited, slackbox.ServerError, slackbox.ResponseLost, slackbox.CommitLate, slackbox.LagReads,
	}
}

// more are further faults, a few of each: they are printed, and have no floor. A socket
// that goes silent takes half a minute to be noticed: too long for a small storm.
func more(z size) []slackbox.FaultKind {
	out := []slackbox.FaultKind{slackbox.Stall, slackbox.Unreadable, slackbox.Timeout, slackbox.DropRequest}
	if z.typing > time.Minute {
		out = append(out, slackbox.StopPings)
	}
	return out
}

// wind makes the faults of a storm.
type wind struct {
	*storm
	rng *rand.Rand
	// long: the server was away once for as long as nobody waits for it.
	long bool
}

// longOutage is longer than the starter waits for Temporal: its signals fail.
const longOutage = 7 * time.Second

func (w *storm) wind() *wind { return &wind{storm: w, rng: rand.New(rand.NewPCG(w.seed, 2))} }

func (b *wind) upTo(d time.Duration) time.Duration { return time.Duration(b.rng.Int64N(int64(d))) }

// fault is one shot of a kind. Posts are what it aims at where it can; a person's own
// requests are never hit.
func (b *wind) fault(k slackbox.FaultKind, app string) []slackbox.Fault {
	f := slackbox.Fault{Kind: k, App: app, Count: 1, Method: "chat.postMessage"}
	// A read that lags while a post is in doubt is what B5's second look is for.
	lag := slackbox.Fault{Kind: slackbox.LagReads, App: app, Count: 1, Method: "conversations.replies", DelayMS: 500 + b.rng.IntN(2000)}
	switch k {
	case slackbox.RateLimited:
		f.RetryAfter = 1
		f.Method = []string{"chat.postMessage", "chat.postMessage", "assistant.threads.setStatus", "conversations.*"}[b.rng.IntN(4)]
	case slackbox.ServerError:
		f.Method = []string{"chat.postMessage", "chat.postMessage", "assistant.threads.setStatus", "files.*"}[b.rng.IntN(4)]
	case slackbox.ResponseLost:
		f.Status = []int{0, 500}[b.rng.IntN(2)]
		return []slackbox.Fault{f, lag}
	case slackbox.CommitLate:
		f.Status, f.DelayMS = []int{0, 500}[b.rng.IntN(2)], 300+b.rng.IntN(2200)
		return []slackbox.Fault{f, lag}
	case slackbox.LagReads:
		return []slackbox.Fault{lag}
	case slackbox.Timeout, slackbox.DropRequest:
	case slackbox.Disconnect:
		f.Method, f.Reason = "", []string{"warning", "refresh_requested"}[b.rng.IntN(2)]
	case slackbox.Stall, slackbox.Reorder:
		f.Method, f.DelayMS = "", 200+b.rng.IntN(1300)
	default:
		f.Method = ""
	}
	return []slackbox.Fault{f}
}

// blow asks for the faults, spread over the time of typing, in an order of chance.
func (b *wind) blow() {
	var shots []slackbox.FaultKind
	for _, k := range counted() {
		for range b.size.floor + (b.size.floor+1)/2 {
			shots = append(shots, k)
		}
	}
	for _, k := range more(b.size) {
		for range (b.size.floor + 1) / 2 {
			shots = append(shots, k)
		}
	}
	b.rng.Shuffle(len(shots), func(i, j int) { shots[i], shots[j] = shots[j], shots[i] })
	for i, k := range shots {
		b.sleep(time.Until(b.began.Add(b.size.typing * time.Duration(i+1) / time.Duration(len(shots)+1))))
		b.shoot(k, []string{"smith", "smith", "trinity"}[b.rng.IntN(3)])
	}
}

func (b *wind) shoot(k slackbox.FaultKind, app string) {
	for _, f := range b.fault(k, app) {
		_, err := b.Slack.AddFault(f)
		require.NoError(b.t, err)
	}
}

// missing are the kinds that have not struck often enough.
func (w *storm) missing() (out []slackbox.FaultKind) {
	fired := w.Slack.FaultCounts()
	for _, k := range counted() {
		if fired[string(k)] < w.size.floor {
			out = append(out, k)
		}
	}
	return out
}

// force makes the faults strike that have not done so often enough: with lines of its own
// to hit, until all have.
func (b *wind) force() {
	for round := 0; round < 10 && len(b.missing()) > 0; round++ {
		for _, k := range b.missing() {
			b.shoot(k, "smith")
		}
		var lines []*typed
		for i := range 3 {
			lines = append(lines, b.bait("smith", fmt.Sprintf("bait%02d%d", round, i), 0))
		}
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end) && len(b.missing()) > 0; {
			done := 0
			for _, l := range lines {
				if b.said(l) {
					done++
				}
			}
			if done == len(lines) {
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
}

// said tells whether a seat said something in a line's thread.
func (w *storm) said(l *typed) bool {
	for _, m := range w.Slack.Log(0).Messages {
		if m.Channel == l.channel && m.ThreadTS == l.root && m.App != "" {
			return true
		}
	}
	return false
}

// bait types a line in a thread of its own.
func (b *wind) bait(seat, tag string, takes time.Duration) *typed {
	text := "@" + seat + " bait"
	if takes > 0 {
		text += fmt.Sprintf(" [[sleep %s]]", takes)
	}
	who, channel := []string{"ana", "ben"}[b.rng.IntN(2)], b.channels[b.rng.IntN(len(b.channels))]
	ts, err := b.Slack.Person(who).Say(channel, text+" [[say "+tag+"]]")
	require.NoError(b.t, err)
	return b.add(typed{kind: ask, shape: crowd, who: who, channel: channel, root: ts, ts: ts, seats: []string{seat}, tags: []string{tag}})
}

// kills kills every part as often as the size says, in an order of chance, one or two at
// once, and brings them back after a moment.
func (b *wind) kills() {
	var all []victim
	for _, v := range []victim{theWorker, theStarter, theAgent, theTemporal} {
		for range b.size.kills {
			all = append(all, v)
		}
	}
	b.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, v := range all {
		b.sleep(time.Until(b.began.Add(b.size.typing * time.Duration(i+1) / time.Duration(len(all)+1))))
		if v == theAgent {
			b.killAgent(fmt.Sprintf("prey%02d", i))
			continue
		}
		down := []victim{v}
		if other := all[(i+1)%len(all)]; other != v && other != theAgent && b.rng.IntN(4) == 0 {
			down = append(down, other) // it has its own turn as well
		}
		pause := b.upTo(1500 * time.Millisecond)
		if v == theTemporal && !b.long {
			b.long, pause = true, longOutage
		}
		b.killParts(pause, down...)
	}
}

// killParts kills parts of the system, and starts them again after a pause.
func (b *wind) killParts(pause time.Duration, down ...victim) {
	// The server first: the others do not start without it.
	order := map[victim]int{theTemporal: 0, theWorker: 1, theStarter: 2}
	slices.SortFunc(down, func(x, y victim) int { return cmp.Compare(order[x], order[y]) })
	at := time.Now()
	for _, v := range down {
		b.kill(b.t, nil, "", v)
	}
	time.Sleep(pause)
	for _, v := range down {
		b.start(v)
	}
	b.note(func() {
		for _, v := range down {
			b.struck = append(b.struck, strike{victim: v, at: at, back: time.Now()})
		}
	})
}

// start starts a part again. On a busy machine one start may take too long.
func (b *wind) start(v victim) {
	part := map[victim]struct {
		start func(context.Context) error
		kill  func()
	}{
		theTemporal: {b.Stack.Temporal.Start, func() { b.Stack.Temporal.Kill() }},
		theWorker:   {b.StartWorker, func() { b.Worker.Kill() }},
		theStarter:  {b.StartStarter, func() { b.Starter.Kill() }},
	}[v]
	var err error
	for range 3 {
		if err = part.start(b.t.Context()); err == nil {
			return
		}
		b.t.Logf("storm: the %s did not start: %v", v, err)
		part.kill()
	}
	require.NoError(b.t, err, "start the %s again", v)
}

// killAgent kills an agent at work: all processes of its run. The line that it works on is
// typed for that, so that there is one.
func (b *wind) killAgent(tag string) {
	l := b.bait([]string{"smith", "trinity"}[b.rng.IntN(2)], tag, 20*time.Second)
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if len(b.agentsOf(l.channel, l.root)) == 0 || !b.atWork(l) {
			continue
		}
		b.note(func() {
			b.struck = append(b.struck, strike{victim: theAgent, thread: l.channel + "/" + l.root, at: time.Now(), back: time.Now()})
		})
		killed := 0
		for _, p := range b.agentsOf(l.channel, l.root) {
			if syscall.Kill(p.pid, syscall.SIGKILL) == nil {
				killed++
			}
		}
		if killed > 0 {
			return
		}
	}
	b.t.Errorf("storm: no agent came to work on the line %s within two minutes", l)
}

func (w *storm) atWork(l *typed) bool {
	return slices.ContainsFunc(w.runs(l.ts), func(e standin.Entry) bool { return e.Outcome == standin.Open })
}

// counts are the strikes of all kinds, as they are printed.
func (w *storm) counts() (text string, short []string) {
	fired := w.Slack.FaultCounts()
	var parts []string
	for _, k := range counted() {
		parts = append(parts, fmt.Sprintf("%s=%d", k, fired[string(k)]))
		if fired[string(k)] < w.size.floor {
			short = append(short, fmt.Sprintf("%s struck %d times, and must %d times", k, fired[string(k)], w.size.floor))
		}
	}
	for _, v := range []victim{theWorker, theStarter, theAgent, theTemporal} {
		n := 0
		for _, s := range w.struck {
			if s.victim == v {
				n++
			}
		}
		parts = append(parts, fmt.Sprintf("kill_%s=%d", v, n))
		if n < w.size.kills {
			short = append(short, fmt.Sprintf("the %s was killed %d times, and must %d times", v, n, w.size.kills))
		}
	}
	for _, k := range more(w.size) {
		parts = append(parts, fmt.Sprintf("(%s=%d)", k, fired[string(k)]))
	}
	return strings.Join(parts, " "), short
}

// mayBeWhy tells whether a strike can be why there is no answer to a line, by the time at
// which that was said: what was on its way to a dead part is missed a little later.
func (s strike) mayBeWhy(l *typed, said time.Time) bool {
	return s.at.Before(said) && s.back.Add(10*time.Second).After(rules.TSTime(l.ts))
}
