package activities

import (
	"time"

	"agentsmith/rules"
)

// BindInput asks for the operator of a thread whose people wrote the turn's lines (O1).
type BindInput struct {
	// Turn holds the lines of people only: they alone may cause a spawn.
	Turn Turn `json:"turn"`
	// MaySpawn: one of the people may cause a spawn (X1).
	MaySpawn bool `json:"may_spawn,omitempty"`
	// Asked is what the thread was found to ask for before, by the retrofit sweep: with it
	// nothing is classified anew.
	Asked *rules.WorkDisposition `json:"asked,omitempty"`
}

// Binding is what a Bind came to (O3).
type Binding struct {
	// Disposition is "" only where no line of the turn was open any more.
	Disposition rules.Disposition `json:"disposition,omitempty"`
	// Operator is set with bound and spawned.
	Operator *rules.Operator `json:"operator,omitempty"`
	// Why is the cause that the honest line of a gap names; see the rules.Gap… constants.
	Why string `json:"why,omitempty"`
}

// StopOperatorInput ends the operator of a thread (O11).
type StopOperatorInput struct {
	Seat   string       `json:"seat"`
	Thread rules.Thread `json:"thread"`
	// EventTS is that of the line that asked for it: it names the end in the log.
	EventTS string `json:"event_ts,omitempty"`
}

// StopOperatorResult tells what was ended.
type StopOperatorResult struct {
	// Operator is the one that was ended, nil where the thread had none.
	Operator *rules.Operator `json:"operator,omitempty"`
	// Elsewhere: it is on another box, which was told.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// DepositInput is a word of a session on its way into a thread (R11).
type DepositInput struct {
	ID string `json:"id"`
	// Session is the session's identity, Slug and Number its names for people.
	Session string `json:"session"`
	Slug    string `json:"slug,omitempty"`
	Number  int    `json:"number,omitempty"`
	// Kind is say, stop, notification or notice: what Smith itself says of the session.
	Kind string `json:"kind"`
	// Text is "" when Ref is set: a long text stays in the store.
	Text string `json:"text,omitempty"`
	Ref  bool   `json:"ref,omitempty"`
	// Person: it is a person's own session, and Slug its name.
	Person bool `json:"person,omitempty"`
	// Relayed: it is not spoken in the session's own thread, so that its task has no part in it.
	Relayed bool `json:"relayed,omitempty"`
}

// ObserveInput asks what became of an operator's work (O10).
type ObserveInput struct {
	Operator rules.Operator `json:"operator"`
	// Pull asks GitHub too; else only what this box shows is read.
	Pull bool `json:"pull,omitempty"`
	// Seen are the facts of the observation before: what GitHub said stands until it is asked again.
	Seen rules.PhaseFacts `json:"seen"`
}

// Observation is what a look at an operator found.
type Observation struct {
	Facts rules.PhaseFacts `json:"facts"`
	// Alive: the session runs; Blocked: it waits for a person at a dialog.
	Alive   bool `json:"alive,omitempty"`
	Blocked bool `json:"blocked,omitempty"`
	// Outstanding: lines wait to be typed, or words to be posted.
	Outstanding bool `json:"outstanding,omitempty"`
	// Gone: the thread's claim is no longer this session's: the task is somebody else's.
	Gone bool `json:"gone,omitempty"`
	// Over is rules.OverMerged or rules.OverClosed; "" while the task is not done.
	Over string `json:"over,omitempty"`
	// Retry: GitHub asked to be left alone until then.
	RetryAt time.Time `json:"retry_at,omitzero"`
}

// FinishInput ends a task: a final line, the claim, and what the config says to clean (O10).
type FinishInput struct {
	Operator rules.Operator   `json:"operator"`
	Facts    rules.PhaseFacts `json:"facts"`
	// Why is one of the rules.Over… constants.
	Why string `json:"why"`
}

// NoticeInput is one line of Smith's own about a session, said once (O10).
type NoticeInput struct {
	Operator rules.Operator `json:"operator"`
	// Name makes it one: the same name is said once for a session.
	Name string `json:"name"`
	// What is one of the notices.
	What string `json:"what"`
}

// What a notice says.
const (
	NoticeBlocked = "blocked" // it waits for a person at a dialog
	NoticeDead    = "dead"    // its session is gone
)

// OfferInput offers the oldest word of a session that does not stand in the thread yet (R11).
type OfferInput struct {
	Operator rules.Operator `json:"operator"`
}

// Offered tells whether words are still under way.
type Offered struct {
	Outstanding bool `json:"outstanding,omitempty"`
}

// PublishInput renders a thread's phases, and shows them where there is something to show (P1-P3).
type PublishInput struct {
	Seat   string           `json:"seat"`
	Thread rules.Thread     `json:"thread"`
	Facts  rules.PhaseFacts `json:"facts"`
	// Read: there is no task in this thread; what is known stands in the store and on GitHub (P2).
	Read bool `json:"read,omitempty"`
}

// Published is the machine's half of the table: it is returned also when no message is shown (P2).
type Published struct {
	// States are the rows' states by the rows' names.
	States map[string]rules.PhaseState `json:"states"`
	Done   int                         `json:"done"`
	PRURL  string                      `json:"pr_url,omitempty"`
	// TS is the message's, "" while nothing is shown.
	TS string `json:"ts,omitempty"`
}
