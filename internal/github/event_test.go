package github_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/github"
)

const (
	delivery     = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
	sampleBranch = "smith/water-the-roses"
	sampleSHA    = "3f1c9a7be0d24c58a6b1f0e97d3c25418ab06e72"
)

// payload reads one of the webhooks of documented shape.
func payload(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "githubbox", "payloads", name+".json"))
	require.NoError(t, err)
	return raw
}

func TestReadEvent_ReadsTheDocumentedShapes(t *testing.T) {
	both := github.Event{Number: 7, Branch: sampleBranch, SHA: sampleSHA, Numbers: []int{7}, Branches: []string{sampleBranch}}
	with := func(e github.Event, kind, action string) github.Event {
		e.Delivery, e.Kind, e.Action, e.Repo = delivery, kind, action, repo
		return e
	}
	onlyBranch := github.Event{Branch: sampleBranch, SHA: sampleSHA, Branches: []string{sampleBranch}}
	for name, want := range map[string]github.Event{
		"pull_request.opened":           with(both, "pull_request", "opened"),
		"pull_request.synchronize":      with(both, "pull_request", "synchronize"),
		"pull_request.closed":           with(both, "pull_request", "closed"),
		"pull_request.review_requested": with(both, "pull_request", "review_requested"),
		"pull_request_review.submitted": with(both, "pull_request_review", "submitted"),
		"check_run.completed":           with(both, "check_run", "completed"),
		"check_suite.completed":         with(both, "check_suite", "completed"),
		"status":                        with(onlyBranch, "status", ""),
		"push":                          with(onlyBranch, "push", ""),
		"ping":                          with(github.Event{}, "ping", ""),
	} {
		t.Run(name, func(t *testing.T) {
			kind, _, _ := strings.Cut(name, ".")
			e, err := github.ReadEvent(headers(kind, delivery), payload(t, name))
			require.NoError(t, err)
			require.Equal(t, want, e)
		})
	}
}

// edited is a payload with some of it changed; a path's dots go down.
func edited(t *testing.T, name string, edits map[string]any) []byte {
	t.Helper()
	var doc map[string]any
	require.NoError(t, json.Unmarshal(payload(t, name), &doc))
	for path, value := range edits {
		at := doc
		keys := strings.Split(path, ".")
		for _, k := range keys[:len(keys)-1] {
			at = at[k].(map[string]any)
		}
		at[keys[len(keys)-1]] = value
	}
	raw, err := json.Marshal(doc)
	require.NoError(t, err)
	return raw
}

func TestReadEvent_TakesNoBranchOfAFork(t *testing.T) {
	for _, name := range []string{"pull_request.opened", "pull_request_review.submitted"} {
		kind, _, _ := strings.Cut(name, ".")
		for _, head := range []any{map[string]any{"id": 99, "full_name": "stranger/garden"}, nil} {
			e, err := github.ReadEvent(headers(kind, delivery), edited(t, name, map[string]any{"pull_request.head.repo": head}))
			require.NoError(t, err)
			require.Equal(t, 7, e.Number)
			require.Empty(t, e.Branches)
		}
	}
}

func TestReadEvent_TakesOnlyPullRequestsIntoTheRepositoryItself(t *testing.T) {
	side := func(id int) map[string]any {
		return map[string]any{"ref": "main", "repo": map[string]any{"id": id}}
	}
	pulls := []any{
		map[string]any{"number": 3, "base": side(99)},
		map[string]any{"number": 7, "base": side(700100200)},
		map[string]any{"number": 7, "base": side(700100200)},
		map[string]any{"number": 9, "base": side(700100200)},
	}
	e, err := github.ReadEvent(headers("check_suite", delivery), edited(t, "check_suite.completed", map[string]any{"check_suite.pull_requests": pulls}))
	require.NoError(t, err)
	require.Equal(t, []int{7, 9}, e.Numbers)
}

func TestReadEvent_APushOfATagIsNoBranch(t *testing.T) {
	e, err := github.ReadEvent(headers("push", delivery), edited(t, "push", map[string]any{"ref": "refs/tags/smith/water-the-roses"}))
	require.NoError(t, err)
	require.Empty(t, e.Branches)
}

func TestReadEvent_KnowsNothingOfOtherWebhooks(t *testing.T) {
	for _, body := range [][]byte{payload(t, "star.created"), []byte("not JSON"), nil} {
		e, err := github.ReadEvent(headers("star", delivery), body)
		require.NoError(t, err)
		require.Equal(t, github.Event{Delivery: delivery, Kind: "star"}, e)
		require.False(t, github.Known(e.Kind))
	}
}

func TestReadEvent_AnOrganisationsPingHasNoRepository(t *testing.T) {
	e, err := github.ReadEvent(headers("ping", delivery), []byte(`{"zen":"Speak like a human.","hook_id":1,"hook":{"type":"Organization"}}`))
	require.NoError(t, err)
	require.Empty(t, e.Repo)
}

