package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/google/uuid"

	"agentsmith/internal/failpoint"
	"agentsmith/rules"
)

// briefPatience is how long the CLI may take to take its brief; it takes about a second.
const briefPatience = 20 * time.Second

// StartRequest is what an operator is started with (O9).
type StartRequest struct {
	Tmux   Tmux
	Seat   string
	Slug   string
	Thread rules.Thread
	// Repo is looked up in Checkouts exactly; nothing else will do (O4).
	Repo      string
	Checkouts []rules.Checkout
	// Brief is the task, at most MaxBrief bytes. People wrote in it (X2).
	Brief string
	// Asked is the ts of the newest line that Brief quotes, "" where it quotes none.
	Asked string
	// Dir holds the operators' worktrees and locks; Outbox the outboxes of all sessions.
	Dir, Outbox string
	Agent       Agent
	// Limit is how many operators may run on this server at once; 0 is no limit (X6).
	Limit int
	// Self is the program that becomes the session, one that calls MaybeSession first;
	// "" is this one.
	Self string
	// Patience is how long to wait for the CLI to take its brief; 0 is 20 s.
	Patience time.Duration
}

// Start starts the operator of a thread's task, in a worktree of its own, and returns its
// session (O7, O9). There is never a second one: not of the slug, not of the thread, also
// when many start at once or a start is killed at any point. What a killed start left is
// taken up by the next one, and so is the worktree of an operator that died.
//
// Errors: *UsageError, *ExistsError, ErrNoCheckout, ErrLimit; any other is tmux, git or
// the CLI that failed, and then no session of this start runs.
func Start(ctx context.Context, req StartRequest) (Live, error) {
	if err := req.check(); err != nil {
		return Live{}, err
	}
	checkout, ok := rules.ResolveCheckout(req.Checkouts, req.Repo)
	if !ok {
		return Live{}, fmt.Errorf("%w: %q", ErrNoCheckout, clip(rules.Visible(req.Repo), 100))
	}
	if err := (repo{path: checkout.Path}).isCheckout(ctx); err != nil {
		return Live{}, fmt.Errorf("%w: %s: %w", ErrNoCheckout, checkout.Path, err)
	}
	locks := locks{filepath.Join(req.Dir, "locks")}
	for _, l := range [][2]string{{lockThread, threadKey(req.Thread)}, {lockSlug, req.Slug}} {
		held, err := locks.take(ctx, l[0], l[1])
		if err != nil {
			return Live{}, err
		}
		defer held.Close()
	}
	if err := req.settled(ctx); err != nil {
		return Live{}, err
	}
	if err := Check(ctx, req.Tmux, req.Slug, req.Thread); err != nil {
		return Live{}, err
	}
	failpoint.At(failpoint.OperatorLocked)
	rec, err := worktrees{dir: req.Dir, locks: locks}.prepare(ctx, owner{seat: req.Seat, slug: req.Slug, thread: req.Thread, checkout: checkout})
	if err != nil {
		return Live{}, err
	}
	failpoint.At(failpoint.OperatorMade)
	real, err := filepath.EvalSymlinks(rec.Worktree) // the CLI trusts folders by where they really are
	if err != nil {
		return Live{}, fmt.Errorf("find the worktree: %w", err)
	}
	err = home{dir: req.Agent.Home, locks: locks}.prepare(ctx, welcome{
		worktree: real, apiKey: lookupEnv(req.Agent.Env, "ANTHROPIC_API_KEY"), skip: req.Agent.SkipPermissions, person: os.Getenv("HOME"),
	})
	if err != nil {
		return Live{}, err
	}
	failpoint.At(failpoint.OperatorTrusted)
	return req.launch(ctx, locks, rec)
}

// Check asks whether an operator may be started: a session of the slug's very name, or one
// that works for this thread, is an *ExistsError. It asks tmux and nothing else (O7): not
// the store, and no folder. Other errors say nothing about what runs.
func Check(ctx context.Context, t Tmux, slug string, thread rules.Thread) error {
	if !rules.ValidSlug(slug) {
		return &UsageError{fmt.Sprintf("%q is no slug", clip(slug, 60))}
	}
	if err := checkThread(thread); err != nil {
		return err
	}
	all, err := t.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.ID != "" && s.Thread == thread {
			return &ExistsError{Live: s, ThisThread: true}
		}
	}
	name := rules.OperatorName(slug)
	taken, err := t.has(ctx, name)
	if err != nil || !taken {
		return err
	}
	for _, s := range all {
		if s.Name == name {
			return &ExistsError{Live: s}
		}
	}
	return &ExistsError{Live: Live{Name: name, Attach: t.Attach(name)}} // it began meanwhile
}

// settled waits for a session that a killed start left without anything to run: it ends by
// itself at once, and until then it looks like an operator.
func (req StartRequest) settled(ctx context.Context) error {
	waiting := filepath.Base(req.Self)
	for deadline := time.Now().Add(handPatience); ; {
		all, err := req.Tmux.Sessions(ctx)
		if err != nil {
			return err
		}
		unsettled := false
		for _, s := range all {
			ours := s.Name == rules.OperatorName(req.Slug) || s.Thread == req.Thread
			unsettled = unsettled || ours && s.Kind == KindOperator && s.Command == waiting
		}
		if !unsettled || time.Now().After(deadline) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPoll):
		}
	}
}

