// Package failpoint names the places between two external effects of a turn, so
// that a test can stop a real process there and kill it. Without the build tag
// "failpoints" every point is an empty function.
package failpoint

// Point is a named place in the code.
type Point string

// The points of a turn, in the order that a line passes them.
const (
	StarterReceived   Point = "starter-received"    // envelope read, row not written
	StarterRecorded   Point = "starter-recorded"    // row written, not acked
	StarterAcked      Point = "starter-acked"       // acked, not dispatched
	StarterRouted     Point = "starter-routed"      // route on the row, no signal sent
	StarterBrainWoken Point = "starter-brain-woken" // a relayed line's brain signalled, its tick not woken
	StarterSignalled  Point = "starter-signalled"   // brain signalled, row not marked
	AgentBefore       Point = "agent-before"        // activity begun, no line taken
	AgentTaken        Point = "agent-taken"         // lines taken, agent not started
	AgentStarted      Point = "agent-started"       // agent runs, its process recorded
	AgentEnded        Point = "agent-ended"         // agent ended, answer not kept
	AgentKept         Point = "agent-kept"          // answer kept, activity not completed
	PostBefore        Point = "post-before"         // activity begun, nothing sent
	ForcePicking      Point = "force-picking"       // the dispatcher has an ask, and no pick has begun
	ForceDispatched   Point = "force-dispatched"    // the dispatch line stands, and nobody was told
	ForceClaimed      Point = "force-claimed"       // a seat's claim stands, and nobody was told
	ForceFinal        Point = "force-final"         // the driver's answer stands, and its claim too
	PostRecorded      Point = "post-recorded"       // intent to post recorded, nothing sent
	PostSent          Point = "post-sent"           // Slack has the post, nothing recorded
	PostFileIDKept    Point = "post-file-id-kept"   // upload's file id kept, upload not completed
	PostFileCompleted Point = "post-file-completed" // upload completed, nothing recorded
	PostOutcome       Point = "post-outcome"        // outcomes written, status not cleared
	PostCleared       Point = "post-cleared"        // status cleared, activity not completed
)

// The points of binding an operator and of following its task, in their order (O6-O11).
const (
	BindBefore      Point = "bind-before"       // activity begun, nothing asked
	BindClaimed     Point = "bind-claimed"      // thread claimed, nothing started
	BindStarted     Point = "bind-started"      // session runs, nothing recorded
	BindRegistered  Point = "bind-registered"   // session has its number, claim not bound
	BindBound       Point = "bind-bound"        // claim bound, task not told
	BindAdopted     Point = "bind-adopted"      // task told, activity not completed
	StopKilled      Point = "stop-killed"       // operator ended, nothing recorded
	RelayTyping     Point = "relay-typing"      // a line is taken for its session, nothing typed
	RelayTyped      Point = "relay-typed"       // typed, not on record
	RelayHandedBack Point = "relay-handed-back" // given back, no brain told
	RelayEnding     Point = "relay-ending"      // a session's end is said, its relay not closed
	TaskTyping      Point = "task-typing"       // line marked as being typed, nothing typed
	TaskTyped       Point = "task-typed"        // line typed, nothing recorded
	TaskCollected   Point = "task-collected"    // word in the store, its file still there
	TaskOffering    Point = "task-offering"     // word has its owner, nothing signalled
	TaskOffered     Point = "task-offered"      // brain signalled, activity not completed
	TaskKilled      Point = "task-killed"       // session of a task that is over ended, claim not
)

// The points of start-operator, in the order that it passes them.
const (
	OperatorLocked   Point = "operator-locked"   // locks held, nothing made
	OperatorRecorded Point = "operator-recorded" // worktree recorded as begun, git not called
	OperatorChecked  Point = "operator-checked"  // worktree made, still recorded as begun
	OperatorMade     Point = "operator-made"     // worktree recorded as made, nothing trusted
	OperatorTrusted  Point = "operator-trusted"  // worktree trusted, no session
	OperatorSession  Point = "operator-session"  // session made, not told what to run
	OperatorHanded   Point = "operator-handed"   // agent CLI runs, nothing printed
)

// The points of typing a text into a session.
const (
	TypeLoaded  Point = "type-loaded"  // in a buffer of tmux and in the journal, not pasted
	TypePasted  Point = "type-pasted"  // in the input box, no Enter pressed
	TypeEntered Point = "type-entered" // Enter pressed, arrival not known
)
