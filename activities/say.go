package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// say posts what in says, in as many messages as it takes, and returns the first one's ts.
func (p *Poster) say(ctx context.Context, seat *Seat, in PostInput, postID string) (string, error) {
	requests, files, err := p.requests(ctx, in)
	if err != nil {
		return "", err
	}
	markLast(requests, in)
	m := message{id: postID, seat: seat, thread: in.Turn.Thread, newThread: in.NewThread, kind: string(in.Say)}
	first, err := p.inParts(ctx, &m, requests)
	if err != nil {
		return "", err
	}
	return first, p.sayFiles(ctx, m, in.Turn, files)
}

// inParts posts the messages of a post, each once and in order, and returns the first
// one's ts. m then stands in the post's thread, also when the post opened it.
func (p *Poster) inParts(ctx context.Context, m *message, requests []slackapi.PostRequest) (first string, err error) {
	begun, err := p.Ledger.PostsOf(ctx, m.id)
	if err != nil {
		return "", fmt.Errorf("look up the post: %w", err)
	}
	m.parts = len(requests)
	for i, r := range requests {
		m.part, m.request = i+1, r
		if refusedBefore(begun, m.part) {
			return "", p.sayRefused(ctx, *m, &slackapi.Rejected{Method: "chat.postMessage", Code: "refused before"})
		}
		ts, err := p.once(ctx, *m)
		if m.kind == string(SayAnswer) && errors.As(err, new(*slackapi.Rejected)) {
			return "", p.sayRefused(ctx, *m, err)
		}
		if err != nil {
			return "", err
		}
		if first == "" {
			first = ts
		}
		if m.thread.Root == "" {
			m.thread.Root = ts
		}
	}
	return first, nil
}

// sayFiles posts the files of an answer, and names those that cannot be.
func (p *Poster) sayFiles(ctx context.Context, m message, turn Turn, files []string) error {
	left, err := p.files(ctx, m.seat, turn, m.thread, m.id, files)
	if err != nil || len(left) == 0 {
		return err
	}
	m.part, m.kind = m.parts+1, kindFilesLeft
	m.request = slackapi.PostRequest{Text: rules.FilesLeftText(left)}
	_, err = p.once(ctx, m)
	return err
}

// The kinds of message that stand for something else of a post.
const (
	kindRefusal   = "refusal"    // for an answer that Slack refused
	kindLost      = "lost"       // for a turn that came to no end
	kindFilesLeft = "files_left" // for files that could not be posted
)

// refusedBefore tells whether an earlier attempt found that Slack refuses this part of an
// answer, and began to say so: then the answer is not tried again, or both would stand.
func refusedBefore(begun []store.Post, part int) bool {
	sent := slices.ContainsFunc(begun, func(b store.Post) bool { return b.Part == part && b.TS != "" })
	return !sent && slices.ContainsFunc(begun, func(b store.Post) bool { return b.Kind == kindRefusal })
}

// sayRefused tells the thread that Slack did not take an answer, under the same name, and
// returns the refusal. The line has a part of its own: it must not be taken for the answer.
func (p *Poster) sayRefused(ctx context.Context, m message, refusal error) error {
	m.part, m.kind = m.parts+1, kindRefusal
	m.request = slackapi.PostRequest{Text: rules.FailureText(rules.ReasonPostRejected)}
	if _, err := p.once(ctx, m); err != nil && !errors.As(err, new(*slackapi.Rejected)) {
		return err
	}
	return refusal
}

// requests are the messages of a post, and the names of the files that go with it.
func (p *Poster) requests(ctx context.Context, in PostInput) ([]slackapi.PostRequest, []string, error) {
	bound := bindingText(in.Binding)
	switch in.Say {
	case SayAnswer:
		return p.answer(ctx, in)
	case SayFailure:
		return one(rules.FailureText(in.Reason), bound), nil, nil
	case SayDecline:
		return one(rules.DeclineText(in.Reason), bound), nil, nil
	case SayStop:
		s := in.Stop
		return one(rules.StopText(s.Stopped, s.Waiting, s.TooLate, s.KillFailed), bound), nil, nil
	case SayBinding:
		return one(bound), nil, nil
	case SayDeposit:
		return p.deposit(ctx, in)
	case SayOperatorStopped:
		s := in.OperatorStopped
		return one(rules.OperatorStoppedText(s.Operator, s.Failed, s.Elsewhere)), nil, nil
	case SayRelay:
		return one(in.Text), nil, nil
	}
	return nil, nil, fmt.Errorf("a post that says %q is unknown", in.Say)
}

