package activities_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/activities"
	"agentsmith/internal/slackapi"
	"agentsmith/internal/slackbox"
	"agentsmith/internal/store"
	"agentsmith/rules"
)

// answerWithFiles is the post of an answer that left these files in its outbox.
func (r *room) answerWithFiles(line rules.Line, names ...string) activities.PostInput {
	r.t.Helper()
	in := r.answer(turn(line), "Look")
	dir, err := r.dirs.Prepare(r.t.Context(), in.Turn)
	require.NoError(r.t, err)
	for _, name := range names {
		require.NoError(r.t, os.WriteFile(filepath.Join(dir.Outbox, name), []byte("bytes of "+name), 0o600))
	}
	listed, err := dir.Outgoing()
	require.NoError(r.t, err)
	require.NoError(r.t, r.store.KeepAnswer(r.t.Context(), in.Turn.ID, store.Answer{Text: "Look", Files: listed}))
	in.Answer.Files = len(listed)
	return in
}

// shared are the names of the files that stand in a thread, and those at the top level.
func (r *room) shared(root string) (inThread, leaked []string) {
	in, out := r.standing(root)
	for _, m := range in {
		for _, f := range m.Message.Files {
			if f.Mode != "tombstone" {
				inThread = append(inThread, f.Name)
			}
		}
	}
	for _, m := range out {
		for _, f := range m.Message.Files {
			if f.Mode != "tombstone" {
				leaked = append(leaked, f.Name)
			}
		}
	}
	return inThread, leaked
}

// The process dies at each point of an upload; every file stands in the thread once.
func TestPost_SharesEachFileOnceWhereverItCrashes(t *testing.T) {
	for _, point := range []string{
		"", "before UploadURL", "after UploadURL", "before KeepFileID", "after KeepFileID", "before SendBytes", "after SendBytes",
		"before CompleteUpload", "after CompleteUpload", "before ConfirmFile", "after ConfirmFile", "before FinishTurn",
	} {
		for _, skip := range []int{0, 1} {
			t.Run(fmt.Sprint(point, skip), func(t *testing.T) {
				r := newRoom(t)
				line := r.says("", "hello")
				in := r.answerWithFiles(line, "a.txt", "b.txt")
				if point == "before FinishTurn" && skip > 0 || point == "" && skip > 0 {
					return
				}
				r.points.arm(point, skip)
				r.post(in)
				require.True(t, r.points.fired())
				got, leaked := r.shared(line.Root)
				require.Equal(t, []string{"a.txt", "b.txt"}, got)
				require.Empty(t, leaked)
				r.requireOutcome(line, rules.Answered, "")
			})
		}
	}
}

func TestPost_SharesEachFileOnceWhateverSlackDoes(t *testing.T) {
	late := slackbox.Settings{FileShareDelayMS: 12_500}
	cases := map[string]struct {
		faults   []slackbox.Fault
		settings slackbox.Settings
	}{
		"the share comes late":              {settings: late},
		"completed, the answer lost":        {faults: []slackbox.Fault{{Kind: slackbox.ResponseLost, Method: "files.completeUploadExternal", Count: 1}}},
		"completed, the answer lost, late":  {faults: []slackbox.Fault{{Kind: slackbox.ResponseLost, Method: "files.completeUploadExternal", Count: 1}}, settings: late},
		"completed, lost, later than looks": {faults: []slackbox.Fault{{Kind: slackbox.ResponseLost, Method: "files.completeUploadExternal", Count: 1}}, settings: slackbox.Settings{FileShareDelayMS: 60_000}},
		"completed late":                    {faults: []slackbox.Fault{{Kind: slackbox.CommitLate, Method: "files.completeUploadExternal", Count: 1, DelayMS: 9000}}},
		"not completed":                     {faults: []slackbox.Fault{{Kind: slackbox.ServerError, Method: "files.completeUploadExternal", Count: 1}}},
		"the bytes lost":                    {faults: []slackbox.Fault{{Kind: slackbox.DropRequest, Method: "upload", Count: 1}}},
		"the bytes taken, the answer lost":  {faults: []slackbox.Fault{{Kind: slackbox.ResponseLost, Method: "upload", Count: 1}}},
		"the URL's answer lost":             {faults: []slackbox.Fault{{Kind: slackbox.ResponseLost, Method: "files.getUploadURLExternal", Count: 1}}},
		"the looks fail":                    {faults: []slackbox.Fault{{Kind: slackbox.ServerError, Method: "files.info", Count: 3}}},
		"429":                               {faults: []slackbox.Fault{{Kind: slackbox.RateLimited, Method: "files.*", RetryAfter: 90, Count: 2}}},
	}
	for _, name := range sortedKeys(cases) {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			line := r.says("", "hello")
			in := r.answerWithFiles(line, "a.txt")
			r.box.SetSettings(cases[name].settings)
			for _, f := range cases[name].faults {
				r.fault(f)
			}
			r.post(in)
			require.NoError(t, r.box.Advance(2*time.Minute))
			got, leaked := r.shared(line.Root)
			require.Equal(t, []string{"a.txt"}, got)
			require.Empty(t, leaked)
			r.requireOutcome(line, rules.Answered, "")
		})
	}
}

