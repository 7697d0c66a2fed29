package activities

import (
	"context"
	"io"
	"iter"

	"agentsmith/internal/slackapi"
	"agentsmith/rules"
)

//go:generate mockgen -source=slack.go -destination=mock_slack_test.go -package=activities_test

// SlackClient is what the activities ask of Slack as one seat.
type SlackClient interface {
	Post(ctx context.Context, r slackapi.PostRequest) (ts string, err error)
	Edit(ctx context.Context, ts string, r slackapi.PostRequest) error
	FindPost(ctx context.Context, channel, root, postID string, part int) (ts string, found bool, err error)
	Delete(ctx context.Context, channel, ts string) error
	Members(ctx context.Context, channel string) ([]string, error)
	Reactions(ctx context.Context, channel, ts string) ([]slackapi.Reaction, error)
	SetStatus(ctx context.Context, channel, root, status string) error
	ClearStatus(ctx context.Context, channel, root string) error
	History(ctx context.Context, channel, oldest string, limit int) iter.Seq2[rules.Line, error]
	Replies(ctx context.Context, channel, root, oldest string) iter.Seq2[rules.Line, error]
	User(ctx context.Context, id string) (slackapi.Person, error)
	UploadURL(ctx context.Context, name string, size int) (fileID, uploadURL string, err error)
	SendBytes(ctx context.Context, uploadURL, name string, r io.Reader, size int) error
	CompleteUpload(ctx context.Context, fileIDs []string, channel, threadTS, comment string) error
	FileShares(ctx context.Context, fileID string) ([]slackapi.Share, error)
	DeleteFile(ctx context.Context, fileID string) error
	Download(ctx context.Context, file rules.File, w io.Writer, limit int64) (int64, error)
}
