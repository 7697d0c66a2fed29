package activities_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/outbox"
	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// desk is a base with an operator and the part that follows its task. Store, outbox and
// Slack are real; the terminal and the door to the brains are the test's.
type desk struct {
	*base
	task   *activities.Task
	term   *screens
	words  outbox.Box
	brains *brains
	first  rules.Line
	op1    rules.Operator
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	b := newBase(newRoom(t))
	d := &desk{
		base: b, term: &screens{launches: b.launcher, p: b.points, typed: map[string][]string{}, says: map[string]typing{}},
		words: outbox.Box{Dir: t.TempDir(), Log: discard()}, brains: &brains{p: b.points},
	}
	b.poster.Tasks = b.door
	d.task = &activities.Task{
		Ledger: b.ledger, Terminal: d.term, Words: &crashingWords{d.words, b.points}, Brains: d.brains, Box: "main", Now: time.Now, Log: b.poster.Log,
	}
	d.first = d.room.says("", "please fix the login")
	d.op1 = *b.mustBind(rules.DispSpawned, "", d.first).Operator
	return d
}

// next starts the operator again after its session died.
func (d *desk) next() rules.Operator {
	d.t.Helper()
	return *d.mustBind(rules.DispSpawned, "", d.room.says(d.first.Root, "go on")).Operator
}

// queue has people's lines wait for a session, as RunAgent does.
func (d *desk) queue(op rules.Operator, texts ...string) []rules.Line {
	d.t.Helper()
	var lines []rules.Line
	for _, text := range texts {
		l := d.room.says(d.first.Root, text)
		lines = append(lines, l)
		_, err := d.store.QueueLines(d.t.Context(), op.Session, []store.SessionLine{{
			Session: op.Session, Key: l.LineKey, Seat: "smith", From: l.User, Text: text,
		}})
		require.NoError(d.t, err)
	}
	return lines
}

// say has the session say something.
func (d *desk) say(op rules.Operator, kind, text string) {
	d.t.Helper()
	require.NoError(d.t, d.words.Put(d.t.Context(), outbox.Word{Session: op.Session, Kind: kind, Text: text}))
}

func (d *desk) look(op rules.Operator) (activities.Observation, error) {
	return perform(d.task, d.task.ObserveTask, activities.ObserveInput{Operator: op, Pull: true})
}

func (d *desk) mustLook(op rules.Operator) activities.Observation {
	d.t.Helper()
	got, err := d.look(op)
	require.NoError(d.t, err)
	return got
}

func (d *desk) notice(op rules.Operator, what, name string) {
	d.t.Helper()
	require.NoError(d.t, d.tryNotice(op, what, name))
}

func (d *desk) tryNotice(op rules.Operator, what, name string) error {
	_, err := execute(d.task, d.task.SayNotice, activities.NoticeInput{Operator: op, What: what, Name: name})
	return err
}

func (d *desk) finish(op rules.Operator, why string, f rules.PhaseFacts) error {
	_, err := execute(d.task, d.task.FinishTask, activities.FinishInput{Operator: op, Why: why, Facts: f})
	return err
}

// speakAll has the brain post everything, one word after the other as it does.
func (d *desk) speakAll(op rules.Operator) {
	d.t.Helper()
	for range 30 {
		d.speak()
		left, err := perform(d.task, d.task.OfferWords, activities.OfferInput{Operator: op})
		require.NoError(d.t, err)
		if !left.Outstanding {
			return
		}
	}
	d.t.Fatal("words are offered without an end")
}

// speak has the brain post what it was offered.
func (d *desk) speak() {
	d.t.Helper()
	for _, o := range d.brains.take() {
		require.Equal(d.t, "smith", o.seat)
		d.post(activities.PostInput{
			Turn: activities.Turn{Seat: o.seat, Thread: o.thread}, PostID: o.word.ID, Say: activities.SayDeposit, Deposit: &o.word,
		})
	}
}

// waiting are the states of a session's lines that wait.
func (d *desk) waiting(op rules.Operator) []string {
	d.t.Helper()
	all, err := d.store.WaitingLines(d.t.Context(), op.Session, 100)
	require.NoError(d.t, err)
	var out []string
	for _, l := range all {
		out = append(out, fmt.Sprintf("%s %s", l.State, l.Text))
	}
	return out
}

type typing struct {
	arrival terminal.Arrival
	err     error
}

// screens is a terminal that types nowhere: one prompt a text, however often it is asked.
type screens struct {
	*launches
	p       *points
	mu      sync.Mutex
	blocked bool
	blind   error
	// says is what a text comes to; without an entry it arrives.
	says     map[string]typing
	typed    map[string][]string
	seen     map[string]bool
	progress terminal.Progress
	removed  []string
}

func (s *screens) Live(_ context.Context, session string) (terminal.Live, bool, error) {
	for _, o := range s.live() {
		if o.Session == session {
			return terminal.Live{ID: o.Session, Name: rules.OperatorName(o.Slug)}, true, nil
		}
	}
	return terminal.Live{}, false, s.blind
}

func (s *screens) Blocked(context.Context, terminal.Live) (bool, error) { return s.blocked, s.blind }

func (s *screens) Type(_ context.Context, l terminal.Live, t terminal.Text) (terminal.Arrival, error) {
	s.p.at("before Type")
	s.mu.Lock()
	defer s.mu.Unlock()
	if got, ok := s.says[t.Body]; ok {
		return got.arrival, got.err
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	if !s.seen[l.ID+t.ID] {
		s.seen[l.ID+t.ID] = true
		s.typed[l.ID] = append(s.typed[l.ID], t.Body)
	}
	s.p.at("after Type")
	return terminal.Arrived, nil
}

func (s *screens) Progress(context.Context, string, string) (terminal.Progress, error) {
	return s.progress, nil
}

func (s *screens) RemoveWorktree(_ context.Context, worktree, _ string) error {
	s.removed = append(s.removed, worktree)
	return nil
}

// crashingWords is the real outbox between points.
type crashingWords struct {
	outbox.Box
	p *points
}

func (c *crashingWords) Remove(session, id string) error {
	return around0(c.p, "Remove", func() error { return c.Box.Remove(session, id) })
}

// offered is a word on its way to a brain.
type offered struct {
	seat   string
	thread rules.Thread
	word   activities.DepositInput
}

type brains struct {
	p      *points
	mu     sync.Mutex
	offers []offered
	forgot int
	err    error
	// onForget happens when a brain is told that its operator is gone.
	onForget func()
}

func (b *brains) Offer(_ context.Context, seat string, t rules.Thread, d activities.DepositInput) error {
	return around0(b.p, "Offer", func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.err == nil {
			b.offers = append(b.offers, offered{seat, t, d})
		}
		return b.err
	})
}

func (b *brains) Operator(_ context.Context, _ string, _ rules.Thread, o *rules.Operator) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o == nil {
		b.forgot++
		if b.onForget != nil {
			b.onForget()
		}
	}
	return b.err
}

func (b *brains) take() []offered {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.offers
	b.offers = nil
	return all
}

func (b *brains) texts() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, o := range b.offers {
		out = append(out, o.word.Text)
	}
	return strings.Join(out, "|")
}

var errAway = errors.New("it is away")

// texts are Smith's messages in the thread of a desk.
func (d *desk) texts() []string {
	in, leaked := d.standing(d.first.Root)
	require.Empty(d.t, leaked)
	var out []string
	for _, m := range in {
		out = append(out, m.Text)
	}
	return slices.Clip(out)
}
