package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/config"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/rules"
	"agentsmith/workflows"
)

const (
	team     = "T1"
	self     = "USMITH"
	ana      = "UANA"
	ben      = "UBEN"
	ts1      = "1700000001.000100"
	ts2      = "1700000002.000200"
	ts3      = "1700000003.000300"
	ts4      = "1700000004.000400"
	seatName = "smith"
)

// sentSignal is one call that reached fakeBrains.
type sentSignal struct {
	thread  rules.Thread
	trigger workflows.Trigger
	wake    bool
}

// fakeBrains keeps what is sent to brains.
type fakeBrains struct {
	mu   sync.Mutex
	sent []sentSignal
	// fail is asked before every call.
	fail func(sentSignal) error
}

func (b *fakeBrains) take(s sentSignal) error {
	b.mu.Lock()
	fail := b.fail
	b.mu.Unlock()
	if fail != nil {
		if err := fail(s); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, s)
	return nil
}

func (b *fakeBrains) wake(_ context.Context, t rules.Thread, trigger workflows.Trigger) error {
	return b.take(sentSignal{t, trigger, true})
}

func (b *fakeBrains) tell(_ context.Context, t rules.Thread, trigger workflows.Trigger) error {
	return b.take(sentSignal{t, trigger, false})
}

func (b *fakeBrains) tick(_ context.Context, team, channel string, trigger workflows.TickTrigger) error {
	// A tick is kept beside the others, as a trigger of a kind of its own.
	return b.take(sentSignal{
		rules.Thread{Team: team, Channel: channel},
		workflows.Trigger{Kind: "tick", EventTS: trigger.EventTS, Line: rules.Line{Text: trigger.Box}}, true,
	})
}

func (b *fakeBrains) all() []sentSignal {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]sentSignal(nil), b.sent...)
}

func (b *fakeBrains) failing(fail func(sentSignal) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = fail
}

// says lists kind and ts of what was sent.
func (b *fakeBrains) says() []string {
	var out []string
	for _, s := range b.all() {
		ts := s.trigger.Line.TS
		if ts == "" {
			ts = s.trigger.EventTS
		}
		out = append(out, string(s.trigger.Kind)+" "+ts)
	}
	return out
}

// fakeSlack is the Web API.
type fakeSlack struct {
	mu       sync.Mutex
	people   map[string]slackapi.Person
	userErr  error
	asked    []string
	channels []slackapi.Conversation
	history  map[string][]rules.Line
	replies  map[string][]rules.Line
	readErr  error
	posts    []slackapi.PostRequest
	bot      string
	botErr   error
}

func (f *fakeSlack) User(_ context.Context, id string) (slackapi.Person, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, id)
	if f.userErr != nil {
		return slackapi.Person{}, f.userErr
	}
	p, ok := f.people[id]
	if !ok {
		return slackapi.Person{}, slackapi.ErrUnknownPerson
	}
	return p, nil
}

func (f *fakeSlack) Conversations(context.Context) ([]slackapi.Conversation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.channels, f.readErr
}

func (f *fakeSlack) History(_ context.Context, channel, oldest string, _ int) iter.Seq2[rules.Line, error] {
	return f.read(f.history[channel], oldest)
}

func (f *fakeSlack) Replies(_ context.Context, channel, root, oldest string) iter.Seq2[rules.Line, error] {
	return f.read(f.replies[channel+root], oldest)
}

func (f *fakeSlack) read(lines []rules.Line, oldest string) iter.Seq2[rules.Line, error] {
	return func(yield func(rules.Line, error) bool) {
		if f.readErr != nil {
			yield(rules.Line{}, f.readErr)
			return
		}
		for _, l := range lines {
			if rules.CompareTS(l.TS, oldest) > 0 && !yield(l, nil) {
				return
			}
		}
	}
}

func (f *fakeSlack) BotUserNamed(context.Context, string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bot, f.botErr
}

func (f *fakeSlack) Post(_ context.Context, r slackapi.PostRequest) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.posts = append(f.posts, r)
	return ts4, nil
}

// fakeLoud keeps what was said loudly and still stands.
type fakeLoud struct {
	mu     sync.Mutex
	stands map[string]string
	raised []string
}

