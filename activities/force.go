package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// Force carries out a seat's part in an ask: who drives it is read from the thread and from
// nowhere else, since the other seats may run anywhere (A7).
type Force struct {
	Poster *Poster
	Ledger ForceLedger
	// Now tells the time that asks and claims are measured by; Slack's stamps are compared to it.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
	Log  *slog.Logger
}

// ForceLedger is what Force needs of the store.
type ForceLedger interface {
	Drive(ctx context.Context, seat string, t rules.Thread, askTS string) error
	RowOf(ctx context.Context, seat string, key rules.LineKey) (store.Row, error)
}

// WorkOnAsk looks at the thread of an ask and does what is this seat's to do about it now:
// it claims what is its own, or what nobody else takes, and says what is next (A4-A6). It is
// safe to repeat: a claim has one name, and is looked for before it is sent again.
//
// Errors are Slack's or the store's, to be tried again.
func (f *Force) WorkOnAsk(ctx context.Context, in ForceInput) (ForceResult, error) {
	seat, err := f.Poster.Seats.get(in.Turn.Seat)
	if err != nil {
		return ForceResult{}, err
	}
	defer beat(ctx)()
	if len(in.Turn.Lines) != 1 {
		return ForceResult{}, fmt.Errorf("an ask of %d lines", len(in.Turn.Lines))
	}
	ask := in.Turn.Lines[0].Line
	row, err := f.Ledger.RowOf(ctx, seat.Name, ask.LineKey)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return ForceResult{}, fmt.Errorf("look up an ask: %w", err)
	}
	if row.State.Ended() {
		return ForceResult{Act: rules.ForceLeave}, nil
	}
	out, facts, err := f.look(ctx, seat, in, ask)
	if err != nil {
		return out, err
	}
	step := rules.DecideAsk(facts)
	if step.Act == rules.ForceTake {
		return f.take(ctx, seat, in, ask, step, out)
	}
	return f.next(ctx, seat, in, facts, step, out)
}

// look reads the thread, and makes the seat's own pick where the dispatcher's time is over.
func (f *Force) look(ctx context.Context, seat *Seat, in ForceInput, ask rules.Line) (ForceResult, rules.AskFacts, error) {
	lines, err := repliesSince(ctx, seat.Slack, ask, "")
	if err != nil {
		return ForceResult{}, rules.AskFacts{}, retryLater(err)
	}
	roster := in.Ask.Seats
	out := ForceResult{View: rules.ViewAsk(lines, ask, in.Ask.Dispatcher, roster)}
	facts := rules.AskFacts{Ask: ask.TS, Self: seat.Name, View: out.View, Since: in.Since, Now: f.Now()}
	over := facts.Now.After(rules.TSTime(ask.TS).Add(rules.PickWindow))
	if out.View.Picked == "" && len(out.View.Claims) == 0 && out.View.Final == "" && over {
		pick, unread := gatherPick(ctx, seat.Slack, ask, in.Ask, lines)
		if len(unread) > 0 {
			f.Log.Warn("a pick was made without what Slack did not tell", "seat", seat.Name, "channel", ask.Channel, "line", ask.TS, "unread", unread)
		}
		p := rules.Pick(pick)
		f.Log.Info("picked by itself: no dispatch line counts", "seat", seat.Name, "channel", ask.Channel, "line", ask.TS, "driver", p.Driver, "rule", p.Rule)
		facts.Own, out.Picked, out.Rule = p.Driver, p.Driver, p.Rule
	} else {
		out.Picked = out.View.Picked
	}
	return out, facts, nil
}

