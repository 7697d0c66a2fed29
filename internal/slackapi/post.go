package slackapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/slack-go/slack"

	"agentsmith/rules"
)

// EventType is the metadata type of a post that does not name another.
const EventType = "smith_post"

// PostRequest is one message of the seat. Exactly one of Text and Markdown is set.
type PostRequest struct {
	Channel string
	// ThreadTS is the root that the post stands under. Only NewThread goes without.
	ThreadTS string
	// NewThread starts a thread of its own at the channel's top level.
	NewThread bool

	// Text is a line of ours: plain, with Slack's own *bold* and `code`.
	Text string
	// Markdown is an agent's answer in standard markdown, one part of it: at most
	// rules.PartLimit, as rules.SplitText makes them.
	Markdown string
	// Footer is the small context line at the end (B7): plain text, "" for none.
	Footer string

	// PostID, with Part, is the post's name (B5): it stands in the metadata and in a
	// block_id, and FindPost finds it by either.
	PostID      string
	Part, Parts int
	EventType   string         // "" is EventType; letters, digits, _ and -
	Payload     map[string]any // more metadata; post_id, part and parts are ours

	// AllowMentions are the user ids that may be mentioned; every other mention is
	// text only, whoever wrote it (X2).
	AllowMentions []string
}

// Post sends one message, once: it never sends it again, whatever comes back,
// except after a 429 or when Slack refused its blocks, which store nothing. It
// returns the message's ts, or ErrNoThread (nothing sent), ErrParentGone, ErrAmbiguous
// (read back before sending again), *RateLimited, *Rejected, ErrDeadCredentials.
//
// Whether the parent still stands is not asked beforehand. A read may lag behind and
// call a living root gone, and the person would get no answer; and it may call a
// deleted root alive. The post's own answer knows: a reply that came out at the top
// level is deleted there and then, and FindPost does the same for one whose answer
// was lost. So a leak lives for one round trip, and is never left standing.
func (c *Client) Post(ctx context.Context, r PostRequest) (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	ts, err := c.send(ctx, r, r.blocks())
	if IsRejected(err, "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long") {
		// Better plain than not at all. Nothing was stored.
		c.log.Warn("slack refuses the blocks of a post: sending it as text", "channel", r.Channel, "thread", r.ThreadTS, "post", r.PostID, "error", err)
		ts, err = c.send(ctx, r, nil)
	}
	if IsRejected(err, "thread_not_found") {
		return "", fmt.Errorf("post %s: %w", r.PostID, ErrParentGone)
	}
	return ts, err
}

// Edit gives a message of ours another text, under the name that it has: r is the whole
// of it, as for Post. Repeating it changes nothing. Errors: *RateLimited, *Rejected,
// ErrAmbiguous, ErrDeadCredentials.
func (c *Client) Edit(ctx context.Context, ts string, r PostRequest) error {
	if err := r.check(); err != nil {
		return err
	}
	opts := []slack.MsgOption{
		slack.MsgOptionText(r.text(), false),
		slack.MsgOptionMetadata(r.metadata()),
		slack.MsgOptionBlocks(r.blocks()...),
	}
	_, err := c.call(ctx, "chat.update", func(ctx context.Context, api *slack.Client) error {
		_, _, _, err := api.UpdateMessageContext(ctx, r.Channel, ts, opts...)
		return err
	})
	return err
}

