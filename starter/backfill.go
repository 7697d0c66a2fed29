package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

const (
	// backfillOverlap is how far before the last known line the reading begins: lines
	// arrive out of order, and Slack redelivers for about 6 minutes.
	backfillOverlap = 10 * time.Minute
	// shortGap is a gap after which only lively threads are read again.
	shortGap    = 5 * time.Minute
	livelyFor   = 2 * 24 * time.Hour
	threadsFor  = 30 * 24 * time.Hour
	backfillTry = 30 * time.Second
	// lateLines is how many lines are read of a thread that the seat came late to.
	lateLines = 1000
)

// backfill reads what a door missed, after boot and after every gap of its socket (L6).
// What it finds goes the same way as what the socket brings.
type backfill struct {
	*seat
	inbox *inbox
	// mark is the file that says since when is still to be read: a starter that dies
	// half-way must not take the new lines that came meanwhile for the end of the gap.
	mark string
	kick chan struct{}
	late chan rules.Line

	mu    sync.Mutex
	since string
	known map[rules.Thread]bool
}

func newBackfill(s *seat, x *inbox, dir string) *backfill {
	return &backfill{
		seat: s, inbox: x, mark: filepath.Join(dir, s.name+".since"),
		kick: make(chan struct{}, 1), late: make(chan rules.Line, 256), known: map[rules.Thread]bool{},
	}
}

// boot fixes, before a socket opens, since when is to be read: the newest line of any
// channel was the last sign of life. A seat that never saw a line has missed none.
func (b *backfill) boot(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(b.mark), 0o700); err != nil {
		return fmt.Errorf("make the backfill's directory: %w", err)
	}
	seen, err := b.ledger.LastSeen(ctx, b.name)
	if err != nil {
		return fmt.Errorf("find the last line of %s: %w", b.name, err)
	}
	// The file first: what is added now is written into it.
	if raw, err := os.ReadFile(b.mark); err == nil && rules.ValidTS(string(raw)) {
		b.addTS(string(raw))
	}
	last := ""
	for _, ts := range seen {
		last = rules.NewerTS(last, ts)
	}
	if last != "" {
		b.add(rules.TSTime(last))
	}
	return nil
}

// opened is called when a socket is open, so that what comes while the gap is read comes
// over it. The zero time is the first socket's: boot knows since when.
func (b *backfill) opened(since time.Time) {
	if !since.IsZero() {
		b.add(since)
	}
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// add widens the gap to everything since t, with the overlap.
func (b *backfill) add(t time.Time) { b.addTS(rules.TimeTS(t.Add(-backfillOverlap))) }

func (b *backfill) addTS(ts string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since == "" || rules.CompareTS(ts, b.since) < 0 {
		b.since = ts
	}
	if err := keepMark(b.mark, b.since); err != nil {
		b.log.Error("the begin of a gap could not be kept", "seat", b.name, "error", err)
	}
}

// keepMark replaces the file in one step, so that a crash leaves the old one or the new.
func keepMark(path, ts string) error {
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(ts)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(part, path), syncDir(filepath.Dir(path)))
}

// run reads gaps one after the other, and late threads between them, until ctx ends.
func (b *backfill) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.kick:
			for fails := 1; !b.fill(ctx); fails++ {
				if !pause(ctx, min(backfillTry*time.Duration(fails), 5*time.Minute)) {
					return
				}
			}
		case line := <-b.late:
			if err := b.readLate(ctx, line.Thread()); err != nil && ctx.Err() == nil {
				b.log.Warn("a thread that the seat came late to could not be read", "seat", b.name, "channel", line.Channel, "thread", line.Root, "error", err)
			}
		}
	}
}

// fill reads one gap and tells whether it was read to its end.
func (b *backfill) fill(ctx context.Context) bool {
	b.mu.Lock()
	since := b.since
	b.mu.Unlock()
	if since == "" {
		return true
	}
	began := b.now()
	found, err := b.read(ctx, since)
	if err != nil {
		if ctx.Err() == nil {
			b.loud.Raise("backfill "+b.name, "What "+b.name+" may have missed could not be read; it is tried again: "+clip(err.Error()))
		}
		return false
	}
	b.loud.Clear("backfill "+b.name, "What "+b.name+" may have missed is read.")
	b.log.Info("read what may have been missed", "seat", b.name, "since", since, "lines", found, "took", b.now().Sub(began).Round(time.Millisecond))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.since != since {
		return false // a wider gap came meanwhile
	}
	b.since = ""
	if err := os.Remove(b.mark); err != nil && !errors.Is(err, os.ErrNotExist) {
		b.log.Error("the begin of a gap could not be forgotten", "seat", b.name, "error", err)
	}
	return true
}

