package histories

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Committed asks git whether each specimen is what the commit that added it holds, and was
// never anything else: the manifest's sha256 could be changed along with the file. What
// could not be asked is told in the note, a line or "": a clone without a history has only
// the sums, and a specimen may be new. A missing git is an error.
func Committed(ctx context.Context, dir string, specimens []Specimen) (note string, err error) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*", "-c", "core.quotePath=false", "-C", dir}, args...)...).Output()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return strings.TrimSpace(string(out)), err
	}
	if _, err := exec.LookPath("git"); err != nil {
		return "", fmt.Errorf("specimens are checked with git: %w", err)
	}
	shallow, err := git("rev-parse", "--is-shallow-repository")
	if err != nil && ctx.Err() == nil {
		return "no clone of git here: the specimens are checked by their sha256 alone", nil
	}
	var notes []string
	if shallow == "true" {
		notes = append(notes, "this clone has no history: what happened to a specimen before it is checked by its sha256 alone")
	}
	log, err := git("log", "--full-history", "-m", "--raw", "--no-abbrev", "--no-renames", "--relative", "--format=commit %H", "--", ".")
	if err != nil {
		return "", fmt.Errorf("ask git for the history of the specimens: %w", err)
	}
	past := readLog(log)
	args := []string{"hash-object", "--"}
	for _, s := range specimens {
		args = append(args, s.File)
	}
	hashed, err := git(args...)
	if err != nil {
		return "", fmt.Errorf("ask git for the names of the specimens' content: %w", err)
	}
	now := strings.Fields(hashed)
	var errs []error
	fresh := 0
	for i, s := range specimens {
		if len(past[s.File]) == 0 {
			fresh++
		}
		for _, was := range past[s.File] {
			if was.blob != now[i] {
				errs = append(errs, fmt.Errorf("%s: changed since its commit: %.12s has other content; a specimen is never edited, and a new one takes a new generation", s.File, was.commit))
				break
			}
		}
	}
	if fresh > 0 {
		notes = append(notes, fmt.Sprintf("specimens that are not committed yet: %d", fresh))
	}
	return strings.Join(notes, "; "), errors.Join(errs...)
}

// content is what a commit made of a file.
type content struct{ commit, blob string }

// readLog reads what each file has ever been, the newest first, from git log --raw.
func readLog(log string) map[string][]content {
	out := map[string][]content{}
	commit := ""
	for line := range strings.Lines(log) {
		line = strings.TrimSuffix(line, "\n")
		if hash, ok := strings.CutPrefix(line, "commit "); ok {
			commit, _, _ = strings.Cut(hash, " ")
			continue
		}
		// :<mode> <mode> <blob before> <blob after> <status>	<path>
		head, path, ok := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		if !ok || len(fields) != 5 || fields[4] == "D" {
			continue
		}
		out[path] = append(out[path], content{commit, fields[3]})
	}
	return out
}
