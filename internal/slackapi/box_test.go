package slackapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackapi"
	"agentsmith/internal/slackbox"
	"agentsmith/rules"
)

// seat is Smith's client in the local Slack, and a thread of Ana's to post in.
type seat struct {
	*slackapi.Client
	box     *slackbox.Server
	channel string
	root    string
	postID  string
}

func newSeat(t *testing.T, seed func(*slackbox.Seed)) *seat {
	t.Helper()
	world := slackbox.DefaultSeed()
	if seed != nil {
		seed(&world)
	}
	box := slackbox.New(slackbox.Options{Seed: &world})
	require.NoError(t, box.Start(t.Context(), ""))
	t.Cleanup(func() { _ = box.Close() })
	s := &seat{box: box}
	s.Client = slackapi.New(slackapi.Options{
		Token: "xoxb-local-smith", APIURL: box.URL(), Timeout: time.Second, Now: box.Now,
		Wait: func(_ context.Context, d time.Duration) error { return box.Advance(d) },
	})
	channels, err := s.Conversations(t.Context())
	require.NoError(t, err)
	for _, c := range channels {
		if c.Name == "random" {
			s.channel = c.ID
		}
	}
	require.NotEmpty(t, s.channel)
	s.root, err = box.Person("ana").Say("random", "@smith hello")
	require.NoError(t, err)
	s.postID = rules.TurnID("smith", s.channel, s.root)
	return s
}

func (s *seat) post(ctx context.Context) (string, error) {
	return s.Post(ctx, slackapi.PostRequest{
		Channel: s.channel, ThreadTS: s.root, Markdown: "**Hello**, <!here>", Footer: "opus · 3 s", PostID: s.postID, Part: 1, Parts: 1,
	})
}

// once is the recipe of B5, without its waits: an attempt after the first reads back.
func (s *seat) once(t *testing.T) (string, error) {
	t.Helper()
	ts, err := s.post(t.Context())
	for range 5 {
		if !errors.Is(err, slackapi.ErrAmbiguous) {
			return ts, err
		}
		require.NoError(t, s.box.Advance(10*time.Second))
		found, ok, findErr := s.FindPost(t.Context(), s.channel, s.root, s.postID, 1)
		switch {
		case ok:
			return found, nil
		case findErr != nil:
			err = findErr
		default:
			ts, err = s.post(t.Context())
		}
	}
	return ts, err
}

// standing are Smith's messages that a reader sees, as channel or thread and text.
func (s *seat) standing() (inThread, leaked int) {
	for _, m := range s.box.Log(0).Messages {
		switch {
		case m.App != "smith" || m.Deleted():
		case m.ThreadTS == "":
			leaked++
		default:
			inThread++
		}
	}
	return inThread, leaked
}

func TestBox_PostsOnceWhateverHappens(t *testing.T) {
	for name, faults := range map[string][]slackbox.Fault{
		"nothing":                 nil,
		"429":                     {{Kind: slackbox.RateLimited, Method: "chat.postMessage", RetryAfter: 2, Count: 2}},
		"500":                     {{Kind: slackbox.ServerError, Method: "chat.postMessage", Count: 1}},
		"the request lost":        {{Kind: slackbox.DropRequest, Method: "chat.postMessage", Count: 1}},
		"no answer":               {{Kind: slackbox.Timeout, Method: "chat.postMessage", Count: 1}},
		"the answer lost":         {{Kind: slackbox.ResponseLost, Method: "chat.postMessage", Count: 1}},
		"the answer lost as 500":  {{Kind: slackbox.ResponseLost, Method: "chat.postMessage", Count: 1, Status: 502}},
		"ok:false with no error":  {{Kind: slackbox.APIError, Method: "chat.postMessage", Count: 1}},
		"an internal error":       {{Kind: slackbox.APIError, Method: "chat.postMessage", Count: 1, Error: "internal_error"}},
		"committed late":          {{Kind: slackbox.CommitLate, Method: "chat.postMessage", Count: 1, DelayMS: 5000}},
		"the read-back fails too": {{Kind: slackbox.ResponseLost, Method: "chat.postMessage", Count: 1}, {Kind: slackbox.ServerError, Method: "conversations.replies", Count: 1}},
		"the blocks refused":      {{Kind: slackbox.APIError, Method: "chat.postMessage", Count: 1, Error: "invalid_blocks"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSeat(t, nil)
			for _, f := range faults {
				_, err := s.box.AddFault(f)
				require.NoError(t, err)
			}
			ts, err := s.once(t)
			require.NoError(t, err)
			require.True(t, rules.ValidTS(ts))
			inThread, leaked := s.standing()
			require.Equal(t, 1, inThread)
			require.Zero(t, leaked)
			for _, f := range s.box.Faults() {
				require.NotZero(t, f.Fired, "the fault was not met")
			}
			found, ok, err := s.FindPost(t.Context(), s.channel, s.root, s.postID, 1)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, ts, found)
		})
	}
}

