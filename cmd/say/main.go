// Command say speaks from a session into its thread (R11). An operator's agent calls it
// as a tool, and the agent CLI calls it as its hooks.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"agentsmith/internal/outbox"
)

const usage = `say speaks from this session into its thread.

  say TEXT...                           say a text; markdown is understood
  say -                                 say what stands on the standard input
  say --hook stop|notification|prompt   be a hook of the agent CLI, its JSON on the standard input

It needs SMITH_OUTBOX and SMITH_SESSION, which are set in the session.
Exit codes: 0 it is kept, and will be posted; 1 it is not, and the reason is on the
standard error. As a hook it prints nothing on the standard output, and where the two
variables are not set it does nothing. It never exits with 2: the CLI takes that for an
order to stop.
`

func main() {
	// A panic would exit with 2, which erases a person's prompt or keeps an agent going.
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintln(os.Stderr, "say: it broke:", p)
			os.Exit(1)
		}
	}()
	os.Exit(run(os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// run takes every argument for text that is not exactly one of its few words: agents say
// "-1 is wrong", which is no flag.
func run(args []string, env func(string) string, in io.Reader, out, errs io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(errs, usage)
		return 1
	}
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		fmt.Fprint(out, usage)
		return 0
	}
	box, session := outbox.Box{Dir: env("SMITH_OUTBOX")}, env("SMITH_SESSION")
	ctx := context.Background()
	var err error
	switch {
	case args[0] == "--hook":
		if box.Dir == "" || session == "" {
			return 0 // the hooks of a person's own settings run in sessions that are none of ours
		}
		err = hook(ctx, box, session, strings.Join(args[1:], " "), in)
	case box.Dir == "" || session == "":
		err = errors.New("SMITH_OUTBOX or SMITH_SESSION is not set: this is no session that can speak")
	default:
		err = say(ctx, box, session, args, in)
		if err == nil {
			fmt.Fprintln(out, "Said. It will be posted in the thread.")
		}
	}
	if err != nil {
		fmt.Fprintln(errs, "say:", err)
		return 1
	}
	return 0
}

// maxInput bounds what say reads, in bytes.
const maxInput = 4 << 20

func say(ctx context.Context, box outbox.Box, session string, args []string, in io.Reader) error {
	text := strings.Join(args, " ")
	switch {
	case len(args) == 1 && args[0] == "-":
		raw, err := io.ReadAll(io.LimitReader(in, maxInput+1))
		if err != nil {
			return fmt.Errorf("read the text: %w", err)
		}
		text = string(raw)
	case args[0] == "--":
		text = strings.Join(args[1:], " ")
	}
	if len(text) > maxInput {
		return fmt.Errorf("the text is longer than %d MiB: nothing of it was said", maxInput>>20)
	}
	return box.Put(ctx, outbox.Word{Session: session, Kind: outbox.Say, Text: text})
}

func hook(ctx context.Context, box outbox.Box, session, kind string, in io.Reader) error {
	event, ok := map[string]string{"stop": "Stop", "notification": "Notification", "prompt": "UserPromptSubmit"}[kind]
	if !ok {
		return fmt.Errorf("--hook takes stop, notification or prompt, not %.30q", kind)
	}
	h, err := outbox.ReadHook(in)
	if err != nil {
		return err
	}
	if h.Event != event {
		return fmt.Errorf("the hook %s was given a %.40q", kind, h.Event)
	}
	if event == "UserPromptSubmit" {
		return box.PutPrompt(ctx, outbox.Prompt{Session: session, Text: h.Prompt, Transcript: h.Transcript})
	}
	w, ok := h.Word()
	if !ok {
		return nil
	}
	w.Session = session
	return box.Put(ctx, w)
}