func (c *Client) send(ctx context.Context, r PostRequest, blocks []slack.Block) (string, error) {
	text := r.text()
	if blocks == nil && r.Footer != "" {
		text += "\n" + rules.EscapeText(r.Footer)
	}
	opts := []slack.MsgOption{
		slack.MsgOptionText(text, false),
		slack.MsgOptionMetadata(r.metadata()),
		slack.MsgOptionDisableLinkUnfurl(),
		slack.MsgOptionDisableMediaUnfurl(),
	}
	if blocks != nil {
		opts = append(opts, slack.MsgOptionBlocks(blocks...))
	}
	if !r.NewThread {
		opts = append(opts, slack.MsgOptionTS(r.ThreadTS))
	}
	body, err := c.call(ctx, "chat.postMessage", func(ctx context.Context, api *slack.Client) error {
		_, _, err := api.PostMessageContext(ctx, r.Channel, opts...)
		return err
	})
	if err != nil {
		return "", err
	}
	var answer struct {
		TS      string `json:"ts"`
		Message *struct {
			ThreadTS string `json:"thread_ts"`
		} `json:"message"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || !rules.ValidTS(answer.TS) {
		return "", c.ambiguous("chat.postMessage", errors.New("no ts in the answer"))
	}
	if r.NewThread {
		return answer.TS, nil
	}
	if answer.Message == nil {
		return "", c.ambiguous("chat.postMessage", errors.New("the answer does not say where the post stands"))
	}
	if answer.Message.ThreadTS == "" {
		return "", c.takeBack(ctx, r, answer.TS)
	}
	return answer.TS, nil
}

// takeBack deletes a reply that came out at the top level, and any other that an
// earlier attempt left there. It returns ErrParentGone once none is left.
func (c *Client) takeBack(ctx context.Context, r PostRequest, ts string) error {
	// The leak must go also when the caller has no time left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*c.timeout)
	defer cancel()
	if err := c.Delete(ctx, r.Channel, ts); err != nil {
		c.log.Error("a reply without its parent stands in the channel and could not be deleted", "channel", r.Channel, "thread", r.ThreadTS, "ts", ts, "post", r.PostID, "error", err)
		return c.ambiguous("chat.delete", err)
	}
	if _, err := c.dropLeaks(ctx, r.Channel, r.ThreadTS, r.PostID, r.Part); err != nil {
		return c.ambiguous("chat.delete", err)
	}
	c.log.Warn("took back a reply whose parent is gone", "channel", r.Channel, "thread", r.ThreadTS, "post", r.PostID)
	return fmt.Errorf("post %s: %w", r.PostID, ErrParentGone)
}

var eventType = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

func (r PostRequest) check() error {
	switch {
	case !r.NewThread && !rules.ValidTS(r.ThreadTS):
		return fmt.Errorf("post %s to %s: %w", r.PostID, r.Channel, ErrNoThread)
	case r.NewThread && r.ThreadTS != "":
		return fmt.Errorf("post %s: a new thread has no thread ts", r.PostID)
	case r.Channel == "" || r.PostID == "":
		return errors.New("a post needs a channel and a post id")
	case (r.Text == "") == (r.Markdown == ""):
		return fmt.Errorf("post %s: exactly one of text and markdown", r.PostID)
	case strings.TrimSpace(rules.StripControls(r.Text+r.Markdown)) == "":
		// What Slack would say, which never gets better.
		return fmt.Errorf("post %s: %w", r.PostID, &Rejected{Method: "chat.postMessage", Code: "no_text"})
	case r.EventType != "" && !eventType.MatchString(r.EventType):
		// Slack drops the metadata with a warning, and posts.
		return fmt.Errorf("post %s: event type %q", r.PostID, r.EventType)
	}
	return nil
}

// text is what notifications, screen readers and other apps read: the whole of it.
func (r PostRequest) text() string {
	return rules.EscapeText(r.Text+r.Markdown, r.AllowMentions...)
}

func (r PostRequest) metadata() slack.SlackMetadata {
	payload := map[string]any{}
	maps.Copy(payload, r.Payload)
	payload["post_id"], payload["part"], payload["parts"] = r.PostID, r.Part, r.Parts
	kind := r.EventType
	if kind == "" {
		kind = EventType
	}
	return slack.SlackMetadata{EventType: kind, EventPayload: payload}
}

// blocks lays the message out. Slack ignores the block_id of a markdown block ("will
// not be retained"), so it stands on the footer, or on a divider where there is none.
func (r PostRequest) blocks() []slack.Block {
	id := rules.PostBlockID(r.PostID, r.Part)
	var blocks []slack.Block
	if r.Markdown != "" {
		md := rules.CleanMarkdown(r.Markdown, r.AllowMentions...)
		if rules.TextLen(md) > markdownLimit {
			return nil
		}
		blocks = append(blocks, slack.NewMarkdownBlock("", md))
		if r.Footer == "" {
			return append(blocks, &slack.DividerBlock{Type: slack.MBTDivider, BlockID: id})
		}
		return append(blocks, footer(id, r.Footer))
	}
	parts := rules.SplitText(r.text(), sectionLimit)
	if len(parts) > maxSections {
		return nil
	}
	for _, part := range parts {
		// Verbatim makes nothing a link: no #general, and no URL by itself.
		part = address.ReplaceAllString(part, "<$0>")
		text := slack.NewTextBlockObject(slack.MarkdownType, part, false, true)
		blocks = append(blocks, slack.NewSectionBlock(text, nil, nil, slack.SectionBlockOptionBlockID(id)))
		id = ""
	}
	if r.Footer != "" {
		blocks = append(blocks, footer("", r.Footer))
	}
	return blocks
}

var address = regexp.MustCompile(`https?://[^\s<>|"` + "`" + `]*[^\s<>|"` + "`" + `.,;:!?)\]}'*_~]`)

const (
	markdownLimit = 12_000 // of all markdown blocks of a message
	sectionLimit  = 2_900  // of a section's text: 3,000, with room for what marks links
	maxSections   = 4      // blocks in all: about 13,200
)

func footer(id, text string) slack.Block {
	return slack.NewContextBlock(id, slack.NewTextBlockObject(slack.PlainTextType, rules.StripControls(text), false, false))
}