// launch makes the session, and waits until its CLI is at work.
func (req StartRequest) launch(ctx context.Context, locks locks, rec record) (Live, error) {
	id := uuid.NewString()
	target, err := req.open(ctx, locks, rec, id)
	var live Live
	if err == nil {
		failpoint.At(failpoint.OperatorHanded)
		live, err = req.briefed(ctx, id)
	}
	if err != nil && target != "" {
		err = errors.Join(err, req.undo(ctx, id, target))
	}
	return live, err
}

// open makes a session and hands it what to run, if there is room for it. It returns the
// session's id in tmux as soon as there is one.
func (req StartRequest) open(ctx context.Context, locks locks, rec record, id string) (target string, err error) {
	held, err := locks.take(ctx, lockBox, req.Tmux.Socket)
	if err != nil {
		return "", err
	}
	defer held.Close()
	if err := req.room(ctx); err != nil {
		return "", err
	}
	marks := req.marks(id, rec)
	argv, err := req.Agent.argv(id, req.Agent.prompt(req.Brief, rec))
	if err != nil {
		return "", err
	}
	door, err := openDoor(filepath.Join(req.Dir, "run"), id)
	if err != nil {
		return "", err
	}
	defer door.close()
	target, err = req.newSession(ctx, marks, rec.Worktree, door)
	if err != nil {
		return "", err
	}
	failpoint.At(failpoint.OperatorSession)
	if err := door.hand(ctx, job{Argv: argv, Env: req.Agent.env(marks, os.Geteuid() == 0), Dir: rec.Worktree}); err != nil {
		return target, fmt.Errorf("start the agent CLI in its session: %w", err)
	}
	return target, nil
}

// undo ends the session of a start that failed, also when its time is up.
func (req StartRequest) undo(ctx context.Context, id, target string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tmuxPatience)
	defer cancel()
	_, err := req.Tmux.Run(ctx, nil, "kill-session", "-t", target)
	if err != nil && !noServer(err) && !noSession(err) {
		return fmt.Errorf("end its session: %w", err)
	}
	return req.Tmux.Kill(ctx, id)
}

// room refuses one operator more than may run (X6).
func (req StartRequest) room(ctx context.Context) error {
	all, err := req.Tmux.Sessions(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, s := range all {
		if s.Kind == KindOperator {
			n++
		}
	}
	if req.Limit > 0 && n >= req.Limit {
		return fmt.Errorf("%w: %d", ErrLimit, n)
	}
	return nil
}

// marks are what the session's environment says of it (O9, X5).
func (req StartRequest) marks(id string, rec record) []string {
	return []string{
		EnvSession + "=" + id, EnvSeat + "=" + req.Seat, EnvTeam + "=" + req.Thread.Team, EnvChannel + "=" + req.Thread.Channel,
		EnvRoot + "=" + req.Thread.Root, EnvSlug + "=" + req.Slug, EnvAsked + "=" + req.Asked, EnvRepo + "=" + rec.Repo,
		EnvWorktree + "=" + rec.Worktree, EnvBranch + "=" + rec.Branch, EnvOutbox + "=" + req.Outbox,
	}
}

// newSession has tmux make the session. What runs in it is this program, which waits to be
// told what to become: so neither a secret nor a word of the brief is ever tmux's to keep.
func (req StartRequest) newSession(ctx context.Context, marks []string, dir string, d *door) (target string, err error) {
	args := []string{"new-session", "-d", "-P", "-F", "#{session_id}", "-s", rules.OperatorName(req.Slug), "-c", dir, "-x", "200", "-y", "50"}
	for _, m := range marks {
		args = append(args, "-e", m)
	}
	// tmux executes several words as they are, and gives a single one to a shell.
	out, err := req.Tmux.Run(ctx, nil, append(args, req.Self, sessionArg, d.dir, d.name)...)
	if err != nil {
		return "", fmt.Errorf("make the session: %w", err)
	}
	target = trimLine(out)
	if !targetShape.MatchString(target) {
		return "", fmt.Errorf("make the session: tmux gave it no id: %q", clip(target, 60))
	}
	return target, nil
}

var targetShape = regexp.MustCompile(`^\$[0-9]+$`)

// briefed waits until the CLI has taken its brief: its hook writes that down. A CLI that
// ends before is a failed start; one that only takes long is not.
func (req StartRequest) briefed(ctx context.Context, id string) (Live, error) {
	for deadline := time.Now().Add(req.Patience); ; {
		s, ok, err := req.Tmux.ByID(ctx, id)
		if err != nil {
			return Live{}, err
		}
		if !ok {
			return Live{}, errors.New("the agent CLI ended as soon as it was started")
		}
		took, err := os.ReadDir(filepath.Join(req.Outbox, id, "prompts"))
		s.Briefed = err == nil && len(took) > 0
		if s.Briefed || time.Now().After(deadline) {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return Live{}, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
