package activities_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"agentsmith/activities"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/slackbox"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// botToken must never be seen in an error or a log line (X3).
const botToken = "xoxb-local-smith"

// requestTimeout is on Slack's clock, which Wait moves.
const requestTimeout = 10 * time.Second

// room is the seat smith with a real store and a real client of a local Slack.
type room struct {
	t       *testing.T
	box     *slackbox.Server
	slack   *slackapi.Client
	store   *store.Store
	dirs    activities.Dirs
	points  *points
	poster  *activities.Poster
	seats   activities.Seats
	team    string
	channel string
	log     *syncBuffer
	waits   []time.Duration
}

func newRoom(t *testing.T) *room {
	t.Helper()
	r := &room{t: t, box: slackbox.New(slackbox.Options{}), points: &points{}, log: &syncBuffer{}}
	require.NoError(t, r.box.Start(t.Context(), ""))
	t.Cleanup(func() { _ = r.box.Close() })
	logger := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.slack = slackapi.New(slackapi.Options{
		Token: botToken, APIURL: r.box.URL(), Timeout: 2 * time.Second, Now: r.box.Now, Log: logger,
		Wait: func(_ context.Context, d time.Duration) error { return r.box.Advance(d) },
	})
	self, err := r.slack.AuthTest(t.Context())
	require.NoError(t, err)
	r.team, r.channel = self.Team, r.channelID("random")
	r.store, err = store.Open(t.Context(), filepath.Join(t.TempDir(), "smith.db"), store.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.store.Close() })
	r.dirs = activities.Dirs{Root: t.TempDir()}
	r.seats = activities.Seats{
		ByName: map[string]*activities.Seat{"smith": {
			Name: "smith", BotUser: self.UserID, Slack: &crashingSlack{r.slack, r.points},
		}},
		BotUsers: map[string]string{"smith": self.UserID, "trinity": "U0TRINITY01"},
	}
	r.poster = &activities.Poster{
		Seats: r.seats, Ledger: &crashingLedger{r.store, r.points}, Dirs: r.dirs, Box: "main", RequestTimeout: requestTimeout,
		Now: time.Now, Log: logger,
		Wait: func(_ context.Context, d time.Duration) error {
			r.waits = append(r.waits, d)
			return r.box.Advance(d)
		},
	}
	t.Cleanup(func() {
		require.NotContains(t, r.log.String(), botToken, "no token in a log line (X3)")
	})
	return r
}

func (r *room) channelID(name string) string {
	channels, err := r.slack.Conversations(r.t.Context())
	require.NoError(r.t, err)
	for _, c := range channels {
		if c.Name == name {
			return c.ID
		}
	}
	r.t.Fatalf("there is no channel %s", name)
	return ""
}

// says lets ana write a line, "" root for a new thread, and records it as owed.
func (r *room) says(root, text string) rules.Line {
	r.t.Helper()
	ts, err := r.box.Person("ana").Reply(r.channel, root, text)
	require.NoError(r.t, err)
	if root == "" {
		root = ts
	}
	line := rules.Line{LineKey: rules.LineKey{Team: r.team, Channel: r.channel, TS: ts}, Root: root, User: "U0ANA000001", Text: text}
	r.record(line, rules.Owed)
	return line
}

func (r *room) record(line rules.Line, state rules.State) {
	r.t.Helper()
	_, err := r.store.Record(r.t.Context(), "smith", line, rules.Person, func(store.Facts) store.Verdict {
		return store.Verdict{State: state}
	})
	require.NoError(r.t, err)
}

// turn is the turn of some lines of one thread.
func turn(lines ...rules.Line) activities.Turn {
	t := activities.Turn{
		ID: rules.TurnID("smith", lines[0].Channel, lines[0].TS), Seat: "smith", Thread: lines[0].Thread(),
	}
	for _, l := range lines {
		t.Lines = append(t.Lines, activities.TurnLine{Line: l, Author: rules.Person})
	}
	return t
}

