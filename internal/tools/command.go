package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// command is a program that an installer runs.
type command struct {
	dir  string
	env  []string // nil inherits
	out  io.Writer
	args []string
}

// do runs a command; its output is shown only when it fails.
func (s *Setup) do(ctx context.Context, dir string, env []string, args ...string) error {
	var out bytes.Buffer
	err := s.run(ctx, command{dir: dir, env: env, out: &out, args: args})
	if err == nil {
		return nil
	}
	if ctx.Err() == nil {
		fmt.Fprintln(s.Out, tail(out.String(), 30))
	}
	return fmt.Errorf("%s: %w", strings.Join(args, " "), err)
}

// runCommand ends the command's whole process group when the setup is stopped.
func runCommand(ctx context.Context, c command) error {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, c.out, c.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second // dpkg finishes the package that it is at
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what ignored the first
	}
	return err
}

// tail returns the last lines of a program's output.
func tail(out string, lines int) string {
	all := strings.Split(strings.TrimRight(out, "\n"), "\n")
	return strings.Join(all[max(len(all)-lines, 0):], "\n")
}

// environ is this process's environment with changes; "NAME" alone removes one.
func environ(changes ...string) []string {
	changed := map[string]bool{}
	for _, c := range changes {
		name, _, _ := strings.Cut(c, "=")
		changed[name] = true
	}
	var env []string
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !changed[name] {
			env = append(env, v)
		}
	}
	for _, c := range changes {
		if strings.Contains(c, "=") {
			env = append(env, c)
		}
	}
	return env
}
