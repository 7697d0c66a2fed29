package activities

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// files posts an answer's files into the thread, each once (B4, B5), and returns the names
// of those that cannot be posted: the thread is told.
func (p *Poster) files(ctx context.Context, seat *Seat, turn Turn, thread rules.Thread, postID string, names []string) (left []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	dir, err := p.Dirs.Of(turn)
	if err != nil {
		return nil, err
	}
	known, err := p.Ledger.FileIDs(ctx, postID)
	if err != nil {
		return nil, fmt.Errorf("look up the post's files: %w", err)
	}
	for i, name := range names {
		shown := rules.SafeFileName(name)
		if i >= maxFiles {
			left = append(left, shown)
			continue
		}
		u := upload{poster: p, seat: seat, thread: thread, dir: dir, postID: postID, part: i + 1, name: name}
		for _, f := range known {
			if f.Part == u.part {
				u.kept = append(u.kept, f)
			}
		}
		err := u.once(ctx)
		if errors.Is(err, errNoFile) || errors.As(err, new(*slackapi.Rejected)) {
			p.Log.Warn("an outgoing file was left out", "thread", thread.Root, "error", err)
			left = append(left, shown)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("post the file %q: %w", shown, err)
		}
	}
	return left, nil
}

// errNoFile: what the agent left under a name is none that can be posted, or is gone.
var errNoFile = errors.New("no file to post")

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
		return fmt.Errorf("%w: %w", errNoFile, err)
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
	if slices.ContainsFunc(u.kept, func(f store.PostFile) bool { return f.Confirmed }) {
		return true, nil
	}
	if err := u.poster.Wait(ctx, u.poster.RequestTimeout); err != nil {
		return false, fmt.Errorf("wait out an earlier upload: %w", err)
	}
	for i := range 2 {
		if i > 0 {
			if err := u.poster.Wait(ctx, readBackPause); err != nil {
				return false, fmt.Errorf("wait between two looks: %w", err)
			}
		}
		for _, f := range u.kept {
			shared, err := u.shared(ctx, f.FileID)
			if err != nil && !errors.As(err, new(*slackapi.Rejected)) {
				return false, err
			}
			if shared {
				return true, u.confirm(ctx, f.FileID)
			}
		}
	}
	err = u.complete(ctx, u.kept[len(u.kept)-1].FileID)
	if errors.As(err, new(*slackapi.Rejected)) {
		return false, nil
	}
	return err == nil, err
}

// alreadyCompleted is Slack's word for an upload that was completed before.
const alreadyCompleted = "file_already_completed"

// complete shares an uploaded file, then looks whether it came out in the thread: Slack
// shares it some time after it said so.
func (u *upload) complete(ctx context.Context, id string) error {
	sending, cancel, err := u.poster.sending(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	err = u.seat.Slack.CompleteUpload(sending, []string{id}, u.thread.Channel, u.thread.Root, "")
	if err != nil && !slackapi.IsRejected(err, alreadyCompleted) {
		return err
	}
	failpoint.At(failpoint.PostFileCompleted)
	for _, pause := range sharePauses() {
		if err := u.poster.Wait(ctx, pause); err != nil {
			return fmt.Errorf("wait for the file to be shared: %w", err)
		}
		shared, err := u.shared(ctx, id)
		if errors.Is(err, slackapi.ErrParentGone) {
			return err
		}
		if shared {
			return u.confirm(ctx, id)
		}
	}
	u.poster.Log.Warn("a file was posted and is not yet seen in its thread", "thread", u.thread.Root, "file", id)
	return u.confirm(ctx, id)
}

// sharePauses lie before each look for a share.
func sharePauses() []time.Duration {
	return []time.Duration{0, time.Second, 4 * time.Second}
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
		if err := fetchOne(ctx, seat, dir, rel, f); err != nil {
			a.Log.Warn("a file could not be fetched", "line", line.TS, "file", f.ID, "error", err)
			why := "it could not be fetched from Slack"
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

// fetchOne downloads a file to rel in the thread's directory, and never outside of it:
// whatever an agent may have put in the way. It is there whole or not at all.
func fetchOne(ctx context.Context, seat *Seat, dir ThreadDir, rel string, f rules.File) (err error) {
	root, err := os.OpenRoot(dir.Path)
	if err != nil {
		return fmt.Errorf("open the thread's directory: %w", err)
	}
	defer root.Close()
	if _, err := root.Lstat(rel); err == nil {
		return nil
	}
	if err := root.MkdirAll(filepath.Dir(rel), 0o700); err != nil {
		return fmt.Errorf("make the inbox: %w", err)
	}
	part := filepath.Join(filepath.Dir(rel), ".fetch-"+rand.Text())
	w, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make the file: %w", err)
	}
	defer func() {
		if err != nil {
			_ = root.Remove(part)
		}
	}()
	_, err = seat.Slack.Download(ctx, f, w, maxFetch)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	if err := root.Rename(part, rel); err != nil {
		return fmt.Errorf("keep the file: %w", err)
	}
	return nil
}