// take posts the seat's claim, and where nobody picked the seat looks whether it was first (A6).
func (f *Force) take(ctx context.Context, seat *Seat, in ForceInput, ask rules.Line, step rules.AskStep, out ForceResult) (ForceResult, error) {
	id := rules.ClaimPostID(seat.Name, ask.Channel, ask.TS, step.Cover)
	m := claimMessage(seat, in.Turn.Thread, id, rules.ForceMark{AskTS: ask.TS, State: rules.ForceWorking, Cover: step.Cover})
	ts, err := f.Poster.once(ctx, m)
	if err != nil {
		return out, retryLater(err)
	}
	failpoint.At(failpoint.ForceClaimed)
	work := &ForceWork{Ask: in.Ask, AskTS: ask.TS, Claim: ts, ClaimPost: id, Cover: step.Cover}
	if !step.Settle {
		return f.drive(ctx, seat, in, work, out)
	}
	if err := f.Wait(ctx, rules.SettleFor); err != nil {
		return out, fmt.Errorf("let a claim settle: %w", err)
	}
	out, facts, err := f.look(ctx, seat, in, ask)
	if err != nil {
		return out, err
	}
	again := rules.DecideAsk(facts)
	switch {
	case again.Act == rules.ForceDrive:
		return f.drive(ctx, seat, in, work, out)
	case !slices.ContainsFunc(out.View.Claims, func(c rules.ForceClaim) bool { return c.TS == ts }):
		// A read that lags does not show what was just posted; or a person took it away.
		return ForceResult{}, errors.New("the claim is not to be seen in the thread yet")
	}
	if err := seat.Slack.Delete(ctx, ask.Channel, ts); err != nil && !slackapi.IsRejected(err, "message_not_found") {
		return out, retryLater(err)
	}
	f.Log.Info("another seat was first", "seat", seat.Name, "channel", ask.Channel, "line", ask.TS)
	return f.next(ctx, seat, in, facts, again, out)
}

func (f *Force) drive(ctx context.Context, seat *Seat, in ForceInput, work *ForceWork, out ForceResult) (ForceResult, error) {
	out.Act, out.Work = rules.ForceDrive, work
	lines, err := repliesSince(ctx, seat.Slack, in.Turn.Lines[0].Line, "")
	if err != nil {
		return out, retryLater(err)
	}
	// One seat drives a thread for the rest of it: the one that drove first (A8).
	if rules.ThreadDriver(lines, work.AskTS, in.Ask.Dispatcher, in.Ask.Seats) == seat.Name {
		if err := f.Ledger.Drive(ctx, seat.Name, in.Turn.Thread, work.AskTS); err != nil {
			return out, fmt.Errorf("note the driver of a thread: %w", err)
		}
	}
	return out, nil
}

// next says what a step comes to that posts nothing.
func (f *Force) next(ctx context.Context, seat *Seat, in ForceInput, facts rules.AskFacts, step rules.AskStep, out ForceResult) (ForceResult, error) {
	out.Act, out.Until = step.Act, step.Until
	switch step.Act {
	case rules.ForceDrive: // an earlier attempt claimed it
		for _, c := range facts.View.Claims {
			if c.Seat == seat.Name {
				return f.drive(ctx, seat, in, &ForceWork{
					Ask: in.Ask, AskTS: facts.Ask, Claim: c.TS, Cover: c.Cover,
					ClaimPost: rules.ClaimPostID(seat.Name, in.Turn.Thread.Channel, facts.Ask, c.Cover),
				}, out)
			}
		}
	case rules.ForceAdd:
		out.Work = &ForceWork{Ask: in.Ask, AskTS: facts.Ask, Driver: facts.View.Final, AnswerPost: facts.View.FinalPost}
	}
	return out, nil
}

// claimMessage is the post by which a seat says that it works on an ask (A5).
func claimMessage(seat *Seat, t rules.Thread, id string, mark rules.ForceMark) message {
	return message{id: id, seat: seat, thread: t, part: 1, parts: 1, kind: kindClaim, request: claimRequest(mark)}
}

const kindClaim = "claim"

func claimRequest(mark rules.ForceMark) slackapi.PostRequest {
	text := rules.WorkingText
	if mark.State == rules.ForceFailed {
		text = rules.NotAnsweredText
	}
	return slackapi.PostRequest{Text: text, EventType: rules.EventForce, Payload: forcePayload(mark)}
}

