package rules

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var forceSeats = []PickSeat{{Name: "smith", BotUser: "USMITH"}, {Name: "trinity", BotUser: "UTRIN"}, {Name: "neo", BotUser: "UNEO"}}

const forceAsk = "1700000000.000100"

func forceAskLine() Line {
	return Line{LineKey: LineKey{Team: "T", Channel: "C", TS: forceAsk}, Root: forceAsk, User: "UANA"}
}

func askAt(d time.Duration) time.Time { return TSTime(forceAsk).Add(d) }

func forceLine(user string, after time.Duration, event string, payload any) Line {
	raw, _ := json.Marshal(map[string]any{"metadata": map[string]any{"event_type": event, "event_payload": payload}})
	return Line{LineKey: LineKey{Team: "T", Channel: "C", TS: TimeTS(askAt(after))}, Root: forceAsk, User: user, Raw: raw}
}

func working(user string, after time.Duration) Line {
	return forceLine(user, after, EventForce, ForceMark{AskTS: forceAsk, State: ForceWorking})
}

func TestViewAsk_OnlySeatsAndTheDispatcherCount(t *testing.T) {
	pick := func(user string, after time.Duration) Line {
		return forceLine(user, after, PickEvent, DispatchLine{AskTS: forceAsk, Asker: "UANA", Driver: "UTRIN"})
	}
	final := forceLine("USMITH", time.Minute, EventForce, ForceMark{AskTS: forceAsk, State: ForceFinal, PostID: "p"})
	elsewhere := working("USMITH", time.Second)
	elsewhere.Root = "1699999999.000100"
	for name, c := range map[string]struct {
		lines []Line
		want  AskView
	}{
		"a pick":                         {[]Line{pick("UFORCE", 7900*time.Millisecond)}, AskView{Picked: "trinity"}},
		"a pick by a person":             {[]Line{pick("UANA", time.Second)}, AskView{}},
		"a pick by a seat":               {[]Line{pick("USMITH", time.Second)}, AskView{}},
		"a pick that is late":            {[]Line{pick("UFORCE", 8100*time.Millisecond)}, AskView{}},
		"a claim by a person":            {[]Line{working("UANA", time.Second)}, AskView{}},
		"a claim by the dispatcher":      {[]Line{working("UFORCE", time.Second)}, AskView{}},
		"a claim of another ask":         {[]Line{forceLine("USMITH", time.Second, EventForce, ForceMark{AskTS: "1699999999.000100", State: ForceWorking})}, AskView{}},
		"a claim in another thread":      {[]Line{elsewhere}, AskView{}},
		"a claim older than the ask":     {[]Line{working("USMITH", -time.Second)}, AskView{}},
		"a state that nobody knows":      {[]Line{forceLine("USMITH", time.Second, EventForce, ForceMark{AskTS: forceAsk, State: "x"})}, AskView{}},
		"an answer":                      {[]Line{final}, AskView{Final: "smith", FinalPost: "p"}},
		"a driver that failed":           {[]Line{forceLine("UNEO", time.Second, EventForce, ForceMark{AskTS: forceAsk, State: ForceFailed})}, AskView{Failed: "neo"}},
		"two claims, read the other way": {[]Line{working("UTRIN", 2*time.Second), working("USMITH", time.Second)}, AskView{Claims: []ForceClaim{{Seat: "smith", TS: TimeTS(askAt(time.Second)), At: askAt(time.Second)}, {Seat: "trinity", TS: TimeTS(askAt(2 * time.Second)), At: askAt(2 * time.Second)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, ViewAsk(c.lines, forceAskLine(), "UFORCE", forceSeats))
		})
	}
	again := working("USMITH", time.Second)
	again.EditedTS = TimeTS(askAt(time.Minute))
	require.Equal(t, askAt(time.Minute), ViewAsk([]Line{again}, forceAskLine(), "UFORCE", forceSeats).Claims[0].At, "a claim is renewed by its edit")
}

func TestDecideAsk(t *testing.T) {
	claim := func(seat string, ts, at time.Duration, cover bool) ForceClaim {
		return ForceClaim{Seat: seat, TS: TimeTS(askAt(ts)), At: askAt(at), Cover: cover}
	}
	stale := StaleAfter + time.Minute
	for name, c := range map[string]struct {
		view  AskView
		own   string
		now   time.Duration
		since time.Duration
		want  AskStep
	}{
		"the pick may come":                     {now: time.Second, own: "smith", want: AskStep{Act: ForceWait, Until: askAt(PickWindow)}},
		"picked by the dispatcher":              {view: AskView{Picked: "smith"}, now: time.Second, want: AskStep{Act: ForceTake}},
		"picked, but late":                      {view: AskView{Picked: "smith"}, now: time.Minute, want: AskStep{Act: ForceTake, Settle: true}},
		"picked by itself":                      {own: "smith", now: 9 * time.Second, want: AskStep{Act: ForceTake, Settle: true}},
		"another is picked":                     {view: AskView{Picked: "trinity"}, own: "smith", now: time.Second, want: AskStep{Act: ForceWait, Until: askAt(OwnerWindow)}},
		"another is picked by itself":           {own: "trinity", now: 9 * time.Second, want: AskStep{Act: ForceWait, Until: askAt(OwnerWindow)}},
		"another does not take it":              {view: AskView{Picked: "trinity"}, now: 31 * time.Second, want: AskStep{Act: ForceTake, Settle: true, Cover: true}},
		"both were down":                        {view: AskView{Picked: "trinity"}, now: time.Hour, since: time.Hour, want: AskStep{Act: ForceWait, Until: askAt(time.Hour + CoverWait)}},
		"both were down, and it is still away":  {view: AskView{Picked: "trinity"}, now: time.Hour + 9*time.Second, since: time.Hour, want: AskStep{Act: ForceTake, Settle: true, Cover: true}},
		"another works":                         {view: AskView{Claims: []ForceClaim{claim("trinity", time.Second, time.Minute, false)}}, now: 2 * time.Minute, want: AskStep{Act: ForceWait, Until: askAt(time.Minute + StaleAfter + time.Second)}},
		"it was first":                          {view: AskView{Claims: []ForceClaim{claim("smith", time.Second, time.Second, false), claim("trinity", 2*time.Second, 2*time.Second, false)}}, now: 3 * time.Second, want: AskStep{Act: ForceDrive}},
		"it was second":                         {view: AskView{Claims: []ForceClaim{claim("smith", 2*time.Second, 2*time.Second, false), claim("trinity", time.Second, time.Second, false)}}, now: 3 * time.Second, want: AskStep{Act: ForceWait, Until: askAt(time.Second + StaleAfter + time.Second)}},
		"another works no more":                 {view: AskView{Claims: []ForceClaim{claim("trinity", time.Second, time.Second, false)}}, now: stale, want: AskStep{Act: ForceTake, Settle: true, Cover: true}},
		"another covered, and works no more":    {view: AskView{Claims: []ForceClaim{claim("trinity", time.Second, time.Second, false), claim("neo", time.Second, time.Second, true)}}, now: stale, want: AskStep{Act: ForceLeave}},
		"its own claim of long ago":             {view: AskView{Claims: []ForceClaim{claim("smith", time.Second, time.Second, false)}}, now: stale, want: AskStep{Act: ForceLeave}},
		"another failed and said so":            {view: AskView{Failed: "trinity"}, now: stale, want: AskStep{Act: ForceLeave}},
		"another failed, and a third covers it": {view: AskView{Failed: "trinity", Claims: []ForceClaim{claim("neo", time.Second, time.Second, true)}}, now: time.Minute, want: AskStep{Act: ForceWait, Until: askAt(time.Second + StaleAfter + time.Second)}},
		"an answer":                             {view: AskView{Final: "trinity"}, now: time.Minute, want: AskStep{Act: ForceAdd}},
		"its own answer":                        {view: AskView{Final: "smith"}, now: time.Minute, want: AskStep{Act: ForceLeave}},
		"nobody else is there":                  {now: 9 * time.Second, want: AskStep{Act: ForceTake, Settle: true}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, DecideAsk(AskFacts{Ask: forceAsk, Self: "smith", View: c.view, Own: c.own, Since: askAt(c.since), Now: askAt(c.now)}))
		})
	}
}