func TestBox_ALaggingReadDoesNotSeeAPost(t *testing.T) {
	s := newSeat(t, nil)
	ts, err := s.post(t.Context())
	require.NoError(t, err)
	id, err := s.box.AddFault(slackbox.Fault{Kind: slackbox.LagReads, DelayMS: 3000})
	require.NoError(t, err)
	_, ok, err := s.FindPost(t.Context(), s.channel, s.root, s.postID, 1)
	require.NoError(t, err)
	require.False(t, ok, "which is why the caller looks twice")
	require.NoError(t, s.box.Advance(5*time.Second))
	found, ok, err := s.FindPost(t.Context(), s.channel, s.root, s.postID, 1)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, ts, found)
	s.box.RemoveFault(id)
}

func TestBox_LeavesNothingInTheChannelWhenTheParentIsGone(t *testing.T) {
	for name, faults := range map[string][]slackbox.Fault{
		"deleted before":               {{Kind: slackbox.ParentDeleted, Count: 1}},
		"and the answer lost":          {{Kind: slackbox.ParentDeleted, Count: 1}, {Kind: slackbox.ResponseLost, Method: "chat.postMessage", Count: 1}},
		"and the delete fails":         {{Kind: slackbox.ParentDeleted, Count: 1}, {Kind: slackbox.ServerError, Method: "chat.delete", Count: 1}},
		"and the delete's answer, too": {{Kind: slackbox.ParentDeleted, Count: 1}, {Kind: slackbox.ResponseLost, Method: "chat.*", Count: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSeat(t, nil)
			for _, f := range faults {
				_, err := s.box.AddFault(f)
				require.NoError(t, err)
			}
			_, err := s.once(t)
			require.ErrorIs(t, err, slackapi.ErrParentGone)
			inThread, leaked := s.standing()
			require.Zero(t, inThread)
			require.Zero(t, leaked)
		})
	}
}

func TestBox_SweepsAnEarlierLeakThatItsReadDidNotSee(t *testing.T) {
	s := newSeat(t, nil)
	for _, f := range []slackbox.Fault{
		{Kind: slackbox.ParentDeleted, Count: 1},
		{Kind: slackbox.ResponseLost, Method: "chat.postMessage", Count: 1},
	} {
		_, err := s.box.AddFault(f)
		require.NoError(t, err)
	}
	_, err := s.post(t.Context())
	require.ErrorIs(t, err, slackapi.ErrAmbiguous)
	// The caller's read-back saw the thread as it was before, and it sends again.
	_, err = s.post(t.Context())
	require.ErrorIs(t, err, slackapi.ErrParentGone)
	inThread, leaked := s.standing()
	require.Zero(t, inThread)
	require.Zero(t, leaked)
}

func TestBox_FindsAPostWithoutTheMetadataScope(t *testing.T) {
	s := newSeat(t, func(seed *slackbox.Seed) {
		for i, app := range seed.Apps {
			if app.Name == "smith" {
				for _, scope := range slackbox.SeatScopes() {
					if scope != "metadata.message:read" {
						seed.Apps[i].Scopes = append(seed.Apps[i].Scopes, scope)
					}
				}
			}
		}
	})
	ts, err := s.post(t.Context())
	require.NoError(t, err)
	for line, err := range s.Replies(t.Context(), s.channel, s.root, s.root) {
		require.NoError(t, err)
		_, ok := rules.ParseMetadata(line.Raw)
		require.False(t, ok, "or this proves nothing")
	}
	found, ok, err := s.FindPost(t.Context(), s.channel, s.root, s.postID, 1)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, ts, found)
}

func TestBox_SaysThatTheTokenIsDead(t *testing.T) {
	s := newSeat(t, nil)
	_, err := s.box.AddFault(slackbox.Fault{Kind: slackbox.TokenRevoked, Method: "chat.postMessage", Count: 1})
	require.NoError(t, err)
	_, err = s.post(t.Context())
	require.ErrorIs(t, err, slackapi.ErrDeadCredentials)
}

