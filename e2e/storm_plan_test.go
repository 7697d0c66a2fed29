package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// kind is what a person does in one step of a thread.
type kind string

const (
	ask      kind = "ask"      // a line to the seat
	slow     kind = "slow"     // an answer that takes a while
	long     kind = "long"     // an answer of several messages
	fileOut  kind = "file out" // an answer with a small file
	fileIn   kind = "file in"  // a line with a small file
	chatter  kind = "chatter"  // a line among people, that engages nobody
	edited   kind = "edited"   // a line to the seat, edited soon after
	raised   kind = "raised"   // a line among people, that an edit makes one to the seat
	deleted  kind = "deleted"  // a line to the seat, deleted soon after
	abstains kind = "abstains" // the agent has nothing to add
	fails    kind = "fails"    // the model's service refuses
	stopped  kind = "stopped"  // a slow answer, then the stop word
	crossed  kind = "crossed"  // a slow answer, then `:x:` on its line
	stopWord kind = "stop"     // the stop word itself
)

// deck is how often each kind comes in a hundred steps.
func deck() map[kind]int {
	return map[kind]int{
		ask: 32, slow: 5, long: 5, fileOut: 5, fileIn: 5, chatter: 16, edited: 8, raised: 4, deleted: 7,
		abstains: 4, fails: 3, stopped: 4, crossed: 2,
	}
}

// shape is who is in a thread.
type shape string

const (
	crowd shape = "crowd" // several people, one seat or two: only a mention engages (D3)
	duo   shape = "duo"   // one person and one seat: every line engages (D3)
	dm    shape = "dm"    // a thread of a direct message: every line engages
)

// script is what happens in one thread.
type script struct {
	shape  shape
	people []string // the first one begins the thread
	seats  []string
	place  int // which of the channels
	after  time.Duration
	steps  []step
}

// step is one thing that a person does.
type step struct {
	kind  kind
	who   string
	seats []string // whom it mentions
	// pause is before the step, delay before what follows its line (an edit, a stop).
	pause, delay time.Duration
	// calm: the step waits until the thread was answered.
	calm bool
	// tags are what an answer says; the second one is of the text after the edit.
	tags []string
	// takes is how long the model takes, rows how many characters it answers.
	takes time.Duration
	rows  int
	// wide: the stop is typed at the DM's top level.
	wide bool
}

// size is how large a storm is.
type size struct {
	crowds, duos, dms int
	steps             int // a thread, beside its root
	people            int
	// typing is over how long the threads begin and the faults strike; limit is when the
	// people stop to wait for anything; quiet is how long the rest may take.
	typing, limit, quiet time.Duration
	// wait is how long a person waits for an answer before the next line.
	wait time.Duration
	// lines is how many lines there must be, floor how often every fault must strike,
	// kills how often each part must be killed.
	lines, floor, kills int
}

// smallStorm is the one of every test run: at most a minute of wind.
func smallStorm() size {
	return size{
		crowds: 5, duos: 3, dms: 4, steps: 5, people: 2, typing: 24 * time.Second, limit: 60 * time.Second, quiet: 8 * time.Minute,
		wait: 5 * time.Second, lines: 60, floor: 2, kills: 1,
	}
}

// fullStorm is the one of the task.
func fullStorm() size {
	return size{
		crowds: 17, duos: 10, dms: 14, steps: 7, people: 6, typing: 4 * time.Minute, limit: 12 * time.Minute, quiet: 15 * time.Minute,
		wait: 20 * time.Second, lines: 300, floor: 5, kills: 5,
	}
}

// planner deals the kinds out; all chance of a storm comes from its seed.
type planner struct {
	rng  *rand.Rand
	size size
	cast []string
	hand []kind
	tag  int
}

// plan is the whole storm of a seed.
func plan(seed uint64, z size) []script {
	p := &planner{rng: rand.New(rand.NewPCG(seed, 1)), size: z, cast: people(z)}
	p.deal(z.crowds*z.steps, (z.crowds+z.duos+z.dms)*z.steps)
	var out []script
	for _, s := range []struct {
		shape shape
		n     int
	}{{crowd, z.crowds}, {duo, z.duos}, {dm, z.dms}} {
		for range s.n {
			out = append(out, p.script(s.shape))
		}
	}
	p.rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	for i := range out {
		// Spread over the first two thirds: the threads themselves take their time.
		out[i].after = z.typing * 2 / 3 * time.Duration(i) / time.Duration(len(out))
	}
	return out
}

