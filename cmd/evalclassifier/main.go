// Command evalclassifier measures the classifier on the labelled lines (O2): how often it
// tells work from a question as a person did, and what it took for what.
//
// It asks claude where claude is signed in. Elsewhere it runs against the local stand-in:
// that shows that the way there and back works, and nothing about the classifier.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"agentsmith/activities"
	"agentsmith/activities/classifier"
	"agentsmith/internal/agent"
	"agentsmith/internal/config"
	"agentsmith/internal/standin"
	"agentsmith/internal/tools"
	"agentsmith/rules"
)

type flags struct {
	Agent   string        `help:"Who classifies: claude, signed in with your account, or stand-in. Default: claude where it is signed in." enum:"claude,stand-in," default:""`
	Command string        `help:"The agent CLI. Default: the pinned one." default:""`
	Model   string        `help:"The small model that is asked." default:"haiku"`
	Timeout time.Duration `help:"How long one line may take." default:"45s"`
	Limit   int           `help:"Ask about so many lines only, spread over the set; 0 is all." default:"0"`
	AtOnce  int           `help:"How many lines are asked about at once." default:"4"`
	Min     float64       `help:"Fail below this accuracy, between 0 and 1. Not with the stand-in." default:"0"`
}

func main() {
	agent.MaybeSupervise()
	var f flags
	kong.Parse(&f, kong.Name("evalclassifier"), kong.Description("Measures the classifier on the labelled lines."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, f, os.Environ(), os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "evalclassifier:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, f flags, environ []string, out, logs io.Writer) error {
	set, repos, err := classifier.Lines()
	if err != nil {
		return err
	}
	set = spread(set, f.Limit)
	if f.Command == "" {
		if f.Command, err = tools.Claude(); err != nil {
			return err
		}
	}
	runner, real, done, err := runnerOf(ctx, f, environ)
	if err != nil {
		return err
	}
	defer done()
	who := "claude, model " + f.Model + ", with your account"
	if !real {
		who = "the stand-in, since claude is not signed in here. It has a simple rule of its own:\n" +
			"this shows that the way there and back works, and the accuracy says nothing about the classifier"
	}
	words, err := classifier.Load()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Prompt version %d, schema version %d. %d lines, asked of %s.\n\n", words.PromptVersion, words.SchemaVersion, len(set), who)
	c := &activities.Classifier{
		Runner: runner, Model: f.Model, Timeout: f.Timeout,
		Log: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	r := ask(ctx, c, set, repos, max(f.AtOnce, 1))
	if err := ctx.Err(); err != nil {
		return err
	}
	r.print(out)
	switch {
	case r.unavailable() > 0:
		return fmt.Errorf("%d of %d lines got no answer", r.unavailable(), len(set))
	case real && r.accuracy() < f.Min:
		return fmt.Errorf("the accuracy is %.3f, and %.3f was asked for", r.accuracy(), f.Min)
	}
	return nil
}

// runnerOf returns a runner of the CLI, and whether a real model answers it.
func runnerOf(ctx context.Context, f flags, environ []string) (r *agent.Runner, real bool, done func(), err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, false, nil, fmt.Errorf("find the home folder: %w", err)
	}
	env := agent.BuildEnv(environ, config.DefaultPassEnv(), home)
	real = f.Agent != "stand-in" && agent.SignedIn(f.Command, home, env)
	if real {
		r = agent.New(agent.Options{Command: f.Command, Home: home, Env: env, Ready: f.AtOnce})
		return r, true, r.Close, nil
	}
	if f.Agent == "claude" {
		return nil, false, nil, errors.New("claude is not signed in: run `claude` once and sign in, or set ANTHROPIC_API_KEY, or leave --agent out to use the stand-in")
	}
	if home, err = os.MkdirTemp("", "evalclassifier-"); err != nil {
		return nil, false, nil, fmt.Errorf("make a home for the stand-in's agent: %w", err)
	}
	api, err := standin.Start(ctx, standin.Options{})
	if err != nil {
		return nil, false, nil, errors.Join(err, os.RemoveAll(home))
	}
	r = agent.New(agent.Options{Command: f.Command, Home: home, Ready: f.AtOnce, Env: append(agent.BuildEnv(environ, nil, home),
		"ANTHROPIC_API_KEY=of-the-stand-in", "ANTHROPIC_BASE_URL="+api.URL())})
	return r, false, func() {
		r.Close()
		_ = api.Close()
		_ = os.RemoveAll(home)
	}, nil
}

// spread takes limit lines evenly out of the set.
func spread(set []classifier.Line, limit int) []classifier.Line {
	if limit <= 0 || limit >= len(set) {
		return set
	}
	var some []classifier.Line
	for i := range limit {
		some = append(some, set[i*len(set)/limit])
	}
	return some
}

// ask classifies every line, some at once.
func ask(ctx context.Context, c *activities.Classifier, set []classifier.Line, repos []string, atOnce int) report {
	answers := make(report, len(set))
	next := make(chan int)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for i := range next {
				l := set[i]
				d := c.Classify(ctx, activities.ClassifyInput{Seat: "eval", Text: l.Text, Earlier: l.Earlier, Repos: repos})
				answers[i] = answer{line: l, got: d}
			}
		})
	}
	for i := range set {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	all.Wait()
	return answers
}

// answer is what the classifier made of one line.
type answer struct {
	line classifier.Line
	got  rules.WorkDisposition
}
