package terminal

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"agentsmith/internal/failpoint"
	"agentsmith/internal/outbox"
	"agentsmith/rules"
)

func requireHeld(t *testing.T, a Arrival, err error, pasted bool) {
	t.Helper()
	var held *HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, pasted, held.Pasted)
	require.NotEmpty(t, held.Reason)
	require.Equal(t, NotTyped, a)
}

func TestType_APermissionDialogIsNotAnswered(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t)
	r.asks()
	for _, body := range []string{"yes", "1"} {
		a, err := r.typed("held", body)
		requireHeld(t, a, err, false)
	}
	r.waitForDialog()
	require.NoFileExists(t, r.dir+"/made")
	r.press("Escape")
	a, err := r.typed("held", "yes")
	require.NoError(t, err)
	require.Equal(t, Arrived, a)
	r.requireOnce("yes")
	require.NoFileExists(t, r.dir+"/made")
}

// The dialog opens when the text stands in the input box already.
func TestType_ADialogThatOpensBeforeTheEnterIsNotAnswered(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t)
	r.person(`[[sleep 3s]] [[tool Bash {"command":"touch made"}]] [[say after]]`)
	r.waitFor("the turn to begin", func() bool { return strings.Contains(r.screen(), "esc to interrupt") })
	y := r.typer()
	y.at = func(p failpoint.Point) {
		if p == failpoint.TypePasted {
			r.waitForDialog()
		}
	}
	a, err := y.do(t.Context(), r.target, Text{ID: "goes-on", Body: "and now this"})
	requireHeld(t, a, err, true)
	require.NoFileExists(t, r.dir+"/made")
	r.press("Escape")
	a, err = r.typed("goes-on", "and now this")
	require.NoError(t, err)
	require.Equal(t, Arrived, a)
	r.requireOnce("and now this")
}

func TestType_TheTrustDialogIsNotAnswered(t *testing.T) {
	t.Parallel()
	r := startTypeRig(t, untrusted)
	r.waitFor("the trust dialog", func() bool { return strings.Contains(r.screen(), "Yes, I trust this folder") })
	a, err := r.typed("x", "yes")
	requireHeld(t, a, err, false)
	require.Contains(t, r.screen(), "Yes, I trust this folder")
}

func TestType_ADraftOfAPersonIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t)
	r.press("-l", "not yet sent")
	r.waitFor("the draft", func() bool { return r.look().text == "not yet sent" })
	a, err := r.typed("x", "hello")
	requireHeld(t, a, err, false)
	require.Equal(t, "not yet sent", r.look().text)
	require.Empty(t, r.prompts())
	r.press("C-u")
	a, err = r.typed("x", "hello")
	require.NoError(t, err)
	require.Equal(t, Arrived, a)
	r.requireOnce("hello")
}

func TestType_LeavesCopyMode(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t)
	for _, mode := range []string{"copy-mode", "clock-mode", "choose-tree"} {
		_, err := r.tmux.Run(t.Context(), nil, mode, "-t", "="+r.target.Session+":")
		require.NoError(t, err)
		r.arrives("in " + mode)
		r.requireOnce("in " + mode)
	}
}

// A person may look at another window of the session meanwhile.
func TestType_IntoAPaneThatIsNotInFront(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t)
	_, err := r.tmux.Run(t.Context(), nil, "new-window", "-t", "="+r.target.Session+":", "sleep 600")
	require.NoError(t, err)
	r.arrives("behind the window")
	r.requireOnce("behind the window")
}

func TestType_ABusyCLIQueuesTheLine(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t, "--allowedTools", "Bash(sleep *)")
	r.person("[[sleep 25s]] [[say first]]")
	r.waitFor("the turn to begin", func() bool { return strings.Contains(r.screen(), "esc to interrupt") })
	for range 2 { // the same words twice are two lines
		r.arrives("carry on")
	}
	r.arrives("one\ntwo")
	require.Len(t, r.prompts(), 1, "all of that while the first turn runs")
	r.waitFor("the queue to be taken", func() bool { return len(r.prompts()) == 4 })
	r.arrives("carry on")
	r.waitFor("the third of the same words", func() bool { return len(r.prompts()) == 5 })
	hooks, _ := r.times("carry on")
	require.Equal(t, 3, hooks)

	// In the middle of a turn the CLI hands a queued line to the model, and no hook tells.
	r.quiet()
	r.person(`[[tool Bash {"command":"sleep 20"}]] [[say done]]`)
	r.waitFor("the tool to run", func() bool { return strings.Contains(r.screen(), "Running") })
	r.arrives("before it ends")
	r.waitFor("the stand-in to be told", func() bool { _, asked := r.times("before it ends"); return asked == 1 })
	hooks, _ = r.times("before it ends")
	require.Zero(t, hooks)
}