// Whatever a thread shows, at most one seat drives an ask, and where nobody has answered
// somebody does or will look again (A6).
func TestDecideAsk_OneDriverAndNeverSilence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Duration(rapid.IntRange(0, 600).Draw(t, "now")) * time.Second
		var v AskView
		names := []string{"smith", "trinity", "neo"}
		v.Picked = rapid.SampledFrom(append([]string{""}, names...)).Draw(t, "picked")
		own := rapid.SampledFrom(names).Draw(t, "own")
		seen := map[string]bool{}
		for i := range rapid.IntRange(0, 3).Draw(t, "claims") {
			ts := time.Duration(rapid.IntRange(1, 600).Draw(t, fmt.Sprint("ts", i)))*time.Second + time.Duration(i)*time.Microsecond
			seat := rapid.SampledFrom(names).Draw(t, fmt.Sprint("seat", i))
			if ts > now || seen[seat] {
				continue
			}
			seen[seat] = true
			v.Claims = append(v.Claims, ForceClaim{Seat: seat, TS: TimeTS(askAt(ts)), At: askAt(ts), Cover: rapid.Bool().Draw(t, fmt.Sprint("cover", i))})
		}
		drive, act, stale := 0, 0, 0
		for _, c := range v.Claims {
			if now > c.At.Sub(askAt(0))+StaleAfter {
				stale++
			}
		}
		for _, self := range names {
			s := DecideAsk(AskFacts{Ask: forceAsk, Self: self, View: v, Own: own, Since: askAt(0), Now: askAt(now)})
			if s.Act == ForceDrive {
				drive++
			}
			if s.Act == ForceDrive || s.Act == ForceTake || s.Act == ForceWait {
				act++
			}
			if s.Act == ForceWait && s.Until.Before(askAt(now)) {
				t.Fatalf("%s waits for what is past", self)
			}
		}
		if drive > 1 {
			t.Fatalf("%d drive", drive)
		}
		if act == 0 && stale == 0 {
			t.Fatal("nobody does anything")
		}
	})
}

