// Package replaytests is the proof of Smith's own workflows: it replays every committed
// history on the code as it is now, strictly, with each gate's controls and with mutants.
// `task replay` prints it, and the tests of this package fail when it does not hold.
package replaytests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"go.temporal.io/sdk/worker"

	"agentsmith/histories"
	"agentsmith/internal/proof"
	"agentsmith/workflows"
)

// Repeats is how often each specimen is replayed: some nondeterminism shows only sometimes.
const Repeats = 20

// Proof is what the specimens showed of the code.
type Proof struct {
	Specimens []histories.Specimen
	Report    *proof.Report
	// Note says what could not be asked of git, in a line; "" when all could.
	Note string
	// Changed are the specimens that are not what their commit added.
	Changed error
}

// place is what is proved, by what.
type place struct {
	clone     string // the folder that git is asked in
	histories string
	source    string // the workflows' folder
	allowed   string // the differences that are meant, each with its reason
	register  func(worker.WorkflowRegistry)
	repeat    int
	mutate    bool
}

func at(root string) place {
	return place{
		clone: root, histories: filepath.Join(root, "histories"), source: filepath.Join(root, "workflows"),
		allowed: filepath.Join(root, "replaytests", "allowed.json"), register: workflows.Register, repeat: Repeats, mutate: true,
	}
}

// Prove proves the workflows of the clone at root by its specimens. The error says that
// it could not be tried, as with an empty folder; what it showed is in Proof.Err.
func Prove(ctx context.Context, root string) (*Proof, error) { return at(root).prove(ctx) }

func (p place) prove(ctx context.Context) (*Proof, error) {
	all, err := histories.Load(p.histories)
	if err != nil {
		return nil, fmt.Errorf("load the specimens: %w", err)
	}
	out := &Proof{Specimens: all}
	out.Note, out.Changed = histories.Committed(ctx, p.histories, all)
	code, err := proof.New(proof.Code{Register: p.register, DisableRegistrationAliasing: true, Repeat: p.repeat})
	if err != nil {
		return nil, fmt.Errorf("prepare the proof: %w", err)
	}
	plan := proof.Plan{Commits: proof.Git(p.clone, "workflows"), Mutate: p.mutate}
	if plan.Reading, err = proof.Read(p.source); err != nil {
		return nil, fmt.Errorf("read the gates: %w", err)
	}
	if plan.Allowed, err = proof.LoadAllowed(p.allowed); err != nil {
		return nil, err
	}
	var some []proof.Specimen
	for _, s := range all {
		some = append(some, proof.Specimen{Name: s.File, History: s.History, Commit: s.Commit})
	}
	if out.Report, err = code.Prove(ctx, some, plan); err != nil {
		return nil, fmt.Errorf("prove the workflows: %w", err)
	}
	return out, nil
}

// Err is nil only when everything holds, else it says everything that does not.
func (p *Proof) Err() error { return errors.Join(p.Changed, p.Report.Err()) }

// Print writes the matrix, the score, what does not hold, and the last line.
func (p *Proof) Print(w io.Writer) error {
	var b strings.Builder
	b.WriteString(p.body())
	if p.Note != "" {
		fmt.Fprintf(&b, "note: %s\n", p.Note)
	}
	if err := p.Err(); err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(&b, "FAILS: %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	fmt.Fprintln(&b, p.Report.LastLine())
	_, err := io.WriteString(w, b.String())
	return err
}

// body is the report without its last line.
func (p *Proof) body() string {
	var b strings.Builder
	_ = p.Report.Print(&b) // into memory
	return strings.TrimSuffix(b.String(), p.Report.LastLine()+"\n")
}