// answer is the post of a turn that took its lines.
func (r *room) answer(t activities.Turn, text string) activities.PostInput {
	r.take(t)
	return activities.PostInput{
		Turn: t, State: rules.Answered, Say: activities.SayAnswer, PostID: t.ID, Answer: activities.Answer{Text: text, Model: "opus", Duration: 3 * time.Second},
	}
}

func (r *room) take(t activities.Turn) {
	r.t.Helper()
	var lines []store.TakeLine
	for _, l := range t.Lines {
		lines = append(lines, store.TakeLine{Line: l.Line, Author: l.Author, HasRow: true})
	}
	_, err := r.store.TakeLines(r.t.Context(), store.Turn{ID: t.ID, Seat: t.Seat, Thread: t.Thread, Box: "main"}, lines)
	require.NoError(r.t, err)
}

func (r *room) row(line rules.Line) store.Row {
	r.t.Helper()
	row, err := r.store.RowOf(r.t.Context(), "smith", line.LineKey)
	require.NoError(r.t, err)
	return row
}

func (r *room) requireOutcome(line rules.Line, state rules.State, reason rules.Reason) {
	r.t.Helper()
	row := r.row(line)
	require.Equal(r.t, [2]string{string(state), string(reason)}, [2]string{string(row.State), string(row.Reason)})
}

func (r *room) fault(f slackbox.Fault) {
	r.t.Helper()
	_, err := r.box.AddFault(f)
	require.NoError(r.t, err)
}

// attempt is one attempt of an activity; a crash that was armed ends it.
func attempt[In, Out any](r *room, do func(context.Context, In) (Out, error), in In) (out Out, err error) {
	defer func() {
		if c := recover(); c != nil {
			crash, ok := c.(crashed)
			if !ok {
				panic(c)
			}
			err = crash
		}
	}()
	out, err = do(r.t.Context(), in)
	if err != nil {
		require.NotContains(r.t, err.Error(), botToken, "no token in an error (X3)")
	}
	return out, err
}

// repeat does what Temporal does: it repeats the activity until it is done.
func repeat[In, Out any](r *room, do func(context.Context, In) (Out, error), in In) Out {
	r.t.Helper()
	var errs []error
	for range 12 {
		out, err := attempt(r, do, in)
		if err == nil {
			return out
		}
		errs = append(errs, err)
		pause := time.Second
		var app *temporal.ApplicationError
		if errors.As(err, &app) && app.NextRetryDelay() > 0 {
			pause = app.NextRetryDelay()
		}
		require.NoError(r.t, r.box.Advance(pause))
	}
	require.NoError(r.t, errors.Join(errs...), "the activity never came to an end")
	panic("unreachable")
}

func (r *room) post(in activities.PostInput) activities.PostResult {
	r.t.Helper()
	return repeat(r, r.poster.Post, in)
}

// standing are Smith's messages that a reader sees in a thread, in order; leaked are
// those at a channel's top level.
func (r *room) standing(root string) (inThread, leaked []slackbox.LoggedMessage) {
	for _, m := range r.box.Log(0).Messages {
		switch {
		case m.App != "smith" || m.Deleted():
		case m.ThreadTS == "":
			leaked = append(leaked, m)
		case m.ThreadTS == root:
			inThread = append(inThread, m)
		}
	}
	return inThread, leaked
}

// requireStanding wants exactly these texts, in part, in the thread, and none leaked.
func (r *room) requireStanding(root string, want ...string) {
	r.t.Helper()
	inThread, leaked := r.standing(root)
	require.Empty(r.t, leaked, "nothing may leak to the channel")
	var got []string
	for _, m := range inThread {
		got = append(got, m.Text)
	}
	require.Len(r.t, got, len(want), "%q", got)
	for i := range want {
		require.Contains(r.t, got[i], want[i])
	}
}

// calls counts what Smith asked Slack to do.
func (r *room) calls(method string) (n int) {
	for _, c := range r.box.Log(0).Calls {
		if c.Method == method && c.Who == "smith" {
			n++
		}
	}
	return n
}

// points are the places at which a test lets the process crash.
type points struct {
	mu    sync.Mutex
	armed string
	skip  int
	seen  []string
}

type crashed struct{ point string }

func (c crashed) Error() string { return "crashed " + c.point }

