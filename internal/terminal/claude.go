package terminal

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// Agent says how the agent CLI runs in an operator's session.
type Agent struct {
	// Command is the CLI's absolute path.
	Command string
	// Env is the CLI's exact environment (X3), but for what names the session and the
	// terminal.
	Env             []string
	Home            string
	Model           string // "" leaves it to the CLI
	AllowedTools    []string
	DisallowedTools []string
	// PermissionMode is "default" when "".
	PermissionMode string
	// SkipPermissions runs every tool unasked. It must have been said in so many words
	// (X4).
	SkipPermissions bool
	// Say is the absolute path of the say program (R11).
	Say string
}

// sayTimeout is how long the CLI waits for one of our hooks, in seconds.
const sayTimeout = 30

// MaxBrief bounds a brief, in bytes: it is an argument of the CLI, and Linux refuses one
// of 128 KiB.
const MaxBrief = 64 << 10

// briefPrefix stands before every brief. A prompt that begins with "/", "!", "#" or "@" is
// a command of the CLI's, and one with "-" a flag.
const briefPrefix = "You are an operator: you work on one task, by yourself, in a terminal.\n\n"

// argv is how the CLI is called, its first prompt last. Nobody passes it through a shell.
// As with an agent in print mode, values stand behind "=", and the settings of the
// worktree and its MCP servers are left out: who may write there must not be able to
// give itself permissions or hooks.
func (a Agent) argv(session, prompt string) ([]string, error) {
	settings, err := a.settings()
	if err != nil {
		return nil, err
	}
	v := []string{a.Command, "--session-id=" + session, "--settings=" + settings, "--setting-sources=user", "--strict-mcp-config"}
	if a.SkipPermissions {
		v = append(v, "--dangerously-skip-permissions")
	} else if a.PermissionMode != "" {
		v = append(v, "--permission-mode="+a.PermissionMode)
	}
	if a.Model != "" {
		v = append(v, "--model="+a.Model)
	}
	return append(v, "--", prompt), nil
}

// hookMatcher is an entry of a hook's list in the CLI's settings.
type hookMatcher struct {
	Hooks []hookCommand `json:"hooks"`
}

type hookCommand struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

// sayHooks are the hooks by which a session speaks and its prompts are told of (R10, R11);
// say is how the program is called, for a shell.
func sayHooks(say string) map[string][]hookMatcher {
	hooks := map[string][]hookMatcher{}
	for event, kind := range map[string]string{"Stop": "stop", "Notification": "notification", "UserPromptSubmit": "prompt"} {
		hooks[event] = []hookMatcher{{Hooks: []hookCommand{{Type: "command", Command: say + " --hook " + kind, Timeout: sayTimeout}}}}
	}
	return hooks
}

// settings are the CLI's settings of one session: what it may do unasked, and its hooks.
func (a Agent) settings() (string, error) {
	type permissions struct {
		Allow []string `json:"allow"`
		Deny  []string `json:"deny,omitempty"`
	}
	text, err := json.Marshal(struct {
		Permissions permissions              `json:"permissions"`
		Hooks       map[string][]hookMatcher `json:"hooks"`
		SkipPrompt  bool                     `json:"skipDangerousModePermissionPrompt,omitempty"`
	}{
		Permissions: permissions{Allow: append(slices.Clone(a.AllowedTools), "Bash("+a.Say+":*)"), Deny: a.DisallowedTools},
		Hooks:       sayHooks(shellQuote(a.Say)),
		SkipPrompt:  a.SkipPermissions,
	})
	if err != nil {
		return "", fmt.Errorf("write the session's settings: %w", err)
	}
	return string(text), nil
}

// env is the CLI's environment in a session.
func (a Agent) env(session []string, root bool) []string {
	env := slices.Clone(a.Env)
	env = setEnv(env, "HOME="+a.Home)
	if a.SkipPermissions && root {
		env = setEnv(env, "IS_SANDBOX=1") // else the CLI refuses to skip them for root
	}
	for _, kv := range session {
		env = setEnv(env, kv)
	}
	return env
}

// setEnv returns env with a NAME=value, once.
func setEnv(env []string, kv string) []string {
	name, _, _ := strings.Cut(kv, "=")
	env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
	return append(env, kv)
}

func lookupEnv(env []string, name string) string {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// prompt is the operator's first prompt: the brief, where it works, and how it speaks.
func (a Agent) prompt(brief string, rec record) string {
	var b strings.Builder
	b.WriteString(briefPrefix)
	b.WriteString(strings.TrimSpace(plain(brief)))
	fmt.Fprintf(&b, "\n\nYou work in %s, a git worktree of %s, on the branch %s. Commit your work there. Read CLAUDE.md and AGENTS.md first where they exist: they are not loaded by themselves. ", rec.Worktree, rec.Repo, rec.Branch)
	b.WriteString("Where something stands there already that nobody told you of, an operator before you left it: look at the log and the status, and go on from it.\n\n")
	fmt.Fprintf(&b, "The people are in the Slack thread, not at this terminal. To tell them something while you work, run: %s 'TEXT'\n", shellQuote(a.Say))
	b.WriteString("What you write last when you stop is told to them by itself; don't say the same twice. What they write reaches you here as a prompt. ")
	b.WriteString("When you need to know something, ask by stopping with the question.\n")
	return b.String()
}

// plain makes a text that is safe as an argument and as a prompt: no control characters
// but line ends and tabs.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// check refuses what would have to be guessed.
func (a Agent) check() error {
	for what, path := range map[string]string{"the agent CLI": a.Command, "the operators' home": a.Home, "say": a.Say} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("%s: %q is no absolute path", what, path)
		}
	}
	if strings.EqualFold(a.PermissionMode, "bypassPermissions") {
		return fmt.Errorf("permissions are skipped by operators.skip_permissions only, not by a mode")
	}
	return nil
}
