package rules

import (
	"encoding/json"
	"slices"
)

// SeatIdentity is what Slack knows a seat by. BotID may be unknown for a seat that
// runs elsewhere.
type SeatIdentity struct {
	Name    string `json:"name"`
	BotUser string `json:"bot_user"`
	BotID   string `json:"bot_id,omitempty"`
}

// wrote tells whether the line is this seat's own.
func (s SeatIdentity) wrote(line Line) bool {
	return (s.BotUser != "" && line.User == s.BotUser) || (s.BotID != "" && line.BotID == s.BotID)
}

// Roster is who is who in a workspace, as one seat sees it.
type Roster struct {
	// Self is the seat that looks.
	Self SeatIdentity
	// Seats are all seats of the roster; Self may be among them.
	Seats []SeatIdentity
	// Dispatcher is Agent Force's bot user; "" where there is none.
	Dispatcher string
	// Team is the installing team.
	Team string
}

// Seat returns the seat that wrote a line, Self left out.
func (r Roster) Seat(line Line) (SeatIdentity, bool) {
	if r.Self.wrote(line) {
		return SeatIdentity{}, false
	}
	for _, s := range r.Seats {
		if s.Name != r.Self.Name && s.wrote(line) {
			return s, true
		}
	}
	return SeatIdentity{}, false
}

// slackbot is Slack's own bot: it has a user id and no bot id.
const slackbot = "USLACKBOT"

// Who tells who wrote a line (D2). Identity comes from the author's ids only, never
// from what the line says about itself.
func Who(line Line, r Roster) Author {
	if r.Self.wrote(line) {
		return Self
	}
	if _, ok := r.Seat(line); ok {
		return Sibling
	}
	switch {
	case r.Dispatcher != "" && line.User == r.Dispatcher:
		return Dispatcher
	case line.BotID != "" || line.Subtype == "bot_message" || line.User == "" || line.User == slackbot:
		return OtherBot
	case line.UserTeam != "" && line.UserTeam != r.Team:
		return Outsider
	}
	return Person
}

// ThreadFacts is what the ledger knows of the thread that a line stands in.
type ThreadFacts struct {
	// People are the persons who wrote in the thread.
	People []string
	// Seats are the names of the seats that take part in it.
	Seats []string
	// RootSeen: the thread's first line is known, so that nobody who began it is missed.
	RootSeen bool
	// Siblings: another seat wrote in the thread.
	Siblings bool
	// Drives: this seat drives the thread (A8).
	Drives bool
	// StopTS is the newest stop that covers the thread for this seat, "" for none.
	StopTS string
}

// TakesPart tells whether a seat takes part in the thread.
func (f ThreadFacts) TakesPart(seat string) bool { return slices.Contains(f.Seats, seat) }

// tete tells whether the thread holds only this person and this seat (D3).
func (f ThreadFacts) tete(user, seat string) bool {
	if user == "" || !f.RootSeen || f.Siblings || !f.TakesPart(seat) {
		return false
	}
	for _, s := range f.Seats {
		if s != seat {
			return false
		}
	}
	for _, p := range f.People {
		if p != user {
			return false
		}
	}
	return true
}

// Engagement is what a line is to a seat when it arrives.
type Engagement struct {
	// State is Owed, Noted, or Declined with a Reason.
	State  State
	Reason Reason
	// Mentioned: the line mentions the seat, or asks every seat (A1).
	Mentioned bool
	// Stop: the line is the stop word, and there is something here to stop (D4).
	Stop bool
}

