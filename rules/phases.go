package rules

import (
	"fmt"
	"net/url"
	"strings"
)

// PhaseState is where a phase stands (P1).
type PhaseState string

// The states of a phase. The last two are gaps.
const (
	PhaseDone     PhaseState = "DONE"
	PhaseRunning  PhaseState = "RUNNING"
	PhaseFailed   PhaseState = "FAILED"
	PhasePending  PhaseState = "PENDING"
	PhaseNoSignal PhaseState = "NO_SIGNAL"
)

// Gap tells whether nothing is known of the phase yet.
func (s PhaseState) Gap() bool { return s != PhaseDone && s != PhaseRunning && s != PhaseFailed }

// PhaseFacts are what is known of a thread's work. They are compared as a whole: a table
// is shown anew when one of them changes.
type PhaseFacts struct {
	// Bound: the thread's claim is an operator's. Slug, Repo and Number name it.
	Bound  bool   `json:"bound,omitempty"`
	Slug   string `json:"slug,omitempty"`
	Repo   string `json:"repo,omitempty"`
	Number int    `json:"number,omitempty"`
	// Alive: its session runs; Blocked: it waits for a person; Dead: it ran and is gone.
	Alive   bool `json:"alive,omitempty"`
	Blocked bool `json:"blocked,omitempty"`
	Dead    bool `json:"dead,omitempty"`
	// Branch is the branch that exists, Commits how many it has of its own, Pushed
	// whether the remote has it.
	Branch  string `json:"branch,omitempty"`
	Commits int    `json:"commits,omitempty"`
	// Pull is the pull request's number, 0 for none. The rest is what GitHub last said.
	Pull    int    `json:"pull,omitempty"`
	PullURL string `json:"pull_url,omitempty"`
	Draft   bool   `json:"draft,omitempty"`
	// Checks is one of Checks…, Review of Review…, State of Pull….
	Checks string `json:"checks,omitempty"`
	Review string `json:"review,omitempty"`
	State  string `json:"state,omitempty"`
}

// The states of a pull request.
const (
	PullOpen   = "open"
	PullClosed = "closed" // without a merge
	PullMerged = "merged"
)

// What the checks of a head commit say together: its statuses and its check runs.
const (
	ChecksNone    = "none" // nothing checks it
	ChecksPending = "pending"
	ChecksPassed  = "passed"
	ChecksFailed  = "failed" // at least one, though others may still run
	// ChecksUnknown: the token may not read one of the two, so the other alone would lie.
	ChecksUnknown = "unknown"
)

// What the reviewers say together.
const (
	ReviewNone             = "none"
	ReviewRequested        = "requested"
	ReviewApproved         = "approved"
	ReviewChangesRequested = "changes_requested"
)

// The phases, in the order of the table (P1).
const (
	RowAsk        = "ask"
	RowClassified = "classified"
	RowRepo       = "repo"
	RowOperator   = "operator"
	RowSession    = "session"
	RowBranch     = "branch"
	RowCommits    = "commits"
	RowPull       = "pull request"
	RowChecks     = "checks"
	RowReview     = "review"
	RowMerged     = "merged"
)

// PhaseRow is one row of the table.
type PhaseRow struct {
	Name  string     `json:"name"`
	State PhaseState `json:"state"`
	// Detail is a few words, Link an address that was confirmed, "" else.
	Detail string `json:"detail,omitempty"`
	Link   string `json:"link,omitempty"`
}

// Phases are the eleven rows of a thread's work (P1). That somebody asked, and what the
// classifier said, are gaps until a binding, a session or a pull request shows that they
// came to something: the table tells of work, not of what was thought about a line.
func Phases(f PhaseFacts) []PhaseRow {
	begun := f.Bound || f.Alive || f.Pull != 0
	rows := []PhaseRow{
		doneOnce(RowAsk, begun, ""),
		doneOnce(RowClassified, begun && f.Bound, "work"),
		doneOnce(RowRepo, begun && f.Repo != "", code(f.Repo)),
		doneOnce(RowOperator, f.Bound, operatorDetail(f)),
		session(f),
		doneOnce(RowBranch, f.Branch != "", code(f.Branch)),
		commits(f),
		pull(f),
		checks(f),
		review(f),
		merged(f),
	}
	return rows
}

func doneOnce(name string, done bool, detail string) PhaseRow {
	if !done {
		return PhaseRow{Name: name, State: PhasePending}
	}
	return PhaseRow{Name: name, State: PhaseDone, Detail: detail}
}

func operatorDetail(f PhaseFacts) string {
	if f.Slug == "" {
		return ""
	}
	return SessionName(f.Number, f.Slug)
}

