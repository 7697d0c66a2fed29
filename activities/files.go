package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// files posts an answer's files into the thread, each once (B4, B5).
func (p *Poster) files(ctx context.Context, seat *Seat, turn Turn, thread rules.Thread, postID string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	dir, err := p.Dirs.Of(turn)
	if err != nil {
		return err
	}
	known, err := p.Ledger.FileIDs(ctx, postID)
	if err != nil {
		return fmt.Errorf("look up the post's files: %w", err)
	}
	for i, name := range names {
		u := upload{poster: p, seat: seat, thread: thread, dir: dir, postID: postID, part: i + 1, name: name}
		for _, f := range known {
			if f.Part == u.part {
				u.kept = append(u.kept, f)
			}
		}
		if err := u.once(ctx); err != nil {
			return fmt.Errorf("post the file %q: %w", rules.SafeFileName(name), err)
		}
	}
	return nil
}

// upload is one file of a post.
type upload struct {
	poster *Poster
	seat   *Seat
	thread rules.Thread
	dir    ThreadDir
	postID string
	part   int
	name   string
	// kept are the ids that earlier attempts got for it.
	kept []store.PostFile
}

// once uploads a file that is not yet in the thread. Its id was kept before its upload
// was completed, so a repeat can ask where the file is shared.
func (u *upload) once(ctx context.Context) error {
	if done, err := u.resume(ctx); done || err != nil {
		return err
	}
	f, size, err := u.dir.Open(u.name)
	if err != nil {
		// The agent's own file is gone or is none: the answer's words still stand.
		u.poster.Log.Warn("an outgoing file was left out", "thread", u.thread.Root, "error", err)
		return nil
	}
	defer f.Close()
	id, url, err := u.seat.Slack.UploadURL(ctx, u.name, int(size))
	if err != nil {
		return err
	}
	if err := u.poster.Ledger.KeepFileID(ctx, u.postID, u.part, u.name, id); err != nil {
		return fmt.Errorf("keep the file's id: %w", err)
	}
	if err := u.seat.Slack.SendBytes(ctx, url, u.name, f, int(size)); err != nil {
		return err
	}
	failpoint.At(failpoint.PostFileIDKept)
	return u.complete(ctx, id)
}

// resume looks for the file where earlier attempts may have put it; false when its upload
// must be begun anew.
func (u *upload) resume(ctx context.Context) (done bool, err error) {
	if len(u.kept) == 0 {
		return false, nil
	}
	for i := range 2 {
		if i > 0 {
			if err := u.poster.Wait(ctx, readBackPause); err != nil {
				return false, fmt.Errorf("wait between two looks: %w", err)
			}
		}
		for _, f := range u.kept {
			if f.Confirmed {
				return true, nil
			}
			shared, err := u.shared(ctx, f.FileID)
			if err != nil && !errors.As(err, new(*slackapi.Rejected)) {
				return false, err
			}
			if shared {
				return true, u.confirm(ctx, f.FileID)
			}
		}
	}
	last := u.kept[len(u.kept)-1]
	err = u.complete(ctx, last.FileID)
	if errors.As(err, new(*slackapi.Rejected)) {
		return false, nil
	}
	return err == nil, err
}

func (u *upload) complete(ctx context.Context, id string) error {
	if err := u.seat.Slack.CompleteUpload(ctx, []string{id}, u.thread.Channel, u.thread.Root, ""); err != nil {
		return err
	}
	failpoint.At(failpoint.PostFileCompleted)
	if _, err := u.shared(ctx, id); err != nil && errors.Is(err, slackapi.ErrParentGone) {
		return err
	}
	return u.confirm(ctx, id)
}

// shared tells whether a file stands in the thread. One that came out at the channel's
// top level, since the thread's root is gone, is taken back (B5).
func (u *upload) shared(ctx context.Context, id string) (bool, error) {
	shares, err := u.seat.Slack.FileShares(ctx, id)
	if err != nil {
		return false, err
	}
	for _, s := range shares {
		switch {
		case s.Channel != u.thread.Channel:
		case s.ThreadTS == u.thread.Root:
			return true, nil
		case s.ThreadTS == "":
			if err := u.seat.Slack.DeleteFile(ctx, id); err != nil {
				return false, fmt.Errorf("take back a file without its thread: %w", err)
			}
			return false, slackapi.ErrParentGone
		}
	}
	return false, nil
}

func (u *upload) confirm(ctx context.Context, id string) error {
	if err := u.poster.Ledger.ConfirmFile(ctx, u.postID, id); err != nil {
		return fmt.Errorf("record the file: %w", err)
	}
	return nil
}

// maxFetch bounds one file that a person sends, in bytes.
const maxFetch = 64 << 20

// fetch writes the files of a line into the thread's inbox and returns their paths there.
// What cannot be fetched is named with the reason: the agent, and so the person, hears of it.
func (a *Agent) fetch(ctx context.Context, seat *Seat, dir ThreadDir, line rules.Line) (paths, unread []string) {
	for i, f := range line.Files {
		name := rules.SafeFileName(f.Name)
		rel := filepath.Join("inbox", fmt.Sprintf("%s-%d-%s", line.TS, i+1, name))
		if err := a.fetchOne(ctx, seat, filepath.Join(dir.Path, rel), f); err != nil {
			a.Log.Warn("a file could not be fetched", "line", line.TS, "file", f.ID, "error", err)
			why := "Slack did not hand it out"
			if errors.Is(err, slackapi.ErrTooLarge) {
				why = "it is larger than 64 MiB"
			}
			unread = append(unread, name+": "+why)
			continue
		}
		paths = append(paths, rel)
	}
	return paths, unread
}

func (a *Agent) fetchOne(ctx context.Context, seat *Seat, path string, f rules.File) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make the inbox: %w", err)
	}
	w, err := os.CreateTemp(filepath.Dir(path), ".fetch-*")
	if err != nil {
		return fmt.Errorf("make the file: %w", err)
	}
	defer os.Remove(w.Name())
	_, err = seat.Slack.Download(ctx, f, w, maxFetch)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	if err := os.Rename(w.Name(), path); err != nil {
		return fmt.Errorf("keep the file: %w", err)
	}
	return nil
}
