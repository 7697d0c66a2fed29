// Package activities holds what touches the world for the workflows: one struct a
// capability, each with the dependencies it needs. Its inputs and results are the
// contract with histories that are already written: a field may be added when its
// absence means "as before", never renamed or given another meaning.
package activities

import (
	"encoding/json"
	"time"

	"agentsmith/rules"
)

// The types of the application errors that a workflow decides by. None of them is
// retried by Temporal.
const (
	// ErrTypeStopped: the run was ended by a stop or by a deletion of its lines (D4, L4).
	ErrTypeStopped = "Stopped"
	// ErrTypeAgent: the agent CLI ran and failed; Details hold a FailureDetails.
	ErrTypeAgent = "AgentFailed"
	// ErrTypeDeclined: no run was made; Details hold a FailureDetails (X6).
	ErrTypeDeclined = "Declined"
	// ErrTypeWorkerDied: a worker that starts found that the one before it died in this activity (B3).
	ErrTypeWorkerDied = "WorkerDied"
)

// FailureDetails travel with ErrTypeAgent and ErrTypeDeclined.
type FailureDetails struct {
	Reason rules.Reason `json:"reason"`
}

// TurnLine is a line on its way into a turn.
type TurnLine struct {
	Line   rules.Line   `json:"line"`
	Author rules.Author `json:"author"`
	// TextRef: the text is in the store only, since it is too large for a history.
	TextRef bool `json:"text_ref,omitempty"`
	// Raw is the event of a line whose row could not be written at the door (L1).
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Edit is a new text of a line whose turn had already begun: context (L4).
type Edit struct {
	TS   string `json:"ts"`
	Text string `json:"text"`
}

// Turn names one run of the agent and its one answer.
type Turn struct {
	// ID is the turn's token in the ledger: it holds the lines that it took.
	ID     string       `json:"id"`
	Seat   string       `json:"seat"`
	Thread rules.Thread `json:"thread"`
	Lines  []TurnLine   `json:"lines,omitempty"`
}

// RunAgentInput is one run of the agent CLI for a thread.
type RunAgentInput struct {
	Turn Turn `json:"turn"`
	// Session is the agent session's UUID, the same for every run of a thread (B3).
	Session string `json:"session"`
	// Prompt is what a schedule, a webhook or the agent itself asks, where no line does.
	Prompt string       `json:"prompt,omitempty"`
	Author rules.Author `json:"author,omitempty"`
	Edits  []Edit       `json:"edits,omitempty"`
	// Drives is how many more turns the agent may give itself (D2).
	Drives     int           `json:"drives,omitempty"`
	SiblingHop int           `json:"sibling_hop,omitempty"`
	Timeout    time.Duration `json:"timeout"`
	// Operator is the thread's (O11): the turn's lines of people are passed on to it.
	Operator *rules.Operator `json:"operator,omitempty"`
	// Disposition is what this turn's bind came to, for the agent to know.
	Disposition rules.Disposition `json:"disposition,omitempty"`
	// Work is the turn's part in an ask (A5).
	Work *ForceWork `json:"work,omitempty"`
	// driverSaid is the answer that the turn adds to, read when the turn begins.
	driverSaid string
}

// RunAgentResult is what a run came to.
type RunAgentResult struct {
	// Nothing: every line had been taken or ended before; no agent ran.
	Nothing bool `json:"nothing,omitempty"`
	// Abstained: the agent had nothing to add (B4).
	Abstained bool `json:"abstained,omitempty"`
	// Continue is what the agent wants to do next in this thread, "" for nothing (D2).
	Continue string `json:"continue,omitempty"`
	Answer   Answer `json:"answer"`
	// PostID names the answer's post, by the first line that the turn took; "" without lines.
	PostID string `json:"post_id,omitempty"`
	// OperatorGone: the thread's claim is no longer that of the operator that was named.
	OperatorGone bool `json:"operator_gone,omitempty"`
}

// Answer is what the agent said. A text over rules.InlineText stays in the store,
// under the turn's ID, and Ref is set.
type Answer struct {
	Text     string        `json:"text,omitempty"`
	Ref      bool          `json:"ref,omitempty"`
	Files    int           `json:"files,omitempty"`
	Model    string        `json:"model,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	CostUSD  float64       `json:"cost_usd,omitempty"`
	// HandOff names the seat that is asked to go on, and with what (D2).
	HandOff *HandOff `json:"hand_off,omitempty"`
}

// HandOff is a marked line to another seat. Hop is that of the turn that wrote it: who
// reads the mark counts one more (D2).
type HandOff struct {
	Seat string `json:"seat"`
	Text string `json:"text"`
	Hop  int    `json:"hop"`
}

// KillAgentInput ends running agents of a seat on this box (D4).
type KillAgentInput struct {
	Seat   string       `json:"seat"`
	Thread rules.Thread `json:"thread"`
	// WholeChannel: every running turn of the channel, not only the thread's.
	WholeChannel bool `json:"whole_channel,omitempty"`
	// StopTS is the stop's own ts: only turns of older lines are ended. "" ends them all,
	// as when all lines of a turn were deleted.
	StopTS string `json:"stop_ts,omitempty"`
}

// KillAgentResult tells what was ended.
type KillAgentResult struct {
	Stopped int `json:"stopped"`
}

// Say is what a post says; the words themselves stand in rules.
type Say string

// What a post can say.
const (
	SayNothing Say = "nothing" // outcomes and status only
	SayAnswer  Say = "answer"
	SayFailure Say = "failure" // by Reason
	SayDecline Say = "decline" // by Reason
	SayStop    Say = "stop"    // by Stop
	SayDeposit Say = "deposit" // by Deposit
	SayBinding Say = "binding" // by Binding
	// SayOperatorStopped goes by OperatorStopped.
	SayOperatorStopped Say = "operator_stopped"
	SayRelay           Say = "relay" // by Text: what a door did (R1)
)

// OperatorStopped tells what became of an operator that somebody stopped (O11).
type OperatorStopped struct {
	// Operator is nil where there was none.
	Operator *rules.Operator `json:"operator,omitempty"`
	// Failed: the box did not confirm that it ended.
	Failed bool `json:"failed,omitempty"`
	// Elsewhere: another box was told to end it.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// StopSaid tells what a stop found.
type StopSaid struct {
	// Stopped is how many running turns it ended.
	Stopped int `json:"stopped"`
	// Waiting is how many waiting lines it declined.
	Waiting int `json:"waiting,omitempty"`
	// TooLate: the answer was already being posted.
	TooLate bool `json:"too_late,omitempty"`
	// KillFailed: the box did not confirm that the agent ended.
	KillFailed bool `json:"kill_failed,omitempty"`
}

// Outcome is what becomes of a line (L3).
type Outcome struct {
	Line   TurnLine     `json:"line"`
	State  rules.State  `json:"state"`
	Reason rules.Reason `json:"reason,omitempty"`
}

// PostInput is one post and the outcomes that it settles.
type PostInput struct {
	// Turn's lines get State and Reason. Without a PostID the post is named by the first of
	// them that can still be taken; when there is none, nothing is posted.
	Turn   Turn         `json:"turn"`
	State  rules.State  `json:"state,omitempty"`
	Reason rules.Reason `json:"reason,omitempty"`
	// Others are further lines that end with this post.
	Others []Outcome `json:"others,omitempty"`
	// PostID is the post's name where it is known: a stop, a schedule, a driven turn, and
	// a turn that took its lines.
	PostID string `json:"post_id,omitempty"`
	Say    Say    `json:"say"`
	Answer Answer `json:"answer"`
	// Stop goes with SayStop.
	Stop StopSaid `json:"stop"`
	// DrivesUsedUp: the agent wanted to go on and may not (D2).
	DrivesUsedUp bool `json:"drives_used_up,omitempty"`
	// NewThread: the post opens a thread of its own (a schedule's).
	NewThread bool `json:"new_thread,omitempty"`
	// IfBegun: only when the turn has taken its lines. A run that was lost before that has
	// done nothing, and may be made again (B3).
	IfBegun bool `json:"if_begun,omitempty"`
	// Binding goes with an answer whose turn bound an operator or could not, and is said
	// with it, or by itself where nothing else is said (O3).
	Binding *Binding `json:"binding,omitempty"`
	// Deposit goes with SayDeposit, OperatorStopped with SayOperatorStopped.
	Deposit         *DepositInput    `json:"deposit,omitempty"`
	OperatorStopped *OperatorStopped `json:"operator_stopped,omitempty"`
	// Work is the turn's part in an ask: the driver's post is marked, and its claim goes (A5).
	Work *ForceWork `json:"work,omitempty"`
	// Text goes with SayRelay.
	Text string `json:"text,omitempty"`
}

// PostResult tells where the post stands.
type PostResult struct {
	TS string `json:"ts,omitempty"`
	// NotBegun: nothing was said or settled, since the turn never began (PostInput.IfBegun).
	NotBegun bool `json:"not_begun,omitempty"`
}

// SettleInput asks about lines that are owed for too long and that the brain does not hold (L3).
type SettleInput struct {
	Seat   string       `json:"seat"`
	Thread rules.Thread `json:"thread"`
	Lines  []string     `json:"lines"`
}

// SettleResult counts what was found.
type SettleResult struct {
	Posted int `json:"posted"`
	Failed int `json:"failed"`
}