func session(f PhaseFacts) PhaseRow {
	switch {
	case f.State == PullMerged && !f.Alive:
		return PhaseRow{Name: RowSession, State: PhaseDone, Detail: "ended"}
	case f.Alive && f.Blocked:
		return PhaseRow{Name: RowSession, State: PhaseRunning, Detail: "waits for a person"}
	case f.Alive:
		return PhaseRow{Name: RowSession, State: PhaseRunning, Detail: "works"}
	case f.Dead:
		return PhaseRow{Name: RowSession, State: PhaseFailed, Detail: "gone"}
	case f.Bound:
		return PhaseRow{Name: RowSession, State: PhasePending}
	}
	return PhaseRow{Name: RowSession, State: PhaseNoSignal}
}

func commits(f PhaseFacts) PhaseRow {
	switch {
	case f.Commits == 1:
		return PhaseRow{Name: RowCommits, State: PhaseDone, Detail: "1 commit"}
	case f.Commits > 1:
		return PhaseRow{Name: RowCommits, State: PhaseDone, Detail: fmt.Sprintf("%d commits", f.Commits)}
	}
	return PhaseRow{Name: RowCommits, State: PhasePending}
}

func pull(f PhaseFacts) PhaseRow {
	row := PhaseRow{Name: RowPull, State: PhaseNoSignal}
	if f.Pull == 0 {
		return row
	}
	row.State, row.Detail, row.Link = PhaseRunning, fmt.Sprintf("#%d", f.Pull), f.PullURL
	switch {
	case f.State == PullMerged:
		row.State = PhaseDone
	case f.State == PullClosed:
		row.State, row.Detail = PhaseFailed, row.Detail+" closed"
	case f.Draft:
		row.Detail += " draft"
	default:
		row.State = PhaseDone
	}
	return row
}

func checks(f PhaseFacts) PhaseRow {
	row := PhaseRow{Name: RowChecks, State: PhaseNoSignal}
	switch f.Checks {
	case ChecksPassed:
		row.State, row.Detail = PhaseDone, "passed"
	case ChecksFailed:
		row.State, row.Detail = PhaseFailed, "failed"
	case ChecksPending:
		row.State, row.Detail = PhaseRunning, "running"
	}
	return row
}

func review(f PhaseFacts) PhaseRow {
	row := PhaseRow{Name: RowReview, State: PhaseNoSignal}
	switch f.Review {
	case ReviewApproved:
		row.State, row.Detail = PhaseDone, "approved"
	case ReviewChangesRequested:
		row.State, row.Detail = PhaseFailed, "changes requested"
	case ReviewRequested:
		row.State, row.Detail = PhaseRunning, "requested"
	}
	return row
}

func merged(f PhaseFacts) PhaseRow {
	switch f.State {
	case PullMerged:
		return PhaseRow{Name: RowMerged, State: PhaseDone}
	case PullClosed:
		return PhaseRow{Name: RowMerged, State: PhaseFailed, Detail: "closed unmerged"}
	}
	return PhaseRow{Name: RowMerged, State: PhaseNoSignal}
}

// HasAnySignal is false only when every row is a gap. It is derived from the rows, never
// from what the classifier said (P2).
func HasAnySignal(rows []PhaseRow) bool {
	for _, r := range rows {
		if !r.State.Gap() {
			return true
		}
	}
	return false
}

// RenderPhases writes the table as a message's text: one short row a phase, readable on
// a phone. Who posts it escapes it, as any text (X2).
func RenderPhases(rows []PhaseRow) string {
	var w strings.Builder
	for i, r := range rows {
		if i > 0 {
			w.WriteByte('\n')
		}
		w.WriteString(r.State.mark() + " " + r.Name)
		if detail := Visible(r.Detail); detail != "" {
			w.WriteString(": " + detail)
		}
		if safeLink(r.Link) {
			w.WriteString(" " + r.Link)
		}
	}
	return w.String()
}

func (s PhaseState) mark() string {
	switch s {
	case PhaseDone:
		return "●"
	case PhaseRunning:
		return "◐"
	case PhaseFailed:
		return "✕"
	default:
		return "○"
	}
}

// safeLink tells whether an address can stand in a text as one.
func safeLink(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= 400 && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil &&
		!strings.ContainsAny(s, "<>|\"'` \t\n\r")
}

// maxName bounds a name in a text, in runes: a row of the table is to fit on a phone.
const maxName = 60

// code sets a name off from the text around it.
func code(s string) string {
	s = strings.ReplaceAll(Visible(s), "`", "'")
	if s == "" {
		return ""
	}
	if r := []rune(s); len(r) > maxName {
		s = string(r[:maxName-1]) + "…"
	}
	return "`" + s + "`"
}
