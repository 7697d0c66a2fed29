package slackapi

import (
	"context"
	"time"

	"agentsmith/rules"
)

// Speaker is a seat that can post.
type Speaker struct {
	Name  string
	Slack interface {
		Post(ctx context.Context, r PostRequest) (string, error)
	}
}

// SayTo returns what says a line of trouble in a channel, as the first of the speakers
// that can (T6): nil where there is no channel, or nobody to speak.
func SayTo(channel string, speakers []Speaker) func(ctx context.Context, text string) error {
	if channel == "" || len(speakers) == 0 {
		return nil
	}
	return func(ctx context.Context, text string) error {
		var err error
		for _, s := range speakers {
			_, err = s.Slack.Post(ctx, PostRequest{
				Channel: channel, NewThread: true, Text: text, PostID: "ops/" + s.Name + "/" + rules.TimeTS(time.Now()), Part: 1, Parts: 1,
			})
			if err == nil {
				return nil
			}
		}
		return err
	}
}
