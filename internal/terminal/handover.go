package terminal

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"agentsmith/rules"
)

// A new session first runs this program, which connects to the start that made it, is
// handed what to run, and becomes that. So the CLI's environment and its brief go from one
// process to the other: they stand in no file and on no command line of tmux, which keeps
// both for as long as its server runs. And a start that is killed before it has handed
// them over leaves a session that ends by itself.

const (
	// sessionArg makes a process one that waits in a session; see MaybeSession.
	sessionArg = "run-session"
	// handPatience is how long the two wait for each other; they take milliseconds.
	handPatience = 15 * time.Second
)

// job is what a session runs.
type job struct {
	Argv []string `json:"argv"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
}

// door is where a session asks for its job: a socket that only this user can reach.
type door struct {
	dir, name string
	listener  *net.UnixListener
}

// openDoor listens under a name in a folder.
func openDoor(dir, name string) (*door, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of doors: %w", err)
	}
	sweepDoors(dir)
	at, done, err := shortPath(dir, name)
	if err != nil {
		return nil, fmt.Errorf("open a door for the session: %w", err)
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("open a door for the session: %w", err)
	}
	l.SetUnlinkOnClose(false) // the short path is of this moment only
	return &door{dir: dir, name: name, listener: l}, nil
}

func (d *door) close() {
	_ = d.listener.Close()
	_ = os.Remove(filepath.Join(d.dir, d.name))
}

// sweepDoors removes what killed starts left. Nothing is written in a door.
func sweepDoors(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// shortPath names a file by a path that fits into a socket's address, however long its
// folder's is. It holds until done is called.
func shortPath(dir, name string) (path string, done func(), err error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", fd, name), func() { _ = unix.Close(fd) }, nil
}

// hand gives the job to the session, and returns when it has become that: its end of the
// connection is closed by the exec. What it says before is why it could not.
func (d *door) hand(ctx context.Context, j job) error {
	until := time.Now().Add(handPatience)
	if at, ok := ctx.Deadline(); ok && at.Before(until) {
		until = at
	}
	if err := d.listener.SetDeadline(until); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = d.listener.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, err := d.listener.AcceptUnix()
	if err != nil {
		return fmt.Errorf("the session did not ask what to run: %w", errors.Join(err, ctx.Err()))
	}
	defer conn.Close()
	if err := conn.SetDeadline(until); err != nil {
		return err
	}
	if err := json.NewEncoder(conn).Encode(j); err != nil {
		return fmt.Errorf("tell the session what to run: %w", err)
	}
	complaint, err := io.ReadAll(io.LimitReader(conn, 4096))
	if err != nil {
		return fmt.Errorf("wait for the session to run it: %w", err)
	}
	if len(complaint) > 0 {
		return errors.New(rules.Visible(strings.TrimSpace(string(complaint))))
	}
	return nil
}

// MaybeSession turns this process into what a session runs when it was started as one,
// and then does not return. Every main that starts operators calls it before anything
// else, and so does the TestMain of a test that does.
func MaybeSession() {
	if len(os.Args) != 4 || os.Args[1] != sessionArg {
		return
	}
	err := becomeJob(os.Args[2], os.Args[3])
	fmt.Fprintln(os.Stderr, "start-operator:", err)
	os.Exit(ExitFailed)
}

// becomeJob returns only when it fails.
func becomeJob(dir, name string) error {
	at, done, err := shortPath(dir, name)
	if err != nil {
		return err
	}
	conn, err := net.DialTimeout("unix", at, handPatience)
	done()
	if err != nil {
		return fmt.Errorf("ask what to run: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(handPatience)); err != nil {
		return err
	}
	var j job
	if err := json.NewDecoder(bufio.NewReader(conn)).Decode(&j); err != nil {
		return fmt.Errorf("be told what to run: %w", err)
	}
	err = j.become()
	_, _ = io.WriteString(conn, err.Error())
	return err
}

// become returns only when it fails.
func (j job) become() error {
	if len(j.Argv) == 0 {
		return errors.New("nothing to run")
	}
	if err := os.Chdir(j.Dir); err != nil {
		return fmt.Errorf("go to the worktree: %w", err)
	}
	return fmt.Errorf("run %s: %w", j.Argv[0], unix.Exec(j.Argv[0], j.Argv, j.withTerminal(os.Getenv("TERM"))))
}

// withTerminal is the job's environment in the terminal that tmux gave it. TMUX is not in
// it: a tmux command that an agent runs is then about a server of its own, not about the
// one that all operators live in.
func (j job) withTerminal(term string) []string {
	return append(setEnv(j.Env, "TERM="+term), "COLORTERM=truecolor")
}
