package rules

// Relay is the mode in which a conversation's lines go to one session (R1). The zero
// value is none.
type Relay struct {
	ID string `json:"id"`
	// Person is the user whose lines it carries; everybody else's are the brain's (R2).
	Person string `json:"person"`
	// Session is the session's identity, Number its name for people.
	Session string `json:"session"`
	Number  int    `json:"number"`
	// OpenedTS and ClosedTS are of the lines that opened and closed it; ClosedTS is ""
	// while it is open. It is in force for the lines between.
	OpenedTS string `json:"opened_ts"`
	ClosedTS string `json:"closed_ts,omitempty"`
}

// RelayRow is a line of a conversation that Plan puts into a bucket.
type RelayRow struct {
	Line   Line   `json:"line"`
	Author Author `json:"author"`
}

// RelayPlan is what Plan makes of the rows: each is in exactly one bucket, in ts order.
type RelayPlan struct {
	// Forward goes to the session, and stands the brain down (R3).
	Forward []RelayRow
	// ForSmith is the brain's.
	ForSmith []RelayRow
	// Stop is the stop word at which the batch was cut.
	Stop []RelayRow
	// AfterStop is what stands behind the cut, and is planned again under the relay that
	// is in force then.
	AfterStop []RelayRow
}

// DoorKind is what a door line asks for (R1, R6).
type DoorKind string

// The kinds of door.
const (
	DoorWorkOn   DoorKind = "work_on"
	DoorSessions DoorKind = "sessions"
	DoorStop     DoorKind = "stop"
)

// Door is a line that opens, closes or lists relays. Number is 0 where Slug names the session.
type Door struct {
	Kind   DoorKind `json:"kind"`
	Number int      `json:"number,omitempty"`
	Slug   string   `json:"slug,omitempty"`
}

// SessionFact is what is on record of a session that a relay may reach.
type SessionFact struct {
	Number int    `json:"number"`
	ID     string `json:"id"`
	Slug   string `json:"slug,omitempty"`
	Name   string `json:"name,omitempty"`
	Repo   string `json:"repo,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Box    string `json:"box,omitempty"`
	Ended  bool   `json:"ended,omitempty"`
}

// ConversationFacts is all that DecideRelay decides by.
type ConversationFacts struct {
	// Relay is the open one, the zero value where there is none.
	Relay    Relay
	Rows     []RelayRow
	Sessions []SessionFact
	// StopTS is of the newest stop of the whole conversation: an older door opens nothing.
	StopTS string
	// Owners may open a relay (X1).
	Owners []string
	Self   SeatIdentity
}

// RelayWhat is what becomes of a line.
type RelayWhat string

// What becomes of a line.
const (
	RelayForward RelayWhat = "forward"
	RelayOpen    RelayWhat = "open"
	RelayClose   RelayWhat = "close"
	RelayList    RelayWhat = "list"
	RelayRefuse  RelayWhat = "refuse"
)

// RelayRefusal says why a door stays shut.
type RelayRefusal string

// The reasons of a refusal.
const (
	RefuseNotOwner       RelayRefusal = "not_owner"
	RefuseUnknownSession RelayRefusal = "unknown_session"
	RefuseEnded          RelayRefusal = "ended"
)

// RelayAct is what DecideRelay decided of one line.
type RelayAct struct {
	Key  LineKey   `json:"key"`
	What RelayWhat `json:"what"`
	// Relay carries the line (forward), is new (open), or is the one that was closed (close).
	Relay Relay        `json:"relay,omitzero"`
	Door  Door         `json:"door,omitzero"`
	Why   RelayRefusal `json:"why,omitempty"`
	// Session is whom an open relay reaches.
	Session SessionFact `json:"session,omitzero"`
	// Switched is the relay that an open one took the place of.
	Switched *Relay `json:"switched,omitempty"`
}
