package main

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"time"

	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// ledger is what the starter asks of the store. Every method that writes returns nil
// only when the write is on the disk.
type ledger interface {
	Record(ctx context.Context, seat string, line rules.Line, author rules.Author, decide func(store.Facts) store.Verdict) (store.Row, error)
	RecordEdit(ctx context.Context, seat string, line rules.Line, author rules.Author, decide func(prev *rules.Line, f store.Facts) store.Verdict) (store.EditResult, error)
	RecordDelete(ctx context.Context, seat string, key rules.LineKey, eventTS string) (store.DeleteResult, error)
	RecordReaction(ctx context.Context, r store.Reaction) (fresh bool, err error)
	RecordRaw(ctx context.Context, seat, envelopeID, why string, raw []byte) error
	RecordStop(ctx context.Context, seat string, t rules.Thread, ts string) (newest bool, err error)
	Undispatched(ctx context.Context, seat string, limit int) ([]store.Pending, error)
	SetRoute(ctx context.Context, seat string, key rules.LineKey, route json.RawMessage) (json.RawMessage, error)
	MarkDispatched(ctx context.Context, seat string, key rules.LineKey) error
	EndLine(ctx context.Context, seat string, key rules.LineKey, state rules.State, reason rules.Reason) (bool, error)
	Line(ctx context.Context, key rules.LineKey) (rules.Line, error)
	RowOf(ctx context.Context, seat string, key rules.LineKey) (store.Row, error)
	OverdueLines(ctx context.Context, seat string, olderThan time.Duration, limit int) ([]store.Row, error)
	TouchLines(ctx context.Context, seat string, keys []rules.LineKey) error
	LastSeen(ctx context.Context, seat string) (map[string]string, error)
	ThreadsSince(ctx context.Context, seat, since string) ([]store.ThreadMark, error)
	DecideConversation(ctx context.Context, c store.Conversation, decide func(store.ConversationState) []store.ConversationDecision) error
	OpenRelay(ctx context.Context, c store.Conversation) (store.Relay, error)
	HandOffsTaken(ctx context.Context, seat string, t rules.Thread) (int, error)
	Withdraw(ctx context.Context, seat string, key rules.LineKey, state rules.State, reason rules.Reason) (bool, error)
	Ping(ctx context.Context) error
}

// slackReader is what the starter asks of Slack's Web API beside its socket, and the one
// line that it may have to say itself.
type slackReader interface {
	User(ctx context.Context, id string) (slackapi.Person, error)
	Conversations(ctx context.Context) ([]slackapi.Conversation, error)
	History(ctx context.Context, channel, oldest string, limit int) iter.Seq2[rules.Line, error]
	Replies(ctx context.Context, channel, root, oldest string) iter.Seq2[rules.Line, error]
	Post(ctx context.Context, r slackapi.PostRequest) (string, error)
	BotUserNamed(ctx context.Context, name string) (string, error)
}

// loud says trouble so that nobody misses it: error log, /healthz red, one line in
// ops_channel (T6). A key is one trouble: it is said once, and stands until it is cleared.
type loud interface {
	Raise(key, text string)
	Clear(key, text string)
}

// seat is what the parts of one door share: who it is, and what it works on.
type seat struct {
	name   string
	roster rules.Roster
	access rules.Access
	// spawn says who may cause a spawn (X1).
	spawn rules.Access
	// owners may open a relay (X1).
	owners      []string
	siblingHops int
	// threadHandOffs caps the hand-offs that the seat takes up in one thread (D2).
	threadHandOffs int
	owedTooLong    time.Duration
	// connections is how many sockets of this app there should be.
	connections int

	ledger ledger
	brains brains
	slack  slackReader
	spool  *spool
	people *people
	loud   loud
	// force is what this seat knows of the dispatcher (A1).
	force *forceID
	log   *slog.Logger
	now   func() time.Time
	// dispatch wakes the dispatcher, remember has a thread read that the seat came late
	// to; neither ever blocks.
	dispatch func()
	remember func(rules.Line)
}

// engage decides about a line inside the ledger's transaction. A line that was noted
// before is owed only by what its fuller copy adds, a mention or the mark of a hand-off
// (L3, L5): not because its thread has changed since.
func (s *seat) engage(line rules.Line, author rules.Author, mentioned bool, f store.Facts) rules.Engagement {
	if f.Line.TS != "" {
		line = f.Line
	}
	mentioned = mentioned || s.asks(line, author)
	e := rules.Engage(line, author, s.roster.Self, mentioned, rules.ThreadFacts{
		People: f.People, Seats: f.Seats, RootSeen: f.RootSeen, Siblings: f.Siblings, Drives: f.Drives, StopTS: f.StopTS,
	})
	if f.Prior != nil && author != rules.Sibling && (!e.Mentioned || f.Prior.Mentioned) {
		return rules.Engagement{State: rules.Noted, Mentioned: e.Mentioned}
	}
	return e
}

func verdict(e rules.Engagement) store.Verdict {
	return store.Verdict{State: e.State, Reason: e.Reason, Mentioned: e.Mentioned}
}
