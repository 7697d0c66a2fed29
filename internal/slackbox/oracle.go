package slackbox

import (
	"encoding/json"
	"maps"
	"time"
)

// Log is the oracle: everything that was ever stored and everything that happened,
// whatever the callers were told.
type Log struct {
	Messages   []LoggedMessage   `json:"messages"`
	Calls      []LoggedCall      `json:"calls"`
	Deliveries []LoggedDelivery  `json:"deliveries"`
	Statuses   []LoggedStatus    `json:"statuses"`
	Ephemerals []LoggedEphemeral `json:"ephemerals"`
	Faults     map[string]int    `json:"faults"`
	// Next is the seq to ask from next time (since=).
	Next uint64 `json:"next"`
}

// LoggedMessage is a message as it stands, with all it ever said; deleted ones too.
type LoggedMessage struct {
	Seq         uint64     `json:"seq"`
	Channel     string     `json:"channel"`
	ChannelName string     `json:"channel_name,omitempty"`
	ChannelType string     `json:"channel_type"`
	TS          string     `json:"ts"`
	ThreadTS    string     `json:"thread_ts,omitempty"`
	AskedThread string     `json:"asked_thread_ts,omitempty"` // differs from ThreadTS where the root was gone
	User        string     `json:"user"`
	Name        string     `json:"name"`
	App         string     `json:"app,omitempty"` // name; "" for a person's message
	Subtype     string     `json:"subtype,omitempty"`
	Text        string     `json:"text"`
	StoredAt    time.Time  `json:"stored_at"`
	Message     *Message   `json:"message"` // as the API shows it, with metadata
	Edits       []Revision `json:"edits,omitempty"`
	DeletedAt   *time.Time `json:"deleted_at,omitempty"`
	DeletedBy   string     `json:"deleted_by,omitempty"`
	Tombstone   bool       `json:"tombstone,omitempty"`
}

// Deleted tells whether the message is gone or only its tombstone is left.
func (m LoggedMessage) Deleted() bool { return m.DeletedAt != nil }

// Revision is what a message said before an edit, and until when.
type Revision struct {
	Text     string    `json:"text"`
	Metadata *Metadata `json:"metadata,omitempty"`
	Until    time.Time `json:"until"`
	EditedTS string    `json:"edited_ts,omitempty"` // of the edit that replaced it; "" for an unfurl
}

// LoggedCall is one call of a Web API method and how it ended.
type LoggedCall struct {
	Seq    uint64            `json:"seq"`
	At     time.Time         `json:"at"`
	Method string            `json:"method"`
	Who    string            `json:"who,omitempty"` // the caller's name
	Args   map[string]string `json:"args,omitempty"`
	OK     bool              `json:"ok"`
	Error  string            `json:"error,omitempty"`
	Status int               `json:"status,omitempty"` // HTTP; 0 where no answer was sent
	Fault  string            `json:"fault,omitempty"`
	TS     string            `json:"ts,omitempty"` // of the message that came of it
}

// LoggedDelivery is one thing that happened to an envelope.
type LoggedDelivery struct {
	Seq      uint64    `json:"seq"`
	At       time.Time `json:"at"`
	App      string    `json:"app"`
	Envelope string    `json:"envelope"`
	What     string    `json:"what"` // queued, sent, acked, retry, gave_up, dropped, forgotten, late_ack
	Type     string    `json:"type"` // events_api, slash_commands, interactive
	Event    string    `json:"event,omitempty"`
	Channel  string    `json:"channel,omitempty"`
	TS       string    `json:"ts,omitempty"`
	Socket   int       `json:"socket,omitempty"`
	Attempt  int       `json:"attempt"`
	Fault    string    `json:"fault,omitempty"`
}

// LoggedStatus is an assistant status that was set, or cleared (Status "") and why.
type LoggedStatus struct {
	Seq      uint64    `json:"seq"`
	At       time.Time `json:"at"`
	App      string    `json:"app"`
	Channel  string    `json:"channel"`
	ThreadTS string    `json:"thread_ts"`
	Status   string    `json:"status"`
	Loading  []string  `json:"loading_messages,omitempty"`
	Why      string    `json:"why"` // set, cleared, post, expired
}

// LoggedEphemeral is a message that one person alone was shown.
type LoggedEphemeral struct {
	Seq      uint64    `json:"seq"`
	At       time.Time `json:"at"`
	From     string    `json:"from"`
	To       string    `json:"to"`
	Channel  string    `json:"channel"`
	ThreadTS string    `json:"thread_ts,omitempty"`
	TS       string    `json:"ts"`
	Text     string    `json:"text"`
}