func forcePayload(m rules.ForceMark) map[string]any {
	p := map[string]any{"ask_ts": m.AskTS, "state": string(m.State)}
	if m.Cover {
		p["cover"] = true
	}
	if m.At != "" {
		p["at"] = m.At
	}
	return p
}

// repliesSince reads the lines of an ask's thread, with their metadata.
func repliesSince(ctx context.Context, slack SlackClient, ask rules.Line, oldest string) ([]rules.Line, error) {
	var lines []rules.Line
	for l, err := range slack.Replies(ctx, ask.Channel, ask.Thread().Root, oldest) {
		if err != nil {
			return nil, fmt.Errorf("read the thread of an ask: %w", err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// gatherPick reads from Slack what a pick goes by (A2). What cannot be read is named, and
// the pick is made without: an unread members list leaves every seat in the channel, unread
// stickers count for nobody, an unread thread has no driver.
func gatherPick(ctx context.Context, slack SlackClient, ask rules.Line, a rules.Ask, lines []rules.Line) (rules.PickFacts, []string) {
	question, _ := rules.Question(ask, rules.Person, a.Dispatcher)
	f := rules.PickFacts{Question: question, Asker: ask.User, Dispatcher: a.Dispatcher, Seats: slices.Clone(a.Seats)}
	f.Driver = rules.ThreadDriver(lines, ask.TS, a.Dispatcher, a.Seats)
	var unread []string
	if members, err := slack.Members(ctx, ask.Channel); err == nil {
		for i, s := range f.Seats {
			f.Seats[i].Out = !slices.Contains(members, s.BotUser)
		}
	} else {
		unread = append(unread, "members: "+err.Error())
	}
	stickers, err := slack.Reactions(ctx, ask.Channel, ask.Thread().Root)
	if err != nil {
		unread = append(unread, "stickers: "+err.Error())
	}
	for _, r := range stickers {
		if slices.ContainsFunc(a.Seats, func(s rules.PickSeat) bool { return slices.Contains(s.Stickers, r.Name) }) {
			f.Stickers = append(f.Stickers, rules.Sticker{Name: r.Name, User: r.User, Author: reactor(ctx, slack, r.User, a)})
		}
	}
	return f, unread
}

// reactor tells what a user is whose reaction may be a sticker. One whom Slack does not
// show counts as a person: bots that matter are known.
func reactor(ctx context.Context, slack SlackClient, user string, a rules.Ask) rules.Author {
	if user == a.Dispatcher || slices.ContainsFunc(a.Seats, func(s rules.PickSeat) bool { return s.BotUser == user }) {
		return rules.OtherBot
	}
	if p, err := slack.User(ctx, user); err == nil && p.Bot {
		return rules.OtherBot
	}
	return rules.Person
}

// Dispatcher posts the dispatch lines of the app that picks (A3).
type Dispatcher struct {
	Poster *Poster
	// Self is the dispatcher's own bot user and client, while it has a token; its errors say
	// why not.
	Self func(ctx context.Context) (*Seat, error)
	Log  *slog.Logger
}

// Dispatch picks who drives an ask and says so under it, once whatever is repeated (A3).
func (d *Dispatcher) Dispatch(ctx context.Context, in DispatchInput) (DispatchResult, error) {
	self, err := d.Self(ctx)
	if err != nil {
		return DispatchResult{}, fmt.Errorf("dispatch an ask: %w", err)
	}
	defer beat(ctx)()
	var unread []string
	lines, err := repliesSince(ctx, self.Slack, in.Line, "")
	if err != nil {
		unread = append(unread, "thread: "+err.Error())
	}
	facts, more := gatherPick(ctx, self.Slack, in.Line, in.Ask, lines)
	out := DispatchResult{Pick: rules.Pick(facts), Unread: append(unread, more...)}
	d.Log.Info("picked", "channel", in.Line.Channel, "line", in.Line.TS, "driver", out.Pick.Driver, "rule", out.Pick.Rule,
		"instead", out.Pick.Instead, "out", out.Pick.Out, "unread", out.Unread)
	text := rules.DispatchText(out.Pick, facts.Seats)
	if text == "" {
		return out, nil
	}
	var mentions []string
	driver := ""
	for _, s := range facts.Seats {
		mentions = append(mentions, s.BotUser)
		if s.Name == out.Pick.Driver {
			driver = s.BotUser
		}
	}
	out.TS, err = d.Poster.once(ctx, message{
		id: rules.DispatchPostID(in.Line.Channel, in.Line.TS), seat: self, thread: in.Line.Thread(), part: 1, parts: 1, kind: "dispatch",
		request: slackapi.PostRequest{
			Text: text, AllowMentions: mentions, EventType: rules.PickEvent,
			Payload: map[string]any{"ask_ts": in.Line.TS, "asker": in.Line.User, "driver": driver},
		},
	})
	failpoint.At(failpoint.ForceDispatched)
	if errors.Is(err, slackapi.ErrParentGone) {
		return out, nil // the ask was deleted
	}
	return out, retryLater(err)
}

// asDriver looks, before a driver's post is made, whether another seat covered for it: then
// there is an answer already, and it says nothing (A6). A driver that has nothing to say
// says so, since nobody else answers the ask.
func (p *Poster) asDriver(ctx context.Context, seat *Seat, in PostInput) (PostInput, error) {
	if !in.Work.Drives() {
		return in, nil
	}
	if in.Say == SayNothing && in.Reason == rules.ReasonAbstained {
		in.Say = SayDecline
	}
	if in.Say != SayAnswer && in.Say != SayFailure {
		return in, nil
	}
	covered, err := coveredBy(ctx, seat, in.Turn, in.Work)
	if err != nil || covered == "" {
		return in, err
	}
	p.log(in).Warn("another seat covered for this one: its post is left out", "by", covered)
	in.Say, in.State, in.Reason = SayNothing, rules.Declined, rules.ReasonCovered
	return in, nil
}

// coveredBy is the seat that drives an ask in this driver's stead, "" for none.
func coveredBy(ctx context.Context, seat *Seat, t Turn, w *ForceWork) (string, error) {
	if len(t.Lines) == 0 {
		return "", nil
	}
	ask := t.Lines[0].Line
	lines, err := repliesSince(ctx, seat.Slack, ask, "")
	if errors.Is(err, slackapi.ErrParentGone) {
		return "", nil // the post finds that out
	}
	if err != nil {
		return "", err
	}
	v := rules.ViewAsk(lines, ask, w.Ask.Dispatcher, w.Ask.Seats)
	if v.Final != "" && v.Final != seat.Name {
		return v.Final, nil
	}
	for _, c := range v.Claims {
		if c.Seat != seat.Name && c.Cover && !w.Cover {
			return c.Seat, nil
		}
	}
	return "", nil
}

// markLast marks the last message of a driver's post, so that the mark says that all of it
// stands (A5). A hand-off has a mark of its own.
func markLast(requests []slackapi.PostRequest, in PostInput) {
	if in.Work != nil && !in.Work.Drives() {
		for i := range requests { // a correction is for the driver to see
			requests[i].AllowMentions = append(requests[i].AllowMentions, in.Work.driverUser())
		}
	}
	if !in.Work.Drives() {
		return
	}
	mark := rules.ForceMark{AskTS: in.Work.AskTS, State: rules.ForceFailed, Cover: in.Work.Cover}
	if in.Say == SayAnswer {
		mark.State = rules.ForceFinal
	}
	for i := len(requests) - 1; i >= 0; i-- {
		if requests[i].EventType == "" {
			requests[i].EventType, requests[i].Payload = rules.EventForce, forcePayload(mark)
			return
		}
	}
}

// endClaim takes a driver's claim away once its post stands, or says on it that there is no
// answer.
func (p *Poster) endClaim(ctx context.Context, seat *Seat, in PostInput, said bool) error {
	w := in.Work
	if !w.Drives() {
		return nil
	}
	failpoint.At(failpoint.ForceFinal)
	if said || in.Reason == rules.ReasonCovered {
		err := seat.Slack.Delete(ctx, in.Turn.Thread.Channel, w.Claim)
		if err != nil && !slackapi.IsRejected(err, "message_not_found") {
			return fmt.Errorf("take a claim away: %w", err)
		}
		return nil
	}
	r := claimRequest(rules.ForceMark{AskTS: w.AskTS, State: rules.ForceFailed, Cover: w.Cover})
	r.Channel, r.ThreadTS, r.PostID, r.Part, r.Parts = in.Turn.Thread.Channel, in.Turn.Thread.Root, w.ClaimPost, 1, 1
	if err := seat.Slack.Edit(ctx, w.Claim, r); err != nil && !slackapi.IsRejected(err, "message_not_found", "thread_not_found") {
		return fmt.Errorf("say on a claim that there is no answer: %w", err)
	}
	return nil
}

// beginWork looks, when the turn of an ask begins, whether it still has something to do: a
// driver, whether another seat covered for it meanwhile; another seat, what the driver's
// answer is, which it returns.
func (a *Agent) beginWork(ctx context.Context, seat *Seat, in RunAgentInput) (driverSaid string, err error) {
	w := in.Work
	reason := rules.ReasonCovered
	switch {
	case w == nil || len(in.Turn.Lines) == 0:
		return "", nil
	case w.Drives():
		by, err := coveredBy(ctx, seat, in.Turn, w)
		if err != nil {
			a.Log.Warn("whether another seat covers an ask could not be read", "seat", seat.Name, "line", w.AskTS, "error", err)
		}
		if err != nil || by == "" {
			return "", nil // the post looks again
		}
	default:
		if driverSaid, err = answerOf(ctx, seat.Slack, in.Turn.Lines[0].Line, w); err == nil {
			return driverSaid, nil
		}
		a.Log.Warn("the driver's answer could not be read, so nothing is added to it", "seat", seat.Name, "line", w.AskTS, "error", err)
		reason = rules.ReasonNoFinal
	}
	return "", temporal.NewNonRetryableApplicationError("nothing to do for this ask", ErrTypeDeclined, nil, FailureDetails{Reason: reason})
}

// keepWorking says every minute that a driver still works on an ask, until its end (A5).
func (a *Agent) keepWorking(ctx context.Context, seat *Seat, t rules.Thread, w *ForceWork) (end func()) {
	if !w.Drives() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(rules.WorkingEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			r := claimRequest(rules.ForceMark{AskTS: w.AskTS, State: rules.ForceWorking, Cover: w.Cover, At: rules.TimeTS(a.Now())})
			r.Channel, r.ThreadTS, r.PostID, r.Part, r.Parts = t.Channel, t.Root, w.ClaimPost, 1, 1
			if err := seat.Slack.Edit(ctx, w.Claim, r); err != nil && ctx.Err() == nil {
				a.Log.Warn("a driver could not say that it still works; another seat may cover", "seat", seat.Name, "channel", t.Channel, "line", w.AskTS, "error", err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// answerOf reads the driver's answer to an ask, for the seat that adds to it (A5).
func answerOf(ctx context.Context, slack SlackClient, ask rules.Line, w *ForceWork) (string, error) {
	user := w.driverUser()
	lines, err := repliesSince(ctx, slack, ask, "")
	if err != nil {
		return "", err
	}
	var parts []string
	for _, l := range lines {
		if user != "" && l.User == user && rules.OfPost(l.Raw, w.AnswerPost) {
			parts = append(parts, l.Text)
		}
	}
	if len(parts) == 0 {
		return "", errors.New("the driver's answer is not in the thread")
	}
	return strings.Join(parts, "\n"), nil
}
