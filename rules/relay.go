package rules

import (
	"slices"
	"strings"
)

// Open tells whether the relay exists and was not closed.
func (r Relay) Open() bool { return r.ID != "" && r.ClosedTS == "" }

// Covers tells whether the relay is in force for a line of that ts: one typed after it was
// opened, and before it was closed.
func (r Relay) Covers(ts string) bool {
	return r.ID != "" && CompareTS(ts, r.OpenedTS) > 0 && (r.ClosedTS == "" || CompareTS(ts, r.ClosedTS) < 0)
}

// Plan puts the rows of a conversation into buckets, each in exactly one, in ts order
// whatever order they came in (R2). It is the only classifier: the dispatcher plans what
// nobody has decided, the tick plans the batch again before it types. It cuts at the first
// stop word or door of the relay's person. Whatever is uncertain is Smith's (R7): no relay,
// a row outside the relay's time, a seat that does not know itself.
func Plan(rows []RelayRow, r Relay, self SeatIdentity) RelayPlan {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(x, y RelayRow) int { return CompareTS(x.Line.TS, y.Line.TS) })
	rows = slices.CompactFunc(rows, func(x, y RelayRow) bool { return x.Line.LineKey == y.Line.LineKey })
	var p RelayPlan
	for i, row := range rows {
		if !ours(row, r, self) {
			p.ForSmith = append(p.ForSmith, row)
			continue
		}
		door, isDoor := doorOf(row, self)
		switch {
		case isDoor && door.Kind == DoorStop:
			p.Stop = append(p.Stop, row)
		case isDoor:
			p.ForSmith = append(p.ForSmith, row)
		case Carries(row.Line, self):
			p.Forward = append(p.Forward, row)
			continue
		default:
			p.ForSmith = append(p.ForSmith, row)
			continue
		}
		p.AfterStop = append(p.AfterStop, rows[i+1:]...)
		return p
	}
	return p
}

// ours tells whether a relay may carry a row at all: its person's, while it is in force.
func ours(row RelayRow, r Relay, self SeatIdentity) bool {
	return self.BotUser != "" && r.Person != "" && row.Author == Person && row.Line.User == r.Person && r.Covers(row.Line.TS)
}

// doorOf reads a row as a door. An edit opens, closes and lists nothing.
func doorOf(row RelayRow, self SeatIdentity) (Door, bool) {
	if row.Author != Person || row.Line.EditedTS != "" || self.BotUser == "" {
		return Door{}, false
	}
	return ReadDoor(row.Line.Text, self.BotUser)
}

// Carries tells whether a line is one for a terminal (R2): it has a text that can be typed,
// mentions or names no seat first, and is no door.
func Carries(line Line, self SeatIdentity) bool {
	if self.BotUser == "" || line.Mentions(self.BotUser) || namesFirst(line.Text, self.Name) {
		return false
	}
	if _, door := ReadDoor(line.Text, self.BotUser); door {
		return false
	}
	return plainForTerminal(Unescape(line.Text)) != ""
}

// namesFirst tells whether a line begins with the seat's name as a word of its own.
func namesFirst(text, name string) bool {
	if name == "" {
		return false
	}
	words := strings.FieldsFunc(Unescape(text), func(r rune) bool { return blank(r) || strings.ContainsRune(",:;.!?-–—", r) })
	return len(words) > 0 && strings.EqualFold(strings.TrimPrefix(words[0], "@"), name)
}

// DecideRelay decides the rows of a conversation that nobody has decided yet, in ts order:
// it plans, carries out the cut, and plans what stands behind it under the relay that is in
// force then, until there is no cut. A row without an act is the brain's, decided as ever.
// Forward is the one bucket that stands the brain down (R3), ForSmith has no act, a stop
// closes, a door opens, lists or is refused, AfterStop is planned again.
func DecideRelay(f ConversationFacts) []RelayAct {
	var acts []RelayAct
	rows, relay := f.Rows, f.Relay
	for {
		p := Plan(rows, relay, f.Self)
		forwards, smiths := p.Forward, p.ForSmith
		for len(forwards)+len(smiths) > 0 {
			if len(smiths) == 0 || len(forwards) > 0 && CompareTS(forwards[0].Line.TS, smiths[0].Line.TS) < 0 {
				acts = append(acts, RelayAct{Key: forwards[0].Line.LineKey, What: RelayForward, Relay: relay})
				forwards = forwards[1:]
				continue
			}
			row := smiths[0]
			smiths = smiths[1:]
			if act, ok := f.open(row, relay); ok {
				acts = append(acts, act)
				if act.What == RelayOpen {
					relay = act.Relay
					// What was planned behind it was planned under the relay before.
					p.AfterStop = slices.Concat(smiths, p.AfterStop)
					smiths = nil
				}
			}
		}
		for _, stop := range p.Stop {
			relay.ClosedTS = stop.Line.TS
			acts = append(acts, RelayAct{Key: stop.Line.LineKey, What: RelayClose, Relay: relay, Door: Door{Kind: DoorStop}})
			relay = Relay{}
		}
		if len(p.AfterStop) == 0 {
			return acts
		}
		rows = p.AfterStop
	}
}

// open carries out a door that opens or lists (R1), false where the row is none.
func (f ConversationFacts) open(row RelayRow, now Relay) (RelayAct, bool) {
	door, ok := doorOf(row, f.Self)
	act := RelayAct{Key: row.Line.LineKey, What: RelayRefuse, Door: door}
	switch {
	case !ok || door.Kind == DoorStop || !row.Line.InDM():
		return RelayAct{}, false
	case f.StopTS != "" && CompareTS(row.Line.TS, f.StopTS) < 0:
		return RelayAct{}, false // it was stopped before it was seen
	case now.OpenedTS != "" && CompareTS(row.Line.TS, now.OpenedTS) <= 0:
		return RelayAct{}, false // a later door was seen first
	case !slices.Contains(f.Owners, row.Line.User):
		act.Why = RefuseNotOwner // X1: doubt is no
		return act, true
	case door.Kind == DoorSessions:
		act.What = RelayList
		return act, true
	}
	session, found := f.find(door)
	act.Session = session
	switch {
	case !found:
		act.Why = RefuseUnknownSession
	case session.Ended:
		act.Why = RefuseEnded
	default:
		act.What = RelayOpen
		act.Relay = Relay{
			ID: row.Line.Channel + "/" + row.Line.TS, Person: row.Line.User, Session: session.ID,
			Number: session.Number, OpenedTS: row.Line.TS,
		}
		if now.Open() {
			before := now
			before.ClosedTS = row.Line.TS
			act.Switched = &before
		}
	}
	return act, true
}

// find looks a session up by its number or its slug; of two with one slug the newest.
func (f ConversationFacts) find(d Door) (found SessionFact, ok bool) {
	for _, s := range f.Sessions {
		if d.Number != 0 && s.Number == d.Number || d.Number == 0 && s.Slug != "" && s.Slug == d.Slug && s.Number > found.Number {
			found, ok = s, true
		}
	}
	return found, ok
}
