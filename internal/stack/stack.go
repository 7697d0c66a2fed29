// Package stack runs the whole of Smith on one machine, with real parts: a Temporal
// server, the local Slack, a local GitHub, the agent CLI (against a stand-in of the
// model unless told otherwise), a worker and a starter. The local stack, the end-to-end
// tests, the captures and the benchmarks are all built on it.
package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"agentsmith/internal/githubbox"
	"agentsmith/internal/slackbox"
	"agentsmith/internal/slackbox/page"
	"agentsmith/internal/standin"
	"agentsmith/internal/terminal"
)

// Namespace is where everything local runs.
const Namespace = "default"

// Options say what to start.
type Options struct {
	// Dir holds state, logs and the config; it is made when it is missing.
	Dir string
	// Temporal, Claude, Worker and Starter are the programs.
	Temporal, Claude, Worker, Starter string
	// SignedIn runs agents with the user's own home and account; without it they talk to
	// a stand-in of the model, from a home of their own.
	SignedIn bool
	// Slack is the local Slack's world and manners; a nil Page gets the real one.
	Slack slackbox.Options
	// SlackAddr and the ports are where they listen, unless that is taken; "" and 0 are
	// any free port.
	SlackAddr                    string
	TemporalPort, TemporalUIPort int
	// Dynamic are further values of the Temporal server's dynamic configuration.
	Dynamic []string
	// SearchAttributes are created with the namespace, as name=type.
	SearchAttributes []string
	// Seats are the names of the seats to run; nil is every seat of the local Slack.
	Seats []string
	// Beside is another machine's stack: this one shares its Slack and nothing else (A7).
	Beside *Stack
	// Remote are seats of the local Slack that run on another machine.
	Remote []string
	// Area are names of people whose asks are a seat's, Stickers a reaction that stands for it (A2).
	Area     map[string][]string
	Stickers map[string]string
	// Dispatcher gives the dispatcher its tokens; without them it idles (A3).
	Dispatcher bool
	// Config is laid over the config that the stack writes.
	Config map[string]any
	// Env is added to the environment of worker and starter.
	Env []string
	// Failpoints is a directory for programs that were built with failpoints, or "".
	Failpoints string
	// Model answers for the model; nil is the stand-in's own script.
	Model func(standin.Request) standin.Reply
	// Operators lets threads get operators; nil switches them off (O5).
	Operators *Operators
	// Say tells the user what is being waited for; nil is silent.
	Say func(text string)
	Log *slog.Logger
}

// Stack is a running system.
type Stack struct {
	Options
	// Tmux is the server that the operators' sessions are in.
	Tmux     terminal.Tmux
	Slack    *slackbox.Server
	GitHub   *githubbox.Server
	Model    *standin.Server
	Temporal *Temporal
	Worker   *Proc
	Starter  *Proc
	// ConfigPath is the config that worker and starter read.
	ConfigPath string

	workerHealth, starterHealth, githubDoor, tmuxDir string
}

// Start starts everything in order and returns when it is ready for a line. What had
// started is stopped again when a later part does not.
func Start(ctx context.Context, o Options) (*Stack, error) {
	s := &Stack{Options: o}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context) error {
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Say == nil {
		s.Say = func(string) {}
	}
	for _, dir := range []string{s.Dir, s.path("data"), s.path("logs"), s.path("agent-home")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make %s: %w", dir, err)
		}
	}
	if err := s.startSlack(ctx); err != nil {
		return err
	}
	if err := s.startGitHub(ctx); err != nil {
		return err
	}
	if err := s.startModel(ctx); err != nil {
		return err
	}
	if err := s.placeTmux(); err != nil {
		return err
	}
	s.Say("Starting the Temporal server …")
	var err error
	s.Temporal, err = StartTemporal(ctx, TemporalOptions{
		Bin: s.Options.Temporal, DB: s.path("temporal.db"), LogDir: s.path("logs"),
		Port: s.TemporalPort, UIPort: s.TemporalUIPort, Dynamic: s.Dynamic, SearchAttributes: s.SearchAttributes,
	})
	if err != nil {
		return err
	}
	if err := s.writeConfig(); err != nil {
		return err
	}
	s.Say("Starting worker and starter …")
	if err := s.StartWorker(ctx); err != nil {
		return err
	}
	return s.StartStarter(ctx)
}

func (s *Stack) path(name string) string { return filepath.Join(s.Dir, name) }

