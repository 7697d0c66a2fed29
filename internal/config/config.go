// Package config reads the one config file of Smith (T4): every problem is printed
// at once with the line where it stands, and secrets come from the environment only.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Config is everything that a process of Smith is told, defaults filled in.
type Config struct {
	// DataDir holds the SQLite store, the spool and the threads' directories.
	DataDir string `yaml:"data_dir"`
	// DatabaseURL is the store (T3): "" in the file means SQLite in DataDir. A URL with
	// a password comes from SMITH_DATABASE_URL, which wins over the file.
	DatabaseURL Secret `yaml:"database_url"`
	// Box is the name of this machine in the fleet.
	Box        string     `yaml:"box"`
	Slack      Slack      `yaml:"slack"`
	OpsChannel string     `yaml:"ops_channel"` // where trouble is said (T6); "" nowhere
	Seats      []Seat     `yaml:"seats"`
	Dispatcher Dispatcher `yaml:"dispatcher"`
	Access     Access     `yaml:"access"`
	Limits     Limits     `yaml:"limits"`
	// IdleAfter is how long a brain waits for a next line before it completes (B6).
	IdleAfter time.Duration `yaml:"idle_after"`
	// OwedTooLong is the age at which the sweep asks about a line (L3).
	OwedTooLong time.Duration `yaml:"owed_too_long"`
	// Drain is how long running turns may still take after SIGTERM (T6).
	Drain time.Duration `yaml:"drain"`
	// WritableRoots are the checkouts that agents may write in: absolute, cleaned paths (O4, B8).
	WritableRoots []string   `yaml:"writable_roots"`
	Agent         Agent      `yaml:"agent"`
	Operators     Operators  `yaml:"operators"`
	Classifier    Classifier `yaml:"classifier"`
	GitHub        GitHub     `yaml:"github"`
	Listen        Listen     `yaml:"listen"`
	Schedules     []Schedule `yaml:"schedules"`
	Log           Log        `yaml:"log"`
	// File is where the config was read.
	File string `yaml:"-"`
}

// Slack says how Slack is reached.
type Slack struct {
	APIURL         string        `yaml:"api_url"` // ends with "/"
	RequestTimeout time.Duration `yaml:"request_timeout"`
}

// Seat is one agent identity: a Slack app with its own bot user and tokens.
type Seat struct {
	Name string `yaml:"name"`
	// BotUser is the uid of a seat that runs elsewhere; a seat of ours learns its own from Slack (D5).
	BotUser string `yaml:"bot_user"`
	// Remote: the seat runs elsewhere, and is here only to be recognised.
	Remote bool `yaml:"remote"`
	// Box is the machine where the seat's agents run; the config's own where not said.
	Box             string   `yaml:"box"`
	Model           string   `yaml:"model"`         // "" leaves it to the agent CLI
	SystemPrompt    string   `yaml:"system_prompt"` // appended to the agent CLI's own
	AllowedTools    []string `yaml:"allowed_tools"`
	DisallowedTools []string `yaml:"disallowed_tools"`
	PermissionMode  string   `yaml:"permission_mode"`
	// Area are the people whose asks are this seat's, Stickers the reactions that stand for
	// it on the root of a thread (A2).
	Area        []string `yaml:"area"`
	Stickers    []string `yaml:"stickers"`
	BotTokenEnv string   `yaml:"bot_token_env"` // default <NAME>_BOT_TOKEN
	AppTokenEnv string   `yaml:"app_token_env"` // default <NAME>_APP_TOKEN

	BotToken Secret `yaml:"-"`
	AppToken Secret `yaml:"-"`
}

func (s *Seat) setDefaults() {
	s.AllowedTools = []string{"Read", "Grep", "Glob"}
	s.PermissionMode = "default"
}

