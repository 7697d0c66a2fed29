package e2e_test

import (
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
)

func TestScratch(t *testing.T) {
	s := start(t, withOwner())
	r := relays(t, s, "scratch")
	r.inThread(r.say("ana", "work on 1"), "Your lines here now go to")
	time.Sleep(5 * time.Second)
	from := time.Now()
	ts := r.say("ana", "now [[say word of it]]")
	r.inThread(ts, "word of it")
	time.Sleep(3 * time.Second)
	for _, id := range []string{"smith-relay-tick-" + r.id, r.brain("smith", ts), "smith-operator-task-scratch"} {
		t.Log("==", id)
		iter := s.temporalClient.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for iter.HasNext() {
			e, _ := iter.Next()
			if e.GetEventTime().AsTime().Before(from) {
				continue
			}
			x := ""
			if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
				x = a.GetActivityType().GetName()
			}
			if a := e.GetWorkflowExecutionSignaledEventAttributes(); a != nil {
				p := a.GetInput().GetPayloads()
				if len(p) > 0 {
					x = string(p[0].GetData())
				}
			}
			t.Logf("%6d ms %s %.300s", e.GetEventTime().AsTime().Sub(from).Milliseconds(), e.GetEventType(), x)
		}
	}
	r.carried(ts, "word of it")
	r.inThread(r.say("ana", "stop"), "is closed")
}