// bindingText is what is said of a turn's operator, "" where nothing has to be said (O3).
func bindingText(b *Binding) string {
	switch {
	case b == nil:
		return ""
	case b.Operator != nil:
		return rules.OperatorLine(*b.Operator, b.Disposition)
	default:
		return rules.GapLine(b.Disposition, b.Why)
	}
}

// deposit makes the messages of a session's word (R11).
func (p *Poster) deposit(ctx context.Context, in PostInput) ([]slackapi.PostRequest, []string, error) {
	d := in.Deposit
	text := d.Text
	if d.Ref {
		kept, err := p.Ledger.Deposit(ctx, d.ID)
		if err != nil {
			return nil, nil, fmt.Errorf("read a session's word: %w", err)
		}
		text = kept.Text
	}
	name := rules.SessionName(d.Number, d.Slug)
	if d.Person {
		name = rules.SessionFact{Number: d.Number, Name: d.Slug}.Called()
	}
	return answerParts(rules.DepositText(text), name), nil, nil
}

// one is a post of a single message: what is not "" of its texts.
func one(texts ...string) []slackapi.PostRequest {
	texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" })
	return []slackapi.PostRequest{{Text: strings.Join(texts, "\n\n")}}
}

// answer makes the messages of an agent's answer, and the marked line of a hand-off last (D2).
func (p *Poster) answer(ctx context.Context, in PostInput) ([]slackapi.PostRequest, []string, error) {
	text, files, err := p.answerText(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	if in.DrivesUsedUp {
		text = strings.TrimSpace(text + "\n\n" + rules.DrivesUsedUpText)
	}
	if bound := bindingText(in.Binding); bound != "" {
		text = strings.TrimSpace(text + "\n\n" + bound)
	}
	out := answerParts(text, footer(in.Answer))
	if h := in.Answer.HandOff; h != nil {
		out = append(out, p.handOff(h))
	}
	if len(out) == 0 {
		out = noWords(files)
	}
	return out, files, nil
}

// answerParts are the messages of an answer's words: split, never cut (B4), with the small
// line about the run at the end (B7).
func answerParts(text, footer string) []slackapi.PostRequest {
	var out []slackapi.PostRequest
	for _, part := range rules.SplitText(text, rules.PartLimit) {
		out = append(out, slackapi.PostRequest{Markdown: part})
	}
	if len(out) > 0 {
		out[len(out)-1].Footer = footer
	}
	return out
}

func noWords(files []string) []slackapi.PostRequest {
	return one(rules.NoWordsText(min(len(files), maxFiles)))
}

func (p *Poster) answerText(ctx context.Context, in PostInput) (text string, files []string, err error) {
	if !in.Answer.Ref && in.Answer.Files == 0 {
		return in.Answer.Text, nil, nil
	}
	kept, err := p.Ledger.AnswerOf(ctx, in.Turn.ID)
	if err != nil {
		return "", nil, fmt.Errorf("read the kept answer: %w", err)
	}
	if in.Answer.Ref {
		return kept.Text, kept.Files, nil
	}
	return in.Answer.Text, kept.Files, nil
}

// handOff is the line that another seat's door knows as one: by its author, and by its
// metadata, which only an app can attach (D2).
func (p *Poster) handOff(h *HandOff) slackapi.PostRequest {
	user := p.Seats.BotUsers[h.Seat]
	return slackapi.PostRequest{
		Text:          fmt.Sprintf("<@%s> %s", user, h.Text),
		AllowMentions: []string{user},
		EventType:     rules.EventHandOff,
		Payload:       map[string]any{"to": h.Seat, "sibling_hop": h.Hop},
	}
}

// footer is the small line about a run: model, duration, cost (B7).
func footer(a Answer) string {
	parts := []string{}
	if a.Model != "" {
		parts = append(parts, a.Model)
	}
	if a.Duration > 0 {
		parts = append(parts, a.Duration.Round(time.Second/10).String())
	}
	if a.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f", a.CostUSD))
	}
	return strings.Join(parts, " · ")
}
