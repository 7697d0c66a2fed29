package workflows

import (
	"encoding/json"
	"time"

	"agentsmith/activities"
	"agentsmith/rules"
)

// The names of the signals and the query of a brain, typed once for the starter,
// the workflow and the tests.
const (
	// SignalAddContext carries a Trigger to a running brain (B1).
	SignalAddContext = "add_context"
	// QueryThread returns a ThreadView: what the brain is doing now (T2).
	QueryThread = "thread"
)

// Kind says what a Trigger brings.
type Kind string

// The kinds of trigger.
const (
	// KindLine is a line that is owed a turn.
	KindLine Kind = "line"
	// KindEdit is a new text of a line whose turn has begun: context (L4).
	KindEdit Kind = "edit"
	// KindDelete is a deleted line (L4).
	KindDelete Kind = "delete"
	// KindStop ends running turns (D4).
	KindStop Kind = "stop"
	// KindDecline is a line that is refused with one honest line and no agent run (X1).
	KindDecline Kind = "decline"
	// KindDeposit is a word of a session that is to be posted (B1, R11). It is no line, and
	// starts no turn.
	KindDeposit Kind = "deposit"
	// KindStopOperator ends the thread's operator (O11).
	KindStopOperator Kind = "stop_operator"
	// KindOperator tells which operator the thread has now; without one it has none.
	KindOperator Kind = "operator"
	// KindBind binds an operator to a thread that the retrofit sweep found without one.
	KindBind Kind = "bind"
	// KindPhases: something became known of the thread's pull request, and no task follows it (P2).
	KindPhases Kind = "phases"
	// KindRelayDoor is a line that opened, closed or listed relays: it is answered beside
	// the turns (R1, R6).
	KindRelayDoor Kind = "relay_door"
	// KindCheck asks about lines that are owed for too long (L3).
	KindCheck Kind = "check"
	// KindPick: the dispatcher or another seat has said something of an ask in the thread. It
	// is a hint to look: what it says is read back (A4).
	KindPick Kind = "pick"
)

// Trigger is what reaches a brain, as the input that starts it or by
// SignalAddContext. A field that is added must mean "as before" when it is absent:
// old runs read old payloads.
type Trigger struct {
	Kind   Kind         `json:"kind"`
	Author rules.Author `json:"author,omitempty"`
	// Line is the line itself, without its raw event. A text over rules.InlineText
	// bytes stays in the store: TextRef is set and Line.Text is empty.
	Line    rules.Line `json:"line"`
	TextRef bool       `json:"text_ref,omitempty"`
	// Raw is the event, only where the inbound row could not be written: the brain
	// writes the row later (L1).
	Raw json.RawMessage `json:"raw,omitempty"`
	// Reason says why a line is declined (KindDecline).
	Reason rules.Reason `json:"reason,omitempty"`
	// EventTS is Slack's own ts of a stop, an edit or a deletion: the newest wins.
	EventTS string `json:"event_ts,omitempty"`
	// WholeChannel: the stop was typed at a DM's top level and stops every running turn of it (D4).
	WholeChannel bool `json:"whole_channel,omitempty"`
	// Lines are the ts that a KindCheck asks about.
	Lines []string `json:"lines,omitempty"`

	// IsCron: a schedule fired. Prompt is what it asks; its Line has only team and channel.
	IsCron bool   `json:"is_cron,omitempty"`
	Prompt string `json:"prompt,omitempty"`
	// SiblingHop counts hand-offs between seats, SelfDriveHop turns that an agent gave itself (D2).
	SiblingHop   int `json:"sibling_hop,omitempty"`
	SelfDriveHop int `json:"self_drive_hop,omitempty"`

	// MaySpawn: the line's author may cause a spawn (X1).
	MaySpawn bool `json:"may_spawn,omitempty"`
	// Deposit goes with KindDeposit, Operator with KindOperator, Asked with KindBind.
	Deposit  *activities.DepositInput `json:"deposit,omitempty"`
	Operator *rules.Operator          `json:"operator,omitempty"`
	Asked    *rules.WorkDisposition   `json:"asked,omitempty"`
	// RelayStandsDown: a relay carries the line. The run is there for the session's words,
	// and takes no turn (R3, R5).
	RelayStandsDown bool `json:"relay_stands_down,omitempty"`
	// HandedBack: a relay stood the line down and could not carry it. It is the brain's after
	// all, like any line (R9); the field is for a person who reads the history.
	HandedBack bool `json:"handed_back,omitempty"`
	// Ask: the line asks every seat (A1); Pick: the dispatcher has named who drives one, as
	// the event said, which nobody believes before it is read back (A3, A4).
	Ask  *rules.Ask          `json:"ask,omitempty"`
	Pick *rules.DispatchLine `json:"pick,omitempty"`
	// Work is this seat's part in the ask, once that is known: the line is then a turn of its
	// own (A5).
	Work *activities.ForceWork `json:"work,omitempty"`
	// Door goes with KindRelayDoor.
	Door *activities.DoorInput `json:"door,omitempty"`
}

// Settings are the parts of the config that a brain decides by. They ride on its
// input, since a workflow reads no config; a run keeps the ones it started with.
type Settings struct {
	Box           string        `json:"box"`
	IdleAfter     time.Duration `json:"idle_after"`
	TurnTimeout   time.Duration `json:"turn_timeout"`
	SelfDriveHops int           `json:"self_drive_hops"`
}

// ReplyInput starts a brain: the first line, and what the run before it handed on
// when it continued as new.
type ReplyInput struct {
	Seat     string       `json:"seat"`
	Thread   rules.Thread `json:"thread"`
	Trigger  Trigger      `json:"trigger"`
	Settings Settings     `json:"settings"`
	Carried  *Carried     `json:"carried,omitempty"`
}

// ThreadView is the answer to QueryThread.
type ThreadView struct {
	Seat    string       `json:"seat"`
	Thread  rules.Thread `json:"thread"`
	Doing   string       `json:"doing"`
	Turn    string       `json:"turn,omitempty"`
	Lines   []string     `json:"lines,omitempty"`
	Waiting []string     `json:"waiting,omitempty"`
	Turns   int          `json:"turns"`
	// Asks are the asks of all seats that this one waits with (A4).
	Asks []string `json:"asks,omitempty"`
	// Operator is the name of the thread's operator, where this run knows of one.
	Operator string `json:"operator,omitempty"`
}
