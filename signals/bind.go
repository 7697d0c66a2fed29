package signals

import (
	"context"

	"agentsmith/rules"
	"agentsmith/workflows"
)

// Bind has the brain of a thread bind an operator for the line that asked for work, and
// starts the brain where none runs. asked is what the line was found to ask for; who calls
// Bind answers for the spawn (X1). eventTS names the request: one that is repeated under
// the same name binds once.
func (w *Worker) Bind(ctx context.Context, seat string, line rules.Line, asked rules.WorkDisposition, eventTS string) error {
	t := line.Thread()
	trigger := workflows.Trigger{
		Kind: workflows.KindBind, Author: rules.Person, Line: line, EventTS: eventTS, MaySpawn: true, Asked: &asked,
	}
	trigger.Line.Files = nil // the bind does not need them
	return w.wakeBrain(ctx, seat, t, Lighten(trigger))
}