func TestReadEvent_RefusesWhatIsNoWebhook(t *testing.T) {
	good := payload(t, "push")
	for name, c := range map[string]struct {
		header http.Header
		body   []byte
	}{
		"no delivery":               {headers("push", ""), good},
		"a delivery that is a path": {headers("push", "../../x"), good},
		"a long delivery":           {headers("push", strings.Repeat("a", 65)), good},
		"no event":                  {headers("", delivery), good},
		"an event with a line":      {headers("push\nx", delivery), good},
		"no body":                   {headers("push", delivery), nil},
		"half a body":               {headers("push", delivery), good[:len(good)/2]},
		"a list":                    {headers("push", delivery), []byte("[]")},
		"two values":                {headers("push", delivery), append(append([]byte{}, good...), good...)},
		"no repository":             {headers("push", delivery), []byte("{}")},
		"a repository that climbs":  {headers("push", delivery), []byte(`{"repository":{"full_name":"acme/.."}}`)},
		"a repository of a number":  {headers("push", delivery), []byte(`{"repository":7}`)},
		"a deep body":               {headers("push", delivery), []byte(strings.Repeat(`{"a":`, 20000))},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := github.ReadEvent(c.header, c.body)
			require.Error(t, err)
			require.Zero(t, e)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestReadEvent_DropsWhatIsOfNoShape(t *testing.T) {
	e, err := github.ReadEvent(headers("pull_request", delivery), edited(t, "pull_request.opened", map[string]any{
		"action": "opened\u001b[2J", "pull_request.head.sha": "not a commit", "pull_request.head.ref": strings.Repeat("b", 256), "pull_request.number": -1,
	}))
	require.NoError(t, err)
	require.Equal(t, github.Event{Delivery: delivery, Kind: "pull_request", Repo: repo}, e)
}

func signature(name string, h func() hash.Hash, secret string, body []byte) string {
	mac := hmac.New(h, []byte(secret))
	mac.Write(body)
	return name + "=" + hex.EncodeToString(mac.Sum(nil))
}

func TestVerify_TakesOnlyOurSHA256(t *testing.T) {
	const secret = "it is a secret to everybody"
	body := payload(t, "push")
	right := signature("sha256", sha256.New, secret, body)
	for name, c := range map[string]struct {
		headers map[string][]string
		secret  string
		ok      bool
	}{
		"ours":                          {map[string][]string{"X-Hub-Signature-256": {right}}, secret, true},
		"none":                          {nil, secret, false},
		"the old one alone":             {map[string][]string{"X-Hub-Signature": {signature("sha1", sha1.New, secret, body)}}, secret, false},
		"sha1 in the place of sha256":   {map[string][]string{"X-Hub-Signature-256": {signature("sha1", sha1.New, secret, body)}}, secret, false},
		"sha256 called sha1":            {map[string][]string{"X-Hub-Signature-256": {strings.Replace(right, "sha256", "sha1", 1)}}, secret, false},
		"another secret":                {map[string][]string{"X-Hub-Signature-256": {right}}, "another", false},
		"no secret of ours":             {map[string][]string{"X-Hub-Signature-256": {signature("sha256", sha256.New, "", body)}}, "", false},
		"another body":                  {map[string][]string{"X-Hub-Signature-256": {signature("sha256", sha256.New, secret, body[1:])}}, secret, false},
		"half of it":                    {map[string][]string{"X-Hub-Signature-256": {right[:39]}}, secret, false},
		"nothing behind the name":       {map[string][]string{"X-Hub-Signature-256": {"sha256="}}, secret, false},
		"no hex":                        {map[string][]string{"X-Hub-Signature-256": {"sha256=" + strings.Repeat("z", 64)}}, secret, false},
		"two of them, one of them ours": {map[string][]string{"X-Hub-Signature-256": {right, "sha256=00"}}, secret, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			for k, vs := range c.headers {
				for _, v := range vs {
					h.Add(k, v)
				}
			}
			err := github.Verify(h, body, []byte(c.secret))
			if c.ok {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, github.ErrSignature)
			require.Equal(t, github.ErrSignature.Error(), err.Error(), "nothing is said about why")
		})
	}
}

func TestVerify_KnowsTheExampleOfGitHubsDocumentation(t *testing.T) {
	h := http.Header{}
	h.Set("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
	require.NoError(t, github.Verify(h, []byte("Hello, World!"), []byte("It's a Secret to Everybody")))
}

func FuzzReadEvent(f *testing.F) {
	files, err := filepath.Glob("../githubbox/payloads/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(f, err)
		kind, _, _ := strings.Cut(filepath.Base(file), ".")
		f.Add(kind, delivery, raw)
	}
	f.Add("status", delivery, []byte(`{"repository":{"id":1,"full_name":"a/b"},"branches":[{"name":"\ud800"},{"name":"x\u0000"}],"sha":"A"}`))
	f.Add("check_run", delivery, []byte(`{"repository":{"id":0,"full_name":"a/b"},"check_run":{"pull_requests":[{"number":1e3,"base":{"repo":{"id":0}}}],"check_suite":null}}`))
	f.Add("push", "", []byte(`{"repository":{"full_name":"a/b"},"ref":"refs/heads/"}`))
	f.Fuzz(func(t *testing.T, kind, id string, body []byte) {
		e, err := github.ReadEvent(http.Header{"X-Github-Event": {kind}, "X-Github-Delivery": {id}}, body)
		if err != nil {
			require.Zero(t, e)
			return
		}
		require.Equal(t, id, e.Delivery)
		require.Equal(t, kind, e.Kind)
		for _, word := range []string{e.Delivery, e.Kind, e.Action, e.Repo, e.SHA} {
			require.NotContains(t, word, "\n")
			require.NotContains(t, word, "\x1b")
			require.LessOrEqual(t, len(word), 210)
		}
		require.True(t, e.Repo == "" || github.ValidRepo(e.Repo))
		require.True(t, e.Repo != "" || !github.Known(e.Kind))
		require.LessOrEqual(t, len(e.Branches), 100)
		require.LessOrEqual(t, len(e.Numbers), 100)
		for _, b := range e.Branches {
			require.True(t, b != "" && len(b) <= 255 && utf8.ValidString(b))
		}
		for _, n := range e.Numbers {
			require.Positive(t, n)
		}
		require.Equal(t, e.Number != 0, len(e.Numbers) > 0)
		require.Equal(t, e.Branch != "", len(e.Branches) > 0)
	})
}