func (s *Stack) startSlack(ctx context.Context) error {
	if s.Beside != nil {
		s.Slack = s.Beside.Slack
		return nil
	}
	o := s.Options.Slack
	if o.Page == nil {
		o.Page = page.Handler()
	}
	s.Slack = slackbox.New(o)
	err := s.Slack.Start(ctx, s.SlackAddr)
	if errors.Is(err, syscall.EADDRINUSE) {
		err = s.Slack.Start(ctx, "")
	}
	if err != nil {
		return fmt.Errorf("start the local Slack: %w", err)
	}
	return nil
}

func (s *Stack) startModel(ctx context.Context) error {
	if s.SignedIn {
		return nil
	}
	var err error
	s.Model, err = standin.Start(ctx, standin.Options{Script: s.Options.Model, Logger: s.Log})
	if err != nil {
		return fmt.Errorf("start the stand-in of the model: %w", err)
	}
	return nil
}

// writeConfig writes the config of worker and starter: the defaults of the local stack,
// then what the options lay over them.
func (s *Stack) writeConfig() error {
	var err error
	if s.workerHealth, err = freeAddr(); err != nil {
		return err
	}
	if s.starterHealth, err = freeAddr(); err != nil {
		return err
	}
	var seats []map[string]any
	for _, app := range s.Slack.State().Apps {
		switch {
		case slices.Contains(s.Remote, app.Name):
			seats = append(seats, s.seat(app.Name, map[string]any{"remote": true, "bot_user": app.BotUser}))
		case s.runs(app.App):
			seats = append(seats, s.seat(app.Name, map[string]any{}))
		}
	}
	agent := map[string]any{"command": s.Claude}
	if !s.SignedIn {
		agent["home"] = s.path("agent-home")
	}
	cfg := map[string]any{
		"data_dir": s.path("data"),
		"slack":    map[string]any{"api_url": s.Slack.URL()},
		"seats":    seats,
		"agent":    agent,
		"github":   map[string]any{"api_url": s.GitHub.URL(), "listen": s.githubDoor, "poll": "10s"},
		"access":   map[string]any{"owners": s.owners()},
		"listen":   map[string]any{"worker": s.workerHealth, "starter": s.starterHealth},
		"log":      map[string]any{"format": "text"},
		// Who presses Ctrl-C waits for it.
		"drain": "5s",
	}
	s.layOperators(cfg)
	lay(cfg, s.Config)
	text, err := yaml.Marshal(cfg)
	if err != nil {
		return fmt.Errorf("write the config: %w", err)
	}
	s.ConfigPath = s.path("smith.yaml")
	if err := os.WriteFile(s.ConfigPath, text, 0o600); err != nil {
		return fmt.Errorf("write the config: %w", err)
	}
	return nil
}

// seat is a seat of the config, with what a pick goes by.
func (s *Stack) seat(name string, fields map[string]any) map[string]any {
	fields["name"] = name
	var area []string
	for _, u := range s.Slack.State().Users {
		if slices.Contains(s.Area[name], u.Name) {
			area = append(area, u.ID)
		}
	}
	fields["area"] = area
	if sticker := s.Stickers[name]; sticker != "" {
		fields["stickers"] = []string{sticker}
	}
	return fields
}

// owners are the first person of the local Slack: this machine is theirs (X1).
func (s *Stack) owners() []string {
	for _, u := range s.Slack.State().Users {
		if u.Kind == slackbox.Member {
			return []string{u.ID}
		}
	}
	return nil
}

// lay puts one config over another, key by key.
func lay(under, over map[string]any) {
	for key, value := range over {
		below, both := under[key].(map[string]any)
		above, isMap := value.(map[string]any)
		if both && isMap {
			lay(below, above)
			continue
		}
		under[key] = value
	}
}

// seatApps are the seats of the local Slack that this stack runs.
func (s *Stack) seatApps() []slackbox.App {
	var out []slackbox.App
	for _, app := range s.Slack.State().Apps {
		if s.runs(app.App) {
			out = append(out, app.App)
		}
	}
	return out
}

// runs tells whether this stack runs a seat.
func (s *Stack) runs(app slackbox.App) bool {
	return app.Seat && (s.Seats == nil || slices.Contains(s.Seats, app.Name))
}