func TestThreadDriver_IsTheFirst(t *testing.T) {
	lines := []Line{working("UTRIN", 2*time.Second), working("UANA", time.Millisecond), working("USMITH", time.Second)}
	later := TimeTS(askAt(time.Hour))
	require.Equal(t, "smith", ThreadDriver(lines, later, "UFORCE", forceSeats))
	require.Empty(t, ThreadDriver(lines[1:2], later, "UFORCE", forceSeats))

	said := func(user string, after time.Duration, text string) Line {
		return Line{LineKey: LineKey{Channel: "C", TS: TimeTS(askAt(after))}, Root: forceAsk, User: user, Text: text}
	}
	dispatched := []Line{
		said("UANA", 0, "<@UNEO> drives"), said("UFORCE", 2*time.Second, "<@USMITH> drives"), said("UFORCE", time.Second, "<@UTRIN> drives · <@USMITH> adds after"),
	}
	require.Equal(t, "trinity", ThreadDriver(dispatched, later, "UFORCE", forceSeats), "where the marks may not be read")
	require.Empty(t, ThreadDriver(dispatched, forceAsk, "UFORCE", forceSeats), "a line of the ask itself is its pick, or nothing")
	require.Empty(t, ThreadDriver(dispatched, later, "", forceSeats))
	require.Equal(t, "smith", ThreadDriver(append(dispatched, working("USMITH", time.Minute)), later, "UFORCE", forceSeats), "who drove, drives: a seat may have covered")
}

func TestOldAsk_IsItsAskers(t *testing.T) {
	asker, ok := OldAsk(forceLine("USMITH", 0, EventOldAsk, map[string]string{"asker": "UANA"}))
	require.True(t, ok)
	require.Equal(t, "UANA", asker)
	_, ok = OldAsk(working("USMITH", 0))
	require.False(t, ok)
}

func FuzzReadForce(f *testing.F) {
	f.Add(`{"metadata":{"event_type":"agent_force_work","event_payload":{"ask_ts":"1700000000.000100","state":"final"}}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		if m, ok := ReadForce(Line{Raw: []byte(raw)}); ok && !ValidTS(m.AskTS) {
			t.Fatal("an ask without a ts")
		}
	})
}
