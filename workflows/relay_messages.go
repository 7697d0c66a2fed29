package workflows

import (
	"time"

	"agentsmith/activities"
)

// DoorInput is what a KindRelayDoor is about, for those who send one.
type DoorInput = activities.DoorInput

// RelayTickType is the name under which RelayTick is registered and started (R8). It is in
// histories and never changes.
const RelayTickType = "RelayTick"

// SignalRelayTick carries a TickTrigger to a running RelayTick.
const SignalRelayTick = "relay_tick"

// RelayTickID is the workflow ID of the tick of a seat's conversation in a DM (R8).
func RelayTickID(seat, channel string) string { return seat + "-relay-tick-" + channel }

// TickTrigger says that something of a conversation's relays is due on a box. It only
// wakes: the tick looks for itself, so one that comes twice changes nothing.
type TickTrigger struct {
	Box string `json:"box"`
	// Relay and EventTS are for a person who reads the history.
	Relay   string `json:"relay,omitempty"`
	EventTS string `json:"event_ts,omitempty"`
}

// TickSettings are the times of a tick. They ride on its input, since a workflow reads no
// config.
type TickSettings struct {
	// Fast is the time between two looks while lines or words are under way, Slow while a
	// relay is open and nothing is.
	Fast time.Duration `json:"fast"`
	Slow time.Duration `json:"slow"`
}

// The times of the safety nets of what is woken: FastTick while lines or words are under
// way, SlowTick while a relay is only open, which is 24 actions an hour.
const (
	FastTick = 20 * time.Second
	SlowTick = 5 * time.Minute
)

// TickStart starts the tick of a conversation.
type TickStart struct {
	Seat    string `json:"seat"`
	Team    string `json:"team"`
	Channel string `json:"channel"`
	// Boxes are those where something is open or under way.
	Boxes    []string     `json:"boxes,omitempty"`
	Settings TickSettings `json:"settings"`
}
