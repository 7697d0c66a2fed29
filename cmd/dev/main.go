// Command dev runs the whole of Smith on this machine, with no account anywhere (T5).
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"agentsmith/internal/agent"
	"agentsmith/internal/config"
	"agentsmith/internal/stack"
	"agentsmith/internal/tools"
	"agentsmith/workflows"
)

type flags struct {
	Headless bool   `help:"Open no browser."`
	Agent    string `help:"Who answers: claude, signed in with your account, or stand-in, which says that it is one. Default: claude where it is signed in." enum:"claude,stand-in," default:""`
	Dir      string `help:"Where state and logs are kept." default:".dev" type:"path"`
}

func main() {
	var f flags
	kong.Parse(&f, kong.Name("dev"), kong.Description("Runs the whole of Smith on this machine: Temporal, a local Slack with a page to type in, worker and starter."))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(withParent(ctx), f); err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags) error {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return fmt.Errorf("make %s: %w", f.Dir, err)
	}
	unlock, err := lock(f.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	// One that is there is of a start that was killed.
	ready := filepath.Join(f.Dir, readyFile)
	_ = os.Remove(ready)
	o, err := options(ctx, f)
	if err != nil {
		return err
	}
	s, err := stack.Start(ctx, o)
	if errors.Is(err, context.Canceled) {
		say("Stopped before everything had started.")
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w\nThe logs are in %s", err, filepath.Join(f.Dir, "logs"))
	}
	if err := writeReady(ready, s); err != nil {
		return errors.Join(err, s.Stop())
	}
	greet(s, f)

	var ended *stack.Proc
	select {
	case <-ctx.Done():
	case <-s.Temporal.Done():
		ended = s.Temporal.Proc
	case <-s.Worker.Done():
		ended = s.Worker
	case <-s.Starter.Done():
		ended = s.Starter
	}
	_ = os.Remove(ready)
	say("Stopping …")
	err = s.Stop()
	if ended != nil {
		_, how := ended.Ended()
		return errors.Join(fmt.Errorf("the %s ended by itself (%v), so everything was stopped; its log is %s", ended.Name, how, ended.LogPath), err)
	}
	if err == nil {
		say("Stopped.")
	}
	return err
}

// options finds the pinned programs, builds ours, and decides who answers.
func options(ctx context.Context, f flags) (stack.Options, error) {
	o := stack.Options{
		Dir: f.Dir, Say: say, SlackAddr: "127.0.0.1:8722", TemporalPort: 7233, TemporalUIPort: 8233,
		SearchAttributes: workflows.SearchSpecs(),
		Log:              slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	var err error
	if o.Temporal, err = tools.Temporal(); err != nil {
		return o, err
	}
	if o.Claude, err = tools.Claude(); err != nil {
		return o, err
	}
	if _, err = tools.Tmux(); err != nil {
		return o, err
	}
	if o.SignedIn, err = signedIn(f.Agent, o.Claude); err != nil {
		return o, err
	}
	checkout, err := demo(ctx, f.Dir)
	if err != nil {
		return o, err
	}
	o.Operators = &stack.Operators{Checkouts: []string{checkout}}
	say("Building …")
	o.Worker, o.Starter, err = stack.Build(ctx, filepath.Join(f.Dir, "bin"))
	return o, err
}

// signedIn decides whether the user's own account answers.
func signedIn(choice, claude string) (bool, error) {
	if choice == "stand-in" {
		return false, nil
	}
	home := os.Getenv("HOME")
	in := agent.SignedIn(claude, home, agent.BuildEnv(os.Environ(), config.DefaultPassEnv(), home))
	if choice == "claude" && !in {
		return false, errors.New("claude is not signed in: run `claude` once and sign in, or set ANTHROPIC_API_KEY, or leave --agent out to use the stand-in")
	}
	return in, nil
}

// lock refuses a second start beside a running one.
func lock(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		where := ""
		if r, err := readReady(filepath.Join(dir, readyFile)); err == nil {
			where = " Its page is " + r.PageURL
		}
		file.Close()
		return nil, fmt.Errorf("it is already running from %s.%s\nStop that one with Ctrl-C first, or use another place with --dir", dir, where)
	}
	return func() { file.Close() }, nil
}

// withParent ends with those who started us: a task runner that is killed tells its
// children nothing.
func withParent(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	runners := runnersAbove(os.Getpid())
	go func() {
		defer cancel()
		for slices.Equal(runners, runnersAbove(os.Getpid())) && ctx.Err() == nil {
			time.Sleep(300 * time.Millisecond)
		}
	}()
	return ctx
}

// runnersAbove are the parent, and those above it while they are task runners.
func runnersAbove(pid int) []int {
	above := []int{os.Getppid()}
	for pid = os.Getppid(); ; above = append(above, pid) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		if err != nil || open < 0 || end < open {
			return above
		}
		if program := string(stat[open+1 : end]); program != "go" && program != "task" {
			return above
		}
		var state string
		if _, err := fmt.Sscan(string(stat[end+1:]), &state, &pid); err != nil {
			return above
		}
	}
}

func greet(s *stack.Stack, f flags) {
	who := "a stand-in answers, which says that it is one"
	if s.SignedIn {
		who = "claude answers, with your account"
	}
	say(strings.Join([]string{
		"",
		"Smith is ready; " + who + ".",
		"  Page         " + s.Slack.PageURL() + "    write to @smith there",
		"  Temporal UI  " + s.Temporal.UI,
		"  Temporal     " + s.Temporal.Address + ", namespace " + stack.Namespace,
		"  Operators    write: @smith please fix the README in " + demoName + "    to watch one: tmux -S " + s.Tmux.Socket + " attach",
		"  Logs         " + filepath.Join(f.Dir, "logs"),
		"Ctrl-C stops everything.",
	}, "\n"))
	if !f.Headless {
		openPage(s.Slack.PageURL())
	}
}

// openPage shows the page in the user's browser, where there is one.
func openPage(url string) {
	for _, program := range []string{"xdg-open", "open"} {
		if path, err := exec.LookPath(program); err == nil {
			_ = exec.Command(path, url).Start()
			return
		}
	}
}

func say(text string) { fmt.Println(text) }
