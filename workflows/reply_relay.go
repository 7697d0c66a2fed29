package workflows

import (
	"go.temporal.io/sdk/workflow"

	"agentsmith/activities"
	"agentsmith/rules"
)

// answerDoor says what a line did that opened, closed or listed relays, beside the turns
// (R1, R6). The session is looked at on its own box.
func (b *brain) answerDoor(ctx workflow.Context, t Trigger) {
	if t.Door == nil {
		workflow.GetLogger(ctx).Error("a door without what was decided was left alone", "line", t.Line.TS)
		return
	}
	settings := b.in.Settings
	if box := t.Door.Act.Session.Box; box != "" {
		settings.Box = box
	}
	in := activities.PostInput{
		Turn: b.turnOf(t), Say: activities.SayRelay, State: rules.Answered,
	}
	var r *activities.Relay
	var out activities.DoorAnswer
	err := workflow.ExecuteActivity(killOptions(ctx, settings, "door"), r.AnswerDoor, *t.Door).Get(ctx, &out)
	switch {
	case err != nil:
		workflow.GetLogger(ctx).Error("a door could not be answered", "error", err)
		in.Say, in.State, in.Reason = activities.SayFailure, rules.Failed, rules.ReasonInternal
	case out.Refused:
		in.State, in.Reason = rules.Declined, rules.ReasonRefused
	}
	in.Text = out.Text
	b.sendPost(ctx, "door", in)
}
