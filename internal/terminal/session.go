package terminal

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsmith/rules"
)

// The variables in a session's environment that say what it is (X5).
const (
	EnvSession  = "SMITH_SESSION" // its identity, a UUID
	EnvSeat     = "SMITH_SEAT"
	EnvTeam     = "SMITH_TEAM"
	EnvChannel  = "SMITH_CHANNEL"
	EnvRoot     = "SMITH_ROOT"
	EnvSlug     = "SMITH_SLUG"
	EnvRepo     = "SMITH_REPO"
	EnvWorktree = "SMITH_WORKTREE"
	EnvBranch   = "SMITH_BRANCH"
	EnvAsked    = "SMITH_ASKED"  // the ts of the newest line in its brief
	EnvOutbox   = "SMITH_OUTBOX" // the folder of all outboxes
)

// The kinds of sessions. A session of no kind is none of ours.
const (
	KindOperator = "operator"
	KindPerson   = "person"
)

// Live is a tmux session that runs, as tmux tells of it now. Nothing of it is read from
// anywhere else.
type Live struct {
	Name string `json:"name"`
	// ID is the identity that stands in the session's environment, a UUID; "" where
	// there is none.
	ID       string       `json:"id,omitempty"`
	Kind     string       `json:"kind,omitempty"`
	Seat     string       `json:"seat,omitempty"`
	Slug     string       `json:"slug,omitempty"`
	Repo     string       `json:"repo,omitempty"`
	Worktree string       `json:"worktree,omitempty"`
	Branch   string       `json:"branch,omitempty"`
	Outbox   string       `json:"outbox,omitempty"`
	Thread   rules.Thread `json:"thread,omitzero"`
	// Asked is the ts of the newest line that its brief quotes.
	Asked string `json:"asked,omitempty"`
	// PanePID is the process that the session was started with, Command the name of
	// what is in the foreground.
	PanePID int       `json:"pane_pid,omitempty"`
	Command string    `json:"command,omitempty"`
	Created time.Time `json:"created,omitzero"`
	// Socket is that of the tmux server.
	Socket string `json:"socket,omitempty"`
	// Attach is the command that shows the session to a person on its box.
	Attach string `json:"attach,omitempty"`
	// Briefed: the agent CLI has taken its brief. Only Start tells.
	Briefed bool `json:"briefed,omitempty"`

	// target is tmux's own id of the session, which it never gives twice.
	target string
}

// liveFormat is read by parseLive. A session's name cannot hold a colon; what runs in it
// can, so that stands last.
const liveFormat = "#{session_id}:#{session_created}:#{pane_pid}:#{session_name}:#{pane_current_command}"

// Sessions lists every session of the server, those that are none of ours too. A server
// that does not run has none. An error says nothing about what runs.
func (t Tmux) Sessions(ctx context.Context) ([]Live, error) {
	out, err := t.Run(ctx, nil, "list-sessions", "-F", liveFormat)
	if noServer(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the sessions: %w", err)
	}
	var all []Live
	var commands [][]string
	for row := range strings.Lines(out) {
		s, err := parseLive(strings.TrimRight(row, "\n"))
		if err != nil {
			return nil, fmt.Errorf("list the sessions: %w", err)
		}
		s.Socket, s.Attach = t.Socket, t.Attach(s.Name)
		all = append(all, s)
		commands = append(commands, []string{"show-environment", "-t", s.target})
	}
	if len(all) == 0 {
		return nil, nil
	}
	envs, err := t.RunAll(ctx, commands...)
	if noServer(err) || noSession(err) {
		return t.oneByOne(ctx, all) // one ended meanwhile
	}
	if err != nil {
		return nil, fmt.Errorf("read the environments of the sessions: %w", err)
	}
	for i := range all {
		all[i].readEnv(envs[i])
	}
	return all, nil
}

// oneByOne reads the environments of those sessions that are still there.
func (t Tmux) oneByOne(ctx context.Context, all []Live) (left []Live, err error) {
	for _, s := range all {
		env, err := t.Run(ctx, nil, "show-environment", "-t", s.target)
		if noServer(err) || noSession(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the environment of session %s: %w", s.target, err)
		}
		s.readEnv(env)
		left = append(left, s)
	}
	return left, nil
}

