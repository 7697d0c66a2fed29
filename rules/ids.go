package rules

// InlineText is the largest text, in bytes, that rides in a workflow's history. A
// larger one stays in the store and is passed by reference.
const InlineText = 256 << 10

// TurnID names the turn that a line begins. The id of its post is the same, so that an
// answer and a failure line of one turn can never both be posted (B5). It never holds
// a run id: that changes when a workflow is reset.
func TurnID(seat, channel, ts string) string { return seat + "/" + channel + "/" + ts }

// ClaimPostID names a seat's post that says it works on an ask; it claims one at most twice,
// for itself and in another's stead (A6).
func ClaimPostID(seat, channel, askTS string, cover bool) string {
	id := TurnID(seat, channel, askTS) + "/claim"
	if cover {
		id += "/cover"
	}
	return id
}

// DispatchPostID names the one dispatch line of an ask (A3).
func DispatchPostID(channel, askTS string) string { return "dispatch/" + channel + "/" + askTS }

// SweepID names the one line that says what the retrofit sweep bound to a thread.
func SweepID(seat, channel, ts, eventTS string) string {
	return TurnID(seat, channel, ts) + "/sweep/" + eventTS
}

// PhasesID names the message that shows a thread's phases (P3).
func PhasesID(seat, channel, root string) string { return TurnID(seat, channel, root) + "/phases" }

// StopID names the one line that says what a stop did (D4).
func StopID(seat, channel, eventTS string) string { return TurnID(seat, channel, eventTS) + "/stop" }