func (l *fakeLoud) Raise(key, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stands[key] = text
	l.raised = append(l.raised, key)
}

func (l *fakeLoud) Clear(key, _ string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.stands, key)
}

func (l *fakeLoud) standing(key string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stands[key]
}

func (l *fakeLoud) wasRaised(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.raised {
		if k == key {
			return true
		}
	}
	return false
}

// flaky is a ledger that can be broken.
type flaky struct {
	*store.Store
	mu  sync.Mutex
	err error
	// hang: calls wait for their context's end.
	hang bool
}

func (f *flaky) breakWith(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *flaky) down(ctx context.Context) error {
	f.mu.Lock()
	err, hang := f.err, f.hang
	f.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (f *flaky) Record(ctx context.Context, seat string, line rules.Line, a rules.Author, decide func(store.Facts) store.Verdict) (store.Row, error) {
	if err := f.down(ctx); err != nil {
		return store.Row{}, err
	}
	return f.Store.Record(ctx, seat, line, a, decide)
}

func (f *flaky) RecordReaction(ctx context.Context, r store.Reaction) (bool, error) {
	if err := f.down(ctx); err != nil {
		return false, err
	}
	return f.Store.RecordReaction(ctx, r)
}

func (f *flaky) RecordRaw(ctx context.Context, seat, id, why string, raw []byte) error {
	if err := f.down(ctx); err != nil {
		return err
	}
	return f.Store.RecordRaw(ctx, seat, id, why, raw)
}

func (f *flaky) Ping(ctx context.Context) error {
	if err := f.down(ctx); err != nil {
		return err
	}
	return f.Store.Ping(ctx)
}

var errDown = errors.New("disk on fire")

// world is one seat with a real store and everything else faked.
type world struct {
	*entrance
	t      *testing.T
	store  *flaky
	brains *fakeBrains
	slack  *fakeSlack
	loud   *fakeLoud
	dir    string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), filepath.Join(dir, "smith.db"), store.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	w := &world{
		t: t, dir: dir, store: &flaky{Store: s}, brains: &fakeBrains{},
		slack: &fakeSlack{
			people: map[string]slackapi.Person{
				ana: {ID: ana, Team: team, Member: true}, ben: {ID: ben, Team: team, Member: true},
				"UGIL": {ID: "UGIL", Team: team, Guest: true}, "UOLGA": {ID: "UOLGA", Team: "T2", Stranger: true},
				"UCI": {ID: "UCI", Bot: true},
			},
			history: map[string][]rules.Line{}, replies: map[string][]rules.Line{},
		},
		loud: &fakeLoud{stands: map[string]string{}},
	}
	w.entrance = w.open()
	return w
}

// open builds the seat's parts anew, as a start of the process does.
func (w *world) open() *entrance {
	w.t.Helper()
	kept, err := openSpool(filepath.Join(w.dir, "spool"), seatName)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = kept.close() })
	trinity := rules.SeatIdentity{Name: "trinity", BotUser: "UTRIN", BotID: "BTRIN"}
	me := rules.SeatIdentity{Name: seatName, BotUser: self, BotID: "BSMITH"}
	return assemble(&seat{
		name:   seatName,
		roster: rules.Roster{Self: me, Seats: []rules.SeatIdentity{me, trinity}, Dispatcher: "UFORCE", Team: team},
		access: rules.Access{Members: true},
		force: newForceID(config.Dispatcher{Name: "Agent Force", BotUser: "UFORCE"}, []rules.PickSeat{
			{Name: seatName, BotUser: self}, {Name: "trinity", BotUser: "UTRIN", Rank: 1},
		}),
		siblingHops: 2, threadHandOffs: 20, owedTooLong: 5 * time.Minute, connections: 1,
		ledger: w.store, brains: w.brains, slack: w.slack, spool: kept, loud: w.loud,
		log: slog.New(slog.DiscardHandler), now: time.Now,
	}, filepath.Join(w.dir, "backfill"))
}

