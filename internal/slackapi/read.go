package slackapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/slack-go/slack"

	"agentsmith/rules"
)

const pageSize = 200

// History reads the lines at a channel's top level that are newer than oldest (""
// is all there is), in ts order; with a limit above 0 only the newest so many. All
// pages are read before the first line comes, since Slack gives the newest first.
// It stops at the first error. What could not be read as a message is left out.
func (c *Client) History(ctx context.Context, channel, oldest string, limit int) iter.Seq2[rules.Line, error] {
	return func(yield func(rules.Line, error) bool) {
		self, err := c.self(ctx)
		if err != nil {
			yield(rules.Line{}, fmt.Errorf("read history: %w", err))
			return
		}
		var lines []rules.Line
		for raw, err := range c.historyPages(ctx, channel, oldest, limit) {
			if err != nil {
				yield(rules.Line{}, fmt.Errorf("read history: %w", err))
				return
			}
			if line, ok := c.line(self, channel, raw); ok && rules.CompareTS(line.TS, oldest) > 0 {
				lines = append(lines, line)
			}
			if limit > 0 && len(lines) == limit {
				break
			}
		}
		for _, line := range slices.Backward(lines) {
			if !yield(line, nil) {
				return
			}
		}
	}
}

// Replies reads a thread's lines that are newer than oldest ("" is all, the root
// with them), in ts order, page by page: a caller that has enough stops reading. A
// thread that is not there is ErrParentGone.
func (c *Client) Replies(ctx context.Context, channel, root, oldest string) iter.Seq2[rules.Line, error] {
	return func(yield func(rules.Line, error) bool) {
		self, err := c.self(ctx)
		if err != nil {
			yield(rules.Line{}, fmt.Errorf("read thread: %w", err))
			return
		}
		for raw, err := range c.repliesPages(ctx, channel, root, oldest) {
			if err != nil {
				yield(rules.Line{}, fmt.Errorf("read thread: %w", err))
				return
			}
			line, ok := c.line(self, channel, raw)
			// Slack gives the root with every page.
			if !ok || rules.CompareTS(line.TS, oldest) <= 0 {
				continue
			}
			if !yield(line, nil) {
				return
			}
		}
	}
}

func (c *Client) line(self Identity, channel string, raw json.RawMessage) (rules.Line, bool) {
	line, err := rules.ParseMessage(self.Team, channel, raw)
	if err != nil {
		c.log.Warn("a message could not be read", "channel", channel, "error", err)
	}
	return line, err == nil
}

// page is an answer of history or replies, its messages as they came.
type page struct {
	Messages []json.RawMessage `json:"messages"`
	HasMore  bool              `json:"has_more"`
	Meta     struct {
		Cursor string `json:"next_cursor"`
	} `json:"response_metadata"`
}

// historyPages yields a channel's messages, the newest first.
func (c *Client) historyPages(ctx context.Context, channel, oldest string, limit int) iter.Seq2[json.RawMessage, error] {
	size := pageSize
	if limit > 0 {
		size = min(limit, size)
	}
	return c.pages(func(cursor string) ([]byte, error) {
		return c.call(ctx, "conversations.history", func(ctx context.Context, api *slack.Client) error {
			_, err := api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
				ChannelID: channel, Cursor: cursor, Oldest: oldest, Limit: size, IncludeAllMetadata: true,
			})
			return err
		})
	})
}

// repliesPages yields a thread's messages, the oldest first, and the root on every page.
func (c *Client) repliesPages(ctx context.Context, channel, root, oldest string) iter.Seq2[json.RawMessage, error] {
	return c.pages(func(cursor string) ([]byte, error) {
		body, err := c.call(ctx, "conversations.replies", func(ctx context.Context, api *slack.Client) error {
			_, _, _, err := api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
				ChannelID: channel, Timestamp: root, Cursor: cursor, Oldest: oldest, Inclusive: true, Limit: pageSize, IncludeAllMetadata: true,
			})
			return err
		})
		if IsRejected(err, "thread_not_found", "message_not_found") {
			err = fmt.Errorf("%w: %w", ErrParentGone, err)
		}
		return body, err
	})
}

func (c *Client) pages(read func(cursor string) ([]byte, error)) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		seen := map[string]bool{}
		for cursor := ""; ; {
			body, err := read(cursor)
			if err != nil {
				yield(nil, err)
				return
			}
			var p page
			if err := json.Unmarshal(body, &p); err != nil {
				yield(nil, c.ambiguous("read", err))
				return
			}
			for _, raw := range p.Messages {
				if !yield(raw, nil) {
					return
				}
			}
			if cursor = p.Meta.Cursor; cursor == "" {
				return
			}
			if seen[cursor] {
				yield(nil, c.ambiguous("read", errors.New("slack gave the same page again")))
				return
			}
			seen[cursor] = true
		}
	}
}

// Conversation is a channel that the seat is in.
type Conversation struct {
	ID   string
	Name string // "" for a DM
	Kind string // im, mpim, group or channel, as an event's channel_type
	User string // the other side of a DM
}

// Conversations lists the channels that the seat's bot is a member of, DMs with them.
func (c *Client) Conversations(ctx context.Context) ([]Conversation, error) {
	var out []Conversation
	for cursor, pages := "", 0; pages < 1000; pages++ {
		var channels []slack.Channel
		var next string
		_, err := c.call(ctx, "users.conversations", func(ctx context.Context, api *slack.Client) (err error) {
			channels, next, err = api.GetConversationsForUserContext(ctx, &slack.GetConversationsForUserParameters{
				Cursor: cursor, Limit: pageSize, ExcludeArchived: true,
				Types: []string{"public_channel", "private_channel", "mpim", "im"},
			})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list conversations: %w", err)
		}
		for _, ch := range channels {
			out = append(out, Conversation{ID: ch.ID, Name: ch.Name, Kind: kind(ch), User: ch.User})
		}
		if next == "" {
			return out, nil
		}
		cursor = next
	}
	return nil, errors.New("list conversations: too many pages")
}

func kind(ch slack.Channel) string {
	switch {
	case ch.IsIM:
		return "im"
	case ch.IsMpIM:
		return "mpim"
	case ch.IsPrivate || ch.IsGroup:
		return "group"
	}
	return "channel"
}