// people are those who type in a storm.
func people(z size) []string {
	out := []string{"ana", "ben"}
	for i := range z.people {
		out = append(out, fmt.Sprintf("sailor%d", i+1))
	}
	return out
}

// deal fills the hand: every kind in its share, and at least once. The kinds that only a
// crowd has come first, mixed with others, since crowds are planned first.
func (p *planner) deal(crowded, n int) {
	var crowds, others []kind
	for _, k := range []kind{ask, slow, long, fileOut, fileIn, chatter, edited, raised, deleted, abstains, fails, stopped, crossed} {
		for range max(1, deck()[k]*n/100) {
			if k == chatter || k == raised {
				crowds = append(crowds, k)
			} else {
				others = append(others, k)
			}
		}
	}
	p.shuffle(others)
	fill := max(0, crowded-len(crowds))
	crowds = append(crowds, others[:fill]...)
	p.shuffle(crowds)
	p.hand = append(crowds, others[fill:]...)
}

func (p *planner) shuffle(ks []kind) {
	p.rng.Shuffle(len(ks), func(i, j int) { ks[i], ks[j] = ks[j], ks[i] })
}

// draw takes the next kind of the hand; when it is empty people just ask.
func (p *planner) draw() kind {
	if len(p.hand) == 0 {
		return ask
	}
	k := p.hand[0]
	p.hand = p.hand[1:]
	return k
}

func (p *planner) pick(of []string) string { return of[p.rng.IntN(len(of))] }

// between is a time of chance.
func (p *planner) between(from, to time.Duration) time.Duration {
	return from + time.Duration(p.rng.Int64N(int64(to-from)))
}

func (p *planner) newTag() string {
	p.tag++
	return fmt.Sprintf("word%04d", p.tag)
}

func (p *planner) script(s shape) script {
	out := script{shape: s, place: p.rng.IntN(1 << 16), seats: []string{"smith"}}
	switch x := p.rng.IntN(10); {
	case x < 3:
		out.seats = []string{"trinity"}
	case x < 5 && s == crowd:
		out.seats = []string{"smith", "trinity"}
	}
	first := p.rng.IntN(len(p.cast))
	out.people = []string{p.cast[first]}
	if s == crowd {
		for i := 1; i <= 1+p.rng.IntN(3); i++ {
			out.people = append(out.people, p.cast[(first+i)%len(p.cast)])
		}
	}
	root := p.step(out, ask)
	root.who, root.takes = out.people[0], p.between(200*time.Millisecond, 3*time.Second)
	out.steps = append(out.steps, root)
	for range p.size.steps {
		out.steps = append(out.steps, p.step(out, p.draw()))
	}
	p.timing(out.steps)
	return out
}

// step is one step of a kind, in a thread.
func (p *planner) step(s script, k kind) step {
	x := step{kind: k, who: p.pick(s.people), seats: []string{p.pick(s.seats)}, tags: []string{p.newTag()}}
	x.delay = p.between(50*time.Millisecond, 1500*time.Millisecond)
	switch k {
	case chatter, raised:
		// Not by who began the thread: that line may engage, if it is seen before the others.
		x.who = s.people[1+p.rng.IntN(len(s.people)-1)]
	case slow:
		x.takes = p.between(2*time.Second, 5*time.Second)
	case long:
		x.rows = 12_000 + p.rng.IntN(40_000)
	case stopped, crossed:
		x.takes = 8 * time.Second
		x.delay = p.between(300*time.Millisecond, 5*time.Second)
		x.wide = s.shape == dm && p.rng.IntN(3) == 0
	case ask:
		if len(s.seats) == 2 && p.rng.IntN(4) == 0 {
			x.seats = s.seats
		}
	}
	if k == edited || k == raised {
		x.tags = append(x.tags, p.newTag())
	}
	return x
}

// timing makes bursts: a few lines close together, then the thread is left to answer. What
// must be alone in its turn to mean something begins a burst.
func (p *planner) timing(steps []step) {
	left := 2 + p.rng.IntN(4)
	for i := range steps {
		x := &steps[i]
		if i == 0 {
			continue
		}
		alone := x.kind == abstains || x.kind == stopped || x.kind == crossed
		if left--; left <= 0 || alone {
			x.calm = true
			left = 3 + p.rng.IntN(4)
			if alone {
				left = 1
			}
		}
		x.pause = p.between(20*time.Millisecond, 400*time.Millisecond)
	}
}
