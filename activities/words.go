package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/outbox"
	"agentsmith/internal/store"
	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

// speech brings the words of sessions to the threads that they are for (R11). A task and a
// relay may both do that for one session: each step is recorded where the other finds it.
type speech struct {
	ledger SpeechLedger
	words  Words
	brains BrainDoor
	log    *slog.Logger
}

// SpeechLedger is what the words of sessions need of the store.
type SpeechLedger interface {
	AddDeposit(ctx context.Context, d store.Deposit) (fresh bool, err error)
	NextDeposit(ctx context.Context, session string) (store.Deposit, error)
	OwnDeposit(ctx context.Context, id, seat string, owner rules.Thread) (store.Deposit, error)
	DropDeposit(ctx context.Context, id string) error
	TypedLast(ctx context.Context, session string) (store.SessionLine, error)
	RelayByID(ctx context.Context, id string) (store.Relay, error)
	OpenRelayTo(ctx context.Context, session string) (store.Relay, error)
	LatestLine(ctx context.Context, c store.Conversation, person string) (rules.Line, error)
	EndAwaiting(ctx context.Context, id string) error
}

// voice is a session that speaks.
type voice struct {
	// seat and channel name its words; a person's session has neither of its own.
	seat, channel string
	// thread is where it speaks when nobody typed into it last: an operator's. A person's
	// session has none.
	thread  rules.Thread
	session string
	slug    string
	number  int
	person  bool
}

func voiceOf(op rules.Operator) voice {
	return voice{seat: op.Seat, channel: op.Thread.Channel, thread: op.Thread, session: op.Session, slug: op.Slug, number: op.Number}
}

func voiceOfSession(s store.Session) voice {
	v := voice{seat: s.Seat, channel: s.Thread.Channel, thread: s.Thread, session: s.ID, slug: s.Slug, number: s.Number}
	if s.Kind == terminal.KindPerson {
		v.seat, v.channel, v.thread, v.slug, v.person = "person", "session", rules.Thread{}, s.Name, true
	}
	return v
}

// fact names the session for people.
func (v voice) fact() rules.SessionFact {
	if v.person {
		return rules.SessionFact{Number: v.number, Name: v.slug}
	}
	return rules.SessionFact{Number: v.number, Slug: v.slug}
}

// id names a word of the session for good, whoever brings it.
func (v voice) id(word string) string {
	return v.seat + "/" + v.channel + "/" + v.session + "/" + word
}

// collect takes the words that the session left, in their order. A word's file goes only
// when the store has it. What a person's session said before since is nobody's.
func (s speech) collect(ctx context.Context, v voice, since time.Time) error {
	words, err := s.words.Words(v.session)
	if err != nil {
		return fmt.Errorf("look for words of the session: %w", err)
	}
	for _, w := range words {
		if s.keeps(v, w, since) {
			if _, err := s.ledger.AddDeposit(ctx, store.Deposit{ID: v.id(w.ID), Session: v.session, Kind: w.Kind, Text: w.Text, At: w.At}); err != nil {
				return fmt.Errorf("keep a session's word: %w", err)
			}
		}
		failpoint.At(failpoint.TaskCollected)
		if err := s.words.Remove(v.session, w.ID); err != nil {
			return fmt.Errorf("take a session's word: %w", err)
		}
	}
	return nil
}

// keeps tells whether a word is to be posted. That an operator waits for a person is said by
// its task; a person's own session has none.
func (s speech) keeps(v voice, w outbox.Word, since time.Time) bool {
	if v.person && w.At.Before(since) {
		s.log.Info("a word from before the relay is left alone", "session", v.session, "word", w.ID)
		return false
	}
	return v.person || w.Kind != outbox.Notification
}

// say puts a line of Smith's own among the session's words, once under that name.
func (s speech) say(ctx context.Context, v voice, name, text string, at time.Time) error {
	_, err := s.ledger.AddDeposit(ctx, store.Deposit{ID: v.id(name), Session: v.session, Kind: "notice", Text: text, At: at})
	if err != nil {
		return fmt.Errorf("keep a notice: %w", err)
	}
	return nil
}

// offer brings the session's oldest word that does not stand anywhere yet to the brain that
// speaks it; the next one waits for it. Which one that is, is fixed at the first offer. It
// tells whether a word is under way.
func (s speech) offer(ctx context.Context, v voice) (bool, error) {
	id, _, err := s.offerUnless(ctx, v, func(string) bool { return false })
	return id != "", err
}

