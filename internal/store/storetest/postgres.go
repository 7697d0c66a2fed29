package storetest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"
)

// PostgresPassword is the password in every URL of a Postgres: no error and no log may
// ever show it.
const PostgresPassword = "hunter2/ä%41 ?#"

// Postgres is a real PostgreSQL server of its own, behind a socket in a temporary folder.
// It does not sync: what a killed process wrote is there all the same, and only a machine
// that loses its power would lose it.
type Postgres struct {
	bin  string // the folder of its programs
	dir  string
	as   *syscall.Credential // whom it runs as: it refuses root
	cmd  *exec.Cmd
	done chan struct{}
	made atomic.Int64
	mu   sync.Mutex
	free []string // databases that a test is done with
}

// StartPostgres makes and starts a server from the programs in bin, and stops and removes
// it when the test ends.
func StartPostgres(t testing.TB, bin string) *Postgres {
	t.Helper()
	p := &Postgres{bin: bin}
	var err error
	// A socket's path is short, so this is not the test's own folder.
	p.dir, err = os.MkdirTemp("", "smith-pg-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(p.dir)) })
	require.NoError(t, p.drop())
	password := filepath.Join(p.dir, "password")
	require.NoError(t, os.WriteFile(password, []byte(PostgresPassword), 0o644))
	p.run(t, "initdb", "--pgdata="+p.data(), "--username=smith", "--pwfile="+password, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions")
	p.Start(t)
	t.Cleanup(func() { p.stop(syscall.SIGQUIT) })
	return p
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

// drop makes the server's folder that of a user who is not root.
func (p *Postgres) drop() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return err
		}
		p.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return os.Chown(p.dir, int(uid), int(gid))
	}
	return errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")
}

func (p *Postgres) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, program), args...)
	cmd.Dir = p.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "HOME=" + p.dir}
	// A test binary that is killed takes its server along.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.as, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

func (p *Postgres) run(t testing.TB, program string, args ...string) {
	t.Helper()
	out, err := p.command(program, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Start starts the server, also after Kill, and waits until it answers.
func (p *Postgres) Start(t testing.TB) {
	t.Helper()
	limit := time.Now().Add(60 * time.Second)
	for {
		err := p.start(limit)
		if err == nil {
			return
		}
		// What was killed may still hold its shared memory for a moment.
		require.True(t, strings.Contains(err.Error(), "shared memory") && time.Now().Before(limit), "PostgreSQL did not start: %v", err)
		time.Sleep(20 * time.Millisecond)
	}
}

func (p *Postgres) start(limit time.Time) error {
	var log bytes.Buffer
	cmd := p.command("postgres", "-D", p.data(), "-k", p.dir, "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "full_page_writes=off", "-c", "shared_buffers=32MB", "-c", "max_connections=60", "-c", "jit=off",
		"-c", "wal_level=minimal", "-c", "max_wal_senders=0")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	p.cmd, p.done = cmd, done
	db, err := sql.Open("pgx", p.url("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := db.PingContext(ctx)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-done:
			return fmt.Errorf("it ended: %s", log.String())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(limit) {
			p.stop(syscall.SIGQUIT)
			return err
		}
	}
}

// Kill ends the server and everything that works for its clients at once, as a crash does.
func (p *Postgres) Kill() {
	// The parent must not start a new child between the look and the kill.
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	children := childrenOf(p.cmd.Process.Pid)
	p.stop(syscall.SIGKILL)
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Freeze makes the server hang, connections and all, as a network does that swallows
// everything, until thaw is called.
func (p *Postgres) Freeze() (thaw func()) {
	pids := append([]int{p.cmd.Process.Pid}, childrenOf(p.cmd.Process.Pid)...)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	return func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
}

func (p *Postgres) stop(how syscall.Signal) {
	_ = p.cmd.Process.Signal(how)
	<-p.done
}

func childrenOf(parent int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it ended
		}
		// pid (name) state ppid …; the name may hold anything.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func (p *Postgres) url(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword("smith", PostgresPassword), Path: "/" + database,
		RawQuery: url.Values{"host": {p.dir}}.Encode()}
	return u.String()
}

// URL returns the URL of an empty database. It may have its tables already: one that an
// earlier test is done with is emptied and handed out again, in a hundredth of the time.
func (p *Postgres) URL(t testing.TB) string {
	t.Helper()
	p.mu.Lock()
	u := ""
	if n := len(p.free); n > 0 {
		u, p.free = p.free[n-1], p.free[:n-1]
	}
	p.mu.Unlock()
	if u == "" {
		u = p.NewURL(t)
	} else {
		require.NoError(t, empty(u))
	}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.free = append(p.free, u)
	})
	return u
}

// empty deletes every row but the migrations' own.
func empty(url string) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(context.Background(), `DO $$ DECLARE t text; BEGIN
		FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'goose_db_version' LOOP
			EXECUTE format('DELETE FROM %I', t);
		END LOOP; END $$`)
	return err
}

// NewURL makes a new, empty database and returns its URL.
func (p *Postgres) NewURL(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("db%d", p.made.Add(1))
	db, err := sql.Open("pgx", p.url("postgres"))
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(context.Background(), "CREATE DATABASE "+name+" TEMPLATE template0")
	require.NoError(t, err)
	return p.url(name)
}
