package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"agentsmith/rules"
)

// Operators says how operators run (O9).
type Operators struct {
	// Command is start-operator; "" is the one beside the worker's own binary.
	Command string `yaml:"command"`
	Tmux    string `yaml:"tmux"`
	// Socket is the tmux server of Smith: a name (tmux -L), or an absolute path (tmux -S).
	Socket string `yaml:"socket"`
	Model  string `yaml:"model"` // "" is the seat's
	// SkipPermissions lets operators run every tool unasked (X4); else they have the
	// seat's allowed_tools and permission_mode, and stop at a dialog for the rest.
	SkipPermissions bool `yaml:"skip_permissions"`
	Limit           int  `yaml:"limit"` // operators at once on this box (X6)
	// Cleanup is what goes when a task is done: CleanupWorktree or CleanupKeep (O10).
	Cleanup string `yaml:"cleanup"`
	// Home is the operators' HOME, never a person's (O9); Load fills "" in as
	// operators/home in DataDir.
	Home string `yaml:"home"`
	// Off: SMITH_AUTO_OPERATOR=off, no line starts one (O5).
	Off bool `yaml:"-"`
}

// What Operators.Cleanup may be. Only a worktree that is clean, and whose commits stand
// elsewhere too, is ever removed.
const (
	CleanupWorktree = "worktree"
	CleanupKeep     = "keep"
)

// Classifier says what tells work from a question (O2).
type Classifier struct {
	Model   string        `yaml:"model"`
	Timeout time.Duration `yaml:"timeout"`
}

// GitHub says how pull requests are followed (O10).
type GitHub struct {
	APIURL string        `yaml:"api_url"` // ends with "/"
	Listen string        `yaml:"listen"`  // the webhooks' door; "" is none
	Poll   time.Duration `yaml:"poll"`    // how often a pull request is read without a webhook

	Token         Secret `yaml:"-"` // the worker's, SMITH_GITHUB_TOKEN; "" reads what is public
	WebhookSecret Secret `yaml:"-"` // the starter's, SMITH_GITHUB_WEBHOOK_SECRET
}

// Spawn says whose line may start an operator (X1): every full member of the installing
// team, the listed users, or with neither nobody.
type Spawn struct {
	Members bool
	Users   []string
}

func (s *Spawn) readNode(f *finding, path string, n *yaml.Node) {
	*s = Spawn{}
	if n.Kind != yaml.ScalarNode {
		readSlice(f, path, n, reflect.ValueOf(&s.Users).Elem())
		return
	}
	switch n.Value {
	case "members":
		s.Members = true
	case "nobody":
	default:
		f.addLine(n.Line, "%s must be members, nobody, or a list of user ids, not %s", path, kind(n))
	}
}

var socketShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

func (l *loader) checkOperators(c *Config) {
	o := &c.Operators
	if strings.HasPrefix(o.Command, "-") {
		l.add("operators.command", "operators.command must be the path of start-operator, or \"\" for the one beside the worker")
	}
	if o.Tmux == "" || strings.HasPrefix(o.Tmux, "-") {
		l.add("operators.tmux", "operators.tmux must be the name or the path of tmux, such as tmux")
	}
	if !socketShape.MatchString(o.Socket) && !filepath.IsAbs(o.Socket) {
		l.add("operators.socket", "operators.socket must be a plain name, such as smith, or an absolute path, not %s", short(o.Socket))
	}
	if o.Model != "" && !modelShape.MatchString(o.Model) {
		l.add("operators.model", "operators.model %s is no name of a model", short(o.Model))
	}
	if o.Limit < 1 || o.Limit > 100 {
		l.add("operators.limit", "operators.limit must be between 1 and 100, not %d", o.Limit)
	}
	oneOf(&l.finding, "operators.cleanup", o.Cleanup, CleanupWorktree, CleanupKeep)
	if o.Home == "" {
		o.Home = filepath.Join(c.DataDir, "operators", "home")
	}
	home := o.Home
	var ok bool
	if o.Home, ok = absolute(home, l.env("HOME")); !ok && filepath.IsAbs(c.DataDir) {
		l.add("operators.home", "operators.home must be an absolute path, not %s", short(home))
	}
	// A switch that is misread would start what somebody meant to stop.
	switch off := l.env("SMITH_AUTO_OPERATOR"); strings.ToLower(off) {
	case "", "on":
	case "off":
		o.Off = true
	default:
		l.add("operators", "SMITH_AUTO_OPERATOR in the environment must be on or off, not %s", short(off))
	}
}

func (l *loader) checkClassifier(c *Config) {
	if !modelShape.MatchString(c.Classifier.Model) {
		l.add("classifier.model", "classifier.model %s is no name of a model, such as haiku", short(c.Classifier.Model))
	}
	l.between("classifier.timeout", c.Classifier.Timeout, time.Second, 10*time.Minute)
}

func (l *loader) checkGitHub(c *Config) {
	l.apiURL("github.api_url", c.GitHub.APIURL, "https://api.github.com/")
	l.between("github.poll", c.GitHub.Poll, time.Second, 24*time.Hour)
	switch {
	case l.launcher:
	case l.worker:
		c.GitHub.Token = Secret(strings.TrimSpace(l.env("SMITH_GITHUB_TOKEN")))
	case c.GitHub.Listen != "":
		c.GitHub.WebhookSecret = Secret(strings.TrimSpace(l.env("SMITH_GITHUB_WEBHOOK_SECRET")))
		if len(c.GitHub.WebhookSecret) < 16 {
			l.add("github.listen", "github.listen needs the webhook's secret, 16 characters or more, in the environment as SMITH_GITHUB_WEBHOOK_SECRET")
		}
	}
}

// Checkouts are the git checkouts that agents may write in and that exist on this box
// now, by name: the closed set of O4 and of B8.
func (c *Config) Checkouts() []rules.Checkout {
	var found []rules.Checkout
	for _, root := range c.WritableRoots {
		if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
			found = append(found, rules.Checkout{Name: filepath.Base(root), Path: root})
		}
	}
	return found
}
