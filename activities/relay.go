package activities

import (
	"context"
	"errors"
)

// Relay is what the workflows ask of a box about its relays.
type Relay struct{}

// Tick looks once at everything that is due in a conversation's relays on this box (R8).
func (r *Relay) Tick(context.Context, TickInput) (TickResult, error) {
	return TickResult{}, errors.New("not built yet")
}

// AnswerDoor tells what is to be said to a line that opened, closed or listed relays (R1, R6).
func (r *Relay) AnswerDoor(context.Context, DoorInput) (DoorAnswer, error) {
	return DoorAnswer{}, errors.New("not built yet")
}
