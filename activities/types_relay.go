package activities

import "agentsmith/rules"

// TickInput looks at what the relays of a conversation have to do on one box (R8).
type TickInput struct {
	Seat    string `json:"seat"`
	Team    string `json:"team"`
	Channel string `json:"channel"`
	Box     string `json:"box"`
}

// TickResult tells whether a relay to a session of this box is open, and whether lines or
// words of one are under way.
type TickResult struct {
	Open        bool `json:"open,omitempty"`
	Outstanding bool `json:"outstanding,omitempty"`
}

// DoorInput asks what is to be said to a line that opened, closed or listed relays (R1, R6).
type DoorInput struct {
	Seat   string         `json:"seat"`
	Thread rules.Thread   `json:"thread"`
	User   string         `json:"user"`
	Act    rules.RelayAct `json:"act"`
}

// DoorAnswer is what is said to it. Refused: the line is declined.
type DoorAnswer struct {
	Text    string `json:"text"`
	Refused bool   `json:"refused,omitempty"`
}