// Dispatcher is the app that picks who drives an ask (A1, A3). Its tokens are optional:
// without them nobody dispatches from here, and the seats pick by themselves (A4).
type Dispatcher struct {
	// Name is what the bot user is found by in Slack, BotUser its id where it is known; the
	// environment's AGENT_FORCE_USER_ID wins.
	Name    string `yaml:"name"`
	BotUser string `yaml:"bot_user"`
	// Box is the machine that posts its lines; the config's own where not said.
	Box         string `yaml:"box"`
	BotTokenEnv string `yaml:"bot_token_env"` // default AGENT_FORCE_BOT_TOKEN
	AppTokenEnv string `yaml:"app_token_env"` // default AGENT_FORCE_APP_TOKEN
}

// Tokens reads the dispatcher's tokens, "" where one is not there. A variable named like a
// token's with _FILE behind it names a file that holds the token: it may appear later.
func (d Dispatcher) Tokens(env func(string) string) (bot, app Secret, err error) {
	if bot, err = takeToken(env, d.BotTokenEnv, "xoxb-"); err != nil {
		return "", "", err
	}
	app, err = takeToken(env, d.AppTokenEnv, "xapp-")
	return bot, app, err
}

func takeToken(env func(string) string, name, begins string) (Secret, error) {
	value := strings.TrimSpace(env(name))
	if file := env(name + "_FILE"); value == "" && file != "" {
		raw, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("read the file that %s_FILE names: %w", name, err)
		}
		value = strings.TrimSpace(string(raw))
	}
	if value != "" && (!strings.HasPrefix(value, begins) || strings.ContainsAny(value, " \t\r\n")) {
		return "", fmt.Errorf("%s does not hold the token that is needed here: that one begins with %s", name, begins)
	}
	return Secret(value), nil
}

// Access says who may do what (X1).
type Access struct {
	Talk         Talk     `yaml:"talk"`
	SpawnAllowed Spawn    `yaml:"spawn_allowed"` // whose line may start an operator
	Owners       []string `yaml:"owners"`        // who may open a relay
}

// Talk says who may talk to a brain: every full member of the installing team, or
// the listed users only.
type Talk struct {
	Members bool
	Users   []string
}

func (t *Talk) readNode(f *finding, path string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		if n.Value != "members" {
			f.addLine(n.Line, "%s must be members, or a list of user ids, not %s", path, kind(n))
		}
		*t = Talk{Members: true}
		return
	}
	*t = Talk{}
	readSlice(f, path, n, reflect.ValueOf(&t.Users).Elem())
}

// Limits caps what a fleet takes (X6, D2).
type Limits struct {
	ConcurrentTurns int           `yaml:"concurrent_turns"`
	DailyCostUSD    float64       `yaml:"daily_cost_usd"`
	TurnTimeout     time.Duration `yaml:"turn_timeout"`
	TurnOutputBytes int64         `yaml:"turn_output_bytes"`
	SiblingHops     int           `yaml:"sibling_hops"`
	SelfDriveHops   int           `yaml:"self_drive_hops"`
	// ThreadHandOffs caps the hand-offs that a seat takes up in one thread, ever (D2).
	ThreadHandOffs int `yaml:"thread_hand_offs"`
}

// Agent says how the agent CLI is run (B8).
type Agent struct {
	Command string `yaml:"command"` // a name on the PATH, or an absolute path
	Home    string `yaml:"home"`    // HOME of the agent; "" is that of the worker
	// PassEnv are the names of the variables that an agent inherits; no others (X3).
	PassEnv []string `yaml:"pass_env"`
}

// Listen are the addresses of /healthz and /metrics (T6); "" is off.
type Listen struct {
	Starter string `yaml:"starter"`
	Worker  string `yaml:"worker"`
}

// Schedule starts a brain's turn by the clock (D1).
type Schedule struct {
	Name     string `yaml:"name"`
	Seat     string `yaml:"seat"`
	Channel  string `yaml:"channel"`
	Cron     string `yaml:"cron"` // minute hour day month weekday
	Timezone string `yaml:"timezone"`
	Prompt   string `yaml:"prompt"`
}

func (s *Schedule) setDefaults() { s.Timezone = "UTC" }

// Log says how logs are written.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // json, text
}

// Seat returns the seat of that name.
func (c *Config) Seat(name string) (Seat, bool) {
	i := slices.IndexFunc(c.Seats, func(s Seat) bool { return s.Name == name })
	if i < 0 {
		return Seat{}, false
	}
	return c.Seats[i], true
}

