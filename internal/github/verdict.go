package github

import (
	"strings"

	"agentsmith/rules"
)

// tally adds up what checks a commit.
type tally struct {
	passed, pending, failed, unknown bool
}

// status takes one commit status; only the newest of a context is listed.
func (t *tally) status(state string) {
	switch state {
	case "success":
		t.passed = true
	case "failure", "error":
		t.failed = true
	default: // pending, and what GitHub may yet invent
		t.pending = true
	}
}

// run takes one check run; only the newest of a name is listed.
func (t *tally) run(status, conclusion string) {
	if status != "completed" { // queued, in_progress, requested, waiting, pending
		t.pending = true
		return
	}
	switch conclusion {
	case "success", "neutral", "skipped":
		t.passed = true
	case "failure", "timed_out", "cancelled", "action_required", "startup_failure", "stale":
		t.failed = true
	default: // never called passed
		t.pending = true
	}
}

// says is the sum: a failure stands whatever else runs, and nothing is called passed
// while a part of it is not known.
func (t *tally) says() string {
	switch {
	case t.failed:
		return rules.ChecksFailed
	case t.unknown:
		return rules.ChecksUnknown
	case t.pending:
		return rules.ChecksPending
	case t.passed:
		return rules.ChecksPassed
	}
	return rules.ChecksNone
}

// verdicts keeps the last decision of each reviewer.
type verdicts struct {
	author string
	last   map[string]string // login → APPROVED or CHANGES_REQUESTED
}

// take takes one review. A comment changes no decision, a dismissal takes it back. On a
// public repository everybody may review: who is a stranger to it decides nothing, and
// nor does the author.
func (v *verdicts) take(login, association, state string) {
	if login == "" || login == v.author {
		return
	}
	switch association {
	case "OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR":
	default: // NONE, FIRST_TIMER, FIRST_TIME_CONTRIBUTOR, MANNEQUIN
		return
	}
	switch state = strings.ToUpper(state); state {
	case "APPROVED", "CHANGES_REQUESTED":
		v.last[login] = state
	case "DISMISSED":
		delete(v.last, login)
	}
}

// says is the sum: one who asks for changes stands against all who approve.
func (v *verdicts) says(requested bool) string {
	approved := false
	for _, state := range v.last {
		if state == "CHANGES_REQUESTED" {
			return rules.ReviewChangesRequested
		}
		approved = true
	}
	switch {
	case approved:
		return rules.ReviewApproved
	case requested:
		return rules.ReviewRequested
	}
	return rules.ReviewNone
}