func TestType_OnlyIntoTheSessionThatWasMeant(t *testing.T) {
	t.Parallel()
	tm := newTmux(t)
	id := uuid.NewString()
	target := Target{Session: "op-x", ID: id, Outbox: t.TempDir()}
	a, err := tm.Type(t.Context(), target, Text{ID: "1", Body: "x"})
	require.ErrorIs(t, err, ErrGone, "no server")
	require.Equal(t, NotTyped, a)
	sleeper(t, tm, "op-x-longer", EnvSession+"="+id)
	_, err = tm.Type(t.Context(), target, Text{ID: "1", Body: "x"})
	require.ErrorIs(t, err, ErrGone, "no session of that name, though a longer one")
	sleeper(t, tm, "op-x", EnvSession+"="+uuid.NewString())
	_, err = tm.Type(t.Context(), target, Text{ID: "1", Body: "x"})
	require.ErrorIs(t, err, ErrGone, "a session of that name that is another")
	target.Session = "op-x-longer"
	y := newTyper(tm)
	y.settle = 50 * time.Millisecond
	a, err = y.do(t.Context(), target, Text{ID: "1", Body: "x"})
	requireHeld(t, a, err, false)
	require.ErrorContains(t, err, "sleep", "something else is in the foreground")

	target.ID = "../x"
	_, err = tm.Type(t.Context(), target, Text{ID: "1", Body: "x"})
	require.ErrorContains(t, err, "UUID")
	target.ID = id
	_, err = tm.Type(t.Context(), target, Text{Body: "x"})
	require.ErrorContains(t, err, "no id")
}

// What is taken out of the input box goes wherever the cursor stands in it.
func TestClear_WhereverTheCursorIs(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t)
	for _, keys := range [][]string{{}, {"C-a"}, {"Up", "C-a"}, {"Up"}, {"Left", "Left"}} {
		_, err := r.tmux.Run(t.Context(), []byte("first row\nsecond row\nthird"), "load-buffer", "-b", "x", "-")
		require.NoError(t, err)
		_, err = r.tmux.Run(t.Context(), nil, "paste-buffer", "-p", "-r", "-d", "-b", "x", "-t", "="+r.target.Session+":")
		require.NoError(t, err)
		r.waitFor("the text", func() bool { return strings.Contains(r.look().text, "third") })
		for _, k := range keys {
			r.press(k)
		}
		done, err := r.tmux.clear(t.Context(), r.look())
		require.NoError(t, err)
		require.True(t, done)
		r.waitFor("an empty box", func() bool { return r.look().held == "" && r.look().text == "" })
	}
}

// A CLI that is busy reads all keys of a sweep at once: none of them may become text.
func TestClear_OfACLIThatReadsItAllAtOnce(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t)
	for _, left := range []string{"", "first row\nsecond row\nthird"} {
		if left != "" {
			_, err := r.tmux.Run(t.Context(), []byte(left), "load-buffer", "-b", "x", "-")
			require.NoError(t, err)
			_, err = r.tmux.Run(t.Context(), nil, "paste-buffer", "-p", "-r", "-d", "-b", "x", "-t", "="+r.target.Session+":")
			require.NoError(t, err)
			r.waitFor("the text", func() bool { return strings.Contains(r.look().text, "third") })
		}
		out, err := r.tmux.Run(t.Context(), nil, "list-panes", "-t", "="+r.target.Session+":", "-F", "#{pane_pid}")
		require.NoError(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(out))
		require.NoError(t, err)
		v := r.look()
		v.end = v.row + 3
		require.NoError(t, syscall.Kill(pid, syscall.SIGTTIN)) // tmux continues what another signal stopped
		done, err := r.tmux.clear(t.Context(), v)
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
		require.NoError(t, err)
		require.True(t, done)
		r.waitFor("the box drawn anew", func() bool { return r.look().held == reasonTwice })
		a, err := r.typed("held"+left, "held")
		requireHeld(t, a, err, false)
		r.press("C-l")
		r.waitFor("an empty box", func() bool { v := r.look(); return v.held == "" && v.text == "" })
		body := "after" + left
		r.arrives(body)
		r.waitFor("its hook", func() bool { h, _ := r.times(body); return h == 1 })
		require.Equal(t, outbox.Squash(rules.PlainForTerminal(body)), outbox.Squash(r.prompts()[len(r.prompts())-1]))
	}
}
