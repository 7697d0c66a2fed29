package terminal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/outbox"
)

// fakeEnv says how a program that looks like the agent CLI behaves, for what the real one
// does only now and then: this test binary is then that program.
const fakeEnv = "TERMINAL_TEST_FAKE"

// The behaviours. What a fake took stands in its log, a row for each Enter that sent.
const (
	fakePlain  = "plain"  // takes the text, and its hook tells
	fakeDeaf   = "deaf"   // hears no Enter
	fakeOnce   = "once"   // hears no first Enter
	fakeMute   = "mute"   // takes the text, and nothing tells
	fakeLeaves = "leaves" // takes the text and shows it in the box again
	fakeBoth   = "both"   // leaves and mute
	fakeEats   = "eats"   // loses a paste
)

func TestFakeCLI(*testing.T) {
	how, ok := os.LookupEnv(fakeEnv)
	if !ok {
		return
	}
	stty := exec.Command("stty", "raw", "-echo")
	stty.Stdin = os.Stdin
	_ = stty.Run()
	box := outbox.Box{Dir: os.Getenv(EnvOutbox)}
	log, _ := os.OpenFile(os.Getenv("FAKE_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	text, above, enters := "", "", 0
	draw := func() {
		rule := strings.Repeat("─", 60)
		shown := strings.ReplaceAll(strings.TrimRight(text, " "), "\n", "\r\n  ")
		fmt.Printf("\x1b[?2004h\x1b[2J\x1b[H%s\r\n%s\r\n❯\u00a0%s\x1b7\r\n%s\r\n\x1b8", above, rule, shown, rule)
	}
	var in []byte
	buf := make([]byte, 1<<16)
	for draw(); ; draw() {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return
		}
		in = append(in, buf[:n]...)
		for len(in) > 0 {
			if paste, rest, whole := bytes.Cut(in, []byte("\x1b[201~")); whole && bytes.HasPrefix(paste, []byte("\x1b[200~")) {
				if how != fakeEats {
					text += string(paste[6:])
				}
				in = rest
				continue
			} else if key := cursorKey.Find(in); key != nil {
				in = in[len(key):]
				continue
			} else if bytes.HasPrefix(in, []byte("\x1b")) {
				break // the rest of it comes
			}
			key := in[0]
			in = in[1:]
			switch {
			case key == 0x15:
				text = ""
			case key == '\r' && text != "":
				enters++
				if how == fakeDeaf || how == fakeOnce && enters == 1 {
					continue
				}
				_, _ = fmt.Fprintf(log, "%q\n", text)
				above = "❯ " + strings.ReplaceAll(text, "\n", "\r\n  ")
				if how != fakeMute && how != fakeBoth {
					_ = box.PutPrompt(context.Background(), outbox.Prompt{Session: os.Getenv(EnvSession), Text: text})
				}
				if how != fakeLeaves && how != fakeBoth {
					text = ""
				}
			}
		}
	}
}

// cursorKey is Home or End as tmux sends it.
var cursorKey = regexp.MustCompile(`^\x1b(\[[14]~|[\[O][HF])`)

type fakeRig struct {
	tmux   Tmux
	target Target
	log    string
}

func newFake(t *testing.T, how string) *fakeRig {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	r := &fakeRig{tmux: newTmux(t), log: filepath.Join(dir, "log"),
		target: Target{Session: "fake", ID: uuid.NewString(), Outbox: filepath.Join(dir, "outbox"), Command: filepath.Base(exe)}}
	_, err = r.tmux.Run(t.Context(), nil, "new-session", "-d", "-s", "fake", "-x", "100", "-y", "30", "-e", EnvSession+"="+r.target.ID,
		"-e", EnvOutbox+"="+r.target.Outbox, "-e", fakeEnv+"="+how, "-e", "FAKE_LOG="+r.log, exe, "-test.run=^TestFakeCLI$")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		v, err := r.typer().lookAt(t.Context(), r.target)
		return err == nil && v.held == ""
	}, patience, 20*time.Millisecond)
	return r
}

func (y *typer) lookAt(ctx context.Context, target Target) (view, error) {
	y.target = target
	return y.look(ctx)
}

func (r *fakeRig) typer() *typer {
	y := newTyper(r.tmux)
	y.settle, y.show, y.enterEvery, y.prove = time.Second, 2*time.Second, 700*time.Millisecond, 3*time.Second
	return y
}

func (r *fakeRig) took(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile(r.log)
	require.NoError(t, err)
	return bytes.Count(raw, []byte("\n"))
}

func TestType_EnterIsTriedAgainOnlyWhileItWasNotTaken(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]struct {
		arrival Arrival
		took    int
	}{
		fakePlain: {Arrived, 1}, fakeOnce: {Arrived, 1}, fakeLeaves: {Arrived, 1},
		fakeDeaf: {Unsure, 0}, fakeMute: {Unsure, 1}, fakeBoth: {Unsure, 1}, fakeEats: {Unsure, 0},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newFake(t, how)
			for range 2 { // what is known is not changed by asking again
				a, err := r.typer().do(t.Context(), r.target, Text{ID: "1", Body: "one\ntwo"})
				require.NoError(t, err)
				require.Equal(t, want.arrival, a)
				require.Equal(t, want.took, r.took(t))
			}
		})
	}
}

func TestType_ATextLeftInTheBoxIsSweptOut(t *testing.T) {
	t.Parallel()
	r := newFake(t, fakeLeaves)
	for i := range 3 {
		a, err := r.typer().do(t.Context(), r.target, Text{ID: fmt.Sprint(i), Body: fmt.Sprintf("line %d\nsecond", i)})
		require.NoError(t, err)
		require.Equal(t, Arrived, a)
		v, err := r.typer().lookAt(t.Context(), r.target)
		require.NoError(t, err)
		require.Empty(t, v.text)
	}
	require.Equal(t, 3, r.took(t))

	// Later, too; and a person's own text never.
	for _, c := range [][2]string{{"Line from Slack: line 2\n| second", ""}, {"a draft", "a draft"}} {
		text, left := c[0], c[1]
		_, err := r.tmux.Run(t.Context(), []byte(text), "load-buffer", "-")
		require.NoError(t, err)
		_, err = r.tmux.Run(t.Context(), nil, "paste-buffer", "-p", "-r", "-t", "fake")
		require.NoError(t, err)
		require.Eventually(t, func() bool { v, err := r.typer().lookAt(t.Context(), r.target); return err == nil && v.text == text }, patience, 20*time.Millisecond)
		require.NoError(t, r.tmux.Sweep(t.Context(), r.target))
		require.Eventually(t, func() bool { v, err := r.typer().lookAt(t.Context(), r.target); return err == nil && v.text == left }, patience, 20*time.Millisecond)
	}
}

func TestType_AStopIsNoAnswer(t *testing.T) {
	t.Parallel()
	r := newFake(t, fakeMute)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	a, err := r.typer().do(ctx, r.target, Text{ID: "1", Body: "x"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, Unsure, a)
	a, err = r.typer().do(t.Context(), r.target, Text{ID: "1", Body: "x"})
	require.NoError(t, err)
	require.Equal(t, Unsure, a)
	require.Equal(t, 1, r.took(t))
}
