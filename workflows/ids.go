// Package workflows holds the deterministic side of Smith: what happens to a thread,
// in which order, and what is waited for. It does no I/O; activities do.
package workflows

import "agentsmith/rules"

// TaskQueue is where every workflow task of Smith runs.
const TaskQueue = "smith"

// BoxTaskQueue is where the activities of one box run: those that touch its
// agent processes, its directories and its posts.
func BoxTaskQueue(box string) string { return TaskQueue + "-box-" + box }

// ForcePickID is the workflow ID of the dispatcher's pick for one ask.
func ForcePickID(channel, askTS string) string { return "force-pick-" + channel + "-" + askTS }

// ReplyID is the workflow ID of a seat's brain for one thread.
func ReplyID(seat string, t rules.Thread) string {
	return seat + "-reply-" + t.Channel + "-" + t.Root
}
