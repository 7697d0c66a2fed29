package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
	"agentsmith/rules"
)

// seedFlag repeats a storm's plan: who types what and when, and which faults are asked
// for. How the machine mixes them is its own.
var seedFlag = flag.Uint64("seed", 0, "the seed of the storm; 0 takes SMITH_SEED, or one of chance")

func stormSeed(t *testing.T) uint64 {
	t.Helper()
	if *seedFlag != 0 {
		return *seedFlag
	}
	if text := os.Getenv("SMITH_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "SMITH_SEED is no number")
		return seed
	}
	return uint64(time.Now().UnixNano()) % 1_000_000
}

// TestStorm types a few dozen lines (SMITH_STORM=full: a few hundred) into a system that
// is failing in every way at once, lets it calm down, and looks by the oracles alone for
// lines that were lost or answered twice.
func TestStorm(t *testing.T) {
	z := smallStorm()
	if os.Getenv("SMITH_STORM") == "full" {
		z = fullStorm()
	}
	seed := stormSeed(t)
	fmt.Printf("storm: seed=%d\n", seed)
	s, err := begin(t.TempDir(), withStorm(z, seed))
	require.NoError(t, err)
	w := &storm{system: s, t: t, size: z, seed: seed, crossed: map[string]bool{}}
	for _, c := range s.Slack.State().Channels {
		if strings.HasPrefix(c.Name, "deck") {
			w.channels = append(w.channels, c.ID)
		}
	}
	t.Cleanup(func() {
		for _, problem := range s.close() {
			t.Errorf("after the storm: %s", problem)
		}
		if t.Failed() {
			s.tails(t)
		}
	})
	w.rage()
	w.calm()
	w.restartAll()
	w.calm()
	w.report()
}

// rage is the storm itself: people type, faults strike, parts die.
func (w *storm) rage() {
	w.began = time.Now()
	limit := time.AfterFunc(w.size.limit, w.hurry)
	defer limit.Stop()
	var typing, blowing sync.WaitGroup
	for _, s := range plan(w.seed, w.size) {
		typing.Go(func() { w.play(s) })
	}
	blow, kill := w.wind(), w.wind()
	blowing.Go(blow.blow)
	blowing.Go(kill.kills)
	typing.Wait()
	w.later.Wait()
	w.t.Logf("storm: typed after %s", time.Since(w.began).Round(time.Second))
	blowing.Wait()
	blow.force()
	w.Slack.RemoveFault("")
	w.t.Logf("storm: the wind is down after %s", time.Since(w.began).Round(time.Second))
}

// calm waits until nothing is under way and every line has its end. An envelope that was
// missed twice comes again after a minute of Slack's time, which need not be waited for.
func (w *storm) calm() {
	began, told := time.Now(), time.Now()
	var moved time.Time
	for time.Since(began) < w.size.quiet {
		busy, lost := w.busy(everywhere), w.lost()
		if len(busy) == 0 && len(lost) == 0 {
			return
		}
		if slices.Equal(busy, []string{"envelopes that are not acked"}) && time.Since(began) > 8*time.Second && time.Since(moved) > 8*time.Second {
			w.nextRetry()
			moved = time.Now()
		}
		if time.Since(told) > 20*time.Second {
			told = time.Now()
			w.t.Logf("storm: %s after the wind: %v; without an end: %v", time.Since(began).Round(time.Second), busy, lost)
		}
		time.Sleep(300 * time.Millisecond)
	}
	w.t.Errorf("storm: not calm %s after the wind: %s; lost: %v", w.size.quiet, strings.Join(w.busy(everywhere), "; "), w.lost())
}

// nextRetry moves Slack's clock to the next redelivery and no further: whoever gets the
// envelope has its three seconds.
func (w *storm) nextRetry() {
	since := w.Slack.Log(0).Next
	for range 12 * 60 {
		if err := w.Slack.Advance(500 * time.Millisecond); err != nil {
			w.t.Errorf("storm: %v", err)
			return
		}
		log := w.Slack.Log(since)
		if since = log.Next; slices.ContainsFunc(log.Deliveries, func(d slackbox.LoggedDelivery) bool { return d.What == "retry" }) {
			return
		}
	}
}

// lost are the lines that have no end.
func (w *storm) lost() (out []string) {
	e := w.evidence()
	for _, l := range e.lines {
		for _, seat := range []string{"smith", "trinity"} {
			if e.duty(l, seat) != never && e.judge(l, seat).end == endLost {
				out = append(out, l.String())
			}
		}
	}
	return out
}

// restartAll kills everything at once, now that all is answered: what comes back must do
// nothing again.
func (w *storm) restartAll() {
	w.wind().killParts(0, theTemporal, theWorker, theStarter)
}

