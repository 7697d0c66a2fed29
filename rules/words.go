// Package rules holds the pure decisions of Smith and the words they are about.
// It does no I/O and knows neither Temporal nor a Slack client: what is decided
// here can be read, tested and replayed without a server.
package rules

import "encoding/json"

// Thread names a Slack thread. In a DM every top-level line is its own root.
type Thread struct {
	Team    string `json:"team"`
	Channel string `json:"channel"`
	Root    string `json:"root"`
}

// LineKey names a line: a message is the same line whatever event brought it (L1).
type LineKey struct {
	Team    string `json:"team"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

// Line is one Slack message, by anyone.
type Line struct {
	LineKey
	// Root is the ts of the thread's first message; a root's own ts is its Root.
	Root string `json:"root"`
	// ChannelType is im, mpim, group or channel; "" where the event did not say.
	ChannelType string `json:"channel_type,omitempty"`
	// User is the author's user id; a bot's line has BotID, and often a User as well.
	User  string `json:"user,omitempty"`
	BotID string `json:"bot_id,omitempty"`
	// AppID is the app that posted a bot's line, where the event says so.
	AppID string `json:"app_id,omitempty"`
	// UserTeam is the author's own workspace: another one than Team marks an outsider (D2).
	UserTeam string `json:"user_team,omitempty"`
	Subtype  string `json:"subtype,omitempty"`
	// Text is as Slack sent it: mentions in angle brackets, & < > escaped.
	Text  string `json:"text"`
	Files []File `json:"files,omitempty"`
	// EditedTS is the ts of the newest edit, "" for a line never edited.
	EditedTS string `json:"edited_ts,omitempty"`
	// Raw is the event as it arrived.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Key returns the line's name.
func (l Line) Key() LineKey { return l.LineKey }

// Thread returns the thread that the line stands in.
func (l Line) Thread() Thread { return Thread{Team: l.Team, Channel: l.Channel, Root: l.Root} }

// File is a file that a line carries, as Slack describes it; its name is hostile (X2).
type File struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Mimetype   string `json:"mimetype,omitempty"`
	Size       int64  `json:"size"`
	URLPrivate string `json:"url_private,omitempty"`
}

// Author says who wrote a line (D2).
type Author string

// The kinds of author.
const (
	Person     Author = "person"
	Outsider   Author = "outsider"   // Slack Connect: of another team
	Sibling    Author = "seat"       // another seat of the roster
	Dispatcher Author = "dispatcher" // Agent Force
	Self       Author = "self"       // the seat itself
	OtherBot   Author = "bot"
	Webhook    Author = "webhook"
	Schedule   Author = "schedule"
)

// State is where a line stands with one seat (L3).
type State string

// The states of a line. Noted and the four outcomes are at rest; owed and taken are not.
const (
	Noted    State = "noted"    // engages nobody; context for the next turn
	Owed     State = "owed"     // a turn is due
	Taken    State = "taken"    // a turn holds it
	Answered State = "answered" // outcome
	Relayed  State = "relayed"  // outcome
	Declined State = "declined" // outcome, with a reason
	Failed   State = "failed"   // outcome, with a reason, and said in the thread
)

// Ended tells whether s is an outcome: nothing may change it any more.
func (s State) Ended() bool {
	switch s {
	case Answered, Relayed, Declined, Failed:
		return true
	}
	return false
}

// Reason says why a line was declined or failed.
type Reason string

// The reasons of declined lines.
const (
	ReasonDeleted   Reason = "deleted"    // L4
	ReasonStopped   Reason = "stopped"    // D4
	ReasonCancelled Reason = "cancelled"  // the workflow was cancelled from outside
	ReasonAbstained Reason = "abstained"  // B4
	ReasonNoFinal   Reason = "no_final"   // A5: an ask whose driver has no answer to add to
	ReasonCovered   Reason = "covered"    // A6: another seat answered the ask in this one's stead
	ReasonThreadCap Reason = "thread_cap" // D2: seats have handed on too often in the thread
	ReasonOutsider  Reason = "outsider"   // D2
	ReasonNotMember Reason = "not_member"
	ReasonUnknown   Reason = "unknown_person" // X1: Slack would not say who it is
	ReasonHops      Reason = "hops"           // D2
	ReasonBudget    Reason = "budget"         // X6
	ReasonRefused   Reason = "refused"        // a door that stays shut (R1, X1)
)

// The reasons of failed lines.
const (
	ReasonAgentExit       Reason = "agent_exit"       // the agent CLI ended with an error
	ReasonAgentUnreadable Reason = "agent_unreadable" // its output was not what it promises
	ReasonAgentTimeout    Reason = "agent_timeout"
	ReasonAgentOutput     Reason = "agent_output" // it wrote more than the limit
	ReasonAgentAPI        Reason = "agent_api"    // the model's service refused or failed
	ReasonAgentMissing    Reason = "agent_missing"
	ReasonWorkerDied      Reason = "worker_died"   // B3
	ReasonLost            Reason = "lost"          // found by the sweep (L3)
	ReasonParentGone      Reason = "parent_gone"   // the thread's root was deleted
	ReasonPostRejected    Reason = "post_rejected" // Slack refused the post
	ReasonUnsure          Reason = "unsure"        // nobody knows whether it reached its session (R10)
	ReasonInternal        Reason = "internal"
)
