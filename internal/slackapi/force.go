package slackapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/slack-go/slack"
)

// maxPages bounds a list that Slack hands out in pages.
const maxPages = 1000

// usersPage is how many users one request brings: Slack allows twenty a minute, and a
// workspace may have many thousands.
const usersPage = 1000

// Members lists the users of a channel, all pages of them. Errors are those of every call.
func (c *Client) Members(ctx context.Context, channel string) ([]string, error) {
	var out []string
	for cursor, n := "", 0; n < maxPages; n++ {
		var page []string
		var next string
		_, err := c.call(ctx, "conversations.members", func(ctx context.Context, api *slack.Client) (err error) {
			page, next, err = api.GetUsersInConversationContext(ctx, &slack.GetUsersInConversationParameters{
				ChannelID: channel, Cursor: cursor, Limit: pageSize,
			})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list the members of a channel: %w", err)
		}
		out = append(out, page...)
		if next == "" {
			return out, nil
		}
		cursor = next
	}
	return nil, errors.New("list the members of a channel: too many pages")
}

// Reaction is one user's reaction on a message.
type Reaction struct{ Name, User string }

// Reactions are the reactions on a message, one for each user.
func (c *Client) Reactions(ctx context.Context, channel, ts string) ([]Reaction, error) {
	var item slack.ReactedItem
	_, err := c.call(ctx, "reactions.get", func(ctx context.Context, api *slack.Client) (err error) {
		item, err = api.GetReactionsContext(ctx, slack.NewRefToMessage(channel, ts), slack.GetReactionsParameters{Full: true})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the reactions of a message: %w", err)
	}
	var out []Reaction
	for _, r := range item.Reactions {
		for _, user := range r.Users {
			out = append(out, Reaction{Name: r.Name, User: user})
		}
	}
	return out, nil
}

// ErrNoBot: no bot user of the workspace has that name.
var ErrNoBot = errors.New("no bot user has this name")

// BotUserNamed finds a bot user by the name that people see (A1). Only bots count: a person
// may call themselves what they like. Of several with one name none is taken.
func (c *Client) BotUserNamed(ctx context.Context, name string) (string, error) {
	found := ""
	for cursor, n := "", 0; n < maxPages; n++ {
		var page []slack.User
		_, err := c.call(ctx, "users.list", func(ctx context.Context, api *slack.Client) error {
			p, err := api.GetUsersPaginated(slack.GetUsersOptionLimit(usersPage), slack.GetUsersOptionCursor(cursor)).Next(ctx)
			page, cursor = p.Users, p.Cursor
			return err
		})
		if err != nil {
			return "", fmt.Errorf("list the users: %w", err)
		}
		for _, u := range page {
			if !u.IsBot || u.Deleted || u.RealName != name && u.Profile.RealName != name && u.Profile.DisplayName != name {
				continue
			}
			if found != "" && found != u.ID {
				return "", fmt.Errorf("%w alone: %q", ErrNoBot, name)
			}
			found = u.ID
		}
		if cursor == "" {
			break
		}
	}
	if found == "" {
		return "", fmt.Errorf("%w: %q", ErrNoBot, name)
	}
	return found, nil
}