// report judges every line, prints the counts, and tells the story of each that is wrong.
func (w *storm) report() {
	e := w.evidence()
	ends, causes := map[end]int{}, map[rules.Reason]int{}
	stories := 0
	for _, l := range e.lines {
		worst := endNoted
		for _, seat := range []string{"smith", "trinity"} {
			v := e.judge(l, seat)
			if rank(v.end) > rank(worst) {
				worst = v.end
			}
			if v.cause != "" {
				causes[v.cause]++
			}
			for _, p := range v.problems {
				w.t.Errorf("storm: %s, by %s: %s", l, seat, p)
			}
			if len(v.problems) > 0 && stories < 6 {
				stories++
				w.story(l)
			}
		}
		ends[worst]++
		// The look at the whole system asks for less; what it would miss is judged here.
		w.excuses.add(l.channel, l.ts, "judged by the storm")
	}
	for _, p := range e.strays() {
		w.t.Errorf("storm: %s", p)
	}
	counts, short := w.counts()
	for _, s := range short {
		w.t.Errorf("storm: %s", s)
	}
	if len(e.lines) < w.size.lines {
		w.t.Errorf("storm: %d lines, and there must be %d", len(e.lines), w.size.lines)
	}
	summary := fmt.Sprintf("storm: took=%s threads=%d turns=%d floor=%d kills=%d\nstorm: faults %s\nstorm: causes of failures: %v\nstorm: lines=%d answered=%d failed=%d declined=%d stopped=%d deleted=%d noted=%d lost=%d doubled=%d seed=%d",
		time.Since(w.began).Round(time.Second), len(e.host), len(e.runs), w.size.floor, w.size.kills, counts, causes,
		len(e.lines), ends[endAnswered], ends[endFailed], ends[endDeclined], ends[endStopped], ends[endDeleted], ends[endNoted],
		ends[endLost], ends[endDoubled], w.seed)
	fmt.Println(summary)
	// go test shows nothing of a test that passes among others.
	dir := filepath.Join("..", "testoutput")
	require.NoError(w.t, os.MkdirAll(dir, 0o755))
	require.NoError(w.t, os.WriteFile(filepath.Join(dir, "storm.txt"), []byte(summary+"\n"), 0o644))
}

// rank orders the ends of a line that is for two seats: the worse one is counted.
func rank(x end) int {
	return slices.Index([]end{endNoted, endDeleted, endAnswered, endDeclined, endStopped, endFailed, endLost, endDoubled}, x)
}

// strays are posts that stand twice, at the wrong place, or about nothing.
func (e *evidence) strays() (out []string) {
	for id, p := range e.posts {
		seen := map[int]bool{}
		for _, m := range p.parts {
			if seen[postPart(m)] {
				out = append(out, fmt.Sprintf("part %d of %s stands twice", postPart(m), id))
			}
			seen[postPart(m)] = true
			if m.ThreadTS == "" {
				out = append(out, fmt.Sprintf("%s stands at the top level: %.80q", id, m.Text))
			}
		}
		known := slices.ContainsFunc(e.lines, func(l *typed) bool { return l.channel == p.channel && l.ts == p.of && l.root == p.root })
		if !known && !(p.stop && e.crossed[p.channel+"/"+p.root]) {
			out = append(out, fmt.Sprintf("%s is about no line of its thread: %.80q", id, p.first().Text))
		}
	}
	for f, n := range e.files {
		if n > 1 {
			out = append(out, fmt.Sprintf("the file %s stands %d times", f, n))
		}
	}
	return out
}

// story tells all that the oracles, and the programs' logs, know of a line's thread.
func (w *storm) story(l *typed) {
	log := w.Slack.Log(0)
	tell := func(format string, args ...any) { w.t.Logf("  "+format, args...) }
	w.t.Logf("the story of line %s", l)
	for _, m := range log.Messages {
		if m.Channel == l.channel && (m.TS == l.root || m.ThreadTS == l.root) {
			tell("message %s by %s, stored %s, deleted=%v, %d edits, %s#%d: %.160q", m.TS, m.Name, clock(m.StoredAt), m.Deleted(), len(m.Edits), postID(m), postPart(m), m.Text)
		}
	}
	for _, d := range log.Deliveries {
		if d.Channel == l.channel && d.TS == l.ts {
			tell("%s envelope %.8s to %s: %s %s attempt %d %s", clock(d.At), d.Envelope, d.App, d.Event, d.What, d.Attempt, d.Fault)
		}
	}
	for _, c := range log.Calls {
		if c.Args["thread_ts"] == l.root || c.Args["ts"] == l.ts || c.Args["ts"] == l.root && strings.HasPrefix(c.Method, "conversations.") {
			tell("%s call %s by %s: ok=%v %s %d %s ts=%s", clock(c.At), c.Method, c.Who, c.OK, c.Error, c.Status, c.Fault, c.TS)
		}
	}
	for _, x := range w.Model.Log() {
		if strings.Contains(x.User, l.ts) || strings.Contains(x.User, l.root) {
			tell("%s model: lines %v, prompt %d, step %d, %s after %s: %.80q", clock(x.Time), lead(x), x.Prompts, x.Step, x.Outcome, x.Took.Round(time.Millisecond), x.Answer)
		}
	}
	for _, s := range w.struck {
		tell("%s the %s was killed, back %s %s", clock(s.at), s.victim, clock(s.back), s.thread)
	}
	for _, st := range log.Statuses {
		if st.Channel == l.channel && st.ThreadTS == l.root {
			tell("%s status %q, %s", clock(st.At), st.Status, st.Why)
		}
	}
	for _, name := range []string{"starter", "worker"} {
		for line := range strings.SplitSeq(w.log(name), "\n") {
			if strings.Contains(line, l.root) || strings.Contains(line, l.ts) {
				tell("%s: %.500s", name, line)
			}
		}
	}
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05.000") }

// The plan must be the same for the same seed, and hold what the storm promises.
func TestPlan_OfAStormIsItsSeedsAndHoldsEveryKind(t *testing.T) {
	for _, z := range []size{smallStorm(), fullStorm()} {
		for seed := range uint64(50) {
			p := plan(seed, z)
			require.Equal(t, p, plan(seed, z))
			require.Len(t, p, z.crowds+z.duos+z.dms)
			n, kinds := 0, map[kind]int{}
			for _, s := range p {
				require.Equal(t, ask, s.steps[0].kind)
				for _, x := range s.steps {
					n++
					kinds[x.kind]++
					require.True(t, s.shape == crowd || x.kind != chatter && x.kind != raised)
				}
			}
			require.GreaterOrEqual(t, n, z.lines)
			for k := range deck() {
				require.Positive(t, kinds[k], "%s in seed %d", k, seed)
			}
		}
	}
}
