package slackapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentsmith/rules"
)

// leakAge is how far back a reply that came out at the top level is looked for. The
// attempts of one post lie minutes apart; a worker may have been down in between.
const leakAge = 24 * time.Hour

// FindPost looks for a post of the seat's own by its post id and part, in the thread,
// or at the channel's top level when root is "" (a NewThread post, of the last day).
// It believes only messages of the seat's own bot: by metadata, which any other app
// could forge, or by block_id where the metadata may not be read.
//
// A thread that is not there is searched for what leaked of the post to the top level;
// that is deleted, and the error is ErrParentGone. Found nothing, it returns false:
// a read may lag, and only the next Post tells whether the root is really gone.
func (c *Client) FindPost(ctx context.Context, channel, root, postID string, part int) (ts string, found bool, err error) {
	self, err := c.self(ctx)
	if err != nil {
		return "", false, fmt.Errorf("find post %s: %w", postID, err)
	}
	pages := c.repliesPages(ctx, channel, root, after(postID, root))
	if root == "" {
		pages = c.historyPages(ctx, channel, c.ago(leakAge), 0)
	}
	for raw, err := range pages {
		if errors.Is(err, ErrParentGone) {
			leaked, err := c.dropLeaks(ctx, channel, root, postID, part)
			if err == nil && leaked {
				err = ErrParentGone
			}
			if err != nil {
				err = fmt.Errorf("find post %s: %w", postID, err)
			}
			return "", false, err
		}
		if err != nil {
			return "", false, fmt.Errorf("find post %s: %w", postID, err)
		}
		if line, ok := c.own(self, channel, raw, postID, part); ok {
			return line.TS, true, nil
		}
	}
	return "", false, nil
}

// dropLeaks deletes every copy of a threaded post that stands at the channel's top
// level, and tells whether there was one.
func (c *Client) dropLeaks(ctx context.Context, channel, root, postID string, part int) (bool, error) {
	self, err := c.self(ctx)
	if err != nil {
		return false, err
	}
	var leaked []string
	for raw, err := range c.historyPages(ctx, channel, rules.NewerTS(c.ago(leakAge), root), 0) {
		if err != nil {
			return false, err
		}
		if line, ok := c.own(self, channel, raw, postID, part); ok && line.Root == line.TS {
			leaked = append(leaked, line.TS)
		}
	}
	for _, ts := range leaked {
		if err := c.Delete(ctx, channel, ts); err != nil {
			return true, err
		}
		c.log.Warn("took back a reply whose parent is gone", "channel", channel, "thread", root, "post", postID)
	}
	return len(leaked) > 0, nil
}

// own tells whether a message is the seat's own post of that name.
func (c *Client) own(self Identity, channel string, raw json.RawMessage, postID string, part int) (rules.Line, bool) {
	line, err := rules.ParseMessage(self.Team, channel, raw)
	if err != nil {
		return rules.Line{}, false
	}
	ours := line.BotID != "" && line.BotID == self.BotID || line.User != "" && line.User == self.UserID
	return line, ours && rules.IsPost(raw, postID, part)
}

// after is a ts that the post cannot be older than: the ts of the line in its post
// id, which spares the pages of a long thread.
func after(postID, root string) string {
	for part := range strings.SplitSeq(postID, "/") {
		if rules.ValidTS(part) && rules.CompareTS(part, root) > 0 {
			return part
		}
	}
	return root
}

func (c *Client) ago(d time.Duration) string {
	return rules.TimeTS(c.now().Add(-d))
}