// read goes through the conversations, then through the threads that began before the
// gap. It returns how many lines it looked at.
func (b *backfill) read(ctx context.Context, since string) (int, error) {
	channels, err := b.slack.Conversations(ctx)
	if err != nil {
		return 0, err
	}
	kinds := map[string]string{}
	done := map[rules.Thread]bool{}
	found := 0
	for _, c := range channels {
		kinds[c.ID] = c.Kind
		n, err := b.readChannel(ctx, c, since, done)
		found += n
		if err != nil {
			return found, err
		}
	}
	span := threadsFor
	if b.now().Sub(rules.TSTime(since)) < shortGap+backfillOverlap {
		span = livelyFor
	}
	threads, err := b.ledger.ThreadsSince(ctx, b.name, rules.TimeTS(rules.TSTime(since).Add(-span)))
	if err != nil {
		return found, fmt.Errorf("list the seat's threads: %w", err)
	}
	for _, t := range threads {
		if done[t.Thread] || kinds[t.Channel] == "" {
			continue
		}
		n, err := b.readThread(ctx, t.Thread, kinds[t.Channel], since)
		found += n
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// readChannel reads a channel's top level, and the threads that began there in the gap.
func (b *backfill) readChannel(ctx context.Context, c slackapi.Conversation, since string, done map[rules.Thread]bool) (int, error) {
	found := 0
	var threads []rules.Thread
	for line, err := range b.slack.History(ctx, c.ID, since, 0) {
		if gone(err) {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		found++
		if err := b.take(ctx, line, c.Kind); err != nil {
			return found, err
		}
		if hasReplies(line.Raw) {
			threads = append(threads, line.Thread())
		}
	}
	for _, t := range threads {
		done[t] = true
		n, err := b.readThread(ctx, t, c.Kind, since)
		found += n
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

func (b *backfill) readThread(ctx context.Context, t rules.Thread, kind, since string) (int, error) {
	found := 0
	for line, err := range b.slack.Replies(ctx, t.Channel, t.Root, since) {
		if gone(err) {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		found++
		if err := b.take(ctx, line, kind); err != nil {
			return found, err
		}
	}
	return found, nil
}

// gone tells whether there is nothing to read any more: the channel was left or closed,
// or the thread's root was deleted.
func gone(err error) bool {
	return errors.Is(err, slackapi.ErrParentGone) ||
		slackapi.IsRejected(err, "channel_not_found", "not_in_channel", "is_archived", "no_permission", "missing_scope")
}

// take hands a line of the history to the ledger, as if the socket had brought it.
func (b *backfill) take(ctx context.Context, line rules.Line, kind string) error {
	if notContent(line.Subtype) {
		return nil
	}
	if line.ChannelType == "" {
		line.ChannelType = kind
	}
	err := b.inbox.recordLine(ctx, inbound{kind: isLine, line: line})
	if errors.Is(err, store.ErrInvalid) {
		b.log.Warn("a line of the history is not kept", "seat", b.name, "channel", line.Channel, "line", line.TS, "error", err)
		return nil
	}
	b.inbox.flush()
	return err
}

// hasReplies tells whether a line of a channel's history is the root of a thread.
func hasReplies(raw json.RawMessage) bool {
	var m struct {
		LatestReply string          `json:"latest_reply"`
		ReplyCount  json.RawMessage `json:"reply_count"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return false
	}
	n, _ := strconv.Atoi(string(m.ReplyCount))
	return m.LatestReply != "" || n > 0
}

// comeLate has the earlier lines of a thread read, when a line engaged the seat in a
// thread whose beginning it never saw: who is in the thread decides about later lines
// (D3). It never blocks; a thread that finds no room is read when it engages again.
func (b *backfill) comeLate(line rules.Line) {
	if line.TopLevel() {
		return
	}
	b.mu.Lock()
	known := b.known[line.Thread()]
	if len(b.known) > 10_000 {
		clear(b.known)
	}
	b.known[line.Thread()] = true
	b.mu.Unlock()
	if known {
		return
	}
	select {
	case b.late <- line:
	default:
		b.mu.Lock()
		delete(b.known, line.Thread())
		b.mu.Unlock()
	}
}

// readLate keeps a thread's earlier lines as noted, whoever they mention: they were
// written before the seat was asked.
func (b *backfill) readLate(ctx context.Context, t rules.Thread) error {
	_, err := b.ledger.Line(ctx, rules.LineKey{Team: t.Team, Channel: t.Channel, TS: t.Root})
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	n := 0
	for line, err := range b.slack.Replies(ctx, t.Channel, t.Root, "") {
		if n++; gone(err) || n > lateLines {
			return nil
		}
		if err != nil {
			return err
		}
		if notContent(line.Subtype) {
			continue
		}
		_, err := b.ledger.Record(ctx, b.name, line, rules.Who(line, b.roster), func(store.Facts) store.Verdict {
			return store.Verdict{State: rules.Noted}
		})
		if err != nil && !errors.Is(err, store.ErrInvalid) {
			return err
		}
	}
	return nil
}