func (p *points) arm(point string, skip int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.skip = point, skip
}

func (p *points) fired() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.armed == ""
}

func (p *points) at(point string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, point)
	if point != p.armed {
		return
	}
	if p.skip > 0 {
		p.skip--
		return
	}
	p.armed = ""
	panic(crashed{point})
}

// around is a call between two points.
func around[T any](p *points, name string, call func() (T, error)) (T, error) {
	p.at("before " + name)
	out, err := call()
	p.at("after " + name)
	return out, err
}

func around0(p *points, name string, call func() error) error {
	_, err := around(p, name, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// crashingLedger is the real store between points.
type crashingLedger struct {
	*store.Store
	p *points
}

func (c *crashingLedger) BeginPost(ctx context.Context, p store.Post) (store.Post, error) {
	return around(c.p, "BeginPost", func() (store.Post, error) { return c.Store.BeginPost(ctx, p) })
}

func (c *crashingLedger) ConfirmPost(ctx context.Context, id string, part int, ts string) error {
	return around0(c.p, "ConfirmPost", func() error { return c.Store.ConfirmPost(ctx, id, part, ts) })
}

func (c *crashingLedger) KeepFileID(ctx context.Context, id string, part int, name, fileID string) error {
	return around0(c.p, "KeepFileID", func() error { return c.Store.KeepFileID(ctx, id, part, name, fileID) })
}

func (c *crashingLedger) ConfirmFile(ctx context.Context, id, fileID string) error {
	return around0(c.p, "ConfirmFile", func() error { return c.Store.ConfirmFile(ctx, id, fileID) })
}

func (c *crashingLedger) FinishTurn(ctx context.Context, turnID, seat string, keys []rules.LineKey, state rules.State, reason rules.Reason) (int, error) {
	return around(c.p, "FinishTurn", func() (int, error) { return c.Store.FinishTurn(ctx, turnID, seat, keys, state, reason) })
}

// crashingSlack is the real client between points.
type crashingSlack struct {
	*slackapi.Client
	p *points
}

func (c *crashingSlack) Post(ctx context.Context, r slackapi.PostRequest) (string, error) {
	return around(c.p, "Post", func() (string, error) { return c.Client.Post(ctx, r) })
}

func (c *crashingSlack) ClearStatus(ctx context.Context, channel, root string) error {
	return around0(c.p, "ClearStatus", func() error { return c.Client.ClearStatus(ctx, channel, root) })
}

func (c *crashingSlack) UploadURL(ctx context.Context, name string, size int) (string, string, error) {
	c.p.at("before UploadURL")
	id, url, err := c.Client.UploadURL(ctx, name, size)
	c.p.at("after UploadURL")
	return id, url, err
}

func (c *crashingSlack) SendBytes(ctx context.Context, url, name string, r io.Reader, size int) error {
	return around0(c.p, "SendBytes", func() error { return c.Client.SendBytes(ctx, url, name, r, size) })
}

func (c *crashingSlack) CompleteUpload(ctx context.Context, ids []string, channel, threadTS, comment string) error {
	return around0(c.p, "CompleteUpload", func() error { return c.Client.CompleteUpload(ctx, ids, channel, threadTS, comment) })
}

// syncBuffer takes log lines from many goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// lines is what a read of Slack brings in a mocked client.
func lines(err error, all ...rules.Line) iter.Seq2[rules.Line, error] {
	return func(yield func(rules.Line, error) bool) {
		for _, l := range all {
			if !yield(l, nil) {
				return
			}
		}
		if err != nil {
			yield(rules.Line{}, err)
		}
	}
}

// paragraphs is a text of n parts.
func paragraphs(n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, strings.Repeat(string(rune('a'+i)), rules.PartLimit-100))
	}
	return strings.Join(parts, "\n\n")
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func containsText(m slackbox.LoggedMessage, text string) bool {
	return strings.Contains(string(m.Message.Blocks), text)
}

// indexes are where the names stand in all.
func indexes(all, names []string) []int {
	var out []int
	for _, n := range names {
		out = append(out, slices.Index(all, n))
	}
	return out
}