// offerUnless offers it but where lately says that it was offered a moment ago. It returns
// the word that is under way, "" for none, and whether it was offered now.
func (s speech) offerUnless(ctx context.Context, v voice, lately func(id string) bool) (id string, offered bool, err error) {
	for {
		d, err := s.ledger.NextDeposit(ctx, v.session)
		if errors.Is(err, store.ErrNotFound) {
			return "", false, nil
		}
		if err != nil {
			return "", false, fmt.Errorf("look for a word to offer: %w", err)
		}
		if lately(d.ID) {
			return d.ID, false, nil
		}
		if d.OwnerSeat == "" {
			to, err := s.audience(ctx, v)
			if err != nil {
				return "", false, err
			}
			if to.seat == "" {
				s.log.Info("a word is for nobody", "session", v.session, "word", d.ID)
				if err := s.ledger.DropDeposit(ctx, d.ID); err != nil {
					return "", false, fmt.Errorf("drop a word: %w", err)
				}
				continue
			}
			if d, err = s.own(ctx, d, to); err != nil {
				return "", false, err
			}
		}
		return d.ID, true, s.send(ctx, v, d)
	}
}

// audience is whom a word is for.
type audience struct {
	seat   string
	thread rules.Thread
	// relay is the one that the word comes back by, nil for none.
	relay *store.Relay
}

// own gives a word its owner. With the end of a turn a relay that is closed has had the words
// that it was still owed.
func (s speech) own(ctx context.Context, d store.Deposit, to audience) (store.Deposit, error) {
	owned, err := s.ledger.OwnDeposit(ctx, d.ID, to.seat, to.thread)
	if err != nil {
		return d, fmt.Errorf("give a word its owner: %w", err)
	}
	if to.relay != nil && to.relay.Awaiting && d.Kind == outbox.Stop && d.At.After(to.relay.TypedAt) {
		if err := s.ledger.EndAwaiting(ctx, to.relay.ID); err != nil {
			return owned, fmt.Errorf("note the end of a turn: %w", err)
		}
	}
	return owned, nil
}

// audience finds whom the session's next word is for: who typed into it last (R11). A relay
// that is closed still gets the words of the lines that it had forwarded.
func (s speech) audience(ctx context.Context, v voice) (audience, error) {
	own := audience{seat: v.seat, thread: v.thread}
	if v.person {
		own = audience{}
	}
	last, err := s.ledger.TypedLast(ctx, v.session)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && last.Relay == "":
		if !v.person {
			return own, nil
		}
		r, err := s.ledger.OpenRelayTo(ctx, v.session)
		if errors.Is(err, store.ErrNotFound) {
			return own, nil
		}
		if err != nil {
			return own, fmt.Errorf("look for the relay to a session: %w", err)
		}
		return s.conversation(ctx, r)
	case err != nil:
		return own, fmt.Errorf("look for who typed last: %w", err)
	}
	r, err := s.ledger.RelayByID(ctx, last.Relay)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return own, nil
	case err != nil:
		return own, fmt.Errorf("read a relay: %w", err)
	case r.Open() || r.Awaiting:
		return s.conversation(ctx, r)
	}
	if now, err := s.ledger.OpenRelayTo(ctx, v.session); err == nil {
		return s.conversation(ctx, now)
	}
	return own, nil
}

// conversation is the voice of a relay's conversation: the brain of the person's latest line.
func (s speech) conversation(ctx context.Context, r store.Relay) (audience, error) {
	to := audience{seat: r.Seat, thread: rules.Thread{Team: r.Team, Channel: r.Channel, Root: r.OpenedTS}, relay: &r}
	line, err := s.ledger.LatestLine(ctx, r.Conversation, r.Person)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return to, fmt.Errorf("look for the person's latest line: %w", err)
	}
	if err == nil {
		to.thread = line.Thread()
	}
	return to, nil
}

// send offers a word to its owner.
func (s speech) send(ctx context.Context, v voice, d store.Deposit) error {
	failpoint.At(failpoint.TaskOffering)
	in := DepositInput{ID: d.ID, Session: v.session, Slug: v.slug, Number: v.number, Kind: d.Kind, Text: d.Text, Person: v.person, Relayed: d.Owner != v.thread}
	if len(in.Text) > rules.InlineText {
		in.Text, in.Ref = "", true
	}
	if err := s.brains.Offer(ctx, d.OwnerSeat, d.Owner, in); err != nil {
		return fmt.Errorf("offer a word to its thread: %w", err)
	}
	failpoint.At(failpoint.TaskOffered)
	return nil
}