func TestBox_KnowsWhoPeopleAre(t *testing.T) {
	s := newSeat(t, nil)
	ids := map[string]string{}
	for _, u := range s.box.State().Users {
		ids[u.Name] = u.ID
	}
	for name, want := range map[string]slackapi.Person{
		"ana":  {Member: true},
		"gil":  {Guest: true},
		"olga": {Stranger: true},
		"dora": {Deleted: true},
	} {
		got, err := s.User(t.Context(), ids[name])
		require.NoError(t, err)
		require.Equal(t, want, slackapi.Person{Member: got.Member, Guest: got.Guest, Stranger: got.Stranger, Deleted: got.Deleted, Bot: got.Bot}, name)
		require.NotEmpty(t, got.Name)
	}
	self, err := s.AuthTest(t.Context())
	require.NoError(t, err)
	smith, err := s.User(t.Context(), self.UserID)
	require.NoError(t, err)
	require.True(t, smith.Bot)
	require.False(t, smith.Member)
	_, err = s.User(t.Context(), "U0NOBODY001")
	require.ErrorIs(t, err, slackapi.ErrUnknownPerson)
}

func TestBox_ReadsALongThread(t *testing.T) {
	s := newSeat(t, nil)
	for i := range 250 {
		_, err := s.box.Person("ben").Reply("random", s.root, fmt.Sprint("line ", i))
		require.NoError(t, err)
	}
	n, last := 0, s.root
	for line, err := range s.Replies(t.Context(), s.channel, s.root, s.root) {
		require.NoError(t, err)
		require.Equal(t, s.root, line.Root)
		require.Positive(t, rules.CompareTS(line.TS, last))
		n, last = n+1, line.TS
	}
	require.Equal(t, 250, n)
	_, err := s.post(t.Context())
	require.NoError(t, err)
	_, ok, err := s.FindPost(t.Context(), s.channel, s.root, s.postID, 1)
	require.NoError(t, err)
	require.True(t, ok, "on the second page")
}

func TestBox_SharesAFileAndReadsItBack(t *testing.T) {
	s := newSeat(t, nil)
	data := []byte("a,b\n1,2\n")
	id, url, err := s.UploadURL(t.Context(), "table.csv", len(data))
	require.NoError(t, err)
	require.NoError(t, s.SendBytes(t.Context(), url, "table.csv", bytes.NewReader(data), len(data)))
	_, err = s.box.AddFault(slackbox.Fault{Kind: slackbox.ResponseLost, Method: "files.completeUploadExternal", Count: 1})
	require.NoError(t, err)
	require.ErrorIs(t, s.CompleteUpload(t.Context(), []string{id}, s.channel, s.root, "The table."), slackapi.ErrAmbiguous)
	shares, err := s.FileShares(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, shares, 1, "it was shared all the same")
	require.Equal(t, s.channel, shares[0].Channel)
	require.Equal(t, s.root, shares[0].ThreadTS)

	var file rules.File
	for line, err := range s.Replies(t.Context(), s.channel, s.root, s.root) {
		require.NoError(t, err)
		if len(line.Files) > 0 {
			file = line.Files[0]
		}
	}
	require.Equal(t, id, file.ID)
	var got bytes.Buffer
	n, err := s.Download(t.Context(), file, &got, 1<<20)
	require.NoError(t, err)
	require.EqualValues(t, len(data), n)
	require.Equal(t, data, got.Bytes())

	require.NoError(t, s.DeleteFile(t.Context(), id))
	require.NoError(t, s.DeleteFile(t.Context(), id), "gone is done")
}

func TestBox_PostsTheLargestPart(t *testing.T) {
	s := newSeat(t, nil)
	text := strings.Repeat("Some words & more <b>. ", 3000)
	parts := rules.SplitText(text, rules.PartLimit)
	require.Greater(t, len(parts), 4)
	for i, part := range parts {
		_, err := s.Post(t.Context(), slackapi.PostRequest{
			Channel: s.channel, ThreadTS: s.root, Markdown: part, Footer: "opus · 3 s", PostID: s.postID, Part: i + 1, Parts: len(parts),
		})
		require.NoError(t, err)
	}
	inThread, _ := s.standing()
	require.Equal(t, len(parts), inThread)
	for _, m := range s.box.Log(0).Messages {
		if m.App == "smith" {
			require.Contains(t, string(m.Message.Blocks), `"markdown"`, "in a block, not as text")
		}
	}
}

func TestBox_ShowsAndClearsTheStatus(t *testing.T) {
	s := newSeat(t, nil)
	require.NoError(t, s.SetStatus(t.Context(), s.channel, s.root, "is thinking…"))
	require.Len(t, s.box.Statuses(), 1)
	require.NoError(t, s.ClearStatus(t.Context(), s.channel, s.root))
	require.Empty(t, s.box.Statuses())
}
