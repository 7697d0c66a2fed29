package agent

import (
	"errors"
	"fmt"
)

// What can become of a run, besides an answer. Each is told apart by errors.Is or
// errors.As, so that a person can be told in one honest line what happened.
var (
	// ErrStopped: the run's context ended, or Kill ended the run.
	ErrStopped = errors.New("the agent was stopped")
	// ErrTimeout: the run took longer than Spec.Timeout.
	ErrTimeout = errors.New("the agent took too long")
	// ErrOutput: the agent wrote more than Spec.MaxOutput.
	ErrOutput = errors.New("the agent wrote too much")
	// ErrUnreadable: the CLI ended well, but what it printed holds no result.
	ErrUnreadable = errors.New("the agent's output could not be read")
	// ErrMissing: there is no such program.
	ErrMissing = errors.New("the agent CLI is not installed")
	// ErrBusy: another run holds the directory, so the session, at this moment.
	ErrBusy = errors.New("another agent runs in this directory")
)

// ExitError is a CLI that ended with an error of its own, or by a signal.
type ExitError struct {
	// Code is the exit code, -1 when a signal ended it.
	Code int
	// Signal is the signal's name, "" when none.
	Signal string
	// Stderr is the end of what it wrote there, without control characters and
	// without the secrets of its environment.
	Stderr string
}

// Error says how it ended, with the end of its stderr.
func (e *ExitError) Error() string {
	how := fmt.Sprintf("exit code %d", e.Code)
	if e.Signal != "" {
		how = "signal " + e.Signal
	}
	if e.Stderr == "" {
		return "the agent ended by " + how
	}
	return fmt.Sprintf("the agent ended by %s: %s", how, e.Stderr)
}

// APIError is a refusal or failure of the model's service, after the CLI's own retries.
type APIError struct {
	// Status is the HTTP status; 0 when there was no response at all.
	Status int
	// Kind is the CLI's word for it: rate_limit, server_error, authentication_failed, ….
	Kind    string
	Message string
}

// Error says the status and what the service said.
func (e *APIError) Error() string {
	return fmt.Sprintf("the model's service failed (status %d, %s): %s", e.Status, e.Kind, e.Message)
}

// RateLimited tells whether the service asked to come later.
func (e *APIError) RateLimited() bool { return e.Status == 429 || e.Kind == "rate_limit" }

// Overloaded tells whether the service was at capacity.
func (e *APIError) Overloaded() bool { return e.Status == 529 || e.Kind == "overloaded" }

// Auth tells whether the agent is not signed in, or its key is refused.
func (e *APIError) Auth() bool {
	return e.Status == 401 || e.Status == 403 || e.Kind == "authentication_failed"
}

// wrongSession: the CLI refused --resume or --session-id before it read the prompt.
type wrongSession struct{ message string }

func (e *wrongSession) Error() string { return e.message }
