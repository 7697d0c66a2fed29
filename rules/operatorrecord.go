package rules

// Operator is what is known of the operator that is bound to a thread (O7, O9).
type Operator struct {
	// Number is its number in the registry of sessions: the next free one, for good (R1).
	Number int `json:"number,omitempty"`
	// Slug names the task, and Repo the checkout that it works on (O4).
	Slug string `json:"slug,omitempty"`
	Repo string `json:"repo,omitempty"`
	// Box is where its session lives, Seat whose operator it is, Thread whom it reports to.
	Box    string `json:"box,omitempty"`
	Seat   string `json:"seat,omitempty"`
	Thread Thread `json:"thread,omitzero"`
	// Session is the identity of its session, a UUID: a respawned one has another (X5).
	Session  string `json:"session,omitempty"`
	Worktree string `json:"worktree,omitempty"`
	Branch   string `json:"branch,omitempty"`
	// Attach is the command that a person on the box types to see it.
	Attach string `json:"attach,omitempty"`
}
