package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// unpack writes the tree of a revision into dir. The clone itself is left alone.
func unpack(ctx context.Context, o rollbackOptions, dir string) error {
	cmd := git(ctx, o.Clone, "archive", "--format=tar", o.Rev+"^{tree}")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("read from git: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run git: %w", err)
	}
	err = untar(out, dir)
	_, _ = io.Copy(io.Discard, out) // git ends by itself
	if wait := cmd.Wait(); wait != nil {
		return errors.Join(fmt.Errorf("git archive: %w\n%s", wait, stderr.Bytes()), err)
	}
	return err
}

func untar(from io.Reader, dir string) error {
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue // folders come with their files; Go code needs no link
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("the archive has a file %q outside of itself", h.Name)
		}
		path := filepath.Join(dir, h.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("unpack %s: %w", h.Name, err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
	}
}

// withoutTests is a folder of Go code without its tests and what they read.
type withoutTests struct{ fs.FS }

// ReadDir implements fs.ReadDirFS.
func (w withoutTests) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := fs.ReadDir(w.FS, name)
	if err != nil {
		return nil, err
	}
	var out []fs.DirEntry
	for _, e := range all {
		if e.Name() != "testdata" && !strings.HasSuffix(e.Name(), "_test.go") {
			out = append(out, e)
		}
	}
	return out, nil
}
