package proof

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"

	"go.temporal.io/sdk/workflow"
)

// CommitKnows says what a commit knew of a gate.
type CommitKnows string

// What a commit may know.
const (
	KnowsNot  CommitKnows = "does not know it"
	Knows     CommitKnows = "knows it"
	NotHere   CommitKnows = "not in this clone"
	Unchecked CommitKnows = "unchecked"
)

// ErrNoCommit is returned for a commit that the clone does not have.
var ErrNoCommit = errors.New("the clone does not have this commit")

// Commits returns the gates that the code of a commit asks for; ErrNoCommit when it is not
// there to be read.
type Commits func(ctx context.Context, commit string) ([]Gate, error)

func (c Commits) ask(ctx context.Context, commit, gate string, newest workflow.Version) (CommitKnows, error) {
	if c == nil || commit == "" {
		return Unchecked, nil
	}
	gates, err := c(ctx, commit)
	if errors.Is(err, ErrNoCommit) {
		return NotHere, nil
	}
	if err != nil {
		return "", err
	}
	for _, g := range gates {
		if g.ID == gate && g.Max >= newest {
			return Knows, nil
		}
	}
	return KnowsNot, nil
}

// Git reads the gates of one folder (below the clone's root, with slashes) at a commit of a
// git clone. Each commit is read once.
func Git(clone, folder string) Commits {
	var mu sync.Mutex
	type answer struct {
		gates []Gate
		err   error
	}
	seen := map[string]answer{}
	return func(ctx context.Context, commit string) ([]Gate, error) {
		mu.Lock()
		defer mu.Unlock()
		a, ok := seen[commit]
		if !ok {
			a.gates, a.err = gatesAt(ctx, clone, folder, commit)
			if ctx.Err() == nil {
				seen[commit] = a
			}
		}
		return a.gates, a.err
	}
}

func gatesAt(ctx context.Context, clone, folder, commit string) ([]Gate, error) {
	git := func(args ...string) ([]byte, error) {
		return exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*", "-C", clone}, args...)...).Output()
	}
	if _, err := git("rev-parse", "--git-dir"); err != nil {
		return nil, fmt.Errorf("ask git about %s: %w", clone, err)
	}
	if _, err := git("cat-file", "-e", commit+"^{commit}"); err != nil {
		return nil, ErrNoCommit
	}
	if out, err := git("ls-tree", "--full-tree", commit, "--", folder); err != nil || len(out) == 0 {
		return nil, err // the folder was not there yet, so neither was the gate
	}
	// From the root: git archive takes its paths from where it runs.
	out, err := git("archive", "--format=tar", commit+":"+folder)
	if err != nil {
		return nil, fmt.Errorf("read %s at %s: %w", folder, commit, err)
	}
	files, err := untar(out)
	if err != nil {
		return nil, fmt.Errorf("read %s at %s: %w", folder, commit, err)
	}
	reading, err := ReadFiles(files)
	if err != nil {
		return nil, fmt.Errorf("read %s at %s: %w", folder, commit, err)
	}
	return reading.Gates, nil
}

// untar returns the files that stand at the top of an archive.
func untar(archive []byte) (map[string][]byte, error) {
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		if h.Typeflag != tar.TypeReg || bytes.ContainsRune([]byte(h.Name), '/') {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		files[h.Name] = text
	}
}
