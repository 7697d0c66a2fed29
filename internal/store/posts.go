package store

import (
	"context"
	"time"

	"agentsmith/rules"
)

// Post is one message of Smith's own: one part of an answer, or an honest line (B5).
type Post struct {
	// ID derives from seat, channel and line, never from a run.
	ID   string
	Seat string
	rules.Thread
	// Part counts from 1 to Parts; an answer too long for one message has several.
	Part  int
	Parts int
	// Kind says what is posted, for who reads the store: an answer and a failure line of
	// one turn share an ID, and only one is ever posted.
	Kind string
	// TS is Slack's ts, "" until Slack is known to have it.
	TS string
	// Attempts counts the BeginPost calls: from the second on, look before sending.
	Attempts int
	// BegunAt is when the first of them was.
	BegunAt time.Time
}

// BeginPost records that a post is about to be sent, before it is, and returns it as it
// stands: with its ts if it is known to be in Slack, and with the Kind and Parts of
// the first call.
func (s *Store) BeginPost(ctx context.Context, p Post) (Post, error) {
	var got Post
	err := s.write(ctx, "begin post", func(ctx context.Context, q query) (err error) {
		got, err = scanPost(q.row(ctx, `INSERT INTO posts (id, part, parts, kind, seat, team, channel, root, ts, attempts, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', 1, $9)
			ON CONFLICT (id, part) DO UPDATE SET attempts = posts.attempts + 1
			RETURNING `+postColumns,
			p.ID, p.Part, p.Parts, p.Kind, p.Seat, p.Team, p.Channel, p.Root, s.micros()))
		return err
	})
	if err != nil {
		return Post{}, err
	}
	return got, nil
}

// ConfirmPost records that Slack has the part, under ts. The first ts stands. ErrNotFound
// without BeginPost.
func (s *Store) ConfirmPost(ctx context.Context, id string, part int, ts string) error {
	if _, err := tsMicros(ts); err != nil {
		return s.wrap("confirm post", err)
	}
	return s.write(ctx, "confirm post", func(ctx context.Context, q query) error {
		n, err := q.exec(ctx, `UPDATE posts SET ts = $1 WHERE id = $2 AND part = $3 AND ts = ''`, ts, id, part)
		if err != nil || n > 0 {
			return err
		}
		var have string
		return q.row(ctx, `SELECT ts FROM posts WHERE id = $1 AND part = $2`, id, part).Scan(&have)
	})
}

// PostsOf returns the parts of a post that were begun, in order; none is no error.
func (s *Store) PostsOf(ctx context.Context, id string) ([]Post, error) {
	var all []Post
	err := s.view(ctx, "read posts", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT `+postColumns+` FROM posts WHERE id = $1 ORDER BY part`, id)
		all, err = collect(rows, err, scanPost)
		return err
	})
	return all, err
}

const postColumns = `id, part, parts, kind, seat, team, channel, root, ts, attempts, created_at`

func scanPost(r scanner) (Post, error) {
	var p Post
	var begun int64
	err := r.Scan(&p.ID, &p.Part, &p.Parts, &p.Kind, &p.Seat, &p.Team, &p.Channel, &p.Root, &p.TS, &p.Attempts, &begun)
	p.BegunAt = timeOf(begun)
	return p, err
}

// PostFile is a file that was given an id by Slack for a post.
type PostFile struct {
	Part   int
	Name   string
	FileID string
	// Confirmed: its share in the thread was seen.
	Confirmed bool
}

// KeepFileID records a file's id before its upload is completed (B5). A file that is
// uploaded anew gets a further id; all are kept, since each may turn out to be shared.
func (s *Store) KeepFileID(ctx context.Context, id string, part int, name, fileID string) error {
	return s.write(ctx, "keep file id", func(ctx context.Context, q query) error {
		_, err := q.exec(ctx, `INSERT INTO post_files (post_id, part, name, file_id, confirmed, created_at)
			VALUES ($1, $2, $3, $4, 0, $5) ON CONFLICT (post_id, file_id) DO NOTHING`, id, part, name, fileID, s.micros())
		return err
	})
}

// FileIDs returns the files of a post, in the order in which their ids were kept.
func (s *Store) FileIDs(ctx context.Context, id string) ([]PostFile, error) {
	var all []PostFile
	err := s.view(ctx, "read file ids", func(ctx context.Context, q query) error {
		rows, err := q.rows(ctx, `SELECT part, name, file_id, confirmed FROM post_files
			WHERE post_id = $1 ORDER BY created_at, part, file_id`, id)
		all, err = collect(rows, err, func(r scanner) (PostFile, error) {
			var f PostFile
			var confirmed int64
			err := r.Scan(&f.Part, &f.Name, &f.FileID, &confirmed)
			f.Confirmed = confirmed != 0
			return f, err
		})
		return err
	})
	return all, err
}

// ConfirmFile records that a file's share in the thread was seen. ErrNotFound without
// KeepFileID.
func (s *Store) ConfirmFile(ctx context.Context, id, fileID string) error {
	return s.write(ctx, "confirm file", func(ctx context.Context, q query) error {
		n, err := q.exec(ctx, `UPDATE post_files SET confirmed = 1 WHERE post_id = $1 AND file_id = $2`, id, fileID)
		if err == nil && n == 0 {
			return ErrNotFound
		}
		return err
	})
}