// Still tells whether a session that was found is there now, under its name: a program less
// than finding it.
func (t Tmux) Still(ctx context.Context, l Live) bool {
	out, err := t.Run(ctx, nil, "show-environment", "-t", "="+l.Name, EnvSession)
	return err == nil && strings.TrimSpace(out) == EnvSession+"="+l.ID
}

// Find returns the session of exactly that name; false when there is none.
func (t Tmux) Find(ctx context.Context, name string) (Live, bool, error) {
	return t.one(ctx, func(s Live) bool { return s.Name == name })
}

// ByID returns the session of that identity, whatever its name is; false when there is
// none.
func (t Tmux) ByID(ctx context.Context, id string) (Live, bool, error) {
	return t.one(ctx, func(s Live) bool { return id != "" && s.ID == id })
}

func (t Tmux) one(ctx context.Context, is func(Live) bool) (Live, bool, error) {
	all, err := t.Sessions(ctx)
	if err != nil {
		return Live{}, false, err
	}
	i := slices.IndexFunc(all, is)
	if i < 0 {
		return Live{}, false, nil
	}
	return all[i], true, nil
}

// has asks tmux whether a session is there: the authority on that (O7).
func (t Tmux) has(ctx context.Context, name string) (bool, error) {
	// The "=" is load-bearing. Without it tmux takes the name for a prefix, so that "foo"
	// is found because "op-foo-bar" runs. That never lets a second operator start, and so
	// looks safe; but a task with no operator is then refused one, and the sweep, which
	// asks here too, skips it for ever.
	_, err := t.Run(ctx, nil, "has-session", "-t", "="+name)
	switch {
	case err == nil:
		return true, nil
	case noServer(err) || noSession(err):
		return false, nil
	}
	return false, fmt.Errorf("ask for session %s: %w", name, err)
}

// Attach is the command that shows a session to a person. The quotes are for shells
// that read a leading "=" as their own.
func (t Tmux) Attach(name string) string {
	server := "-L " + t.Socket
	if strings.Contains(t.Socket, "/") {
		server = "-S " + shellQuote(t.Socket)
	}
	return fmt.Sprintf("tmux %s attach -t %s", server, shellQuote("="+name))
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,-]+$`)

// shellQuote makes a text one word of a shell's command line.
func shellQuote(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func parseLive(row string) (Live, error) {
	f := strings.SplitN(row, ":", 5)
	if len(f) != 5 {
		return Live{}, fmt.Errorf("tmux told of a session in no known form: %q", clip(row, 200))
	}
	created, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return Live{}, fmt.Errorf("tmux told of a session in no known form: %q", clip(row, 200))
	}
	pid, _ := strconv.Atoi(f[2]) // none, of a pane that is dead
	return Live{target: f[0], Created: time.Unix(created, 0).UTC(), PanePID: pid, Name: f[3], Command: f[4]}, nil
}

// readEnv takes the session's own variables; "-NAME" is one that was taken away.
func (s *Live) readEnv(env string) {
	fields := map[string]*string{
		EnvSession: &s.ID, EnvSeat: &s.Seat, EnvSlug: &s.Slug, EnvRepo: &s.Repo, EnvWorktree: &s.Worktree, EnvBranch: &s.Branch,
		EnvOutbox: &s.Outbox, EnvAsked: &s.Asked, EnvTeam: &s.Thread.Team, EnvChannel: &s.Thread.Channel, EnvRoot: &s.Thread.Root,
	}
	for row := range strings.Lines(env) {
		name, value, ok := strings.Cut(strings.TrimRight(row, "\n"), "=")
		if field := fields[name]; ok && field != nil {
			*field = value
		}
	}
	switch {
	case s.ID == "":
	case s.Slug != "":
		s.Kind = KindOperator
	default:
		s.Kind = KindPerson
	}
}
