package rules

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// EventForce is the type of the metadata of a seat's post about an ask (A5).
const EventForce = "agent_force_work"

// The times of an ask. All are Slack's: an ask's age is told from its ts.
const (
	// OwnerWindow is how long after the ask the picked seat may take it before another
	// covers for it (A6).
	OwnerWindow = 30 * time.Second
	// CoverWait is how long a seat that came to an ask late leaves it to the picked one all
	// the same: both may have been down.
	CoverWait = PickWindow
	// WorkingEvery is how often a driver says that it still works, StaleAfter how long what
	// it said counts (A5).
	WorkingEvery = time.Minute
	StaleAfter   = 180 * time.Second
	// SettleFor lies between a claim that nobody picked and the look at who was first (A6).
	SettleFor = time.Second
)

// ForceState is how far a seat is with an ask.
type ForceState string

// The states of an ask's work.
const (
	ForceWorking ForceState = "working" // it drives, and its agent runs
	ForceFinal   ForceState = "final"   // its answer stands in the thread
	ForceFailed  ForceState = "failed"  // it drove and has no answer, and has said so
)

// ForceMark is what a seat says of an ask in the metadata of its posts (A5). At moves on
// while it works.
type ForceMark struct {
	AskTS string     `json:"ask_ts"`
	State ForceState `json:"state"`
	// Cover: it drives in another seat's stead (A6).
	Cover bool   `json:"cover,omitempty"`
	At    string `json:"at,omitempty"`
	// PostID names the answer that the mark stands on.
	PostID string `json:"post_id,omitempty"`
}

// ReadForce reads the mark of a seat's post. Who wrote it is the caller's to check: any app
// can forge one.
func ReadForce(line Line) (ForceMark, bool) {
	meta, ok := ParseMetadata(line.Raw)
	if !ok || meta.EventType != EventForce {
		return ForceMark{}, false
	}
	var m ForceMark
	if json.Unmarshal(meta.Payload, &m) != nil || !ValidTS(m.AskTS) {
		return ForceMark{}, false
	}
	switch m.State {
	case ForceWorking, ForceFinal, ForceFailed:
		return m, true
	}
	return ForceMark{}, false
}

// ForceClaim is a seat's claim to drive an ask, as the thread shows it.
type ForceClaim struct {
	Seat  string `json:"seat"`
	TS    string `json:"ts"`
	Cover bool   `json:"cover,omitempty"`
	// At is when it last said that it works.
	At time.Time `json:"at"`
}

// AskView is what a thread shows of one ask.
type AskView struct {
	// Picked is the seat that the dispatcher's line names, "" where none counts (A4).
	Picked string `json:"picked,omitempty"`
	// Claims stand in the thread, the oldest first.
	Claims []ForceClaim `json:"claims,omitempty"`
	// Final is the seat whose answer stands there, and FinalPost that answer's post id.
	Final     string `json:"final,omitempty"`
	FinalPost string `json:"final_post,omitempty"`
	// Failed is a seat that drove and has no answer.
	Failed string `json:"failed,omitempty"`
}

// ViewAsk reads a thread for one ask. Only posts of the seats and of the dispatcher count,
// whatever others' metadata says (A4).
func ViewAsk(lines []Line, ask Line, dispatcher string, seats []PickSeat) AskView {
	var v AskView
	seatOf := func(user string) string {
		for _, s := range seats {
			if user != "" && user != dispatcher && s.BotUser == user {
				return s.Name
			}
		}
		return ""
	}
	if d, ok := FirstDispatch(lines, ask, dispatcher, seats); ok {
		v.Picked = seatOf(d.Driver)
	}
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b Line) int { return CompareTS(a.TS, b.TS) })
	for _, l := range lines {
		m, ok := ReadForce(l)
		seat := seatOf(l.User)
		if !ok || seat == "" || m.AskTS != ask.TS || l.Root != ask.Thread().Root || CompareTS(l.TS, ask.TS) <= 0 {
			continue
		}
		switch m.State {
		case ForceFinal:
			if v.Final == "" {
				v.Final, v.FinalPost = seat, m.PostID
			}
		case ForceFailed:
			v.Failed = seat
		case ForceWorking:
			at := TSTime(l.TS)
			if edited := TSTime(l.EditedTS); edited.Compare(at) > 0 {
				at = edited
			}
			v.Claims = append(v.Claims, ForceClaim{Seat: seat, TS: l.TS, Cover: m.Cover, At: at})
		}
	}
	return v
}

