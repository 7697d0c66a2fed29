package activities

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"agentsmith/activities/classifier"
	"agentsmith/internal/agent"
	"agentsmith/rules"
)

const (
	// classifyTimeout bounds one classification where the config says nothing.
	classifyTimeout = 45 * time.Second
	// maxClassifyOutput bounds what the CLI may write for one, in bytes.
	maxClassifyOutput = 1 << 20
)

// Classifier asks a small model whether lines ask for work (O2).
type Classifier struct {
	Runner Runner
	// Model is the small model's name; the CLI's own default where it is "".
	Model string
	// Timeout bounds one classification; 0 is 45 s.
	Timeout time.Duration
	// TempDir is where each gets a directory of its own; "" is the system's.
	TempDir string
	Log     *slog.Logger
}

// ClassifyInput is what is to be told from a question.
type ClassifyInput struct {
	Seat string
	// Text is what the person wrote, as plain text; Earlier what was asked in the thread
	// before and came to no operator.
	Text    string
	Earlier string
	// Repos are the names of the checkouts on this box (O4).
	Repos []string
}

// Classify tells work from a question. It never fails: whatever keeps the classifier from
// an answer is a question that is marked Unavailable, and only its explicit "work" is work.
// The prompt resolves doubt to work and an outage resolves to no work, on purpose: in the
// one case the classifier ran, in the other it never did (O2). Work always has a slug.
//
// Nothing of it outlives the call, nor this process: the CLI has no tool to start anything
// with, and its supervisor ends it.
func (c *Classifier) Classify(ctx context.Context, in ClassifyInput) rules.WorkDisposition {
	log := c.Log.With("seat", in.Seat, "model", c.Model)
	words, err := classifier.Load()
	if err != nil {
		log.Error("the classifier's words could not be read", "error", err)
		return rules.NoDisposition()
	}
	log = log.With("prompt_version", words.PromptVersion, "schema_version", words.SchemaVersion)
	got, err := c.ask(ctx, in, words)
	if err != nil {
		log.Error("the classifier did not answer", "error", err)
		return rules.NoDisposition()
	}
	d := rules.ReadDisposition(got.Structured)
	if d.Unavailable {
		log.Error("the classifier's answer is of no kind that is known", "bytes", len(got.Structured))
		return d
	}
	if d.Kind == rules.KindWork && d.Slug == "" {
		d.Slug = rules.SlugFor(cmp.Or(in.Earlier, in.Text))
	}
	log.Info("classified", "kind", d.Kind, "slug", d.Slug, "repo", d.Repo, "took", got.Duration, "cost_usd", got.CostUSD)
	return d
}

func (c *Classifier) ask(ctx context.Context, in ClassifyInput, words classifier.Words) (agent.Result, error) {
	dir, err := os.MkdirTemp(c.TempDir, "classify-")
	if err != nil {
		return agent.Result{}, fmt.Errorf("make the classifier's directory: %w", err)
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.Abs(dir); err != nil {
		return agent.Result{}, fmt.Errorf("make the classifier's directory: %w", err)
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = classifyTimeout
	}
	return c.Runner.Run(ctx, agent.Spec{
		RunID: "classify-" + uuid.NewString(), Dir: dir,
		Prompt:       rules.ToClassify{Text: in.Text, Earlier: in.Earlier, Repos: in.Repos}.String(),
		SystemPrompt: words.Prompt, Schema: words.Schema, Model: c.Model,
		Timeout: timeout, MaxOutput: maxClassifyOutput,
	}, nil)
}