// arrives sends envelopes through the inbox, and requires that they may be acked.
func (w *world) arrives(events ...string) {
	w.t.Helper()
	for _, e := range events {
		require.NoError(w.t, w.inbox.receive(w.t.Context(), readEnvelope(team, envelopeOf(e))), e)
		w.inbox.flush()
	}
}

// settled dispatches everything that can be.
func (w *world) settled() {
	w.t.Helper()
	w.inbox.tasks.Wait()
	for range 3 {
		w.dispatcher.finish(w.t.Context())
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, done func() bool, what string) {
	t.Helper()
	require.Eventually(t, done, 20*time.Second, 5*time.Millisecond, what)
}

// dispatches runs the dispatcher until the condition holds.
func (w *world) dispatches(done func() bool, what string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.dispatcher.run(ctx)
	}()
	eventually(w.t, done, what)
	cancel()
	<-ended
}

func (w *world) row(channel, ts string) store.Row {
	w.t.Helper()
	r, err := w.store.RowOf(w.t.Context(), seatName, rules.LineKey{Team: team, Channel: channel, TS: ts})
	require.NoError(w.t, err)
	return r
}

func (w *world) raws() []store.RawEvent {
	w.t.Helper()
	raws, err := w.store.RawEvents(w.t.Context(), 100)
	require.NoError(w.t, err)
	return raws
}

// take has a turn take a line, as a brain's activity does.
func (w *world) take(channel, root, ts string) {
	w.t.Helper()
	line := rules.Line{LineKey: rules.LineKey{Team: team, Channel: channel, TS: ts}, Root: root}
	res, err := w.store.TakeLines(w.t.Context(), store.Turn{
		ID: rules.TurnID(seatName, channel, ts), Seat: seatName, Thread: line.Thread(), Session: "s", Box: "main",
	}, []store.TakeLine{{Line: line, Author: rules.Person, HasRow: true}})
	require.NoError(w.t, err)
	require.Len(w.t, res.Taken, 1)
}

// envelopeOf wraps an inner event as Slack does.
func envelopeOf(event string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":"events_api","envelope_id":"e-1","payload":{"type":"event_callback","team_id":%q,"event":%s}}`, team, event))
}

// say is a message event.
func say(channel, user, ts, root, text string) string {
	raw, err := json.Marshal(map[string]any{
		"type": "message", "channel": channel, "user": user, "team": team, "ts": ts, "thread_ts": root, "text": text, "event_ts": ts,
	})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// mention is the app_mention copy of a message.
func mention(channel, user, ts, root, text string) string {
	raw, err := json.Marshal(map[string]any{
		"type": "app_mention", "channel": channel, "user": user, "ts": ts, "thread_ts": root, "text": text, "event_ts": ts,
	})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// edit is a message_changed event.
func edit(channel, user, ts, root, text, editedTS string) string {
	return fmt.Sprintf(`{"type":"message","subtype":"message_changed","hidden":true,"channel":%q,"ts":%q,"event_ts":%q,"message":{"type":"message","user":%q,"team":%q,"ts":%q,"thread_ts":%q,"text":%q,"edited":{"user":%q,"ts":%q}}}`,
		channel, editedTS, editedTS, user, team, ts, root, text, user, editedTS)
}

// unfurl is a message_changed that changes no text.
func unfurl(channel, user, ts, text, eventTS string) string {
	return fmt.Sprintf(`{"type":"message","subtype":"message_changed","hidden":true,"channel":%q,"ts":%q,"event_ts":%q,"message":{"type":"message","user":%q,"team":%q,"ts":%q,"text":%q,"attachments":[{}]}}`,
		channel, eventTS, eventTS, user, team, ts, text)
}

func deletionOf(channel, ts, eventTS string) string {
	return fmt.Sprintf(`{"type":"message","subtype":"message_deleted","hidden":true,"channel":%q,"ts":%q,"event_ts":%q,"deleted_ts":%q}`, channel, eventTS, eventTS, ts)
}

func reaction(user, name, channel, ts, eventTS string) string {
	return fmt.Sprintf(`{"type":"reaction_added","user":%q,"reaction":%q,"item":{"type":"message","channel":%q,"ts":%q},"event_ts":%q}`, user, name, channel, ts, eventTS)
}