// oracle is guarded by Server.mu.
type oracle struct {
	messages   []*message
	seqs       map[*message]uint64
	calls      []LoggedCall
	deliveries []LoggedDelivery
	statuses   []LoggedStatus
	ephemerals []LoggedEphemeral
}

func (s *Server) nextSeq() uint64 {
	s.seq++
	return s.seq
}

func (o *oracle) stored(s *Server, m *message) {
	if o.seqs == nil {
		o.seqs = map[*message]uint64{}
	}
	o.messages = append(o.messages, m)
	o.seqs[m] = s.nextSeq()
}

func (o *oracle) touch(s *Server, m *message) { o.seqs[m] = s.nextSeq() }

// loggedArgs are the arguments worth keeping; what a post says is in the messages.
var loggedArgs = [...]string{
	"channel", "channel_id", "ts", "thread_ts", "user", "users", "name", "timestamp", "message_ts", "oldest", "latest",
	"limit", "cursor", "status", "loading_messages", "file", "filename", "include_all_metadata", "types", "command",
}

func (o *oracle) call(s *Server, c *call, failed *apiError, status int, fault string, body obj) {
	r := LoggedCall{Seq: s.nextSeq(), At: c.now, Method: c.method, OK: failed == nil, Status: status, Fault: fault}
	if c.who != nil {
		r.Who = c.who.user.Name
	}
	if failed != nil {
		r.Error = failed.code
	}
	for _, k := range loggedArgs {
		if v := c.p[k]; v != "" {
			if r.Args == nil {
				r.Args = map[string]string{}
			}
			r.Args[k] = v
		}
	}
	for _, k := range []string{"ts", "message_ts"} {
		if ts, ok := body[k].(string); ok {
			r.TS = ts
		}
	}
	o.calls = append(o.calls, r)
}

// Log returns the oracle from seq since on; 0 is everything. A message is in it
// again after each change.
func (s *Server) Log(since uint64) Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log(since)
}

func (s *Server) log(since uint64) Log {
	l := Log{Messages: []LoggedMessage{}, Faults: maps.Clone(s.fired), Next: s.seq + 1}
	for _, m := range s.oracle.messages {
		if seq := s.oracle.seqs[m]; seq >= since {
			l.Messages = append(l.Messages, s.logged(m))
		}
	}
	l.Calls = since1(s.oracle.calls, since, func(x LoggedCall) uint64 { return x.Seq })
	l.Deliveries = since1(s.oracle.deliveries, since, func(x LoggedDelivery) uint64 { return x.Seq })
	l.Statuses = since1(s.oracle.statuses, since, func(x LoggedStatus) uint64 { return x.Seq })
	l.Ephemerals = since1(s.oracle.ephemerals, since, func(x LoggedEphemeral) uint64 { return x.Seq })
	return l
}

// since1 copies the tail of a log whose seqs increase.
func since1[T any](all []T, since uint64, seq func(T) uint64) []T {
	i := len(all)
	for i > 0 && seq(all[i-1]) >= since {
		i--
	}
	return append([]T{}, all[i:]...)
}

func (s *Server) logged(m *message) LoggedMessage {
	l := LoggedMessage{
		Seq: s.oracle.seqs[m], Channel: m.ch.id, ChannelName: m.ch.name, ChannelType: m.ch.kind, TS: m.ts,
		AskedThread: m.askedThread, User: m.author.ID, Name: m.author.Name, Subtype: m.subtype, Text: m.text,
		StoredAt: m.storedAt, DeletedBy: m.deletedBy, Tombstone: m.tombstone,
	}
	tomb := m.tombstone
	m.tombstone = false
	l.Message = s.render(m, view{metadata: true})
	m.tombstone = tomb
	l.Message.Blocks = append(json.RawMessage(nil), l.Message.Blocks...)
	if m.parent != nil {
		l.ThreadTS = m.parent.ts
	}
	if m.author.app != nil {
		l.App = m.author.app.Name
	}
	for i, v := range m.old {
		next := m.version
		if i+1 < len(m.old) {
			next = m.old[i+1]
		}
		r := Revision{Text: v.text, Metadata: v.metadata, Until: next.at}
		if next.edited != nil && (v.edited == nil || *v.edited != *next.edited) {
			r.EditedTS = next.edited.TS
		}
		l.Edits = append(l.Edits, r)
	}
	if !m.deletedAt.IsZero() {
		at := m.deletedAt
		l.DeletedAt = &at
	}
	return l
}
