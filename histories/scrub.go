package histories

import (
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Scrubbed stands where the identity of a machine and a process stood.
const Scrubbed = "scrubbed"

// Scrub takes out of a history who ran it: nothing of that is replayed.
func Scrub(h *historypb.History) {
	scrub(h.ProtoReflect())
}

func scrub(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() == protoreflect.StringKind && f.Cardinality() != protoreflect.Repeated && f.Name() == "identity":
			m.Set(f, protoreflect.ValueOfString(Scrubbed))
		case f.IsMap():
			if f.MapValue().Kind() == protoreflect.MessageKind {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { scrub(v.Message()); return true })
			}
		case f.IsList():
			if f.Kind() == protoreflect.MessageKind {
				for i := range v.List().Len() {
					scrub(v.List().Get(i).Message())
				}
			}
		case f.Kind() == protoreflect.MessageKind:
			scrub(v.Message())
		}
		return true
	})
}

// ErrNoTask is returned for an open run in which no workflow task has started.
var ErrNoTask = errors.New("no workflow task has started in this history")

// CutOpen ends the history of an open run where a replay can tell red from green: at the
// last workflow task that has started. A cut behind a completed task is a false red.
// A closed run is returned whole.
func CutOpen(h *historypb.History) (*historypb.History, error) {
	events := h.GetEvents()
	if len(events) > 0 && closes(events[len(events)-1].GetEventType()) {
		return h, nil
	}
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED {
			cut := proto.Clone(h).(*historypb.History)
			cut.Events = cut.Events[:i+1]
			return cut, nil
		}
	}
	return nil, ErrNoTask
}

func closes(t enumspb.EventType) bool {
	switch t {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return true
	}
	return false
}
