package proof

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// Kind says what a command does.
type Kind string

// The kinds of command. Those that cancel are seen in a history only: they pass no interceptor.
const (
	Activity          Kind = "activity"
	LocalActivity     Kind = "local activity"
	Timer             Kind = "timer"
	Child             Kind = "child"
	Version           Kind = "version marker"
	SideEffect        Kind = "side effect"
	MutableSideEffect Kind = "mutable side effect"
	SearchAttributes  Kind = "search attributes"
	Memo              Kind = "memo"
	Signal            Kind = "signal"
	CancelExternal    Kind = "cancel of another run"
	Nexus             Kind = "nexus operation"
	Complete          Kind = "completion"
	Fail              Kind = "failure"
	Cancelled         Kind = "cancelled end"
	ContinueAsNew     Kind = "continue as new"
	CancelTimer       Kind = "cancel of a timer"
	CancelActivity    Kind = "cancel of an activity"
	CancelChild       Kind = "cancel of a child"
)

func (k Kind) closes() bool {
	return k == Complete || k == Fail || k == Cancelled || k == ContinueAsNew
}

func (k Kind) cancels() bool { return k == CancelTimer || k == CancelActivity || k == CancelChild }

// Command is one command, as the code gives it or as its event in a history records it.
type Command struct {
	Kind Kind
	// Name is what the command is about: a type, a change ID, a signal's name; "" where the kind says all.
	Name string
	// Task is the event that started the workflow task in which it was given.
	Task int64
	// Event is the command's event in the history; 0 for a call.
	Event int64

	fields []field
}

// String names a command for a person.
func (c Command) String() string {
	s := string(c.Kind)
	if c.Name != "" {
		s += " " + c.Name
	}
	if c.Event != 0 {
		s += fmt.Sprintf(" (event %d)", c.Event)
	}
	return s
}

// field is one compared property: a string, a *commonpb.Payloads, a *commonpb.Payload or
// a map of payloads.
type field struct {
	name  string
	value any
}

// call is a command as the code gave it in one replay.
type call struct {
	Command
	// index counts the calls of a run from 0, in the order in which the code made them.
	index int
	// recorded tells whether it may leave an event: a version that an earlier call
	// already answered leaves none.
	recorded bool
	// must: it leaves an event for sure, and the SDK does not look whether it did.
	must bool
	// site is where in the code it was made, file:line; only in a run that looks for it.
	site string
	// again makes the same call once more, elsewhere in the code.
	again func(workflow.Context) any
}

// Consult is one question to a gate.
type Consult struct {
	ChangeID string
	Min, Max workflow.Version
	// Answer is what the code was told.
	Answer workflow.Version
	// Calls is how many calls the code had made before.
	Calls int
	// Task is the workflow task in which it asked.
	Task int64
}