// env is what worker and starter share: the basics, how to reach Temporal, and the bot
// tokens.
func (s *Stack) env() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8",
		"TEMPORAL_ADDRESS=" + s.Temporal.Address, "TEMPORAL_NAMESPACE=" + Namespace,
	}
	env = append(env, s.Options.Env...)
	if s.Failpoints != "" {
		env = append(env, "SMITH_FAILPOINTS="+s.Failpoints)
	}
	for _, app := range s.seatApps() {
		env = append(env, envName(app.Name)+"_BOT_TOKEN="+app.BotToken)
	}
	if app, ok := s.dispatcher(); ok {
		env = append(env, "AGENT_FORCE_BOT_TOKEN="+app.BotToken)
	}
	if s.Options.Operators == nil {
		env = append(env, "SMITH_AUTO_OPERATOR=off")
	}
	return env
}

// starterEnv has the app tokens too; workerEnv has what signs the agent CLI in (X3).
func (s *Stack) starterEnv() []string {
	env := append(s.env(), "SMITH_GITHUB_WEBHOOK_SECRET="+githubSecret)
	for _, app := range s.seatApps() {
		env = append(env, envName(app.Name)+"_APP_TOKEN="+app.AppToken)
	}
	if app, ok := s.dispatcher(); ok {
		env = append(env, "AGENT_FORCE_APP_TOKEN="+app.AppToken)
	}
	return env
}

// dispatcher is the local Slack's app that picks, if this stack runs it.
func (s *Stack) dispatcher() (slackbox.App, bool) {
	for _, app := range s.Slack.State().Apps {
		if s.Options.Dispatcher && app.Name == "agent-force" {
			return app.App, true
		}
	}
	return slackbox.App{}, false
}

func (s *Stack) workerEnv() []string {
	env := append(s.env(), "SMITH_GITHUB_TOKEN="+githubToken)
	if s.SignedIn {
		return append(env, signInVars()...)
	}
	return append(env, "ANTHROPIC_BASE_URL="+s.Model.URL(), "ANTHROPIC_API_KEY=local-model-needs-no-key")
}

func envName(seat string) string { return strings.ToUpper(strings.ReplaceAll(seat, "-", "_")) }

// signInVars are the caller's own variables by which the agent CLI is signed in.
func signInVars() []string {
	var out []string
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "ANTHROPIC_") || strings.HasPrefix(kv, "CLAUDE_CODE_") {
			out = append(out, kv)
		}
	}
	return out
}

// StartWorker starts the worker, also after it was stopped or killed.
func (s *Stack) StartWorker(ctx context.Context) error {
	p, err := s.program(ctx, "worker", s.Options.Worker, s.workerEnv(), s.workerHealth)
	s.Worker = p
	return err
}

// StartStarter starts the starter, also after it was stopped or killed.
func (s *Stack) StartStarter(ctx context.Context) error {
	p, err := s.program(ctx, "starter", s.Options.Starter, s.starterEnv(), s.starterHealth)
	s.Starter = p
	return err
}

// StarterHealth is the starter's address of /healthz and /metrics.
func (s *Stack) StarterHealth() string { return s.starterHealth }

// WorkerHealth is the worker's address of /healthz and /metrics.
func (s *Stack) WorkerHealth() string { return s.workerHealth }

func (s *Stack) program(ctx context.Context, name, bin string, env []string, health string) (*Proc, error) {
	p, err := start(s.path("logs"), command{name: name, path: bin, args: []string{"--config", s.ConfigPath}, env: env, dir: s.Dir})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	return p, waitFor(ctx, "wait for the "+name, p, func(ctx context.Context) error { return healthy(ctx, health) })
}

// healthy asks a program's own health check.
func healthy(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("not healthy yet: %s", resp.Status)
	}
	return nil
}

// stopLimit is how long a program may take to stop by itself.
const stopLimit = 30 * time.Second

// Stop stops everything, the doors first, and leaves no process behind.
func (s *Stack) Stop() error {
	var errs []error
	for _, p := range []*Proc{s.Starter, s.Worker} {
		if p != nil {
			errs = append(errs, p.Stop(stopLimit))
		}
	}
	if s.Temporal != nil && s.Temporal.Proc != nil {
		errs = append(errs, s.Temporal.Stop(stopLimit))
	}
	if s.GitHub != nil {
		errs = append(errs, s.GitHub.Close())
	}
	errs = append(errs, s.stopOperators())
	if s.Model != nil {
		errs = append(errs, s.Model.Close())
	}
	if s.Slack != nil && s.Beside == nil {
		errs = append(errs, s.Slack.Close())
	}
	return errors.Join(errs...)
}

func freeAddr() (string, error) {
	port, err := freePort(0)
	if err != nil {
		return "", err
	}
	return loopback(port), nil
}
