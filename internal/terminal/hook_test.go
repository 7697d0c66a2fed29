package terminal

import (
	"testing"

	"github.com/stretchr/testify/require"

	"agentsmith/internal/outbox"
)

// What say's exit codes are to the CLI. With 2 it erases a prompt; with anything else it
// goes on and shows the reason in the terminal.
func TestHooks_AHookOfOursThatFailsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t, withOutbox+"/dev/null/none")
	r.person("hello there")
	r.waitFor("the stand-in to be asked", func() bool { _, asked := r.asked("hello there"); return asked > 0 })
	r.quiet()

	r = newTypeRig(t, withHook+"exit 2")
	r.person("hello there")
	r.waitFor("the prompt's hook", func() bool { return len(r.prompts()) == 1 })
	r.quiet()
	_, asked := r.asked("hello there")
	require.Zero(t, asked, "the control: this is what the exit code 2 does")
}

func TestHooks_ASessionsWordsComeInOrder(t *testing.T) {
	t.Parallel()
	r := newTypeRig(t, "--allowedTools", "Bash(say *)")
	r.arrives(`[[tool Bash {"command":"say still at it"}]] [[say all done]]`)
	r.quiet()
	box := outbox.Box{Dir: r.target.Outbox}
	var words []outbox.Word
	r.waitFor("the words", func() bool {
		var err error
		words, err = box.Words(r.target.ID)
		require.NoError(t, err)
		return len(words) == 2
	})
	require.Equal(t, outbox.Say, words[0].Kind)
	require.Equal(t, "still at it", words[0].Text)
	require.Equal(t, outbox.Stop, words[1].Kind)
	require.Equal(t, "all done", words[1].Text)
	require.Less(t, words[0].ID, words[1].ID)

	r.asks()
	r.waitFor("the notification", func() bool {
		words, err := box.Words(r.target.ID)
		require.NoError(t, err)
		last := words[len(words)-1]
		return last.Kind == outbox.Notification && last.Detail == "permission_prompt"
	})
}