// Local returns the seats whose door is here: those that are not remote.
func (c *Config) Local() []Seat {
	return slices.DeleteFunc(slices.Clone(c.Seats), func(s Seat) bool { return s.Remote })
}

// Option says what a process needs of the config.
type Option func(*loader)

// ForWorker loads what a worker needs: the bot tokens of the seats of its own box,
// and no app token, which only a door uses (X3).
func ForWorker() Option { return func(l *loader) { l.worker = true } }

// ForLauncher loads what start-operator needs: no secret at all (X3).
func ForLauncher() Option { return func(l *loader) { l.launcher = true } }

type loader struct {
	finding
	env              func(string) string
	worker, launcher bool
}

// Load reads the config at path; env is os.Getenv, or a test's. Without an option
// it loads what a starter needs. An error about the content is Problems: all of
// them, each with file and line; else the file could not be read.
func Load(path string, env func(string) string, opts ...Option) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the config: %w; smith.example.yaml is one to start from", err)
	}
	return parseConfig(path, text, env, opts...)
}

func parseConfig(path string, text []byte, env func(string) string, opts ...Option) (*Config, error) {
	l := &loader{finding: finding{file: path, lines: map[string]int{}, last: bytes.Count(text, []byte("\n")) + 1}, env: env}
	for _, o := range opts {
		o(l)
	}
	c := defaults()
	c.File = path
	if root := parse(&l.finding, bytes.TrimPrefix(text, []byte("\ufeff"))); root != nil {
		readStruct(&l.finding, "", root, reflect.ValueOf(c).Elem())
		if root.Kind == yaml.MappingNode {
			l.check(c)
		}
	}
	if err := l.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func defaults() *Config {
	return &Config{
		DataDir: "~/.local/share/smith",
		Box:     "main",
		Slack:   Slack{APIURL: "https://slack.com/api/", RequestTimeout: 10 * time.Second},
		Access:  Access{Talk: Talk{Members: true}, SpawnAllowed: Spawn{Members: true}},
		Limits: Limits{
			ConcurrentTurns: 4, DailyCostUSD: 50, TurnTimeout: 30 * time.Minute,
			TurnOutputBytes: 8 << 20, SiblingHops: 2, SelfDriveHops: 3, ThreadHandOffs: 20,
		},
		IdleAfter:   30 * time.Minute,
		OwedTooLong: 5 * time.Minute,
		Drain:       time.Minute,
		Dispatcher:  Dispatcher{Name: "Agent Force", BotTokenEnv: "AGENT_FORCE_BOT_TOKEN", AppTokenEnv: "AGENT_FORCE_APP_TOKEN"},
		Agent:       Agent{Command: "claude", PassEnv: DefaultPassEnv()},
		Operators:   Operators{Tmux: "tmux", Socket: "smith", Limit: 8, Cleanup: CleanupWorktree},
		Classifier:  Classifier{Model: "haiku", Timeout: 45 * time.Second},
		GitHub:      GitHub{APIURL: "https://api.github.com/", Poll: 5 * time.Minute},
		Listen:      Listen{Starter: "127.0.0.1:9470", Worker: "127.0.0.1:9471"},
		Log:         Log{Level: "info", Format: "json"},
	}
}

// DefaultPassEnv names what the agent CLI needs to run, to sign in and to reach
// its service through a proxy.
func DefaultPassEnv() []string {
	return []string{
		"PATH", "LANG", "LC_ALL", "TZ", "TMPDIR",
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	}
}

// envName is the seat's name as it stands in the names of its variables.
func envName(seat string) string {
	return strings.ToUpper(strings.ReplaceAll(seat, "-", "_"))
}

// absolute resolves a leading "~/" and cleans the path; ok tells whether it is absolute.
func absolute(path, home string) (clean string, ok bool) {
	if rest, is := strings.CutPrefix(path, "~/"); is && home != "" {
		path = filepath.Join(home, rest)
	}
	return filepath.Clean(path), filepath.IsAbs(path)
}
