package slackapi

import (
	"context"
	"strings"

	"github.com/slack-go/slack"

	"agentsmith/rules"
)

// SetStatus shows under the thread that the seat is at work (B7): status is what
// people read after the seat's name ("is thinking…"). It is the one loading message
// too, or Slack would rotate its own. Slack drops a status after two minutes, and
// with any post: refresh it before.
func (c *Client) SetStatus(ctx context.Context, channel, root, status string) error {
	p := slack.AssistantThreadsSetStatusParameters{ChannelID: channel, ThreadTS: root, Status: status}
	if status != "" {
		// slack-go joins the loading messages with commas.
		p.LoadingMessages = []string{strings.ReplaceAll(status, ",", " ")}
	}
	_, err := c.call(ctx, "assistant.threads.setStatus", func(ctx context.Context, api *slack.Client) error {
		return api.SetAssistantThreadsStatusContext(ctx, p)
	})
	return err
}

// ClearStatus takes the status away: a stuck one blocks the composer (B7).
func (c *Client) ClearStatus(ctx context.Context, channel, root string) error {
	return c.SetStatus(ctx, channel, root, "")
}

// Ephemeral shows text to one person only, in the thread when root is not "". It is
// plain text, escaped here. Nothing is kept of it, so it is never the answer to a line.
func (c *Client) Ephemeral(ctx context.Context, channel, user, root, text string) error {
	opts := []slack.MsgOption{slack.MsgOptionText(rules.EscapeText(text), false)}
	if root != "" {
		opts = append(opts, slack.MsgOptionTS(root))
	}
	_, err := c.call(ctx, "chat.postEphemeral", func(ctx context.Context, api *slack.Client) error {
		_, err := api.PostEphemeralContext(ctx, channel, user, opts...)
		return err
	})
	return err
}

// Delete removes a message of the seat's own. One that is gone already is no error.
func (c *Client) Delete(ctx context.Context, channel, ts string) error {
	_, err := c.call(ctx, "chat.delete", func(ctx context.Context, api *slack.Client) error {
		_, _, err := api.DeleteMessageContext(ctx, channel, ts)
		return err
	})
	if IsRejected(err, "message_not_found") {
		return nil
	}
	return err
}
