package slackbox_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/slackbox"
	"agentsmith/internal/tools"
)

// said is a line that the bolt app prints.
type said struct {
	What, User, TS, Answered, Bot, Name, Value, Message string
	Messages                                            int
	OK                                                  bool
}

// boltApp is what a running bolt app has said; what nobody asked for yet is kept.
type boltApp struct {
	lines chan said
	kept  []said
}

// startBolt runs testdata/bolt.cjs, an app on Slack's own framework, as smith.
func startBolt(t *testing.T, s *slackbox.Server) *boltApp {
	t.Helper()
	node, err := tools.Node()
	require.NoError(t, err)
	dir, err := tools.BoltDir()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), node, "testdata/bolt.cjs")
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"), "SLACK_API_URL="+s.URL(),
		"BOT_TOKEN=xoxb-local-smith", "APP_TOKEN=xapp-local-smith", "NO_PROXY=127.0.0.1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	app := &boltApp{lines: make(chan said, 100)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		in := bufio.NewScanner(io.TeeReader(stdout, io.Discard))
		for in.Scan() {
			var x said
			if json.Unmarshal(in.Bytes(), &x) == nil {
				app.lines <- x
			}
		}
	}()
	t.Cleanup(func() { // stdin's end is what ends the app
		_ = stdin.Close()
		<-read
		_ = cmd.Wait()
	})
	app.expect(t, "started")
	return app
}

// expect waits until the app says what; an error that it says fails the test.
func (a *boltApp) expect(t *testing.T, what string) said {
	t.Helper()
	if i := slices.IndexFunc(a.kept, func(x said) bool { return x.What == what }); i >= 0 {
		x := a.kept[i]
		a.kept = slices.Delete(a.kept, i, i+1)
		return x
	}
	timeout := time.After(40 * time.Second)
	for {
		select {
		case x := <-a.lines:
			require.NotEqual(t, "error", x.What, x.Message)
			if x.What == what {
				return x
			}
			a.kept = append(a.kept, x)
		case <-timeout:
			require.FailNow(t, "bolt did not say", what)
		}
	}
}

func TestBolt_CannotTellThisFromSlack(t *testing.T) {
	s := start(t, slackbox.Options{})
	ana := s.Person("ana")
	app := startBolt(t, s)

	ts, err := ana.Say("general", "@smith hello")
	require.NoError(t, err)
	m := app.expect(t, "mention")
	require.Equal(t, said{What: "mention", User: anaID, TS: ts, Answered: m.Answered, Bot: smithID}, m)
	require.Equal(t, ts, message(t, s, m.Answered).ThreadTS)

	ts, err = ana.Say("general", "how is the weather?")
	require.NoError(t, err)
	require.Equal(t, said{What: "message", Name: "ana", TS: ts, Messages: 1}, app.expect(t, "message"))
	require.Equal(t, "sunny", message(t, s, ts).Message.Reactions[0].Name)
	require.NoError(t, ana.React("general", ts, "eyes")) // bolt keeps what it did itself from its app
	require.Equal(t, "eyes", app.expect(t, "reaction").Name)

	require.NoError(t, ana.Command("general", "/agents", "who is there?"))
	require.Equal(t, "ana", app.expect(t, "command").User)
	require.NoError(t, s.Wait(within(t), func() bool { return len(s.Log(0).Ephemerals) == 1 }))
	require.Equal(t, "ask: who is there?", s.Log(0).Ephemerals[0].Text)
	require.Equal(t, "said later", s.Log(0).Messages[len(s.Log(0).Messages)-1].Text)

	dm, err := ana.DM("smith")
	require.NoError(t, err)
	_, err = ana.Say(dm, "a picture please")
	require.NoError(t, err)
	require.True(t, app.expect(t, "upload").OK)
	msgs := s.Log(0).Messages
	require.Equal(t, "a.txt", msgs[len(msgs)-1].Message.Files[0].Name)

	_, err = bot(s, "smith").PostEphemeral(general, anaID, textOption("only you"))
	require.NoError(t, err)
	_, ts, err = bot(s, "smith").PostMessage(general, buttonOption("go", "42"))
	require.NoError(t, err)
	require.NoError(t, ana.Act("general", ts, json.RawMessage(`[{"type":"button","action_id":"go","block_id":"b","value":"42"}]`)))
	require.Equal(t, "42", app.expect(t, "action").Value)
}

func TestBolt_ReconnectsAfterADisconnectAndMissesNothing(t *testing.T) {
	s := start(t, slackbox.Options{})
	app := startBolt(t, s)
	n, err := s.Disconnect("smith", "refresh_requested")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, s.Wait(within(t), func() bool { return len(s.State().Apps[0].Sockets) == 0 }))
	ts, err := s.Person("ana").Say("general", "@smith while you were away")
	require.NoError(t, err)
	app.expect(t, "connected")
	require.Equal(t, ts, app.expect(t, "mention").TS)
}
