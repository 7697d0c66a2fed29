package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentsmith/internal/slackapi"
	"agentsmith/rules"
)

// say posts what in says, in as many messages as it takes, and returns the first one's ts.
func (p *Poster) say(ctx context.Context, seat *Seat, in PostInput, postID string) (string, error) {
	requests, files, err := p.requests(ctx, in)
	if err != nil {
		return "", err
	}
	thread := in.Turn.Thread
	var first string
	for i, r := range requests {
		ts, err := p.once(ctx, message{
			id: postID, seat: seat, thread: thread, part: i + 1, parts: len(requests), request: r,
		})
		if errors.As(err, new(*slackapi.Rejected)) && in.Say == SayAnswer {
			return p.sayRejected(ctx, seat, in, postID, i+1, err)
		}
		if err != nil {
			return "", err
		}
		if first == "" {
			first = ts
		}
		if thread.Root == "" {
			thread.Root = ts
		}
	}
	return first, p.files(ctx, seat, in.Turn, thread, postID, files)
}

// sayRejected tells the thread that Slack did not take the answer, under the same name,
// and returns the refusal.
func (p *Poster) sayRejected(ctx context.Context, seat *Seat, in PostInput, postID string, part int, refusal error) (string, error) {
	_, err := p.once(ctx, message{
		id: postID, seat: seat, thread: in.Turn.Thread, part: part, parts: part,
		request: slackapi.PostRequest{Text: rules.FailureText(rules.ReasonPostRejected)},
	})
	if err != nil && !errors.As(err, new(*slackapi.Rejected)) {
		return "", err
	}
	return "", refusal
}

// requests are the messages of a post, and the names of the files that go with it.
func (p *Poster) requests(ctx context.Context, in PostInput) ([]slackapi.PostRequest, []string, error) {
	switch in.Say {
	case SayAnswer:
		return p.answer(ctx, in)
	case SayFailure:
		return one(rules.FailureText(in.Reason)), nil, nil
	case SayDecline:
		return one(rules.DeclineText(in.Reason)), nil, nil
	case SayStop:
		s := in.Stop
		return one(rules.StopText(s.Stopped, s.Waiting, s.TooLate, s.KillFailed)), nil, nil
	}
	return nil, nil, fmt.Errorf("a post that says %q is unknown", in.Say)
}

func one(text string) []slackapi.PostRequest { return []slackapi.PostRequest{{Text: text}} }

// answer makes the messages of an agent's answer: split, never cut (B4), with the small
// line about the run at the end (B7), and the marked line of a hand-off last (D2).
func (p *Poster) answer(ctx context.Context, in PostInput) ([]slackapi.PostRequest, []string, error) {
	text, files, err := p.answerText(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	if in.DrivesUsedUp {
		text = strings.TrimSpace(text + "\n\n" + rules.DrivesUsedUpText)
	}
	var out []slackapi.PostRequest
	if text != "" {
		for _, part := range rules.SplitText(text, rules.PartLimit) {
			out = append(out, slackapi.PostRequest{Markdown: part})
		}
		out[len(out)-1].Footer = footer(in.Answer)
	}
	if h := in.Answer.HandOff; h != nil {
		out = append(out, p.handOff(h))
	}
	if len(out) == 0 {
		out = one(rules.NoWordsText(len(files)))
	}
	return out, files, nil
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
