// Command start-operator starts the operator of a thread's task in a tmux session, or says
// that one runs: it is the one place to ask (O7). Nothing that it is given reaches a shell.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"agentsmith/internal/terminal"
	"agentsmith/rules"
)

const about = `Starts the operator of a thread's task: a git worktree, and the agent CLI in a tmux session there.
With --register it makes a tmux session of your own one that a relay can reach, and touches nothing in it.

One JSON object is printed: {"outcome":"started|exists|none","this_thread":…,"operator":{…}},
or {"outcome":"registered","number":…,"settings":"…","session":{…}}. Reasons go to the standard error.

Exit codes:
  0  started, or registered; with --check: there is none
  2  the flags or the config are wrong
  3  a session of that slug or for that thread runs; this_thread says which
  4  the repo is no checkout that agents may write in on this box
  5  tmux, git or the agent CLI failed; nothing was started
  6  as many operators run as may run (operators.limit)`

type flags struct {
	Config    string `help:"The config file." default:"smith.yaml" type:"path"`
	Seat      string `help:"The seat whose thread it is."`
	Team      string `help:"The thread's team."`
	Channel   string `help:"The thread's channel."`
	Root      string `help:"The ts of the thread's root."`
	Slug      string `help:"The task's name; the session is op-SLUG."`
	Repo      string `help:"The checkout to work in, by its exact name. There is no default."`
	BriefFile string `help:"A file with what is to be done; - is the standard input." default:"-"`
	Asked     string `help:"The ts of the newest line that the brief quotes."`
	Check     bool   `help:"Only say whether an operator may be started."`
	Register  bool   `help:"Register a tmux session of your own, the one that this runs in or --session."`
	Session   string `help:"With --register: the session's exact name."`
	Socket    string `help:"With --register: the tmux server's socket, a path or a name for tmux -L. The default is the server that this runs in."`
}

// missing names a flag that is needed and was not given, "" for none.
func (f flags) missing() string {
	for _, x := range []struct{ name, value string }{
		{"--seat", f.Seat}, {"--team", f.Team}, {"--channel", f.Channel}, {"--root", f.Root}, {"--slug", f.Slug},
	} {
		if x.value == "" {
			return x.name
		}
	}
	return ""
}

func (f flags) thread() rules.Thread {
	return rules.Thread{Team: f.Team, Channel: f.Channel, Root: f.Root}
}

// answer is what is printed.
type answer struct {
	Outcome    string         `json:"outcome"`
	ThisThread bool           `json:"this_thread"`
	Operator   *terminal.Live `json:"operator,omitempty"`
}

func main() {
	terminal.MaybeSession()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	f, done, err := parse(args, out, errs)
	if done {
		return terminal.ExitStarted
	}
	if err == nil && f.Register {
		return f.registered(ctx, out, errs)
	}
	var live terminal.Live
	if err == nil {
		live, err = f.do(ctx, in)
	}
	if err != nil {
		fmt.Fprintln(errs, "start-operator:", rules.Visible(err.Error()))
	}
	if a, ok := answerOf(live, err); ok {
		if err := json.NewEncoder(out).Encode(a); err != nil {
			fmt.Fprintln(errs, "start-operator: print the answer:", err)
			return terminal.ExitFailed
		}
	}
	return terminal.ExitCode(err)
}

// parse reads the flags; done tells that --help was all that was wanted. A flag that is
// wrong is a *terminal.UsageError.
func parse(args []string, out, errs io.Writer) (f flags, done bool, err error) {
	parser, err := kong.New(&f, kong.Name("start-operator"), kong.Description(about),
		kong.Writers(out, errs), kong.Exit(func(int) { done = true }))
	if err != nil {
		return f, false, fmt.Errorf("read the flags: %w", err)
	}
	if _, err := parser.Parse(args); err != nil && !done {
		return f, false, &terminal.UsageError{Reason: err.Error()}
	}
	return f, done, nil
}

// do carries the request out. With --check it starts nothing, and no error means that
// there is no operator.
func (f flags) do(ctx context.Context, in io.Reader) (terminal.Live, error) {
	if name := f.missing(); name != "" {
		return terminal.Live{}, &terminal.UsageError{Reason: "missing flag: " + name}
	}
	cfg, err := load(f.Config)
	if err != nil {
		return terminal.Live{}, err
	}
	if f.Check {
		return terminal.Live{}, terminal.Check(ctx, tmux(cfg), f.Slug, f.thread())
	}
	if strings.TrimSpace(f.Repo) == "" {
		return terminal.Live{}, &terminal.UsageError{Reason: "--repo is missing, and there is no default"}
	}
	brief, err := f.brief(in)
	if err != nil {
		return terminal.Live{}, err
	}
	req, err := request(cfg, f, brief)
	if err != nil {
		return terminal.Live{}, err
	}
	return terminal.Start(ctx, req)
}

// brief reads the brief, and no more of it than can be one.
func (f flags) brief(in io.Reader) (string, error) {
	if f.BriefFile != "-" {
		file, err := os.Open(f.BriefFile)
		if err != nil {
			return "", &terminal.UsageError{Reason: fmt.Sprintf("read the brief: %v", err)}
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, terminal.MaxBrief+1))
	if err != nil {
		return "", &terminal.UsageError{Reason: fmt.Sprintf("read the brief: %v", err)}
	}
	return string(text), nil
}

// answerOf is what an outcome prints; of a failure there is nothing to say but the reason.
func answerOf(live terminal.Live, err error) (answer, bool) {
	var exists *terminal.ExistsError
	switch {
	case err == nil && live.ID == "":
		return answer{Outcome: "none"}, true
	case err == nil:
		return answer{Outcome: "started", ThisThread: true, Operator: &live}, true
	case errors.As(err, &exists):
		return answer{Outcome: "exists", ThisThread: exists.ThisThread, Operator: &exists.Live}, true
	}
	return answer{}, false
}
