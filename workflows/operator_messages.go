package workflows

import (
	"time"

	"agentsmith/rules"
)

// OperatorTaskType is the name under which OperatorTaskWorkflow is registered and
// started (O10). It is in histories and never changes.
const OperatorTaskType = "OperatorTask"

// SignalOperatorTask carries a TaskTrigger to a running operator task.
const SignalOperatorTask = "operator_task"

// OperatorTaskID is the workflow ID of the task of a seat's operator (O10). A slug is
// one live thread's alone, so two tasks never share it.
func OperatorTaskID(seat, slug string) string {
	return seat + "-operator-task-" + slug
}

// TaskKind says what a TaskTrigger brings.
type TaskKind string

// The kinds of trigger of an operator task. All but TaskStop only wake: the task then
// looks for itself, so a trigger that comes twice changes nothing.
const (
	// TaskAdopt is sent by the bind with what is known of the operator: a task that runs
	// takes it over, one that does not is started by it.
	TaskAdopt TaskKind = "adopt"
	// TaskWake: something of the session is waiting, such as a line for it (O11) or a
	// word of it.
	TaskWake TaskKind = "wake"
	// TaskGitHub: GitHub told of the branch or the pull request. The read of it is the
	// truth, not the webhook.
	TaskGitHub TaskKind = "github"
	// TaskStop ends the operator (O11).
	TaskStop TaskKind = "stop"
)

// TaskTrigger is what reaches an operator task by SignalOperatorTask. A field that is
// added must mean "as before" when it is absent: old runs read old payloads.
type TaskTrigger struct {
	Kind TaskKind `json:"kind"`
	// Operator is whom a TaskAdopt is about.
	Operator rules.Operator `json:"operator,omitzero"`
	// EventTS is Slack's ts of the line that stops (TaskStop), or of the newest line that waits.
	EventTS string `json:"event_ts,omitempty"`
	// Delivery is GitHub's id of the webhook, and Event its name with the action, such as
	// pull_request.opened (TaskGitHub). They are for a person who reads the history.
	Delivery string `json:"delivery,omitempty"`
	Event    string `json:"event,omitempty"`
	// Repo as owner/name and Pull name the pull request that it is about, 0 where GitHub
	// named only the branch (TaskGitHub). They are a hint: any repository whose webhooks we
	// take may have a branch of that name, so they decide nothing.
	Repo string `json:"repo,omitempty"`
	Pull int    `json:"pull,omitempty"`
}

// TaskSettings are the parts of the config that a task decides by. They ride on its
// input, since a workflow reads no config; a run keeps the ones it started with.
type TaskSettings struct {
	// Box is where the operator's session lives.
	Box string `json:"box"`
	// Poll is the time between two reads of GitHub when no webhook comes, Tick between two
	// looks at the session.
	Poll time.Duration `json:"poll"`
	Tick time.Duration `json:"tick"`
	// GiveUp is how long a task waits for a dead session to be started again.
	GiveUp time.Duration `json:"give_up"`
}

// on are the settings for an operator that may be on another box than the one before it.
func (s TaskSettings) on(o rules.Operator) TaskSettings {
	if o.Box != "" {
		s.Box = o.Box
	}
	return s
}

// TaskInput starts an operator task.
type TaskInput struct {
	Operator rules.Operator `json:"operator"`
	Settings TaskSettings   `json:"settings"`
	Carried  *TaskCarried   `json:"carried,omitempty"`
}

// QueryTask returns a TaskView: what is known of the operator's work (T2).
const QueryTask = "task"
