package activities

import (
	"time"

	"agentsmith/rules"
)

// ForceInput is one look of a seat at an ask (A4-A6).
type ForceInput struct {
	// Turn has the one line of the ask.
	Turn Turn      `json:"turn"`
	Ask  rules.Ask `json:"ask"`
	// Since is when this seat began with the ask.
	Since time.Time `json:"since"`
}

// ForceResult is what the seat is to do now: drive, wait, add or leave. A claim that had to
// be made stands already.
type ForceResult struct {
	Act   rules.ForceAct `json:"act"`
	Until time.Time      `json:"until,omitzero"`
	// Work goes with an act that is a turn.
	Work *ForceWork `json:"work,omitempty"`
	// Picked, Rule and View say why, for a person who reads the history.
	Picked string         `json:"picked,omitempty"`
	Rule   rules.PickRule `json:"rule,omitempty"`
	View   rules.AskView  `json:"view"`
}

// ForceWork is a seat's part in an ask: a turn of its own (A5).
type ForceWork struct {
	Ask   rules.Ask `json:"ask"`
	AskTS string    `json:"ask_ts"`
	// Claim is the ts of the driver's post that says it works; "" is the part of a seat that adds.
	Claim     string `json:"claim,omitempty"`
	ClaimPost string `json:"claim_post,omitempty"`
	Cover     bool   `json:"cover,omitempty"`
	// Driver is the seat whose answer, of the name AnswerPost, is added to.
	Driver     string `json:"driver,omitempty"`
	AnswerPost string `json:"answer_post,omitempty"`
}

// Drives tells whether the part is the driver's.
func (w *ForceWork) Drives() bool { return w != nil && w.Claim != "" }

// driverUser is the bot user of the seat whose answer is added to.
func (w *ForceWork) driverUser() string {
	for _, s := range w.Ask.Seats {
		if s.Name == w.Driver {
			return s.BotUser
		}
	}
	return ""
}

// DispatchInput is one ask for the dispatcher (A3).
type DispatchInput struct {
	Line rules.Line `json:"line"`
	Ask  rules.Ask  `json:"ask"`
}

// DispatchResult is the dispatch line and the pick with its reasons.
type DispatchResult struct {
	TS   string       `json:"ts,omitempty"`
	Pick rules.Picked `json:"pick"`
	// Unread names what Slack did not tell, and the pick was made without.
	Unread []string `json:"unread,omitempty"`
}