// Engage decides what a line is to a seat (D2, D3, D4). mentioned is what the event
// itself says: an app_mention mentions the seat also where the text does not show it.
//
// Owed is not yet permission: who may talk is asked afterwards, and a line of another
// seat that looks like a hand-off is owed until it was confirmed (HandOff).
func Engage(line Line, author Author, self SeatIdentity, mentioned bool, f ThreadFacts) Engagement {
	e := Engagement{State: Noted, Mentioned: mentioned || line.Mentions(self.BotUser)}
	e.Stop = StopsHere(line, author, self, f)
	if !e.Stop && !StopsOperatorHere(line, author, self, f) && !engages(line, author, self, e.Mentioned, f) {
		return e
	}
	e.State = Owed
	// An older line that arrives after the stop is not answered; of two stops the
	// newest counts, so an older one is over as well.
	if f.StopTS != "" && CompareTS(line.TS, f.StopTS) < 0 {
		e.State, e.Reason, e.Stop = Declined, ReasonStopped, false
	}
	return e
}

func engages(line Line, author Author, self SeatIdentity, mentioned bool, f ThreadFacts) bool {
	switch author {
	case Person, Outsider:
		return line.InDM() || mentioned || f.Drives || f.tete(line.User, self.Name)
	case Sibling:
		return looksLikeHandOff(line, mentioned)
	}
	return false
}

// EventHandOff is the metadata event type of a line by which a seat hands work to
// another one.
const EventHandOff = "smith_handoff"

// looksLikeHandOff tells whether a seat's line may be a hand-off. An event may come with
// the payload stripped, so the type alone is the hint; one that comes with no metadata
// at all is read back when it mentions the seat.
func looksLikeHandOff(line Line, mentioned bool) bool {
	meta, ok := ParseMetadata(line.Raw)
	return meta.EventType == EventHandOff || (mentioned && !ok)
}

// HandOff reads the mark of a hand-off from a message that was read back from Slack
// with its metadata, and returns the hop that the turn it asks for has: one more than
// the turn that wrote it (D2). from is the seat that wrote the line that was recorded;
// any app can forge the mark, so it counts only when that seat wrote this message too,
// and only when it is meant for self. A mark without a sensible hop is none.
func HandOff(readBack Line, from, self SeatIdentity) (hop int, ok bool) {
	if !from.wrote(readBack) || self.Name == "" || from.Name == self.Name {
		return 0, false
	}
	meta, found := ParseMetadata(readBack.Raw)
	if !found || meta.EventType != EventHandOff {
		return 0, false
	}
	var mark struct {
		To         string `json:"to"`
		SiblingHop *int   `json:"sibling_hop"`
	}
	if json.Unmarshal(meta.Payload, &mark) != nil || mark.To != self.Name || mark.SiblingHop == nil || *mark.SiblingHop < 0 {
		return 0, false
	}
	return *mark.SiblingHop + 1, true
}

// OverHops tells whether a hand-off went on for too long (D2).
func OverHops(hop, limit int) bool { return hop > limit }

// Profile is what Slack says of a user.
type Profile struct {
	ID string
	// Member: a full member of the installing team, no guest, no bot, not deactivated.
	Member bool
	// Stranger: of another team.
	Stranger bool
}

// Access says who may talk to a brain (X1).
type Access struct {
	// Members: every full member of the installing team may talk; else only Users.
	Members bool
	// Users may talk in any case: they are named in the config.
	Users []string
}

// NeedsProfile tells whether Slack has to be asked about a user before May can answer.
func (a Access) NeedsProfile(user string) bool { return a.Members && !slices.Contains(a.Users, user) }

// May tells whether a person may talk to a brain, and else why not. A nil profile is
// one that Slack would not give: for permission, doubt is no.
func (a Access) May(user string, p *Profile) (bool, Reason) {
	switch {
	case user == "":
		return false, ReasonUnknown
	case slices.Contains(a.Users, user):
		return true, ""
	case !a.Members:
		return false, ReasonNotMember
	case p == nil || p.ID != user:
		return false, ReasonUnknown
	case p.Stranger:
		return false, ReasonOutsider
	case !p.Member:
		return false, ReasonNotMember
	}
	return true, ""
}

// ReasonNoHandOff is why a seat's line that might have been a hand-off was declined: read
// back from Slack, it was none. Nothing is said about it, or two seats would talk for ever.
const ReasonNoHandOff Reason = "no_hand_off"