// ThreadDriver is the seat that drives a thread: the one of the oldest mark of a driver in
// it, else, for who may not read marks, the one that the dispatcher's oldest line from before
// the ask names; "" for none (A8). What it says of the ask itself is FirstDispatch's.
func ThreadDriver(lines []Line, askTS, dispatcher string, seats []PickSeat) string {
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b Line) int { return CompareTS(a.TS, b.TS) })
	dispatched := ""
	for _, l := range lines {
		_, marked := ReadForce(l)
		for _, s := range seats {
			switch {
			case s.BotUser == "" || s.BotUser == dispatcher:
			case marked && l.User == s.BotUser:
				return s.Name
			case dispatched == "" && dispatcher != "" && l.User == dispatcher && CompareTS(l.TS, askTS) < 0 && strings.HasPrefix(l.Text, "<@"+s.BotUser+"> drives"):
				dispatched = s.Name
			}
		}
	}
	return dispatched
}

// ForceAct is what a seat does about an ask.
type ForceAct string

// What a seat can do.
const (
	// ForceWait: somebody else's turn; look again at Until, or when something is said.
	ForceWait ForceAct = "wait"
	// ForceDrive: its own claim stands, and it drives.
	ForceDrive ForceAct = "drive"
	// ForceTake: it claims the ask. Settle: it then looks whether it was first (A6).
	ForceTake ForceAct = "take"
	// ForceAdd: the driver's answer stands; it takes its one improving turn (A5).
	ForceAdd ForceAct = "add"
	// ForceLeave: there is nothing for it to add to, or everything is done.
	ForceLeave ForceAct = "leave"
)

// AskFacts are what a seat decides by.
type AskFacts struct {
	Ask  string `json:"ask"` // its ts
	Self string `json:"self"`
	View AskView
	// Own is the seat's own Pick; it counts once the dispatcher's time is over (A4).
	Own string
	// Since is when this seat began with the ask, Now is now.
	Since, Now time.Time
}

// AskStep is what a seat does next about an ask.
type AskStep struct {
	Act    ForceAct  `json:"act"`
	Settle bool      `json:"settle,omitempty"`
	Cover  bool      `json:"cover,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}

// DecideAsk is what a seat does about an ask as the thread shows it (A4-A6). It is pure, and
// each seat runs it by itself.
func DecideAsk(f AskFacts) AskStep {
	v := f.View
	switch {
	case v.Final == f.Self && f.Self != "":
		return AskStep{Act: ForceLeave}
	case v.Final != "":
		return AskStep{Act: ForceAdd}
	}
	var first *ForceClaim
	covered, own := false, false
	for i, c := range v.Claims {
		covered = covered || c.Cover
		own = own || c.Seat == f.Self
		if f.Now.Sub(c.At) <= StaleAfter && (first == nil || CompareTS(c.TS, first.TS) < 0) {
			first = &v.Claims[i]
		}
	}
	switch {
	case first != nil && first.Seat == f.Self:
		return AskStep{Act: ForceDrive, Cover: first.Cover}
	case first != nil:
		return AskStep{Act: ForceWait, Until: first.At.Add(StaleAfter + time.Second)}
	case v.Failed != "":
		return AskStep{Act: ForceLeave}
	case len(v.Claims) > 0 && (covered || own):
		return AskStep{Act: ForceLeave} // it was covered once, or is this seat's own failure
	case len(v.Claims) > 0:
		return AskStep{Act: ForceTake, Settle: true, Cover: true}
	}
	return takeUp(f)
}

// takeUp decides about an ask that nobody has claimed.
func takeUp(f AskFacts) AskStep {
	asked := TSTime(f.Ask)
	picked := f.View.Picked
	if picked == "" {
		if end := asked.Add(PickWindow); f.Now.Compare(end) <= 0 {
			return AskStep{Act: ForceWait, Until: end}
		}
		picked = f.Own
	}
	over := asked.Add(OwnerWindow)
	if late := f.Since.Add(CoverWait); late.Compare(over) > 0 {
		over = late
	}
	switch {
	case picked == f.Self || picked == "":
		return AskStep{Act: ForceTake, Settle: f.View.Picked == "" || f.Now.Compare(over) > 0}
	case f.Now.Compare(over) <= 0:
		return AskStep{Act: ForceWait, Until: over}
	}
	return AskStep{Act: ForceTake, Settle: true, Cover: true}
}

// OldAsk tells who asked what an /agents command once began: its root was posted by a seat,
// and is its asker's (A8). No such line is a hand-off.
func OldAsk(line Line) (asker string, ok bool) {
	meta, found := ParseMetadata(line.Raw)
	if !found || meta.EventType != EventOldAsk {
		return "", false
	}
	var m struct {
		Asker string `json:"asker"`
	}
	_ = json.Unmarshal(meta.Payload, &m)
	return m.Asker, true
}

// EventOldAsk is the type of the metadata of what /agents posted before it was retired (A8).
const EventOldAsk = "agents_ask"

// The texts of an ask's posts.
const (
	WorkingText     = "Working on it."
	NotAnsweredText = "I have not answered this."
)
