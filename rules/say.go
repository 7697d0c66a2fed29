package rules

import (
	"fmt"
	"strings"
)

// FailureText is the one honest line of a turn that failed: what happened, what was
// not done, how to go on.
func FailureText(r Reason) string {
	switch r {
	case ReasonAgentExit:
		return "The agent stopped with an error before it had an answer. Write again to go on from where it was."
	case ReasonAgentUnreadable:
		return "The agent answered in a form that I can't read, so I have nothing to show. Write again to ask once more."
	case ReasonAgentTimeout:
		return "The agent ran out of time and was ended. What it did so far stands; write again to go on from there."
	case ReasonAgentOutput:
		return "The agent wrote more than I accept and was ended. Write again and ask for less at once."
	case ReasonAgentAPI:
		return "The model's service refused or failed, so there is no answer. Write again in a few minutes."
	case ReasonAgentMissing:
		return "The agent program isn't installed where I run, so nothing was done. Whoever runs me has to install it; then write again."
	case ReasonWorkerDied:
		return "I was interrupted while the agent worked, and it was ended. What it did so far stands; write again to go on from there."
	case ReasonLost:
		return "I lost track of this line and did nothing about it. Please send it again."
	case ReasonPostRejected:
		return "Slack did not accept my answer, so I can't show it here. Write again to ask for it in another form."
	default:
		return "Something went wrong on my side and there is no answer. Write again to try once more."
	}
}

// DeclineText is the one honest line of a line that is not worked on (X1, X6, D2).
func DeclineText(r Reason) string {
	switch r {
	case ReasonOutsider:
		return "I only work for members of this workspace, so I did nothing about this. A member can ask me for you."
	case ReasonNotMember:
		return "You are not among the people I work for here, so I did nothing about this. Whoever runs me can change that."
	case ReasonUnknown:
		return "Slack would not tell me who you are, so I did nothing about this. Please send it again in a moment."
	case ReasonHops:
		return "This was handed on too often between agents, so I stop here. A person can pick it up by writing to me."
	case ReasonThreadCap:
		return "Agents have handed work to each other here too often, so I take no more of it in this thread. A person can pick it up by writing to me."
	case ReasonAbstained:
		return "I have nothing to say to this."
	case ReasonBudget:
		return "Today's budget for agents is used up, so I did nothing about this. Ask again tomorrow, or have the budget raised."
	case ReasonCancelled:
		return "This thread's workflow was cancelled by whoever runs me, so there is no answer. Write again to start anew."
	default:
		return "I did nothing about this."
	}
}

// CommandText answers a slash command: none does anything, and /agents is retired (A8).
func CommandText(command, dispatcher string) string {
	switch {
	case command != "/agents":
		return command + " is not a command of this seat. Mention it, or write to it directly."
	case dispatcher != "":
		return "/agents is retired. Mention <@" + dispatcher + "> in a channel instead: it asks every agent there."
	}
	return "/agents is retired. Mention @Agent Force in a channel instead: it asks every agent there."
}

// StopText says what a stop did (D4).
func StopText(stopped, waiting int, tooLate, killFailed bool) string {
	var text string
	switch {
	case killFailed:
		return "I could not confirm that the agent ended. I keep trying before anything else runs here."
	case tooLate:
		text = "Too late to stop: the answer was already on its way. Nothing else is running here."
	case stopped == 1:
		text = "Stopped. What the agent did so far stands; write again to go on."
	case stopped > 1:
		text = fmt.Sprintf("Stopped %d running turns. What the agents did so far stands; write again to go on.", stopped)
	case waiting == 1:
		return "Stopped before it began: one waiting line is dropped."
	case waiting > 1:
		return fmt.Sprintf("Stopped before it began: %d waiting lines are dropped.", waiting)
	default:
		return "Nothing was running here."
	}
	switch {
	case waiting == 1:
		text += " One waiting line is dropped too."
	case waiting > 1:
		text += fmt.Sprintf(" %d waiting lines are dropped too.", waiting)
	}
	return text
}

// WaitingStatus tells a line its place among those that wait for a free agent (X6).
func WaitingStatus(place int) string {
	if place <= 1 {
		return "is waiting for a free agent: next in line"
	}
	return fmt.Sprintf("is waiting for a free agent: number %d in line", place)
}

// ThinkingStatus is shown while the agent runs (B7).
const ThinkingStatus = "is thinking…"

// DrivesUsedUpText ends an answer whose agent wanted to go on once too often (D2).
const DrivesUsedUpText = "I stop here for now: that was as many turns as I may give myself. Write to let me go on."

// NoWordsText stands for an answer that is only files, or only the plan to go on.
func NoWordsText(files int) string {
	switch files {
	case 0:
		return "I go on with this."
	case 1:
		return "Here is the file."
	default:
		return fmt.Sprintf("Here are the %d files.", files)
	}
}

// FilesLeftText names files of an answer that could not be posted. The names are safe
// ones (SafeFileName).
func FilesLeftText(names []string) string {
	if len(names) == 1 {
		return "One file could not be posted: " + names[0] + ". Write again to get it in another form."
	}
	return fmt.Sprintf("%d files could not be posted: %s. Write again to get them in another form.", len(names), strings.Join(names, ", "))
}