// An upload that may be under way is waited out before it is looked for, as a post is.
func TestPost_WaitsOutAnUploadBeforeItLooks(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	in := r.answerWithFiles(line, "a.txt")
	r.fault(slackbox.Fault{Kind: slackbox.ResponseLost, Method: "files.completeUploadExternal", Count: 1})
	_, err := attempt(r, r.poster.Post, in)
	require.ErrorIs(t, err, slackapi.ErrAmbiguous)
	r.waits = nil
	r.post(in)
	require.Equal(t, []time.Duration{requestTimeout}, r.waits, "and found at the first look")
	require.Equal(t, 1, r.calls("files.completeUploadExternal"))
}

// A file whose thread went away while it was shared is taken back (B5).
func TestPost_TakesBackAFileWithoutItsThread(t *testing.T) {
	for name, delay := range map[string]int{"shared at once": 0, "shared late": 3000} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			line := r.says("", "hello")
			in := r.answerWithFiles(line, "a.txt")
			r.box.SetSettings(slackbox.Settings{FileShareDelayMS: delay})
			r.points.arm("before CompleteUpload", 0)
			_, err := attempt(r, r.poster.Post, in)
			require.Error(t, err)
			require.NoError(t, r.box.DeleteHard("random", line.TS))
			r.post(in)
			require.NoError(t, r.box.Advance(time.Minute))
			got, leaked := r.shared(line.Root)
			require.Empty(t, got)
			require.Empty(t, leaked)
			r.requireOutcome(line, rules.Failed, rules.ReasonParentGone)
		})
	}
}

// Files are an answer too: those that a dead worker had kept are posted (B3, B4).
func TestPost_IfBegun_PostsKeptFiles(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	in := activities.PostInput{Turn: turn(line), Say: activities.SayFailure, State: rules.Failed, Reason: rules.ReasonWorkerDied, IfBegun: true}
	r.take(in.Turn)
	dir, err := r.dirs.Prepare(t.Context(), in.Turn)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir.Outbox, "a.txt"), []byte("A"), 0o600))
	require.NoError(t, r.store.KeepAnswer(t.Context(), in.Turn.ID, store.Answer{Files: []string{"a.txt"}}))
	r.post(in)
	got, _ := r.shared(line.Root)
	require.Equal(t, []string{"a.txt"}, got)
	r.requireStanding(line.Root, rules.NoWordsText(1), "")
	r.requireOutcome(line, rules.Answered, "")
}

