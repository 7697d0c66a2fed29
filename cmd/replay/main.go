// Command replay proves the workflows by their specimens: it prints the proof matrix,
// keeps it in docs, and tells what a rollback would strand.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"agentsmith/replaytests"
)

type flags struct {
	Root     string       `help:"The clone's folder." default:"." type:"path"`
	Prove    struct{}     `cmd:"" default:"1" help:"Replay every specimen and print the matrix; fail when something does not hold."`
	Docs     struct{}     `cmd:"" help:"Write the matrix to docs/matrix.md."`
	Rollback rollbackArgs `cmd:"" help:"Replay today's specimens on an older revision's workflows; fail when one would strand."`
}

type rollbackArgs struct {
	Rev string `arg:"" help:"The revision to go back to: a tag, a branch or a commit."`
}

// errNo ends the program with 1 and needs no word more: the report has said why.
var errNo = errors.New("no")

func main() {
	var f flags
	cli := kong.Parse(&f, kong.Name("replay"), kong.Description("Proves the workflows by histories of older code."))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, cli.Command(), f, os.Stdout); err != nil {
		if !errors.Is(err, errNo) {
			fmt.Fprintln(os.Stderr, "replay:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, command string, f flags, out io.Writer) error {
	switch command {
	case "rollback <rev>":
		return rollback(ctx, rollbackOptions{Tree: f.Root, Clone: f.Root, Rev: f.Rollback.Rev}, out)
	case "docs":
		return docs(ctx, f.Root, out)
	}
	p, err := replaytests.Prove(ctx, f.Root)
	if err != nil {
		return err
	}
	if err := p.Print(out); err != nil {
		return fmt.Errorf("print the matrix: %w", err)
	}
	if p.Err() != nil {
		return errNo
	}
	return nil
}

// docs writes the matrix that the code gives now, also of a proof that does not hold: its
// test fails until it does.
func docs(ctx context.Context, root string, out io.Writer) error {
	p, err := replaytests.Prove(ctx, root)
	if err != nil {
		return err
	}
	file := replaytests.MatrixFile(root)
	if err := os.WriteFile(file, []byte(p.Matrix()), 0o644); err != nil {
		return fmt.Errorf("write the matrix: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s\n%s\n", file, p.Report.LastLine())
	return err
}
