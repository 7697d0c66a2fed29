package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/outbox"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// wire is a desk whose operator a relay leads to.
type wire struct {
	*desk
	part  *activities.Relay
	relay store.Relay
	// handed are the lines that brains were given back.
	handed []string
}

// relayLedger is the real store between points.
type relayLedger struct{ *operatorLedger }

func (l relayLedger) BeginTyping(ctx context.Context, x store.SessionLine) (bool, error) {
	return ledgered(l.operatorLedger, "BeginTyping", func() (bool, error) { return l.Store.BeginTyping(ctx, x) })
}

func (l relayLedger) EndTyping(ctx context.Context, x store.SessionLine, to store.LineState) error {
	return around0(l.p, "EndTyping", func() error { return l.Store.EndTyping(ctx, x, to) })
}

func (l relayLedger) HandBack(ctx context.Context, x store.SessionLine, route json.RawMessage) (bool, error) {
	return ledgered(l.operatorLedger, "HandBack", func() (bool, error) { return l.Store.HandBack(ctx, x, route) })
}

func (l relayLedger) CloseRelay(ctx context.Context, id, ts string) (bool, error) {
	return ledgered(l.operatorLedger, "CloseRelay", func() (bool, error) { return l.Store.CloseRelay(ctx, id, ts) })
}

func (l relayLedger) MarkDispatched(ctx context.Context, seat string, key rules.LineKey) error {
	return around0(l.p, "MarkDispatched", func() error { return l.Store.MarkDispatched(ctx, seat, key) })
}

// givenBack is a door to the brains that keeps what is handed back.
type givenBack struct {
	*brains
	w *wire
}

func (g givenBack) HandBack(_ context.Context, _ string, line rules.Line, _ bool) error {
	return around0(g.p, "BrainHandBack", func() error {
		g.w.handed = append(g.w.handed, line.Text)
		return nil
	})
}

func newWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{desk: newDesk(t)}
	w.part = &activities.Relay{
		Seats: w.poster.Seats, Ledger: relayLedger{w.ledger}, Terminal: w.term, Words: &crashingWords{w.words, w.points},
		Brains: givenBack{w.brains, w}, Living: w.living, Box: "main", Now: w.clock, Log: w.poster.Log,
	}
	door := w.room.says("", "work on 1")
	id := door.Channel + "/" + door.TS
	w.decide(store.ConversationDecision{Key: door.LineKey, Route: []byte(`{"kind":"relay_door"}`), Open: &store.Relay{
		Relay: rules.Relay{ID: id, Person: door.User, Session: w.op1.Session, Number: w.op1.Number, OpenedTS: door.TS}, Box: "main",
	}})
	_, err := w.store.EndLine(t.Context(), "smith", door.LineKey, rules.Answered, "")
	require.NoError(t, err)
	w.relay, err = w.store.RelayByID(t.Context(), id)
	require.NoError(t, err)
	return w
}

func (w *wire) living(context.Context) (ids []string, _ error) {
	for _, o := range w.launcher.live() {
		ids = append(ids, o.Session)
	}
	return ids, nil
}

func (w *wire) clock() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

func (w *wire) conversation() store.Conversation {
	return store.Conversation{Seat: "smith", Team: w.room.team, Channel: w.room.channel}
}

func (w *wire) decide(d store.ConversationDecision) {
	w.t.Helper()
	require.NoError(w.t, w.store.DecideConversation(w.t.Context(), w.conversation(), func(store.ConversationState) []store.ConversationDecision {
		return []store.ConversationDecision{d}
	}))
}

// types has the relay's person type lines, which the dispatcher gives to the session.
func (w *wire) types(texts ...string) (lines []rules.Line) {
	w.t.Helper()
	for _, text := range texts {
		l := w.room.says("", text)
		w.decide(store.ConversationDecision{Key: l.LineKey, Route: []byte(`{"kind":"line","stands_down":true,"may_spawn":true}`), Queue: &store.SessionLine{
			Session: w.op1.Session, Key: l.LineKey, Seat: "smith", From: l.User, Text: text, Relay: w.relay.ID,
		}})
		require.NoError(w.t, w.store.MarkDispatched(w.t.Context(), "smith", l.LineKey))
		lines = append(lines, l)
	}
	return lines
}

func (w *wire) tick() (activities.TickResult, error) {
	return perform(w.part, w.part.Tick, activities.TickInput{Seat: "smith", Team: w.room.team, Channel: w.room.channel, Box: "main"})
}

