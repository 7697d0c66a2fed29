// Package proof proves that a change to a workflow's code is safe for the runs that are
// under way, by machine, from histories of real runs that older code left (specimens).
//
// It knows nothing of the workflows that it proves. It takes histories, the function that
// registers the workflows, and, for the gates, the folder of their source:
//
//	code, err := proof.New(proof.Code{Register: workflows.Register, DisableRegistrationAliasing: true, Repeat: 20})
//	reading, err := proof.Read("../workflows")            // every workflow.GetVersion in the source
//	allowed, err := proof.LoadAllowed("allowed.json")     // reviewed differences, with a reason each
//	report, err := code.Prove(ctx, specimens, proof.Plan{
//		Reading: reading,
//		Allowed: allowed,
//		Commits: proof.Git("..", "workflows"),            // does the commit of a specimen know the gate?
//		Mutate:  true,
//	})
//	report.Print(os.Stdout)                               // one row a gate × specimen, the score, the last line
//	err = report.Err()                                    // nil only when everything holds
//
// # What is proved of a gate
//
// A row holds for one gate and one specimen: it is older (no marker of the gate, nothing of
// what the branch schedules, and its commit does not know the change ID); it is an
// instrument (the gate is consulted and answers with the old version, and the history has
// an event that the old code left there); it is green with the gate; it strands without it.
// A gate needs one such row. No copy of the code is made and no source is mutated: the gate
// is taken away by an interceptor that answers in its place.
//
// # What is compared
//
// The SDK's own matching looks at little: the kind of a command, an id, the last part of a
// name. So every call that makes a command is recorded as the SDK receives it and compared
// with the event that it left: arguments, durations, options, children, markers of
// versions, results, and what a run continues as.
//
// # What cannot be seen
//
// A history does not record the input of a local activity, nor how a side effect came by
// its value, nor local options (WaitForCancellation, eager execution), nor which handlers
// for queries, signals and updates there are. The value of a side effect is replayed and
// never computed anew. Headers are written below every interceptor. A data converter that
// encodes the same value differently each time shows as a difference everywhere. What an
// update returns, and the inside of a Nexus operation beyond its names and input, is not
// compared. A run's last task is not replayed while it is only started, so nothing after it
// counts; and of such an open run the SDK does not match what the last completed task gave:
// the strict comparison alone does. So an open specimen should hold one task more than what
// it is for.
package proof