// What cannot be posted is named, once; the words still stand.
func TestPost_NamesTheFilesThatCannotBePosted(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	in := r.answerWithFiles(line, "a.txt", "empty", "gone.txt", "z.txt")
	dir, err := r.dirs.Of(in.Turn)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(filepath.Join(dir.Outbox, "empty"), 0))
	require.NoError(t, os.Remove(filepath.Join(dir.Outbox, "gone.txt")))
	r.fault(slackbox.Fault{Kind: slackbox.APIError, Method: "files.getUploadURLExternal", Error: "file_upload_size_restricted", Skip: 1})
	r.points.arm("before FinishTurn", 0)
	r.post(in)
	got, _ := r.shared(line.Root)
	require.Equal(t, []string{"a.txt"}, got)
	r.requireStanding(line.Root, "Look", "", rules.FilesLeftText([]string{"empty", "gone.txt", "z.txt"}))
	r.requireOutcome(line, rules.Answered, "")
}

// Ten files at most are posted; the others are named.
func TestPost_NamesTheFilesBeyondTheLimit(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("f%02d.txt", i))
	}
	in := r.answerWithFiles(line, names...)
	r.post(in)
	got, _ := r.shared(line.Root)
	require.Equal(t, names[:10], got)
	posted, _ := r.standing(line.Root)
	require.Equal(t, rules.FilesLeftText(names[10:]), posted[len(posted)-1].Text)
}

// An outbox gives only what the agent wrote there itself (X2).
func TestOutgoing_LeavesLinksAndDirectoriesAlone(t *testing.T) {
	dirs := activities.Dirs{Root: t.TempDir()}
	tt := someTurn()
	dir, err := dirs.Prepare(t.Context(), tt)
	require.NoError(t, err)
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir.Outbox, "link")))
	require.NoError(t, os.Mkdir(filepath.Join(dir.Outbox, "folder"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir.Outbox, "pipe"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir.Outbox, "real"), []byte("real"), 0o600))
	huge, err := os.Create(filepath.Join(dir.Outbox, "huge"))
	require.NoError(t, err)
	require.NoError(t, huge.Truncate(64<<20+1))
	require.NoError(t, huge.Close())

	names, err := dir.Outgoing()
	require.NoError(t, err)
	require.Equal(t, []string{"huge", "real"}, names)
	for _, name := range []string{"link", "folder", "pipe", "huge", "none", "", ".", "..", "../../../" + tt.Thread.Root, secret, "folder/../../../x"} {
		f, _, err := dir.Open(name)
		require.Error(t, err, "%q", name)
		require.Nil(t, f)
	}
	f, size, err := dir.Open("real")
	require.NoError(t, err)
	require.EqualValues(t, 4, size)
	require.NoError(t, f.Close())
}

// An outbox that the agent replaced by a link to elsewhere is none.
func TestOutgoing_DoesNotFollowAnOutboxThatLeadsElsewhere(t *testing.T) {
	dirs := activities.Dirs{Root: t.TempDir()}
	elsewhere := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(elsewhere, "secret"), []byte("secret"), 0o600))
	dir, err := dirs.Prepare(t.Context(), someTurn())
	require.NoError(t, err)
	require.NoError(t, os.Remove(dir.Outbox))
	require.NoError(t, os.Symlink(elsewhere, dir.Outbox))
	names, err := dir.Outgoing()
	require.Error(t, err)
	require.Empty(t, names)
	_, _, err = dir.Open("secret")
	require.Error(t, err)

	// Nor is one made below a link, in the next turn.
	require.NoError(t, os.RemoveAll(filepath.Join(dir.Path, "outbox")))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir.Path, "outbox")))
	_, err = dirs.Prepare(t.Context(), someTurn())
	require.Error(t, err)
	entries, err := os.ReadDir(elsewhere)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// Hostile names of the agent's files reach Slack as safe ones (X2).
func TestPost_MakesTheNamesOfFilesSafe(t *testing.T) {
	r := newRoom(t)
	line := r.says("", "hello")
	hostile := []string{"-rf", "<!channel>.txt", "a\nb.txt", "\x1b[2Jred.txt", strings.Repeat("n", 250)}
	in := r.answerWithFiles(line, hostile...)
	r.post(in)
	got, _ := r.shared(line.Root)
	require.Len(t, got, len(hostile))
	for _, name := range got {
		require.Equal(t, rules.SafeFileName(name), name)
	}
}