// ticks has it look as often as a workflow would, over a crash, and the brains post.
func (w *wire) ticks() (last activities.TickResult) {
	w.t.Helper()
	for range 6 {
		got, err := w.tick()
		if err != nil {
			require.ErrorContains(w.t, err, "crashed")
			continue
		}
		last = got
		w.speak()
		w.ahead.Add(int64(11 * time.Second)) // words are offered again
	}
	return last
}

func (w *wire) row(l rules.Line) store.Row {
	w.t.Helper()
	row, err := w.store.RowOf(w.t.Context(), "smith", l.LineKey)
	require.NoError(w.t, err)
	return row
}

func typedText(text string) string { return rules.TerminalLine("ana", text) }

// said counts the messages of the seat in a thread that hold text.
func (w *wire) saidTimes(root, text string) (n int) {
	for _, m := range w.box.Log(0).Messages {
		if m.App != "" && m.ThreadTS == root && strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

// R8, R10, R11: a line is typed once and its word comes back once into the thread of the
// person's latest line, wherever the worker dies.
func TestTick_TypesOnceAndBringsTheWordBackWhereverItCrashes(t *testing.T) {
	for _, point := range []string{
		"", "before BeginTyping", "after BeginTyping", "before Type", "after Type", "before EndTyping", "after EndTyping",
		"before AddDeposit", "after AddDeposit", "before Remove", "after Remove", "before OwnDeposit", "after OwnDeposit", "before Offer", "after Offer",
	} {
		t.Run("crash "+point, func(t *testing.T) {
			w := newWire(t)
			lines := w.types("one", "two")
			w.say(w.op1, outbox.Say, "a word")
			if point != "" {
				w.points.arm(point, 0)
			}
			got := w.ticks()
			if point != "" {
				require.True(t, w.points.fired(), "the point is on the way")
			}
			require.True(t, got.Open)
			require.False(t, got.Outstanding)
			require.Equal(t, []string{typedText("one"), typedText("two")}, w.term.typed[w.op1.Session])
			for _, l := range lines {
				require.Equal(t, rules.Relayed, w.row(l).State)
			}
			require.Equal(t, 1, w.saidTimes(lines[1].Root, "a word"), "in the thread of the latest line")
			require.Empty(t, w.handed)
		})
	}
}

// R8: a relayed word is no business of the operator's task, unless another one waits behind it.
func TestTick_ARelayedWordWakesNoTask(t *testing.T) {
	w := newWire(t)
	w.types("one")
	w.ticks()
	w.say(w.op1, outbox.Say, "a word")
	w.ticks()
	require.Empty(t, w.door.woken)
	w.say(w.op1, outbox.Say, "and")
	w.say(w.op1, outbox.Say, "another")
	w.ticks()
	require.Len(t, w.door.woken, 1)
}

// R9: what a session that died had not taken is the brain's, once; the relay is closed and
// the person told once, wherever the worker dies.
func TestTick_HandsBackWhatADeadSessionHadNotTaken(t *testing.T) {
	for _, point := range []string{
		"", "before HandBack", "after HandBack", "before BrainHandBack", "after BrainHandBack", "before MarkDispatched", "after MarkDispatched",
		"before OwnDeposit", "after OwnDeposit", "before CloseRelay", "after CloseRelay",
	} {
		t.Run("crash "+point, func(t *testing.T) {
			w := newWire(t)
			w.types("one")
			w.ticks()
			late := w.types("two")
			w.launcher.die(w.op1.Session)
			if point != "" {
				w.points.arm(point, 0)
			}
			got := w.ticks()
			if point != "" {
				require.True(t, w.points.fired(), "the point is on the way")
			}
			require.False(t, got.Open)
			require.False(t, got.Outstanding)
			require.Equal(t, []string{typedText("one")}, w.term.typed[w.op1.Session])
			row := w.row(late[0])
			require.Equal(t, rules.Owed, row.State)
			require.False(t, row.StandsDown(), "a turn may take it now")
			require.JSONEq(t, `{"kind":"line","may_spawn":true}`, string(row.Route))
			// Whoever hands it back tells the brain, or else the starter does.
			require.True(t, len(w.handed) > 0 && row.Dispatched || row.NeedsDispatch(), "handed %v, row %+v", w.handed, row)
			require.Equal(t, 1, w.saidTimes(late[0].Root, "has ended, and the relay to it"))
			r, err := w.store.RelayByID(t.Context(), w.relay.ID)
			require.NoError(t, err)
			require.False(t, r.Open())
		})
	}
}

// R6, R9: a line behind a stop that arrived late is handed back: the tick plans by the same
// rule as the dispatcher.
func TestTick_HandsBackWhatStandsBehindAStop(t *testing.T) {
	w := newWire(t)
	before := w.types("one")
	stop := w.room.says("", "stop")
	behind := w.types("thanks")
	w.decide(store.ConversationDecision{Key: stop.LineKey, Route: []byte(`{"kind":"relay_door"}`), CloseTS: stop.TS})
	w.ticks()
	require.Equal(t, []string{typedText("one")}, w.term.typed[w.op1.Session])
	require.Equal(t, rules.Relayed, w.row(before[0]).State)
	require.Equal(t, []string{"thanks"}, w.handed)
	require.False(t, w.row(behind[0]).StandsDown())
}

// A stop that the dispatcher has not decided yet cuts the batch all the same (R2).
func TestTick_CutsAtAStopThatNobodyHasDecided(t *testing.T) {
	w := newWire(t)
	w.room.says("", "stop")
	w.types("thanks")
	w.ticks()
	require.Empty(t, w.term.typed)
	require.Equal(t, []string{"thanks"}, w.handed)
}

// R10: of a line of which nobody knows whether it arrived, it is said once and the line is
// failed; no brain answers it.
func TestTick_SaysThatALineIsUnsure(t *testing.T) {
	for name, c := range map[string]func(w *wire) rules.Line{
		"the terminal does not know": func(w *wire) rules.Line {
			w.term.says[typedText("one")] = typing{terminal.Unsure, nil}
			return w.types("one")[0]
		},
		"the session died while it was typed": func(w *wire) rules.Line {
			l := w.types("one")[0]
			w.points.arm("before Type", 0)
			_, err := w.tick()
			require.ErrorContains(w.t, err, "crashed")
			w.launcher.die(w.op1.Session)
			return l
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			l := c(w)
			w.ticks()
			row := w.row(l)
			require.Equal(t, []any{rules.Failed, rules.ReasonUnsure}, []any{row.State, row.Reason})
			require.Equal(t, 1, w.saidTimes(l.Root, "I can't tell whether session #1 got this line"))
			require.Empty(t, w.handed)
			require.Empty(t, w.term.typed)
		})
	}
}

// R10: a line that a dialog holds waits, which is said once; then it is typed, in order.
func TestTick_HoldsALineAndThoseBehindIt(t *testing.T) {
	w := newWire(t)
	w.term.says[typedText("one")] = typing{terminal.NotTyped, &terminal.HeldError{Reason: "a dialog is open in the terminal"}}
	lines := w.types("one", "two")
	got := w.ticks()
	require.True(t, got.Outstanding)
	require.Empty(t, w.term.typed)
	require.Equal(t, rules.Owed, w.row(lines[0]).State, "it can still be handed back")
	require.Equal(t, 1, w.saidTimes(lines[1].Root, "waits to be typed into #1: a dialog is open"))
	delete(w.term.says, typedText("one"))
	w.ticks()
	require.Equal(t, []string{typedText("one"), typedText("two")}, w.term.typed[w.op1.Session])
}

// slow is a terminal that types no line before seen has returned.
type slow struct {
	activities.Terminal
	seen func()
}

func (s slow) Type(ctx context.Context, l terminal.Live, t terminal.Text) (terminal.Arrival, error) {
	s.seen()
	return s.Terminal.Type(ctx, l, t)
}

// R5, B7: while a line is on its way its thread shows where it goes, and then nothing more.
func TestTick_ShowsWhereALineGoes(t *testing.T) {
	w := newWire(t)
	l := w.types("one")[0]
	of := func() (texts []string) {
		for _, s := range w.box.Log(0).Statuses {
			if s.ThreadTS == l.Root {
				texts = append(texts, s.Status)
			}
		}
		return texts
	}
	w.part.Terminal = slow{w.term, func() {
		require.Eventually(t, func() bool { return len(of()) > 0 }, time.Minute, time.Millisecond)
	}}
	w.ticks()
	require.Equal(t, []string{"is passing this on to #1 op-fix-login…", ""}, of())
	require.Equal(t, []string{typedText("one")}, w.term.typed[w.op1.Session])
}

// everybody is a Slack that knows a name for each id.
type everybody struct{ activities.SlackClient }

func (everybody) User(_ context.Context, id string) (slackapi.Person, error) {
	return slackapi.Person{Name: "name-of-" + id}, nil
}

// However many people lines have mentioned before, whoever the next one mentions is named.
func TestTick_NamesWhoeverIsMentioned(t *testing.T) {
	w := newWire(t)
	smith := *w.poster.Seats.ByName["smith"]
	smith.Slack = everybody{smith.Slack}
	w.part.Seats.ByName = map[string]*activities.Seat{"smith": &smith}
	for i := range 60 {
		w.types(fmt.Sprintf("ask <@U0PERSON%03d>", i))
	}
	w.ticks()
	typed := w.term.typed[w.op1.Session]
	require.Len(t, typed, 60)
	for i, line := range typed {
		require.Contains(t, line, fmt.Sprintf("@name-of-U0PERSON%03d", i))
	}
}

// R8, R11: a closed relay whose last turn is never seen to end is let go of after a day.
func TestTick_WaitsForTheEndOfATurnForADayOnly(t *testing.T) {
	w := newWire(t)
	w.types("one")
	w.ticks()
	w.ahead.Add(int64(25 * time.Hour))
	require.True(t, w.ticks().Open, "an open relay waits as long as it is open")
	stop := w.room.says("", "stop")
	w.decide(store.ConversationDecision{Key: stop.LineKey, Route: []byte(`{"kind":"relay_door"}`), CloseTS: stop.TS})
	require.False(t, w.ticks().Open)
}

// L4: what is typed is the line as it is then; a deleted one is not typed.
func TestTick_TypesTheNewestTextAndNoDeletedLine(t *testing.T) {
	w := newWire(t)
	lines := w.types("one", "two")
	edited := lines[0]
	edited.Text, edited.EditedTS = "one, better", later(lines[1], 1)
	_, err := w.store.RecordEdit(t.Context(), "smith", edited, rules.Person, func(*rules.Line, store.Facts) store.Verdict { return store.Verdict{State: rules.Noted} })
	require.NoError(t, err)
	_, err = w.store.RecordDelete(t.Context(), "smith", lines[1].LineKey, later(lines[1], 2))
	require.NoError(t, err)
	w.ticks()
	require.Equal(t, []string{typedText("one, better")}, w.term.typed[w.op1.Session])
	require.Equal(t, []any{rules.Declined, rules.ReasonDeleted}, []any{w.row(lines[1]).State, w.row(lines[1]).Reason})
	require.Empty(t, w.handed)
}

// R9: the lines of a relay that is no longer on record are the brain's.
func TestTick_HandsBackTheLinesOfALostRelay(t *testing.T) {
	w := newWire(t)
	w.relay.ID = "D9/1.000000"
	w.types("one")
	w.ticks()
	require.Equal(t, []string{"one"}, w.handed)
	require.Empty(t, w.term.typed)
}

// R11: words go to whoever typed last: a relay, the operator's own thread, and after a stop
// the relay only until the turn of the line that it had forwarded is over.
func TestTick_WordsGoToWhoeverTypedLast(t *testing.T) {
	w := newWire(t)
	w.say(w.op1, outbox.Say, "nobody typed yet")
	w.ticks()
	require.Equal(t, 1, w.saidTimes(w.first.Root, "nobody typed yet"))

	l := w.types("one")[0]
	w.ticks()
	w.say(w.op1, outbox.Say, "to the relay")
	w.ticks()
	require.Equal(t, 1, w.saidTimes(l.Root, "to the relay"))

	w.queue(w.op1, "from the thread")
	w.mustLook(w.op1)
	w.say(w.op1, outbox.Say, "to the thread")
	w.ticks()
	require.Equal(t, 1, w.saidTimes(w.first.Root, "to the thread"))

	last := w.types("two")[0]
	w.ticks()
	stop := w.room.says("", "stop")
	w.decide(store.ConversationDecision{Key: stop.LineKey, Route: []byte(`{"kind":"relay_door"}`), CloseTS: stop.TS})
	require.True(t, w.ticks().Open, "it is still listened to")
	w.say(w.op1, outbox.Say, "still on it")
	w.say(w.op1, outbox.Stop, "done with it")
	got := w.ticks()
	require.False(t, got.Open)
	require.Equal(t, 1, w.saidTimes(stop.Root, "still on it"), "the person's latest line is the stop")
	require.Equal(t, 1, w.saidTimes(stop.Root, "done with it"))
	w.say(w.op1, outbox.Say, "my own again")
	w.mustLook(w.op1)
	w.speak()
	require.Equal(t, 1, w.saidTimes(w.first.Root, "my own again"))
	require.Zero(t, w.saidTimes(last.Root, "my own again"))
}

// R1: a door says where the lines go; a session that is gone is refused with the list, and
// the relay to it is closed.
func TestAnswerDoor_LooksBeforeItPromises(t *testing.T) {
	w := newWire(t)
	act := rules.RelayAct{What: rules.RelayOpen, Relay: w.relay.Relay, Session: rules.SessionFact{Number: 1, Slug: "fix-login", Repo: "shop"}, Door: rules.Door{Kind: rules.DoorWorkOn, Number: 1}}
	ask := func(act rules.RelayAct) activities.DoorAnswer {
		got, err := perform(w.part, w.part.AnswerDoor, activities.DoorInput{
			Seat: "smith", Thread: rules.Thread{Team: w.room.team, Channel: w.room.channel}, User: "U0ANA000001", Act: act,
		})
		require.NoError(t, err)
		return got
	}
	require.Equal(t, activities.DoorAnswer{Text: rules.RelayOpenedText(act.Session)}, ask(act))
	require.Contains(t, ask(rules.RelayAct{What: rules.RelayList}).Text, "← your lines go here")
	require.Contains(t, ask(rules.RelayAct{What: rules.RelayClose, Relay: w.relay.Relay}).Text, "The relay to #1 is closed")
	refused := ask(rules.RelayAct{What: rules.RelayRefuse, Why: rules.RefuseUnknownSession, Door: rules.Door{Kind: rules.DoorWorkOn, Number: 7}})
	require.True(t, refused.Refused)
	require.Contains(t, refused.Text, "I know no session #7.")
	require.Contains(t, refused.Text, "#1 op-fix-login")

	w.launcher.die(w.op1.Session)
	gone := ask(act)
	require.True(t, gone.Refused)
	require.Contains(t, gone.Text, "Session #1 has ended.")
	r, err := w.store.RelayByID(t.Context(), w.relay.ID)
	require.NoError(t, err)
	require.False(t, r.Open())
}

// A store that does not answer is asked again: nothing is typed and nothing said.
func TestTick_WaitsForTheStore(t *testing.T) {
	w := newWire(t)
	w.types("one")
	w.ledger.fail["BeginTyping"] = errStore
	_, err := w.tick()
	require.ErrorContains(t, err, "the database is away")
	require.Empty(t, w.term.typed)
	require.False(t, errors.Is(err, context.Canceled))
	delete(w.ledger.fail, "BeginTyping")
	w.ticks()
	require.Equal(t, []string{typedText("one")}, w.term.typed[w.op1.Session])
}

// Of a session that was gone before its relay's door was answered, the door alone tells;
// of one that was promised, and died before anything was typed, the relay does.
func TestTick_LeavesTheWordToADoorThatIsNotAnswered(t *testing.T) {
	for _, promised := range []bool{false, true} {
		w := newWire(t)
		door := w.room.says("", "work on 1")
		w.decide(store.ConversationDecision{Key: door.LineKey, Route: []byte(`{"kind":"relay_door"}`), CloseTS: door.TS, Open: &store.Relay{
			Relay: rules.Relay{ID: door.Channel + "/" + door.TS, Person: door.User, Session: w.op1.Session, Number: w.op1.Number, OpenedTS: door.TS}, Box: "main",
		}})
		w.relay.ID = door.Channel + "/" + door.TS
		w.launcher.die(w.op1.Session)
		l := w.types("one")[0]
		got, err := w.tick()
		require.NoError(t, err)
		require.True(t, got.Outstanding, "the door may have looked already, and promised")
		require.Equal(t, []string{"one"}, w.handed, "the line waits for neither")
		require.Zero(t, w.saidTimes(l.Root, "has ended"))
		if promised {
			_, err = w.store.EndLine(t.Context(), "smith", door.LineKey, rules.Answered, "")
			require.NoError(t, err)
		} else {
			refused, err := perform(w.part, w.part.AnswerDoor, activities.DoorInput{
				Seat: "smith", Thread: rules.Thread{Team: w.room.team, Channel: w.room.channel}, User: door.User,
				Act: rules.RelayAct{What: rules.RelayOpen, Relay: rules.Relay{ID: w.relay.ID}, Door: rules.Door{Kind: rules.DoorWorkOn, Number: 1}},
			})
			require.NoError(t, err)
			require.True(t, refused.Refused)
		}
		got = w.ticks()
		require.False(t, got.Open)
		require.False(t, got.Outstanding)
		want := 0
		if promised {
			want = 1
		}
		require.Equal(t, want, w.saidTimes(l.Root, "has ended, and the relay to it"))
	}
}

// R2: a door that was decided cuts nothing any more, though its own answer is still owed.
func TestTick_IsNotCutByADoorThatWasDecided(t *testing.T) {
	w := newWire(t)
	door := w.room.says("", "sessions")
	w.decide(store.ConversationDecision{Key: door.LineKey, Route: []byte(`{"kind":"relay_door"}`)})
	w.types("continue")
	w.ticks()
	require.Equal(t, []string{typedText("continue")}, w.term.typed[w.op1.Session])
	require.Empty(t, w.handed)
}
